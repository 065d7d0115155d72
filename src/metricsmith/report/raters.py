"""The agreement of people and what follows for a metric, in sentences that all reports share."""

from __future__ import annotations

from collections.abc import Mapping

from metricsmith.formats import count, interval, single_line, statistic
from metricsmith.stats.ceiling import MINIMUM_OUTPUTS, RaterCeiling

__all__ = ["ceiling_lines"]


def ceiling_lines(found: RaterCeiling | None, taus: Mapping[str, float]) -> list[str]:
    """Sentences on how two people agree, the ceiling, and what lies above it.

    A figure lies above the ceiling only where it is above both, that of a continuous number and that of one with few
    levels.

    Parameters
    ----------
    found : RaterCeiling or None
        None where nobody knows who rated: then there is nothing to say.
    taus : mapping of str to float
        Tau-b with the average rating, by what has it; NaN where undefined.

    Returns
    -------
    list of str
        Plain sentences; empty without `found`.
    """
    if found is None:
        return []
    if found.withheld:
        return [f"{_withheld(found)} No ceiling for a metric is given."]
    lines = [
        f"Two people agree {statistic(found.agreement, 2)} with each other; no metric can be expected above about "
        f"{statistic(found.ceiling, 2)} ({interval(found.low, found.high, 2)}) here.",
        f"The first is tau-b of one person's ratings with another's, on {count(found.twice)} outputs "
        f"({interval(found.agreement_low, found.agreement_high, 2)}); the second is the tau-b that what raters have in "
        f"common would reach with their average ({count(found.ratings)} ratings of {count(found.outputs)} outputs by "
        f"{count(found.raters)} people)."
        + (" Hardly two outputs share their raters, so that these count as interchangeable." * found.interchangeable),
    ]
    if statistic(found.tied, 2) != statistic(found.ceiling, 2):
        lines.append(
            "Only a metric with few levels, tied where people's average is tied, could come to "
            f"{statistic(found.tied, 2)}."
        )
    above = {name: tau for name, tau in taus.items() if tau > max(found.ceiling, found.tied)}
    if above:
        named = ", ".join(f"{single_line(name)} {statistic(tau, 2)}" for name, tau in above.items())
        lines.append(
            f"Above it: {named}. That is not better than people: the ceiling and the figure are estimates, and raters "
            "may share what has nothing to do with quality."
        )
    return lines


def _withheld(found: RaterCeiling) -> str:
    """Why there is no ceiling."""
    agreed = f"Two people agree {statistic(found.agreement, 2)} with each other"
    between = interval(found.agreement_low, found.agreement_high, 2)
    outputs = f"on {count(found.twice, 'output')} that two people or more rated"
    return {
        "single": "No output was rated by two people, so that it is not known how people agree.",
        "few": f"Two people or more rated {count(found.twice)} of {count(found.outputs, 'output')}, and how people "
        f"agree takes {MINIMUM_OUTPUTS}.",
        "alike": f"How people agree is undefined {outputs}: someone gave all of them the same rating.",
        "groups": f"{agreed} {outputs}, without an interval: they come from {count(found.groups, 'group')}, or one "
        "group decides alone.",
        "chance": f"{agreed} ({between}) {outputs}: not clearly above 0.",
    }[found.withheld]
