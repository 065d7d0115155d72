"""The slope plot: places on both sides, and kinds of lines."""

from __future__ import annotations

import re

from metricsmith.report.plots.slope import Slope, slope_plot


def test_lines_run_from_place_to_place_and_better_is_above():
    lines = [Slope("atlas", (1, 0), (".60", ".90"), ""), Slope("birch", (0, 1), (".70", ".80"), "down")]
    plot = slope_plot("k", lines, "title", ("hit rate", "in use"))
    found = re.findall(r'<polyline points="([^"]+)" class="curve ?(\w*)"', plot)
    drawn = {kind: points.split() for points, kind in found}
    atlas, birch = ([tuple(map(float, place.split(","))) for place in drawn[kind]] for kind in ("", "down"))
    assert atlas[0][1] > atlas[1][1]
    assert birch[0][1] < birch[1][1]
    assert atlas[1][1] == birch[0][1]
    assert "atlas: place 2 (.60) and place 1 (.90)" in plot
    assert ">.90 atlas<" in plot


def test_nothing_to_draw_draws_nothing():
    assert slope_plot("k", [], "title", ("a", "b")) == ""
