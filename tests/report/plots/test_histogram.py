"""The distribution of a number over rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.report.blocks import element
from metricsmith.report.plots.histogram import histogram


def bars(read, values):
    page = read(element("div", histogram("value", values, "stars")))
    assert page.mismatched == []
    return [(float(a["data-low"]), float(a["data-high"])) for tag, a in page.elements if tag == "rect"]


@pytest.mark.parametrize(
    "values", [np.random.default_rng(3).normal(50, 20, 1000), [0.1, 0.2, 0.3, 0.7], [5, 5, 5], [1e-9, 2e-9]]
)
def test_every_value_lies_in_exactly_one_bar(read, values):
    found = bars(read, values)
    inside = [sum(low <= float(f"{value:.10g}") <= high for low, high in found) for value in values]
    assert inside == [1] * len(values)
    assert found == sorted(found)


def test_bars_are_ranges_of_equal_width(read):
    found = bars(read, np.linspace(0.9, 98.6, 900))  # 97.7 / 30 is 3.3, and the next round number 5
    assert len(found) == 20
    assert all(high - low <= 5 for low, high in found)


def test_whole_numbers_have_a_bar_each(read):
    assert bars(read, [1, 2, 2, 5, math.nan]) == [(1, 1), (2, 2), (5, 5)]
    words = read(histogram("value", [1, 2, 2, 5, math.nan, math.inf], "stars")).inside("desc")
    assert words == ["1: 1 row; 2: 2 rows; 5: 1 row"]


def test_bars_are_as_high_as_they_have_rows(read):
    page = read(histogram("value", [1, 2, 2, 5], "stars"))
    heights = [float(a["height"]) for tag, a in page.elements if tag == "rect"]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.02)
    assert heights[0] == heights[2]


def test_the_number_of_bars_grows_with_the_rows_up_to_thirty(read):
    few, many = (bars(read, np.linspace(0, 1, rows)) for rows in (40, 20_000))
    assert len(few) <= 11 < len(many) <= 31


def test_without_a_number_nothing_is_drawn():
    assert histogram("value", [math.nan], "stars") == ""
