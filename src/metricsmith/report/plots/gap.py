"""Reward and reference over the steps of an optimisation, as changes since the first step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metricsmith.report.formats import statistic
from metricsmith.report.markup import Markup, element
from metricsmith.report.plots.svg import LinearAxis, connected, level_frame, picture, svg_text, tick_label, ticks

__all__ = ["GapPoint", "gap_plot"]

LEFT, RIGHT, TOP, BOTTOM = 40.0, 285.0, 10.0, 200.0


@dataclass(frozen=True, slots=True)
class GapPoint:
    """The reward's change since the first step, and by how much it exceeds the reference's, with its interval."""

    at: float
    reward: float
    gap: float
    low: float
    high: float


def gap_plot(key: str, points: Sequence[GapPoint]) -> Markup:
    """Draw both changes; empty without two points that have numbers.

    Parameters
    ----------
    key : str
        Unique on the page.
    points : sequence of GapPoint
        In any order. The whisker at a point is the reference's interval: the reward's change less the gap's ends.
    """
    shown = sorted((point for point in points if math.isfinite(point.gap)), key=lambda point: point.at)
    if len(shown) < 2:
        return Markup("")
    heights = [
        number
        for point in shown
        for number in (point.reward, point.reward - point.gap, point.reward - point.low, point.reward - point.high)
        if math.isfinite(number)
    ]
    across = LinearAxis(shown[0].at, max(shown[-1].at, shown[0].at + 1e-9), LEFT, RIGHT)
    up = LinearAxis(min(0.0, *heights) - 0.02, max(0.1, *heights) + 0.02, BOTTOM, TOP)
    description = "; ".join(
        f"{tick_label(point.at)}: reward {statistic(point.reward, 2, signed=True)}, "
        f"reference {statistic(point.reward - point.gap, 2, signed=True)}"
        for point in shown
    )
    reward = [(across(point.at), up(point.reward)) for point in shown]
    reference = [(across(point.at), up(point.reward - point.gap)) for point in shown]
    return picture(
        key, BOTTOM + 40, "Change of reward and reference since the first step", description,
        level_frame(
            across, up, {value: statistic(value, 2, signed=True) for value in ticks(up.low, up.high, 5)}, about=5
        ),
        _whiskers(across, up, shown), connected(reward, 3.5, "main"), connected(reference, 3.5, "down"),
        *_names(reward[-1][1], reference[-1][1]),
        svg_text((LEFT + RIGHT) / 2, BOTTOM + 34, "step", "muted", "middle"),
    )  # fmt: skip


def _whiskers(across: LinearAxis, up: LinearAxis, shown: Sequence[GapPoint]) -> Markup:
    lines = [
        element(
            "line", x1=across(point.at), x2=across(point.at), y1=up(point.reward - point.high),
            y2=up(point.reward - point.low), class_="whisker thin down",
        )
        for point in shown
        if math.isfinite(point.low) and math.isfinite(point.high)
    ]  # fmt: skip
    return element("g", *lines)


def _names(reward: float, reference: float) -> tuple[Markup, Markup]:
    """Both names at the ends of their lines, moved apart where these meet."""
    apart = max(0.0, 14 - abs(reward - reference)) / 2
    sign = -1 if reward <= reference else 1
    return (
        svg_text(RIGHT + 8, reward + 4 + sign * apart, "reward", "halo"),
        svg_text(RIGHT + 8, reference + 4 - sign * apart, "reference", "halo"),
    )
