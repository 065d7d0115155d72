"""The sensitivity and stability plane's geometry."""

from __future__ import annotations

import math
import re

from metricsmith.report.plots.plane import Mark, plane

NONE = (math.nan, math.nan)


def mark(number, stability, sensitivity, kind="component", stable=NONE, sensitive=NONE):
    return Mark(number, f"m{number}", kind, stability, sensitivity, stable, sensitive)


def labels(drawing):
    return {
        text: (float(x), float(y))
        for x, y, text in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="text halo"[^>]*>(\d+)<', drawing)
    }


def test_better_is_up_and_to_the_right():
    drawing = plane("p", [mark(1, 0.95, 0.9, "metric"), mark(2, 0.6, 0.2)])
    (x1, y1), (x2, y2) = labels(drawing)["1"], labels(drawing)["2"]
    assert x1 > x2
    assert y1 < y2
    assert drawing.count("<circle") == 1


def test_whiskers_have_the_length_of_their_intervals_and_undefined_ones_are_left_out():
    drawing = plane("p", [mark(1, 0.9, 0.5, stable=(0.8, 1.0), sensitive=(0.25, 0.75)), mark(2, 0.7, 0.4)])
    found = re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)" y1="([\d.]+)" y2="([\d.]+)" class="whisker other"', drawing)
    assert len(found) == 2
    across, up = (tuple(map(float, line)) for line in found)
    # The stability axis starts at .5: .2 of .5 units across, half of the unit up.
    assert math.isclose(across[1] - across[0], 0.4 * (352 - 40), rel_tol=0.01)
    assert math.isclose(abs(up[3] - up[2]), 0.5 * (322 - 10), rel_tol=0.01)


def test_numbers_of_neighbours_do_not_cover_each_other():
    places = list(labels(plane("p", [mark(number, 0.97, 0.6 + number / 1000) for number in range(1, 5)])).values())
    assert len(places) == 4
    assert min(math.dist(a, b) for i, a in enumerate(places) for b in places[:i]) > 10


def test_numbers_do_not_cover_the_marks_of_neighbours():
    drawing = plane("p", [mark(1, 0.95, 0.6, "metric"), mark(2, 0.97, 0.62), mark(3, 0.93, 0.62)])
    dots = [(float(x), float(y)) for x, y in re.findall(r'<path d="M([\d.]+) ([\d.]+)l5', drawing)]
    dots = [(x, y + 5) for x, y in dots] + [
        tuple(map(float, re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawing)[0]))
    ]
    assert len(dots) == 3
    feet = [(x, y - 4) for x, y in labels(drawing).values()]
    assert min(math.dist(a, b) for a in feet for b in dots) > 8


def test_metrics_without_a_place_are_not_drawn():
    assert plane("p", [mark(1, math.nan, 0.4)]) == ""
    assert "m1" not in plane("p", [mark(1, math.nan, 0.4), mark(2, 0.8, 0.4)])


def test_low_stability_widens_the_axis():
    assert ">.5<" in plane("p", [mark(1, 0.8, 0.4)])
    assert labels(plane("p", [mark(1, 0.2, 0.4)]))["1"][0] < 130
