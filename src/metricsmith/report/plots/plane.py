"""Sensitivity against stability, one numbered mark per metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metricsmith.report.blocks import Markup, element
from metricsmith.report.plots.svg import LinearAxis, dot, frame, picture, svg_text, ticks

__all__ = ["Mark", "plane"]

LEFT, RIGHT, TOP, BOTTOM = 40.0, 352.0, 10.0, 322.0
CHANCE = 0.5
NEAR, CLEAR = 14.0, 11.0  # units within which a number would cover another one, or a mark
AROUND = ((12, 0), (-12, 0), (10, -9), (-10, -9), (10, 15), (-10, 15), (0, -12), (0, 20))  # a number's foot


@dataclass(frozen=True, slots=True)
class Mark:
    """A metric: where it stands, and its 95 % intervals; NaN ends are not drawn."""

    number: int
    name: str
    kind: str
    stability: float
    sensitivity: float
    stable: tuple[float, float]
    sensitive: tuple[float, float]


def plane(key: str, marks: Sequence[Mark]) -> Markup:
    """Draw the marks; empty if there are none.

    Parameters
    ----------
    key : str
        Unique on the page.
    marks : sequence of Mark
        `kind` is ``metric``, ``component``, ``baseline`` or ``null``.
    """
    drawn = [mark for mark in marks if math.isfinite(mark.stability) and math.isfinite(mark.sensitivity)]
    if not drawn:
        return Markup("")
    across = LinearAxis(0.0 if min(mark.stability for mark in drawn) < 0.5 else 0.5, 1.0, LEFT, RIGHT)
    up = LinearAxis(0.0, 1.0, BOTTOM, TOP)
    description = "Stability across, sensitivity upwards; the upper right corner is best. " + "; ".join(
        f"{mark.number}: {mark.name}, {mark.stability:.2f} and {mark.sensitivity:.2f}" for mark in drawn
    )
    dots = [
        element(
            "g",
            element("title", f"{mark.number}: {mark.name}"),
            dot(across(mark.stability), up(mark.sensitivity), _kind(mark)),
        )
        for mark in sorted(drawn, key=lambda mark: mark.kind == "metric")
    ]
    return picture(
        key, BOTTOM + 38, "Sensitivity against stability", description,
        frame(
            across, up, (ticks(across.low, across.high, 5), ticks(0.0, 1.0, 5)), ("stability", "sensitivity"),
            element("line", x1=LEFT, x2=RIGHT, y1=up(CHANCE), y2=up(CHANCE), class_="identity"),
            leading_zeros=(False, False),
        ),
        element("g", *(_whiskers(across, up, mark) for mark in drawn)),
        element("g", *dots),
        element("g", *_numbers(across, up, drawn)),
    )  # fmt: skip


def _kind(mark: Mark) -> str:
    return {"metric": "main", "null": "off"}.get(mark.kind, "other")


def _whiskers(across: LinearAxis, up: LinearAxis, mark: Mark) -> Markup:
    kind, x, y = f"whisker {_kind(mark)}", across(mark.stability), up(mark.sensitivity)
    lines = []
    if all(map(math.isfinite, mark.stable)):
        lines.append(element("line", x1=across(mark.stable[0]), x2=across(mark.stable[1]), y1=y, y2=y, class_=kind))
    if all(map(math.isfinite, mark.sensitive)):
        lines.append(element("line", x1=x, x2=x, y1=up(mark.sensitive[0]), y2=up(mark.sensitive[1]), class_=kind))
    return element("g", *lines)


def _numbers(across: LinearAxis, up: LinearAxis, marks: Sequence[Mark]) -> list[Markup]:
    """Each mark's number near it, where it covers no mark and no other number as far as there is such a place."""
    dots = [(across(mark.stability), up(mark.sensitivity)) for mark in marks]
    taken: list[tuple[float, float]] = []
    written = []
    for mark, (x, y) in sorted(zip(marks, dots, strict=True), key=lambda pair: pair[0].kind != "metric"):
        places = [(x + r * dx, y + r * dy) for r in (1, 1.6, 2.4) for dx, dy in AROUND]
        inside = [place for place in places if LEFT < place[0] < RIGHT + 6 and TOP < place[1] < BOTTOM] or places
        place = max(inside, key=lambda place: min(_room(place, taken, NEAR), _room(place, dots, CLEAR)))
        taken.append(place)
        written.append(svg_text(*place, str(mark.number), "halo", "middle"))
    return written


def _room(place: tuple[float, float], others: Sequence[tuple[float, float]], enough: float) -> float:
    """Distance to the nearest of the others as a share of what is enough, at most 1."""
    # A label's middle stands higher than its foot, from which it is drawn.
    return min([1.0, *(math.dist((place[0], place[1] - 4), other) / enough for other in others)])
