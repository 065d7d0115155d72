"""Several curves in one frame."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from metricsmith.report.plots.lines import MOST_SERIES, line_plot

NAMES = ("examples", "character F1")


def drawn(plot):
    return [
        [tuple(map(float, place.split(","))) for place in line.split()]
        for line in re.findall(r'<polyline points="([^"]+)"', plot)
    ]


def test_points_run_from_left_to_right_and_up_is_better():
    plot = line_plot("k", {"judge": [(7, 0.4), (1, 0.1), (3, 0.3)]}, "title", NAMES)
    line, legend = drawn(plot)
    assert [x for x, _ in line] == sorted(x for x, _ in line)
    assert [y for _, y in line] == sorted((y for _, y in line), reverse=True)
    assert len(legend) == 2
    assert ">.2<" in plot
    assert "judge: .10 at 1, .30 at 3, .40 at 7" in plot


def test_undefined_points_are_left_out_and_a_lone_point_is_drawn():
    plot = line_plot("k", {"judge": [(1, math.nan), (3, 0.3)]}, "title", NAMES)
    assert len(drawn(plot)[0]) == 1
    assert "judge: .30 at 3" in plot


def test_series_differ_in_their_class_and_those_beyond_the_colours_are_left_out():
    plot = line_plot("k", {str(number): [(0, 0.1 * number), (1, 0.2)] for number in range(5)}, "title", NAMES)
    assert len(drawn(plot)) == 2 * MOST_SERIES
    assert [css for css in ('class="curve"', 'class="curve down"', 'class="curve other"') if css in plot] == [
        'class="curve"', 'class="curve down"', 'class="curve other"',
    ]  # fmt: skip


def test_nothing_to_draw_draws_nothing():
    assert line_plot("k", {}, "title", NAMES) == ""
    assert line_plot("k", {"judge": [(1, math.nan)]}, "title", NAMES) == ""


def test_the_axis_may_begin_near_the_least_value():
    points = {"judge": [(0, 0.8), (1, 0.9)]}
    (near, _), (far, _) = (drawn(line_plot("k", points, "title", NAMES, from_zero=zero)) for zero in (False, True))
    assert near[0][1] - near[1][1] > 2 * (far[0][1] - far[1][1])


def test_on_a_logarithmic_scale_doubling_is_a_step_with_a_number_at_each_place():
    points = {"judge": [(5 * 2**k, 0.1 * k) for k in range(8)]}
    plot = line_plot("k", points, "title", NAMES, logarithmic=True)
    places = [x for x, _ in drawn(plot)[0]]
    steps = [right - left for left, right in pairwise(places)]
    assert max(steps) - min(steps) < 0.3
    assert all(f">{place:g}<" in plot for place, _ in points["judge"])
    assert len(drawn(line_plot("k", {"judge": [(5, 0.1)]}, "title", NAMES, logarithmic=True))[0]) == 1


def test_trials_are_faint_dots_of_their_series_inside_the_frame():
    trials = {"judge": [(1, 0.9), (1, math.nan), (3, -0.4)], "absent": [(1, 0.5)]}
    plot = line_plot("k", {"judge": [(1, 0.1), (3, 0.3)]}, "title", NAMES, trials=trials)
    faint = re.findall(r'cy="([\d.]+)" r="2.5" class="dot main" opacity="0.35"', plot)
    assert len(faint) == 2
    assert all(10 <= float(y) <= 190 for y in faint)
    assert float(faint[0]) < float(faint[1])
