"""The parts of every plot: text, marks, a linear axis, round ticks.

Plots are drawn 360 units wide, which a phone shows one to one. Colours come from the page's style
sheet through class names, so that one drawing serves light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metricsmith.formats import raw, single_line
from metricsmith.report.blocks import Markup, element

__all__ = [
    "WIDTH", "LinearAxis", "LogAxis", "connected", "dot", "frame", "level_frame", "picture", "svg_text",
    "tick_label", "ticks",
]  # fmt: skip

WIDTH = 360.0


def svg_text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    """A line of text; `kind` is a class of the style sheet."""
    return element("text", text, x=x, y=y, class_=f"text {kind}".strip(), text_anchor=anchor)


def dot(x: float, y: float, kind: str) -> Markup:
    """A disc for the kind ``main``, a diamond for others: the shape, too, tells them apart."""
    if kind == "main":
        return element("circle", cx=x, cy=y, r=5.5, class_="dot main")
    return element("path", d=f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5-5z", class_=f"dot {kind}")


def picture(key: str, height: float, title: str, description: str, *marks: str) -> Markup:
    """The finished drawing with a title and a description for those who do not see it.

    Parameters
    ----------
    key : str
        Unique on the page; names the two texts.
    height : float
        In the plot's own units.
    """
    return element(
        "svg",
        element("title", single_line(title), id=f"{key}-title"),
        element("desc", single_line(description), id=f"{key}-text"),
        *marks,
        class_=f"plot plot-{key}",
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_labelledby=f"{key}-title {key}-text",
    )


@dataclass(frozen=True, slots=True)
class LinearAxis:
    """Maps [low, high] linearly to [start, end]; ``low < high``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The position of `value`, held inside the axis."""
        share = (min(self.high, max(self.low, value)) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


class LogAxis(LinearAxis):
    """The same on a logarithmic scale; ``0 < low``."""

    __slots__ = ()

    def __call__(self, value: float) -> float:
        """The position of `value`, held inside the axis."""
        low, high = math.log(self.low), math.log(self.high)
        return LinearAxis(low, high, self.start, self.end)(math.log(max(value, self.low)))


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers (1, 2, 2.5 or 5 times a power of ten) inside [low, high], about `about` of them."""
    if not high > low:
        return [low]
    rough = (high - low) / max(1, about)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, last + 1)]


def tick_label(value: float, *, leading_zero: bool = True) -> str:
    """A tick's number, without the zero before the point if so asked."""
    text = raw(value)
    return text if leading_zero else text.replace("0.", ".", 1)


def level_frame(across: LinearAxis, up: LinearAxis, numbers: Mapping[float, str], about: int) -> Markup:
    """Level lines at the heights `numbers`, each with its text on the left, and about `about` ticks below, if any."""
    marks = []
    for value, text in numbers.items():
        y = up(value)
        kind = "zero" if value == 0 else "grid"
        marks.append(element("line", x1=across.start, x2=across.end, y1=y, y2=y, class_=kind))
        marks.append(svg_text(across.start - 6, y + 4, text, "tick", "end"))
    below = ticks(across.low, across.high, about) if about else ()
    marks += [svg_text(across(value), up.start + 16, tick_label(value), "tick", "middle") for value in below]
    return element("g", *marks)


def frame(
    across: LinearAxis,
    up: LinearAxis,
    values: tuple[Sequence[float], Sequence[float]],
    names: tuple[str, str],
    *others: str,
    below: float = 0.0,
    leading_zeros: tuple[bool, bool] = (True, True),
) -> Markup:
    """A grid for two axes, other marks, and the names of both axes.

    Parameters
    ----------
    across, up : LinearAxis
    values : two sequences of float
        The places of the lines, on the axis below and on the one on the left.
    names : tuple of str
        Of the axis below and of the one on the left, which is turned by a quarter.
    others : str
        Marks above the grid.
    below : float
        Room between the grid and the numbers below it.
    leading_zeros : tuple of bool
        By axis, False for statistics, which have no zero before the point.
    """
    marks = []
    for x, text in ((across(value), tick_label(value, leading_zero=leading_zeros[0])) for value in values[0]):
        marks.append(element("line", x1=x, x2=x, y1=up.end, y2=up.start, class_="grid"))
        marks.append(svg_text(x, up.start + below + 16, text, "tick", "middle"))
    for y, text in ((up(value), tick_label(value, leading_zero=leading_zeros[1])) for value in values[1]):
        marks.append(element("line", x1=across.start, x2=across.end, y1=y, y2=y, class_="grid"))
        marks.append(svg_text(across.start - 6, y + 4, text, "tick", "end"))
    turned = f"translate(10 {(up.start + up.end) / 2:g}) rotate(-90)"
    return element(
        "g",
        *marks,
        *others,
        svg_text((across.start + across.end) / 2, up.start + below + 34, names[0], "muted", "middle"),
        element("text", names[1], class_="text muted", text_anchor="middle", transform=turned),
    )


def connected(places: Sequence[tuple[float, float]], radius: float, kind: str = "") -> Markup:
    """A line through places with a disc on each; `kind` is a class of the style sheet, ``main`` if not given."""
    line = element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_=f"curve {kind}".strip())
    discs = (element("circle", cx=x, cy=y, r=radius, class_=f"dot {kind or 'main'}") for x, y in places)
    return element("g", line, *discs)
