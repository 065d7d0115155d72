"""What stands for a tuned judge: the decision, what it cost, and what changed."""

from __future__ import annotations

from dataclasses import dataclass

from metricsmith.optimizers.tuning.selection import Finalist, Selection
from metricsmith.records import Usage

__all__ = ["Tuning"]


@dataclass(frozen=True)
class Tuning:
    """How a judge was tuned, with what stands for the result.

    Parameters
    ----------
    method, objective : str
    selection : Selection
        The decision; every candidate's statistic on the selection rows with its interval.
    before, after : dict of str to str
        By predictor, the instruction before and after.
    demos : int
        Demonstrations in the judge that was returned.
    learned, selected : int
        Rows of either side.
    bound : int
        The most requests that the run could send, known before it began.
    usage : Usage
        What it did send; ``seconds`` by the clock, from first to last.
    discarded : int
        Candidates that judged every selection row but failed in at least one call.
    ended : str
        Why the search ended before its plan, empty if it did not.
    asked : str
        How the judge is asked instead of in the raters' numbers, and why; empty if it is asked in these.
    """

    method: str
    objective: str
    selection: Selection
    before: dict[str, str]
    after: dict[str, str]
    demos: int
    learned: int
    selected: int
    bound: int
    usage: Usage
    discarded: int = 0
    ended: str = ""
    asked: str = ""

    @property
    def replaced(self) -> bool:
        """Whether the judge that came back is another one."""
        return self.selection.replaced

    @property
    def chosen(self) -> Finalist:
        """The judge that came back; where it was chosen by the selection rows, its figures are corrected for that."""
        return self.selection.after or self.selection.before

    @property
    def _correction(self) -> str:
        """The words behind a corrected figure; empty for an uncorrected one."""
        if self.selection.after is None:
            return ""
        seen = self.selection.finalists[0].statistic
        return f", corrected for having been chosen by these rows, on which it reads {seen:.3f}"

    def __str__(self) -> str:
        before, chosen = self.selection.before, self.chosen
        lines = [
            f"{self.method} for {self.objective}: {self.learned} rows to learn from, {self.selected} to select by",
            f"before {_figures(before)}",
            f"{'after' if self.replaced else 'unchanged'} {_figures(chosen)}{self._correction}",
            self.selection.verdict,
            f"requests: at most {self.bound}, sent {self.usage.requests}",
        ]
        lines += [self.asked] if self.asked else []
        lines += [f"{self.discarded} candidates discarded for failed calls"] if self.discarded else []
        return "\n".join(lines + ([f"ended early: {self.ended}"] if self.ended else []))


def _figures(one: Finalist) -> str:
    return f"{one.statistic:.3f} (95 % interval {one.low:.3f} to {one.high:.3f})"
