"""Signed bars: how far each component moves the prediction."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metricsmith.report.blocks import Markup, element
from metricsmith.report.formats import fit_columns, points
from metricsmith.report.induction.record import Component
from metricsmith.report.plots.svg import WIDTH, LinearAxis, picture, svg_text

__all__ = ["MOST_BARS", "weights"]

MOST_BARS = 20
ROW = 40.0
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
        In rating points; decides the decimals (`metricsmith.report.formats.points`).
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
    marks.append(element("line", x1=zero, x2=zero, y1=0, y2=bottom, class_="zero"))
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
