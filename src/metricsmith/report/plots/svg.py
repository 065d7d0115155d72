"""The parts of every plot: text, marks, a linear axis, round ticks.

Plots are drawn 360 units wide, which a phone shows one to one. Colours come from the page's style
sheet through class names, so that one drawing serves light, dark and print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from metricsmith.report.formats import raw, single_line
from metricsmith.report.markup import Markup, element

__all__ = ["WIDTH", "LinearAxis", "dot", "svg_text", "picture", "tick_label", "ticks"]

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
