"""Forest plot: one estimate with its interval per line, zero or the level of chance marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metricsmith.formats import fit_middle, interval, statistic
from metricsmith.report.blocks import Markup, element
from metricsmith.report.plots.svg import WIDTH, LinearAxis, dot, picture, svg_text, tick_label, ticks

__all__ = ["Estimate", "forest"]

ROW = 42.0
LABEL = 18.0
MARGIN = 8.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """One line: name, value in [-1, 1], interval (NaN if undefined), whether it is the main one, what chance gets."""

    name: str
    value: float
    low: float
    high: float
    main: bool = False
    chance: float = math.nan

    @property
    def description(self) -> str:
        """The line as text, for those who do not see the plot."""
        return f"{self.name}: {statistic(self.value, 2)} ({interval(self.low, self.high, 2)})"


def forest(
    key: str,
    estimates: Sequence[Estimate],
    title: str,
    *,
    to_one: bool = False,
    measure: str = "Kendall tau-b",
    from_zero: bool = True,
) -> Markup:
    """Draw the estimates in the order given; empty if not one of them is a number.

    Parameters
    ----------
    key : str
        Unique on the page.
    estimates : sequence of Estimate
        An undefined one keeps its line, with an en dash.
    title : str
        What the plot shows, for those who do not see it.
    to_one : bool
        True draws the axis up to 1 and says what 0 and 1 stand for.
    measure : str
        What the axis is called otherwise.
    from_zero : bool
        False begins the axis near the least number, for measures of which 0 means nothing.
    """
    numbers = [
        number
        for estimate in estimates
        for number in (estimate.value, estimate.low, estimate.high, estimate.chance)
        if math.isfinite(number)
    ]
    if not numbers:
        return Markup("")
    highest = 1.0 if to_one else min(1.0, max(0.3, *numbers) + 0.05)
    lowest = max(-1.0, min(numbers + [0.0] * from_zero) - 0.05)
    axis = LinearAxis(lowest, highest, MARGIN, WIDTH - MARGIN)
    bottom = ROW * len(estimates) + 2.0
    marks = [_grid(axis, bottom)]
    marks += [_line(axis, estimate, ROW * index) for index, estimate in enumerate(estimates)]
    landmarks = [
        svg_text(max(axis(0.0), 20.0), bottom + 34, "chance", "muted", "middle"),
        svg_text(WIDTH, bottom + 34, "the raters' order", "muted", "end"),
    ]
    marks += landmarks if to_one else [svg_text(WIDTH / 2, bottom + 36, measure, "muted", "middle")]
    return picture(key, bottom + 42, title, "; ".join(estimate.description for estimate in estimates), *marks)


def _grid(axis: LinearAxis, bottom: float) -> Markup:
    marks = []
    for value in ticks(axis.low, axis.high, 5):
        x = axis(value)
        kind = "zero" if value == 0 else "grid"
        # Dashes as long as the rows: the line stops at each label.
        dashes = f"{ROW - LABEL:g} {LABEL:g}"
        marks.append(element("line", x1=x, x2=x, y1=LABEL, y2=bottom, class_=kind, stroke_dasharray=dashes))
        marks.append(svg_text(x, bottom + 18, tick_label(value, leading_zero=False), "tick", "middle"))
    return element("g", *marks)


def _line(axis: LinearAxis, estimate: Estimate, top: float) -> Markup:
    kind = "main" if estimate.main else "other"
    y = top + 27.0
    marks = [
        svg_text(0, top + 14, fit_middle(estimate.name, 38), f"halo {'strong' if estimate.main else ''}".strip()),
        svg_text(WIDTH, top + 14, statistic(estimate.value, 2), "halo figure strong", "end"),
    ]
    if math.isfinite(estimate.chance):
        x = axis(estimate.chance)
        marks.append(element("line", x1=x, x2=x, y1=y - 9, y2=y + 9, class_="zero chance"))
    if math.isfinite(estimate.low) and math.isfinite(estimate.high):
        marks.append(
            element("line", x1=axis(estimate.low), x2=axis(estimate.high), y1=y, y2=y, class_=f"whisker {kind}")
        )
    if math.isfinite(estimate.value):
        marks.append(dot(axis(estimate.value), y, kind))
    return element("g", *marks)
