"""The small metric beside the full model, and components whose weight goes against their own agreement, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from metricsmith.records import Difference
from metricsmith.report.formats import count, interval, one_line, statistic

__all__ = ["loss", "suppressors"]


class Weighted(Protocol):
    """The fields of a component that are read here."""

    @property
    def name(self) -> str:
        """The component's name."""

    @property
    def weight(self) -> float:
        """Rating points per standard deviation."""

    @property
    def tau_train(self) -> float:
        """Tau-b of the component alone on the training rows."""


def loss(found: Difference | None) -> str:
    """The difference of the small metric from the full model on held-out rows; empty where none was measured."""
    if found is None or not math.isfinite(found.kendall_tau_b):
        return ""
    gap = statistic(abs(found.kendall_tau_b))
    same = gap == statistic(0.0)
    lost = same or found.kendall_tau_b < 0
    low, high = (-found.ci_high, -found.ci_low) if lost else (found.ci_low, found.ci_high)
    ends = f" (95\u00a0% interval {interval(low, high)})" if math.isfinite(low) and math.isfinite(high) else ""
    rows = f"On the same {count(found.n, 'held-out row')} the small metric"
    if same:
        return f"{rows}'s tau-b is within .0005 of the full model's{ends.replace('interval', 'interval of the loss')}."
    return f"{rows} {'loses' if lost else 'gains'} {gap} of tau-b against the full model{ends}."


def suppressors(components: Sequence[Weighted], rows: int) -> str:
    """The components whose weight has another sign than their own tau-b on the training rows; empty without any.

    Parameters
    ----------
    components : sequence
    rows : int
        The training rows. A tau-b within two standard errors of 0, as unrelated rankings of so many rows have them,
        may have either sign by chance, which is said.
    """
    found = [item for item in components if item.weight * item.tau_train < 0]
    if not found or rows < 2:
        return ""
    chance = 2 * math.sqrt(2 * (2 * rows + 5) / (9 * rows * (rows - 1)))
    named = ", ".join(
        f"{one_line(item.name)} (alone tau-b {statistic(item.tau_train, 2, signed=True)}"
        f"{', near enough to 0 for either sign by chance' if abs(item.tau_train) < chance else ''})"
        for item in found
    )
    return (
        f"The weight has another sign than the component's own agreement with the training ratings in {named}: such a "
        "component corrects the others (a suppressor), and its weight is no effect of that quality."
    )
