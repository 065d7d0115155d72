"""Records of rows that were to be rewarded: failures by row, and a program's rewards without them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import dspy

from metricsmith.errors import JudgementFailed
from metricsmith.formats import statistic
from metricsmith.records import Status
from metricsmith.rendering import render_output

__all__ = ["FailedRow", "Outcome", "RewardCheck"]


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A row that got no reward, and that DSPy therefore booked as its ``failure_score``.

    Parameters
    ----------
    row : dspy.Example
    output : str
        The output to be judged, as the metric reads it; empty if the program gave nothing that can be read.
    status : str
        One of `metricsmith.records.Status`, or the class of the error that came before any judgement.
    error : str
    times : int
        How often this output of this row was met.
    """

    row: dspy.Example
    output: str
    status: str
    error: str
    times: int = 1

    def __str__(self) -> str:
        return f"{_row_name(self.row)}: {self.error}" + (f" ({self.times} times)" if self.times > 1 else "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row as a program answered it: `score` is NaN, and `error` says why, where there is no reward."""

    row: dspy.Example
    prediction: Any
    score: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class RewardCheck:
    """A program's rewards, failures apart.

    Parameters
    ----------
    outcomes : tuple of Outcome
        In the order of the rows.
    """

    outcomes: tuple[Outcome, ...]

    @property
    def score(self) -> float:
        """Mean over the rows that have a reward; NaN if none has."""
        scores = [outcome.score for outcome in self.outcomes if not math.isnan(outcome.score)]
        return math.fsum(scores) / len(scores) if scores else math.nan

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The rows without a reward: the program failed, or its judgement did."""
        return tuple(outcome for outcome in self.outcomes if math.isnan(outcome.score))

    def raise_for_failures(self) -> RewardCheck:
        """Return this very check if every row has a reward.

        Raises
        ------
        JudgementFailed
            If one has none; names the rows.
        """
        if self.failures:
            raise JudgementFailed(str(self), Status.SKIPPED)
        return self

    def __str__(self) -> str:
        judged = len(self.outcomes) - len(self.failures)
        head = f"mean reward {statistic(self.score)} over {judged} of {len(self.outcomes)} rows"
        if self.failures:
            head += f"; {len(self.failures)} without a reward, which DSPy would book as 0:"
        return "\n".join([head, *(f"  {_row_name(outcome.row)}: {outcome.error}" for outcome in self.failures)])


def _row_name(row: Any) -> str:
    """The row's id, or the beginning of what it holds."""
    number = row.get("id")
    return f"row {number}" if number is not None else f"row {' '.join(render_output(row).split())[:60]!r}"
