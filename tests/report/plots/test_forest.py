"""The forest plot's geometry."""

from __future__ import annotations

import math
import re

from metricsmith.report.plots.forest import Estimate, forest


def numbers(drawing, kind, name):
    return [float(value) for value in re.findall(rf'<{kind}[^>]* {name}="([-\d.]+)"', drawing)]


def whiskers(drawing):
    found = re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)"[^>]*class="whisker (\w+)"', drawing)
    return [(float(low), float(high), kind) for low, high, kind in found]


def test_longer_intervals_are_drawn_longer_and_the_dot_lies_inside():
    drawing = forest("k", [Estimate("a", 0.4, 0.2, 0.5, main=True), Estimate("b", 0.1, -0.3, 0.5)], "t")
    (low, high, kind), (other_low, other_high, other) = whiskers(drawing)
    assert (kind, other) == ("main", "other")
    # Widths .3 and .8 on one axis.
    assert math.isclose((other_high - other_low) / (high - low), 0.8 / 0.3, rel_tol=0.01)
    assert math.isclose(other_high, high, abs_tol=0.02)
    (dot,) = numbers(drawing, "circle", "cx")
    assert math.isclose((dot - low) / (high - low), 2 / 3, rel_tol=0.02)


def test_zero_is_marked_even_when_every_estimate_is_positive():
    assert 'class="zero"' in forest("k", [Estimate("a", 0.8, 0.7, 0.9)], "t")


def test_no_line_of_the_grid_runs_through_a_label():
    drawing = forest("k", [Estimate("a", 0.4, 0.2, 0.5), Estimate("b", 0.1, -0.3, 0.5)], "t")
    lines = re.findall(
        r'<line[^>]* y1="(\d+)" y2="(\d+)" class="(?:grid|zero)" stroke-dasharray="(\d+) (\d+)"', drawing
    )
    assert lines
    feet = numbers(drawing, "text", "y")[-4::2]
    assert feet == [14, 56]
    for top, bottom, drawn, left in (map(int, line) for line in lines):
        inked = [y for y in range(top, bottom) if (y - top) % (drawn + left) < drawn]
        assert inked
        assert not [y for y in inked for foot in feet if foot - 10 <= y <= foot + 3]


def test_an_undefined_estimate_keeps_its_line_with_a_dash():
    drawing = forest("k", [Estimate("a", 0.4, 0.2, 0.5), Estimate("gone", math.nan, math.nan, math.nan)], "t")
    assert ">gone<" in drawing
    assert ">–<" in drawing
    assert len(whiskers(drawing)) == 1


def test_an_estimate_without_interval_is_a_mark_alone():
    drawing = forest("k", [Estimate("a", 0.4, math.nan, math.nan)], "t")
    assert whiskers(drawing) == []
    assert 'class="dot other"' in drawing


def test_nothing_defined_draws_nothing():
    assert forest("k", [Estimate("a", math.nan, math.nan, math.nan)], "t") == ""
    assert forest("k", [], "t") == ""


def test_the_verdict_axis_reaches_one_and_names_both_ends():
    drawing = forest("k", [Estimate("a", 0.1, 0.0, 0.2)], "t", to_one=True)
    assert ">chance<" in drawing
    assert ">1<" in drawing


def test_the_description_repeats_the_figures():
    assert "a: .40 (.20 to .50)" in forest("k", [Estimate("a", 0.4, 0.2, 0.5)], "t")


def test_chance_is_marked_left_of_a_better_value_and_the_axis_need_not_begin_at_zero():
    drawing = forest("k", [Estimate("a", 0.6, 0.55, 0.65, chance=0.4)], "t", measure="acc-t", from_zero=False)
    (chance,) = re.findall(r'<line x1="([\d.]+)"[^>]*class="zero chance"', drawing)
    ((low, high, _),) = whiskers(drawing)
    # The axis runs from .35 to .70: chance lies a seventh of it from the start, .15 before the whisker of .10.
    assert math.isclose((low - float(chance)) / (high - low), 1.5, rel_tol=0.01)
    assert ">acc-t<" in drawing
    assert ">.4<" in drawing
    assert ">0<" not in drawing
    assert "chance" not in forest("k", [Estimate("a", 0.6, 0.55, 0.65)], "t")
