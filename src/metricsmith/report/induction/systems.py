"""Agreement on rows of new systems, and inside systems: the record and the sentences that every report shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metricsmith.records import Agreement
from metricsmith.report.blocks import Markup
from metricsmith.report.formats import count, interval, statistic
from metricsmith.report.plots.forest import Estimate, forest

__all__ = ["MINIMUM_SYSTEMS", "NewSystems", "same_systems_note", "systems_caution", "systems_lines", "systems_plot"]

MINIMUM_SYSTEMS = 6
"""With fewer there is no figure for new systems."""


@dataclass(frozen=True, slots=True)
class NewSystems:
    """The figures of held-out rows for systems that nobody has rated.

    Parameters
    ----------
    systems, rows : int
        Systems among the held-out rows, and the rows that name one.
    kendall_tau_b, ci_low, ci_high : float
        To be expected on new rows of new systems, with its 95 % interval over groups and systems; NaN if withheld.
    within_tau_b, within_low, within_high : float
        Over the pairs of rows of one system, pooled, with its 95 % interval over groups.
    judges : int
        Components that were written or tuned on rated rows of all systems.
    unnamed : int
        Held-out rows without a system, which are left out.
    withheld : str
        Why there is no figure for new systems; empty if there is one.
    """

    systems: int
    rows: int
    kendall_tau_b: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    within_tau_b: float = math.nan
    within_low: float = math.nan
    within_high: float = math.nan
    judges: int = 0
    unnamed: int = 0
    withheld: str = ""


def systems_lines(block: NewSystems | None, rows: Agreement) -> list[str]:
    """The block in sentences, `rows` being the figure for new rows of the same systems; none without a block."""
    if block is None:
        return []
    of = f"these {count(block.systems, 'system')}" if block.systems > 1 else "this one system"
    lines = [f"New rows of {of}: {_figure(rows.kendall_tau_b, rows.ci_low, rows.ci_high)}."]
    if block.withheld:
        lines.append(f"New systems: no figure, since {block.withheld}.")
    else:
        figure = _figure(block.kendall_tau_b, block.ci_low, block.ci_high)
        lines.append(
            f"New systems: {figure}, where each pair of rows is ranked by a fit that saw neither of their systems; the "
            "interval is over systems and groups."
        )
        if block.judges:
            lines.append(
                f"{count(block.judges, 'component')} of the metric learned from rated rows of all these systems and "
                "stayed as they are: to that extent the figure for new systems flatters."
            )
    within = _figure(block.within_tau_b, block.within_low, block.within_high)
    lines.append(
        f"Inside systems, over pairs of rows of one system: {within}. Systems that differ in level give agreement "
        "without any signal in rows; this figure is free of it."
    )
    if block.unnamed:
        lines.append(f"{count(block.unnamed, 'held-out row')} without a system left out.")
    return lines


def systems_caution(block: NewSystems | None, rows: Agreement) -> str:
    """A caution where the evidence for new rows of the same systems does not reach to new systems; else empty."""
    if block is None or not rows.ci_low > 0 or not block.ci_low <= 0:
        return ""
    return (
        f"For outputs of systems that were not rated here there is no clear evidence: "
        f"{_figure(block.kendall_tau_b, block.ci_low, block.ci_high)}. Rate outputs of more systems first."
    )


def same_systems_note(rows: Sequence[Mapping[str, Any]]) -> str:
    """A note for figures of held-out rows that name their systems, which hold for these only; else empty."""
    systems = {str(row["system"]) for row in rows if row.get("system")}
    if not systems:
        return ""
    of = f"these {len(systems)} systems" if len(systems) > 1 else "this one system"
    more = f"metricsmith induce gives one for new systems, from {MINIMUM_SYSTEMS} systems on"
    return f"all figures are for new rows of {of}; {more}"


def systems_plot(block: NewSystems | None, rows: Agreement) -> Markup:
    """The figures side by side; empty where there is none for new systems."""
    if block is None or block.withheld:
        return Markup("")
    estimates = [
        Estimate(f"New rows of these {block.systems} systems", rows.kendall_tau_b, rows.ci_low, rows.ci_high),
        Estimate("New systems", block.kendall_tau_b, block.ci_low, block.ci_high, main=True),
        Estimate("Inside systems", block.within_tau_b, block.within_low, block.within_high),
    ]
    return forest("systems", estimates, "Agreement on rows of known and of new systems")


def _figure(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "tau-b undefined"
    ends = f"95\u00a0% interval {interval(low, high, 2)}" if math.isfinite(low) else "no interval"
    return f"tau-b {statistic(value, 2)} ({ends})"
