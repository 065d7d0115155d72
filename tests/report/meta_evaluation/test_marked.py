"""Marked errors in a table: every figure beside its own interval."""

from __future__ import annotations

import math

from metricsmith.meta_evaluation.marked import MarkedComparison, MarkedErrors, MarksOfJudge
from metricsmith.report.meta_evaluation.marked import marked_parts
from metricsmith.stats.resampling import Interval


def ends(low, high):
    return Interval(low, high, 0.95)


def test_every_figure_stands_beside_its_own_interval():
    near = MarksOfJudge("near", 0.5, 0.6, 0.7, ends(0.4, 0.55), ends(0.5, 0.65), ends(0.6, 0.75), 1200)
    silent = MarksOfJudge("silent", math.nan, 0.0, 0.1, ends(math.nan, math.nan), ends(0.0, 0.1), ends(0.05, 0.2), 0)
    two = MarkedComparison("near", "silent", math.nan, ends(0.1, 0.2), 0.004)
    _, table, pairs = marked_parts(MarkedErrors((near, silent), (two,), 30, 2, 5))
    assert table.rows[0] == (
        "near", ".500", ".400 to .550", ".600", ".500 to .650", ".700", ".600 to .750", "1,200",
    )  # fmt: skip
    assert table.rows[1] == (
        "silent", "undefined", "–", ".000", ".000 to .100", ".100", ".050 to .200", "–",
    )  # fmt: skip
    assert pairs.rows == [("near over silent", "–", ".100 to .200", ".004")]
