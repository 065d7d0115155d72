"""A reward against a reference over the steps of an optimisation: the record, its verdict, and the plot's page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metricsmith.report.blocks import Block, Figure, Heading, Page, Paragraph, Terms, TextTable
from metricsmith.report.formats import interval, percent, raw, single_line, statistic
from metricsmith.report.html import render_page
from metricsmith.report.markup import Markup, joined, remark
from metricsmith.report.plots.gap import GapPoint, gap_plot

__all__ = ["Gap", "gap_verdict", "plot_gaps", "render_gap_page"]

GLOSSARY = (
    ("gap", "How much more the reward rose than the reference, since the first step, on the same rows."),
    (
        "tau-b",
        "Kendall's rank correlation of reward and reference over this step's outputs: whether the reward still tells "
        "good outputs from poor ones.",
    ),
)
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


def plot_gaps(gaps: Sequence[Gap]) -> Markup:
    """The plot of the steps; its colours come from the style sheet of the page that it stands in."""
    points = [GapPoint(gap.at, gap.reward_change, gap.gap, gap.low, gap.high) for gap in gaps]
    return gap_plot("gap", points)


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
