"""Prediction against rating, one mark per row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metricsmith.records import Scale
from metricsmith.report.blocks import Markup, element
from metricsmith.report.formats import fit_columns, points
from metricsmith.report.plots.svg import LinearAxis, picture, square_frame, tick_label, ticks

__all__ = ["MOST_POINTS", "Point", "beyond", "scatter", "thin"]

MOST_POINTS = 2000
LEFT, RIGHT, TOP = 40.0, 352.0, 8.0
BOTTOM = TOP + RIGHT - LEFT
# Predictions further out than this share of the scale are drawn on the frame.
OVERHANG = 0.25


@dataclass(frozen=True, slots=True)
class Point:
    """One row that has both numbers."""

    name: str
    rating: float
    prediction: float
    held_out: bool


def thin(drawn: Sequence[Point], most: int = MOST_POINTS, seed: int = 0) -> list[Point]:
    """At most `most` points, drawn without replacement by a seeded rule, in the order given."""
    if len(drawn) <= most:
        return list(drawn)
    kept = np.random.default_rng(seed).choice(len(drawn), size=most, replace=False)
    return [drawn[int(index)] for index in np.sort(kept)]


def beyond(drawn: Sequence[Point], scale: Scale) -> int:
    """The number of predictions that lie too far outside the scale to be drawn in place."""
    margin = OVERHANG * scale.width
    return sum(not scale.low - margin <= point.prediction <= scale.high + margin for point in drawn)


def scatter(key: str, drawn: Sequence[Point], scale: Scale) -> Markup:
    """Draw the points, held-out ones on top, with the line of perfect prediction; empty if there are none.

    Parameters
    ----------
    key : str
        Unique on the page.
    drawn : sequence of Point
        Already thinned.
    scale : Scale
        Both axes show it, widened as far as the predictions ask for, at most by a quarter on each side.
    """
    if not drawn:
        return Markup("")
    margin = OVERHANG * scale.width
    low = max(scale.low - margin, min(scale.low, *(point.prediction for point in drawn)))
    high = min(scale.high + margin, max(scale.high, *(point.prediction for point in drawn)))
    edge = 0.03 * (high - low)
    across = LinearAxis(low - edge, high + edge, LEFT, RIGHT)
    up = LinearAxis(low - edge, high + edge, BOTTOM, TOP)
    ordered = sorted(drawn, key=lambda point: point.held_out)
    held_out = sum(point.held_out for point in drawn)
    description = (
        f"{len(drawn)} rows, {held_out} of them held out; rating across, prediction upwards, on one scale. "
        "Points on the diagonal are predicted perfectly."
    )
    return picture(
        key, BOTTOM + 40, "Prediction against rating", description,
        square_frame(
            across, up, ticks(scale.low, scale.high, 5), ("raters' rating", "prediction"),
            element(
                "line", x1=across(scale.low), y1=up(scale.low), x2=across(scale.high), y2=up(scale.high),
                class_="identity",
            ),
        ),
        element("g", *(_mark(across, up, point, scale) for point in ordered)),
    )  # fmt: skip


def _mark(across: LinearAxis, up: LinearAxis, point: Point, scale: Scale) -> Markup:
    x, y = across(point.rating), up(point.prediction)
    rating = tick_label(point.rating) if math.isfinite(point.rating) else ""
    note = element(
        "title", f"{fit_columns(point.name, 40)}: rated {rating}, predicted {points(point.prediction, scale.width)}"
    )
    if point.held_out:
        return element("circle", note, cx=x, cy=y, r=4.2, class_="point test")
    return element("rect", note, x=x - 2.7, y=y - 2.7, width=5.4, height=5.4, class_="point train")
