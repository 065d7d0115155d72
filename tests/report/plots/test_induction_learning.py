"""The learning curve."""

from __future__ import annotations

import math
import re

from metricsmith.report.induction.record import LearningPoint
from metricsmith.report.plots.induction import learning_plot


def dots(drawing):
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawing)]


def test_the_curve_runs_from_few_rows_to_many_and_up_is_better():
    curve = [LearningPoint(80, 0.4, 0.3, 0.5), LearningPoint(20, 0.2, 0.0, 0.3)]
    (x, y), (other_x, other_y) = dots(learning_plot("k", curve))
    assert other_x > x
    assert other_y < y


def test_undefined_points_are_left_out_and_undefined_bounds_leave_the_mean():
    curve = [LearningPoint(20, math.nan, 0.1, 0.2), LearningPoint(40, 0.2, math.nan, math.nan)]
    drawing = learning_plot("k", curve)
    assert len(dots(drawing)) == 1
    assert "whisker" not in drawing


def test_nothing_to_draw_draws_nothing():
    assert learning_plot("k", []) == ""
    assert learning_plot("k", [LearningPoint(20, math.nan, math.nan, math.nan)]) == ""
