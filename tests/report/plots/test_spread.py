"""A point for each segment, system by system."""

from __future__ import annotations

import re

import pytest

from metricsmith.report.blocks import element
from metricsmith.report.plots.spread import BOTTOM, spread_plot


def drawn(read, values):
    page = read(element("div", spread_plot("spread", values, "highest less lowest run")))
    assert page.mismatched == []
    found = {}
    for tag, attributes in page.elements:
        if tag == "circle":
            place = float(attributes["cx"]), float(attributes["cy"])
            found.setdefault(attributes["class"], []).append(place)
        if tag == "path":
            numbers = re.findall(r"M([\d.]+) ([\d.]+)h0", attributes["d"])
            found.setdefault(attributes["class"], []).extend(tuple(map(float, place)) for place in numbers)
    return list(found.values())


def test_each_segment_with_a_number_is_a_point_and_others_are_none(read):
    alpha, beta = drawn(read, {"alpha": [0.0, 5.0, None, 10.0], "beta": [None, 49.0], "gamma": [None]})
    assert (len(alpha), len(beta)) == (3, 1)
    assert alpha[0][1] == BOTTOM  # 0 stands on the axis
    assert [x for x, _ in alpha] == sorted(x for x, _ in alpha)
    heights = [BOTTOM - y for _, y in alpha]
    assert heights[2] == pytest.approx(2 * heights[1], abs=0.2)
    assert BOTTOM - beta[0][1] == pytest.approx(9.8 * heights[1], abs=1)
    assert max(x for x, _ in alpha) < min(x for x, _ in beta)


def test_the_words_say_the_median_and_the_most(read):
    words = read(spread_plot("spread", {"a": [0, 4, 30], "b": [None]}, "delta")).inside("desc")
    assert words == ["a: median 4, at most 30, 3 segments; b: none"]


@pytest.mark.parametrize("values", [{}, {"a": []}, {"a": [None, None]}])
def test_without_a_number_there_is_no_plot(values):
    assert spread_plot("spread", values, "delta") == ""


def test_equal_runs_everywhere_are_points_on_the_axis(read):
    assert {y for _, y in drawn(read, {"a": [0, 0, 0]})[0]} == {BOTTOM}


def test_many_systems_have_upright_names(read):
    page = read(spread_plot("spread", {f"system {place}": [1.0, 2.0] for place in range(17)}, "delta"))
    turned = [a for tag, a in page.elements if tag == "text" and "rotate" in a.get("transform", "")]
    assert len(turned) == 18


def test_many_points_are_one_short_path_with_the_same_places(read):
    values = [float(place % 37) for place in range(1000)]
    (path,) = drawn(read, {"a": values})
    assert len(path) == len(set(path)) > 900
    plot = spread_plot("spread", {"a": values}, "delta")
    assert (plot.count("<circle"), len(plot) < 20_000) == (0, True)
