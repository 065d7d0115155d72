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


def test_names_keep_the_end_that_tells_them_apart():
    names = [f"provider/family-8x22B-v0.{version}-instruct" for version in (1, 2)]
    plot = slope_plot("k", [Slope(name, (0, 0), ("", "")) for name in names], "title", ("a", "b"))
    assert plot.count("pro…nstruct") == 4
    ends = slope_plot("k", [Slope(f"provider/model-v0.{end}", (0, 0), ("", "")) for end in "12"], "t", ("a", "b"))
    assert "pro…el-v0.1<" in ends
    assert "pro…el-v0.2<" in ends
