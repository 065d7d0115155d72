"""One number of each segment, system by system: GEMBA-MQM V2, Figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import median

from metricsmith.formats import count, excerpt, fit_middle, raw
from metricsmith.report.blocks import Markup, element
from metricsmith.report.plots.svg import LinearAxis, picture, svg_text, tick_label, ticks

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
    marks = []
    for value in ticks(0.0, up.high, 5):
        y, kind = up(value), "grid" if value else "zero"
        marks.append(element("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_=kind))
        marks.append(svg_text(LEFT - 6, y + 4, tick_label(value), "tick", "end"))
    band, upright = (RIGHT - LEFT) / len(values), len(values) <= UPRIGHT
    words = []
    for place, (system, own) in enumerate(values.items()):
        across = LinearAxis(-0.5, len(own) - 0.5, LEFT + band * (place + 0.06), LEFT + band * (place + 0.94))
        places = {(round(across(at), 1), round(up(value), 1)) for at, value in enumerate(own) if value is not None}
        colour = "main" if place % 2 == 0 else "down"
        if known[system]:
            middle = median(known[system])
            y = up(middle)
            marks += [
                _points(sorted(places), colour),
                element("line", x1=across.start, x2=across.end, y1=y, y2=y, class_="zero"),
            ]
            most = f"at most {raw(max(known[system]))}, {count(len(known[system]), 'segment')}"
            words.append(f"{system}: median {raw(middle)}, {most}")
        else:
            words.append(f"{system}: none")
        x = (across.start + across.end) / 2
        if upright:
            marks.append(svg_text(x, BOTTOM + 18, excerpt(system, 42 // len(values)), "muted", "middle"))
        else:
            turned = f"translate({x + 4:g} {BOTTOM + 8:g}) rotate(-90)"
            marks.append(
                element("text", fit_middle(system, 16), class_="text muted", text_anchor="end", transform=turned)
            )
    turned = f"translate(10 {(TOP + BOTTOM) / 2:g}) rotate(-90)"
    marks.append(element("text", name, class_="text muted", text_anchor="middle", transform=turned))
    return picture(
        key, BOTTOM + (28 if upright else 120), f"{name} of each segment by system", "; ".join(words), *marks
    )


def _points(places: Sequence[tuple[float, float]], colour: str) -> Markup:
    """Discs; many of them as one path, of lines without length that have round ends, which is a tenth as long."""
    if len(places) > FEW:
        path = "".join(f"M{x:g} {y:g}h0" for x, y in places)
        return element("path", d=path, class_=f"whisker {colour}", stroke_opacity=0.55)
    discs = (element("circle", cx=x, cy=y, r=2.6, class_=f"dot {colour}") for x, y in places)
    return element("g", *discs, fill_opacity=0.55)
