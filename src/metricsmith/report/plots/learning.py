"""Learning curve: held-out agreement against the number of training rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metricsmith.report.blocks import Markup, element
from metricsmith.report.formats import interval, statistic
from metricsmith.report.induction.record import LearningPoint
from metricsmith.report.plots.svg import LinearAxis, connected, level_frame, picture, svg_text, tick_label, ticks

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
    description = "; ".join(
        f"{point.rows} rows: {statistic(point.kendall_tau_b, 2)} ({interval(point.low, point.high, 2)})"
        for point in shown
    )
    return picture(
        key, BOTTOM + 40, "Held-out agreement by number of training rows", description,
        level_frame(
            across, up, {value: tick_label(value, leading_zero=False) for value in ticks(up.low, up.high, 4)}, about=6
        ),
        _band(across, up, shown),
        connected([(across(point.rows), up(point.kendall_tau_b)) for point in shown], 4.5),
        svg_text((LEFT + RIGHT) / 2, BOTTOM + 34, "rated rows used for fitting", "muted", "middle"),
    )  # fmt: skip


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
