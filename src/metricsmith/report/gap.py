"""A reward against a reference over the steps of an optimisation: the record, its verdict, and the plot's page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metricsmith.formats import interval, percent, raw, single_line, statistic
from metricsmith.report.blocks import (
    Block,
    Figure,
    Heading,
    Markup,
    Page,
    Paragraph,
    Terms,
    TextTable,
    element,
    joined,
    remark,
)
from metricsmith.report.plots.svg import LinearAxis, connected, level_frame, picture, svg_text, tick_label, ticks
from metricsmith.report.render import render_page

__all__ = ["Gap", "gap_verdict", "plot_gaps", "render_gap_page"]

GLOSSARY = (
    ("gap", "How much more the reward rose than the reference, since the first step, on the same rows."),
    (
        "tau-b",
        "Kendall's rank correlation of reward and reference over this step's outputs: whether the reward still tells "
        "good outputs from poor ones.",
    ),
)
LEFT, RIGHT, TOP, BOTTOM = 40.0, 285.0, 10.0, 200.0  # of the plot
ROUNDING = 1e-9  # differences of means that are equal on paper


@dataclass(frozen=True, slots=True)
class Gap:
    """One step of an optimisation.

    Parameters
    ----------
    at : float
        The progress of the optimisation, for example in metric calls.
    label : str
    reward, reference : float
        Means in [0, 1] over the rows that have both, here and at the first step; NaN without such rows.
    reward_change, gap, low, high : float
        The reward's rise since the first step, by how much it exceeds the reference's, and that number's interval.
    kendall_tau_b : float
        Rank correlation of reward and reference over the outputs of this step alone.
    rows : int
    """

    at: float
    label: str
    reward: float
    reference: float
    reward_change: float
    gap: float
    low: float
    high: float
    kendall_tau_b: float
    rows: int

    @property
    def over_optimised(self) -> bool:
        """True if the reward rose and the whole interval of the gap lies above 0."""
        return self.reward_change > ROUNDING and self.low > ROUNDING


def gap_verdict(gaps: Sequence[Gap]) -> str:
    """The course of reward and reference over the steps, in one or two sentences."""
    known = [gap for gap in gaps if math.isfinite(gap.gap)]
    if len(known) < 2:
        return "Nothing to compare yet: two steps with a reference are needed."
    last = known[-1]
    text = (
        f"By step {raw(last.at)} the reward changed by {statistic(last.reward_change, 2, signed=True)} and the "
        f"reference by {statistic(last.reward_change - last.gap, 2, signed=True)}: a gap of "
        f"{statistic(last.gap, 2, signed=True)} ({interval(last.low, last.high, 2)})."
    )
    over = next((gap for gap in known if gap.over_optimised), None)
    if over is None:
        return f"{text} At no step does the interval of the gap lie above 0."
    return (
        f"{text} From step {raw(over.at)} on the reward rises beyond what the reference bears out; the reference "
        f"is highest at step {raw(max(known, key=lambda gap: gap.reference).at)}."
    )


def render_gap_page(title: str, gaps: Sequence[Gap], level: float) -> str:
    """One self-contained HTML page with plot and table."""
    caption = (
        "Change since the first step, both on a scale from 0 to 1. Whiskers: the reference's change relative to the "
        f"reward's, {percent(level)} interval over groups of rows. Where a whisker stays below the blue line, the "
        "reward rose by more than the reference did."
    )
    rows = [
        (
            joined(raw(gap.at), *([" ", remark(single_line(gap.label))] if gap.label else ())),
            statistic(gap.reward),
            statistic(gap.reference),
            statistic(gap.gap, signed=True),
            interval(gap.low, gap.high),
            statistic(gap.kendall_tau_b),
            str(gap.rows),
        )
        for gap in gaps
    ]
    blocks: list[Block] = [
        Figure(plot_gaps(gaps), caption),
        TextTable(("step", "reward", "reference", "gap", "interval", "tau-b", "rows"), rows, label="Steps in figures"),
        Terms.glossary(GLOSSARY),
    ]
    return render_page(Page(single_line(title), [Heading(title, level=1), Paragraph(gap_verdict(gaps))], blocks))


def plot_gaps(gaps: Sequence[Gap]) -> Markup:
    """The plot of both changes; its colours come from the style sheet of the page that it stands in.

    Parameters
    ----------
    gaps : sequence of Gap
        In any order; the plot is empty without two that have numbers. The whisker at a step is the reference's
        interval: the reward's change less the gap's ends.
    """
    shown = sorted((gap for gap in gaps if math.isfinite(gap.gap)), key=lambda gap: gap.at)
    if len(shown) < 2:
        return Markup("")
    heights = [
        number
        for gap in shown
        for number in (gap.reward_change, *(gap.reward_change - beyond for beyond in (gap.gap, gap.low, gap.high)))
        if math.isfinite(number)
    ]
    across = LinearAxis(shown[0].at, max(shown[-1].at, shown[0].at + 1e-9), LEFT, RIGHT)
    up = LinearAxis(min(0.0, *heights) - 0.02, max(0.1, *heights) + 0.02, BOTTOM, TOP)
    description = "; ".join(
        f"{tick_label(gap.at)}: reward {statistic(gap.reward_change, 2, signed=True)}, "
        f"reference {statistic(gap.reward_change - gap.gap, 2, signed=True)}"
        for gap in shown
    )
    reward = [(across(gap.at), up(gap.reward_change)) for gap in shown]
    reference = [(across(gap.at), up(gap.reward_change - gap.gap)) for gap in shown]
    return picture(
        "gap", BOTTOM + 40, "Change of reward and reference since the first step", description,
        level_frame(
            across, up, {value: statistic(value, 2, signed=True) for value in ticks(up.low, up.high, 5)}, about=5
        ),
        _whiskers(across, up, shown), connected(reward, 3.5, "main"), connected(reference, 3.5, "down"),
        *_names(reward[-1][1], reference[-1][1]),
        svg_text((LEFT + RIGHT) / 2, BOTTOM + 34, "step", "muted", "middle"),
    )  # fmt: skip


def _whiskers(across: LinearAxis, up: LinearAxis, shown: Sequence[Gap]) -> Markup:
    lines = [
        element(
            "line", x1=across(gap.at), x2=across(gap.at), y1=up(gap.reward_change - gap.high),
            y2=up(gap.reward_change - gap.low), class_="whisker thin down",
        )
        for gap in shown
        if math.isfinite(gap.low) and math.isfinite(gap.high)
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
