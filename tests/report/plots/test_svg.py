"""The elements that plots are made of."""

from __future__ import annotations

import doctest
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.report.blocks import Markup, element
from metricsmith.report.plots import svg
from metricsmith.report.plots.svg import LinearAxis, picture, svg_text, tick_label, ticks


def test_text_is_escaped_and_svg_is_not():
    inner = element("g", "<script>")
    assert inner == "<g>&lt;script&gt;</g>"
    assert element("g", inner) == "<g><g>&lt;script&gt;</g></g>"
    assert isinstance(inner, Markup)
    assert inner.__html__() == inner


def test_attributes_are_escaped_and_renamed():
    assert element("text", class_='a"b', text_anchor="end", x=1.5, y=2.0) == (
        '<text class="a&quot;b" text-anchor="end" x="1.5" y="2"/>'
    )


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_any_text_makes_well_formed_xml(text):
    ElementTree.fromstring(picture("k", 10, text, text, svg_text(0, 0, text)))


def test_an_axis_maps_ends_to_ends_and_holds_what_lies_outside():
    axis = LinearAxis(-1, 1, 100, 0)
    assert [axis(value) for value in (-1, 0, 1, 5)] == [100, 50, 0, 0]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (1, 5, [1, 2, 3, 4, 5]),
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (-0.35, 0.52, [-0.2, 0, 0.2, 0.4]),
        (3, 3, [3]),
    ],
)
def test_ticks_are_round_and_inside(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


@settings(deadline=None, max_examples=50)
@given(st.floats(-1e4, 1e4), st.floats(1e-2, 1e6))
def test_ticks_are_few_and_inside(low, width):
    found = ticks(low, low + width)
    assert 1 <= len(found) <= 8
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in found)


def test_tick_labels_have_a_proper_minus_and_no_idle_zero():
    assert (tick_label(-0.25, leading_zero=False), tick_label(-0.25), tick_label(10.0)) == ("−.25", "−0.25", "10")
    assert tick_label(0.0, leading_zero=False) == "0"


def test_the_docstrings_hold():
    assert doctest.testmod(svg).failed == 0
