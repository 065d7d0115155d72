"""Slope plot: the order of judges by a measure beside their order in use, a line for each judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metricsmith.formats import fit_middle
from metricsmith.report.blocks import Markup
from metricsmith.report.plots.svg import WIDTH, connected, picture, svg_text

__all__ = ["Slope", "slope_plot"]

LEFT, RIGHT, TOP, ROW = 130.0, 230.0, 44.0, 24.0


@dataclass(frozen=True, slots=True)
class Slope:
    """One judge: its place from 0 and its value on either side, and the kind of its line.

    `kind` is ``""`` for the best in use, ``down`` for the measure's pick where that is another, ``other`` for the rest.
    """

    name: str
    places: tuple[int, int]
    values: tuple[str, str]
    kind: str = "other"


def slope_plot(key: str, lines: Sequence[Slope], title: str, names: tuple[str, str]) -> Markup:
    """Draw the lines, the first place on top; empty without any.

    Parameters
    ----------
    key : str
        Unique on the page.
    lines : sequence of Slope
    title : str
        What the plot shows, for those who do not see it.
    names : tuple of str
        Of both sides.
    """
    if not lines:
        return Markup("")
    bottom = TOP + ROW * max(place for line in lines for place in line.places)
    marks = [svg_text(0, 14, names[0], "strong"), svg_text(WIDTH, 14, names[1], "strong", "end")]
    for line in sorted(lines, key=lambda line: line.kind != "other"):
        left, right = ((x, TOP + ROW * place) for x, place in zip((LEFT, RIGHT), line.places, strict=True))
        style = "" if line.kind == "other" else "strong"
        name = fit_middle(line.name, 11)
        marks += [
            connected([left, right], 4.5, line.kind),
            svg_text(left[0] - 10, left[1] + 4, f"{name} {line.values[0]}", style, "end"),
            svg_text(right[0] + 10, right[1] + 4, f"{line.values[1]} {name}", style),
        ]
    description = "; ".join(
        f"{line.name}: place {line.places[0] + 1} ({line.values[0]}) and place {line.places[1] + 1} ({line.values[1]})"
        for line in lines
    )
    return picture(key, bottom + 16, title, description, *marks)
