"""The signed bars."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from metricsmith.report.plots.induction import MOST_BARS, weights


def bars(drawing):
    found = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]*class="bar (\w+)"', drawing)
    return [(float(x), float(width), kind) for x, width, kind in found]


def test_length_is_proportional_and_side_follows_the_sign(make_record):
    first, *_ = make_record().components
    parts = [replace(first, weight=weight) for weight in (0.4, -0.2)]
    (x, width, kind), (other_x, other_width, other) = bars(weights("k", parts, 4))
    assert (kind, other) == ("up", "down")
    assert math.isclose(width, 2 * other_width, rel_tol=0.01)
    assert math.isclose(other_x + other_width, x, abs_tol=0.02)


def test_the_zero_line_stops_at_each_label(make_record):
    drawing = weights("k", make_record().components, 4.0)
    assert re.search(r'y1="18" y2="\d+" class="zero" stroke-dasharray="22 18"', drawing)  # rows of 40


def test_one_sided_weights_use_the_whole_width(make_record):
    drawing = weights("k", make_record().components[:3], 4)
    assert bars(drawing)[0][1] > 350
    assert "lowers" not in drawing


def test_a_weight_of_zero_and_undefined_ones_do_no_harm(make_record):
    first, *_ = make_record().components
    assert len(bars(weights("k", [replace(first, weight=0.0)], 4))) == 1
    assert weights("k", [replace(first, weight=math.nan)], 4) == ""
    assert weights("k", [], 4) == ""


def test_no_more_bars_than_a_page_can_bear(make_record):
    assert len(bars(weights("k", [make_record().components[0]] * 99, 4))) == MOST_BARS
