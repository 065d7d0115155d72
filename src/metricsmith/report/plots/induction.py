"""The plots of an induced metric alone: how far each component moves its prediction, and its learning curve.

Components are signed bars. The curve is the agreement with unseen ratings by the number of rows fitted on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from metricsmith.formats import fit_columns, interval, points, statistic
from metricsmith.report.blocks import Markup, element
from metricsmith.report.induction.record import Component, LearningPoint
from metricsmith.report.plots.svg import WIDTH, LinearAxis, connected, level_frame, picture, svg_text, tick_label, ticks

__all__ = ["MOST_BARS", "learning_plot", "weights"]

MOST_BARS = 20
ROW = 40.0
LABEL = 18.0
BAR = 9.0


def weights(key: str, components: Sequence[Component], width: float) -> Markup:
    """Draw the weights of the first `MOST_BARS` components; empty if there are none.

    Parameters
    ----------
    key : str
        Unique on the page.
    components : sequence of Component
        In the order to be drawn.
    width : float
        In rating points; decides the decimals (`metricsmith.formats.points`).
    """
    shown = [component for component in components if math.isfinite(component.weight)][:MOST_BARS]
    if not shown:
        return Markup("")
    largest = max(abs(component.weight) for component in shown) or 1.0
    low = -largest if any(component.weight < 0 for component in shown) else 0.0
    high = largest if any(component.weight >= 0 for component in shown) else 0.0
    axis = LinearAxis(low, high, 2.0, WIDTH - 2.0)
    bottom = ROW * len(shown) + 4.0
    zero = axis(0.0)
    marks = [_bar(axis, component, ROW * index, width) for index, component in enumerate(shown)]
    dashes = f"{ROW - LABEL:g} {LABEL:g}"  # the line stops at each label
    marks.append(element("line", x1=zero, x2=zero, y1=LABEL, y2=bottom, class_="zero", stroke_dasharray=dashes))
    if low < 0:
        marks.append(svg_text(zero - 8, bottom + 16, "← lowers the prediction", "tick", "end"))
    if high > 0:
        marks.append(svg_text(zero + 8, bottom + 16, "raises the prediction →", "tick"))
    words = "; ".join(f"{item.name}: {points(item.weight, width, signed=True)}" for item in shown)
    description = f"Rating points added by one standard deviation of each component. {words}"
    return picture(key, bottom + 22, "Weights of the components", description, *marks)


def _bar(axis: LinearAxis, component: Component, top: float, width: float) -> Markup:
    start, end = sorted((axis(0.0), axis(component.weight)))
    return element(
        "g",
        svg_text(0, top + 14, fit_columns(component.name, 38), "halo"),
        svg_text(WIDTH, top + 14, points(component.weight, width, signed=True), "halo figure strong", "end"),
        element(
            "rect", x=start, y=top + 20, width=max(end - start, 1.0), height=BAR, rx=2,
            class_="bar up" if component.weight >= 0 else "bar down",
        ),
    )  # fmt: skip


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
