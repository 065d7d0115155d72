"""Single methods of a comparison, on a data of their own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from metricsmith.metric import make_row
from metricsmith.optimizers.splits import RatedRows
from metricsmith.studies.comparison.methods import METHODS


def test_the_best_existing_metric_is_chosen_on_validation_rows_and_a_missing_score_is_the_learned_median():
    learned = np.array([[1, 9], [2, 8], [4, 7], [5, 1], [3, 2], [2, 3]], dtype=float)  # three to train, three to choose
    data = SimpleNamespace(
        learned_scores=learned,
        validation_scores=learned[3:],
        test_scores=np.array([[np.nan, np.nan], [100, 200], [300, 400]], dtype=float),
        split=SimpleNamespace(
            validation=RatedRows([make_row(text) for text in "abc"], np.array([1.0, 2.0, 3.0]), [*"abc"])
        ),
        existing=SimpleNamespace(names=["falling", "rising"]),
    )
    # Both agree perfectly with the three ratings, one turned over; the first counts. Its median is (2 + 3) / 2.
    found = METHODS["best_existing"].predict(data, 0)
    assert found.values.tolist() == [-2.5, -100, -300]
    assert found.remark == "chosen on 3 validation rows: falling, less is better"
    data.validation_scores = learned[3:] * [0, 1]
    assert METHODS["best_existing"].predict(data, 0).values.tolist() == [5, 200, 400]  # (3 + 7) / 2
