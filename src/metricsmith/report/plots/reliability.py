"""Prediction and rating: the mean rating of rows with neighbouring predictions, and one mark per row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError
from metricsmith.formats import count, fit_columns, points
from metricsmith.records import Scale
from metricsmith.report.blocks import Markup, element
from metricsmith.report.plots.svg import LinearAxis, dot, frame, picture, svg_text, tick_label, ticks
from metricsmith.stats.resampling import Groups, complete_rows, group_mean_interval

__all__ = ["MOST_POINTS", "Bin", "Point", "beyond", "bins", "reliability_plot", "scatter", "thin"]

MOST_BINS = 10
MOST_POINTS = 2000
LEAST_ROWS = 10  # a bin for each ten rows: with fewer its interval covers half of a five-point scale
OVERHANG = 0.25  # what lies further out than this share of the scale is drawn on the frame
LEFT, RIGHT, TOP = 40.0, 352.0, 8.0
BOTTOM = TOP + RIGHT - LEFT
LINE = 14.0  # of the rows' counts below the plot


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows with neighbouring predictions.

    Parameters
    ----------
    n, groups : int
        Rows, and how many groups they come from.
    lowest, highest : float
        The range of the predictions.
    prediction, rating : float
        Means.
    ci_low, ci_high : float
        95 % interval of the mean rating; NaN with one group alone, or ratings that are all alike: no spread in ten rows
        does not mean that there is none.
    """

    n: int
    groups: int
    lowest: float
    highest: float
    prediction: float
    rating: float
    ci_low: float
    ci_high: float

    @property
    def side(self) -> int:
        """1 if the mean prediction lies above the interval of the mean rating, -1 if below it, otherwise 0."""
        return int(self.prediction > self.ci_high) - int(self.prediction < self.ci_low)


def bins(
    predictions: ArrayLike,
    ratings: ArrayLike,
    groups: Groups | None = None,
    *,
    most: int = MOST_BINS,
    least: int = LEAST_ROWS,
) -> list[Bin]:
    """Part rows by prediction into bins of about equal size, equal predictions always in one bin.

    Parameters
    ----------
    predictions, ratings : array_like, shape (n,)
        Both on the rating scale. Rows that are NaN on either side are left out.
    groups : sequence of hashable, length n, optional
        Rows of one group are alike, which widens the intervals.
    most : int
        How many bins at most.
    least : int
        Rows for each bin, by which fewer rows make fewer bins; no bin has less than half of an equal share.

    Returns
    -------
    list of Bin
        By rising prediction; empty if no row has both numbers.

    Raises
    ------
    DataError
        If lengths differ, a group label is missing or a number is infinite.
    """
    (x, y), codes = complete_rows([predictions, ratings], groups)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("a prediction or rating is infinite; give NaN where there is none")
    order = np.argsort(x, kind="stable")
    parts = _parts(x[order], max(1, min(most, x.size // least))) if x.size else []
    return [_bin(x[rows], y[rows], codes[rows]) for rows in (order[part] for part in parts)]


def _parts(ordered: NDArray[np.float64], number: int) -> list[slice]:
    """Cuts sorted numbers, each time at the end of the tie that is nearest to an equal share of the rest."""
    parts: list[slice] = []
    n, start = ordered.size, 0
    least, ends = n / number / 2, np.append(np.flatnonzero(np.diff(ordered)) + 1, n)
    while start < n:
        share = (n - start) / min(number - len(parts), max(1, round((n - start) / (2 * least))))
        usable = ends[(ends - start >= least) & ((n - ends >= least) | (ends == n))]
        end = int(usable[np.argmin(np.abs(usable - start - share))])
        parts.append(slice(start, end))
        start = end
    return parts


def _bin(x: NDArray[np.float64], y: NDArray[np.float64], codes: NDArray[np.int64]) -> Bin:
    interval = group_mean_interval(y, codes)
    return Bin(
        x.size, np.unique(codes).size, float(x.min()), float(x.max()), float(x.mean()), float(y.mean()),
        interval.low, interval.high,
    )  # fmt: skip


def reliability_plot(key: str, parts: Sequence[Bin], scale: Scale) -> Markup:
    """Draw the bins with the line on which prediction and rating are equal; empty if there are none.

    The prediction is across, because the question is the worth of a prediction; the scatter plot beside it has the
    rating across.

    Parameters
    ----------
    key : str
        Unique on the page.
    parts : sequence of Bin
    scale : Scale
        Both axes show the part of it where the bins lie, and at most a quarter of it beyond either end.
    """
    if not parts:
        return Markup("")
    margin = OVERHANG * scale.width
    numbers = [
        min(scale.high + margin, max(scale.low - margin, number))
        for part in parts
        for number in (part.prediction, part.rating, part.ci_low, part.ci_high)
        if math.isfinite(number)
    ]
    edge = 0.04 * max(max(numbers) - min(numbers), 0.25 * scale.width)
    low, high = min(numbers) - edge, max(numbers) + edge
    across, up, values = LinearAxis(low, high, LEFT, RIGHT), LinearAxis(low, high, BOTTOM, TOP), ticks(low, high, 5)
    description = "; ".join(
        f"{count(part.n, 'row')} predicted {points(part.prediction, scale.width)}, rated "
        f"{points(part.rating, scale.width)} ({_interval(part, scale)})"
        for part in parts
    )
    counts, lines = _counts(across, parts)
    return picture(
        key, BOTTOM + 40 + LINE * lines, "Mean rating by prediction", description,
        frame(
            across, up, (values, values), ("mean prediction", "mean rating"),
            element("line", x1=LEFT, y1=BOTTOM, x2=RIGHT, y2=TOP, class_="identity"),
            svg_text(0, BOTTOM + LINE - 2, "rows", "muted"),
            below=LINE * lines,
        ),
        *(_mark(across, up, part, scale) for part in parts),
        counts,
    )  # fmt: skip


def _interval(part: Bin, scale: Scale) -> str:
    if not math.isfinite(part.ci_low):
        return "no interval"
    return f"95 % interval {points(part.ci_low, scale.width)} to {points(part.ci_high, scale.width)}"


def _counts(across: LinearAxis, parts: Sequence[Bin]) -> tuple[Markup, int]:
    """Rows of each bin below the plot, on as many lines as it takes to keep neighbours apart; how many lines."""
    taken: list[float] = []  # how far each line is written
    marks = []
    for part in parts:
        text, x = count(part.n), across(part.prediction)
        half = 3.6 * len(text) + 2
        line = next((line for line, end in enumerate(taken) if x - half >= end), len(taken))
        taken[line : line + 1] = [x + half]
        marks.append(svg_text(x, BOTTOM + LINE * (line + 1) - 2, text, "tick", "middle"))
    return element("g", *marks), len(taken)


def _mark(across: LinearAxis, up: LinearAxis, part: Bin, scale: Scale) -> Markup:
    """A disc where the interval holds the prediction, a diamond where not."""
    kind, x = "off" if part.side else "main", across(part.prediction)
    marks = [
        element(
            "title",
            f"{count(part.n, 'row')} predicted {points(part.lowest, scale.width)} to "
            f"{points(part.highest, scale.width)}, {points(part.prediction, scale.width)} on average: rated "
            f"{points(part.rating, scale.width)} ({_interval(part, scale)})",
        )
    ]
    if math.isfinite(part.ci_low) and math.isfinite(part.ci_high):
        ends = {"y1": up(part.ci_low), "y2": up(part.ci_high)}
        marks.append(element("line", x1=x, x2=x, **ends, class_=f"whisker thin {kind}"))
    marks.append(dot(x, up(part.rating), kind))
    return element("g", *marks)


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
    values = ticks(scale.low, scale.high, 5)
    ordered = sorted(drawn, key=lambda point: point.held_out)
    held_out = sum(point.held_out for point in drawn)
    description = (
        f"{len(drawn)} rows, {held_out} of them held out; rating across, prediction upwards, on one scale. "
        "Points on the diagonal are predicted perfectly."
    )
    return picture(
        key, BOTTOM + 40, "Prediction against rating", description,
        frame(
            across, up, (values, values), ("raters' rating", "prediction"),
            element(
                "line", x1=across(scale.low), y1=up(scale.low), x2=across(scale.high), y2=up(scale.high),
                class_="identity",
            ),
        ),
        element("g", *(_point_mark(across, up, point, scale) for point in ordered)),
    )  # fmt: skip


def _point_mark(across: LinearAxis, up: LinearAxis, point: Point, scale: Scale) -> Markup:
    x, y = across(point.rating), up(point.prediction)
    rating = tick_label(point.rating) if math.isfinite(point.rating) else ""
    note = element(
        "title", f"{fit_columns(point.name, 40)}: rated {rating}, predicted {points(point.prediction, scale.width)}"
    )
    if point.held_out:
        return element("circle", note, cx=x, cy=y, r=4.2, class_="point test")
    return element("rect", note, x=x - 2.7, y=y - 2.7, width=5.4, height=5.4, class_="point train")
