"""Learning curve: held-out agreement against the number of training rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metricsmith.report.formats import interval, statistic
from metricsmith.report.markup import Markup, element
from metricsmith.report.plots.svg import LinearAxis, picture, svg_text, tick_label, ticks
from metricsmith.report.record import LearningPoint

__all__ = ["learning_plot"]

LEFT, RIGHT, TOP, BOTTOM = 36.0, 350.0, 10.0, 190.0


def learning_plot(key: str, curve: Sequence[LearningPoint]) -> Markup:
    """Draw the mean with its band; empty if no point is a number.

    Parameters
    ----------
    key : str
        Unique on the page.
    curve : sequence of LearningPoint
        In any order; points without a number are left out.
    """
    shown = sorted((point for point in curve if math.isfinite(point.kendall_tau_b)), key=lambda point: point.rows)
    if not shown:
        return Markup("")
    numbers = [
        number for point in shown for number in (point.kendall_tau_b, point.low, point.high) if math.isfinite(number)
    ]
    across = LinearAxis(0.0, shown[-1].rows * 1.04 or 1.0, LEFT, RIGHT)
    up = LinearAxis(max(-1.0, min(0.0, *numbers) - 0.03), min(1.0, max(0.2, *numbers) + 0.05), BOTTOM, TOP)
    words = "; ".join(
        f"{point.rows} rows: {statistic(point.kendall_tau_b, 2)} ({interval(point.low, point.high, 2)})"
        for point in shown
    )
    return picture(
        key, BOTTOM + 40, "Held-out agreement by number of training rows", words,
        _frame(across, up), _band(across, up, shown), _curve(across, up, shown),
        svg_text((LEFT + RIGHT) / 2, BOTTOM + 34, "rated rows used for fitting", "muted", "middle"),
    )  # fmt: skip


def _frame(across: LinearAxis, up: LinearAxis) -> Markup:
    marks = []
    for value in ticks(up.low, up.high, 4):
        y = up(value)
        marks.append(element("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_="zero" if value == 0 else "grid"))
        marks.append(svg_text(LEFT - 6, y + 4, tick_label(value, leading_zero=False), "tick", "end"))
    marks += [
        svg_text(across(value), BOTTOM + 16, tick_label(value), "tick", "middle")
        for value in ticks(across.low, across.high, 6)
    ]
    return element("g", *marks)


def _band(across: LinearAxis, up: LinearAxis, shown: Sequence[LearningPoint]) -> Markup:
    bounded = [point for point in shown if math.isfinite(point.low) and math.isfinite(point.high)]
    upper = [f"{across(point.rows):.1f},{up(point.high):.1f}" for point in bounded]
    lower = [f"{across(point.rows):.1f},{up(point.low):.1f}" for point in reversed(bounded)]
    whiskers = [
        element(
            "line", x1=across(point.rows), x2=across(point.rows), y1=up(point.low), y2=up(point.high),
            class_="whisker thin main",
        )
        for point in bounded
    ]  # fmt: skip
    return element("g", element("polygon", points=" ".join(upper + lower), class_="band"), *whiskers)


def _curve(across: LinearAxis, up: LinearAxis, shown: Sequence[LearningPoint]) -> Markup:
    places = [(across(point.rows), up(point.kendall_tau_b)) for point in shown]
    line = element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_="curve")
    return element("g", line, *(element("circle", cx=x, cy=y, r=4.5, class_="dot main") for x, y in places))
