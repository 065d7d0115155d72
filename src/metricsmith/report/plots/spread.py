"""One number of each segment, system by system: GEMBA-MQM V2, Figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import median

from metricsmith.formats import count, excerpt, fit_middle, raw
from metricsmith.report.blocks import Markup, element
from metricsmith.report.plots.svg import LinearAxis, level_frame, picture, svg_text, tick_label, ticks

__all__ = ["spread_plot"]

LEFT, RIGHT, TOP, BOTTOM = 46.0, 358.0, 8.0, 190.0
FEW = 100  # points of one system that are drawn larger, one by one
UPRIGHT = 3  # systems whose names fit side by side


def spread_plot(key: str, values: Mapping[str, Sequence[float | None]], name: str) -> Markup:
    """Draw a point for each segment, in order within its system, and each system's median; empty without a number.

    Parameters
    ----------
    key : str
        Unique on the page.
    values : mapping of str to sequence of (float or None)
        By system, 0 or above; None is not drawn.
    name : str
        Of the upright axis.
    """
    known = {system: [value for value in own if value is not None] for system, own in values.items()}
    highest = max(chain.from_iterable(known.values()), default=None)
    if highest is None:
        return Markup("")
    up = LinearAxis(0.0, (highest or 1.0) * 1.04, BOTTOM, TOP)
    heights = {value: tick_label(value) for value in ticks(0.0, up.high, 5)}
    marks, words = [level_frame(LinearAxis(0.0, 1.0, LEFT, RIGHT), up, heights, 0)], []
    band, upright = (RIGHT - LEFT) / len(values), len(values) <= UPRIGHT
    for place, (system, own) in enumerate(values.items()):
        across = LinearAxis(-0.5, len(own) - 0.5, LEFT + band * (place + 0.06), LEFT + band * (place + 0.94))
        places = {(round(across(at), 1), round(up(value), 1)) for at, value in enumerate(own) if value is not None}
        said = "none"
        if known[system]:
            middle = median(known[system])
            marks.append(_points(sorted(places), "main" if place % 2 == 0 else "down"))
            ends = {"x1": across.start, "x2": across.end, "y1": up(middle), "y2": up(middle)}
            marks.append(element("line", **ends, class_="zero"))
            most = f"at most {raw(max(known[system]))}, {count(len(known[system]), 'segment')}"
            said = f"median {raw(middle)}, {most}"
        words.append(f"{system}: {said}")
        x = (across.start + across.end) / 2
        if upright:
            marks.append(svg_text(x, BOTTOM + 18, excerpt(system, 42 // len(values)), "muted", "middle"))
        else:
            marks.append(_turned(fit_middle(system, 16), x + 4, BOTTOM + 8, "end"))
    marks.append(_turned(name, 10, (TOP + BOTTOM) / 2, "middle"))
    title = f"{name} of each segment by system"
    return picture(key, BOTTOM + (28 if upright else 120), title, "; ".join(words), *marks)


def _turned(text: str, x: float, y: float, anchor: str) -> Markup:
    turned = f"translate({x:g} {y:g}) rotate(-90)"
    return element("text", text, class_="text muted", text_anchor=anchor, transform=turned)


def _points(places: Sequence[tuple[float, float]], colour: str) -> Markup:
    """Discs; many of them as one path, of lines without length that have round ends, which is a tenth as long."""
    if len(places) > FEW:
        path = "".join(f"M{x:g} {y:g}h0" for x, y in places)
        return element("path", d=path, class_=f"whisker {colour}", stroke_opacity=0.55)
    discs = (element("circle", cx=x, cy=y, r=2.6, class_=f"dot {colour}") for x, y in places)
    return element("g", *discs, fill_opacity=0.55)
