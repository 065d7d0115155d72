"""Numbers that rows bring along, read all at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.bank.column import ColumnMetric, column_numbers
from metricsmith.metric import make_row
from metricsmith.scoring import score

NAN = math.nan
CELLS = [0.5, 3, True, None, "4", NAN, math.inf, np.float64(2.5), [1.0]]
# a number is a float or an int of Python, truth values and numpy's float64 included, and never a text that looks so
NUMBERS = [0.5, 3.0, 1.0, NAN, NAN, NAN, math.inf, 2.5, NAN]


@pytest.mark.parametrize("odd", [slice(None), slice(0, 4), slice(4, 5)])
def test_only_numbers_are_read(odd):
    rows = [{"a": cell, "b": 1} for cell in CELLS[odd]]
    found = column_numbers(rows, ["b", "a", "none"])
    np.testing.assert_array_equal(found, [[1.0] * len(rows), NUMBERS[odd], [NAN] * len(rows)])


def test_no_rows_and_no_columns_have_a_shape():
    assert column_numbers([], ["a", "b"]).shape == (2, 0)
    assert column_numbers([{}, {}], []).shape == (0, 2)


def test_a_table_of_scores_holds_what_each_judgement_says():
    rows = [make_row("text", columns={"a": cell, "b": 1}) for cell in CELLS]
    metrics = [ColumnMetric("a"), ColumnMetric("b")]
    table = score(metrics, rows, progress=False)
    said = [[metric.judge_batch([row])[0].raw for metric in metrics] for row in rows]
    np.testing.assert_array_equal(table.run(), np.array(said, dtype=float))
    assert math.isnan(table.run()[6, 0])  # infinite
