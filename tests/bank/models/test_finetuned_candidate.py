"""A finetuned metric among the candidates, on a tiny network: cross-fitted, saved with its weights, loaded again."""

from __future__ import annotations

import pytest

from metricsmith import load
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.scoring import score
from planted import TASK
from trainable import letter_rows

pytestmark = pytest.mark.extras


@pytest.mark.parametrize(("method", "settings"), [("ridge", {}), ("lora", {"steps": 6, "warm_up": 1, "rank": 2})])
def test_a_trained_component_is_the_same_after_loading(tmp_path, tiny, method, settings):
    place = str(tiny("modernbert"))
    candidate = FinetunedMetric(TASK, method=method, settings=settings, encoder="modernbert_base", local=place)
    rows = letter_rows(24, 8, signal=0.5)
    test = [row.copy(group=f"t{row.group}") for row in letter_rows(9, 3, seed=4, signal=0.5)]
    metric = AutoMetrics(TASK, bank="none", metrics=[candidate], progress=False).compile(rows, test)
    (component,) = metric.record.components
    assert (component.kind, component.copies) == ("finetuned", 5)
    metric.save(tmp_path / "metric.json")
    again = load(tmp_path / "metric.json", local={"modernbert_base": place})
    assert score([again], test).run().tolist() == score([metric], test).run().tolist()
