"""A finished tuning as data: the decision among candidates, its evidence, its cost, and what changed in the judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from metricsmith.formats import count, interval_stated, jsonable, percent, statistic
from metricsmith.records import Usage
from metricsmith.report.notebook import NotebookRecord
from metricsmith.report.render import render_terminal
from metricsmith.stats.resampling import measured_coverage

__all__ = ["SCHEMA_VERSION", "CandidateResult", "Selection", "Tuning"]

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class CandidateResult:
    """A candidate's statistic on the selection rows.

    Parameters
    ----------
    name : str
    statistic : float
        NaN where it is undefined, as for a judge that gives one number throughout.
    low, high : float
        95 % interval by leaving out groups: `metricsmith.stats.resampling.jackknife_interval`.
    gain : float
        Statistic minus that of the judge before tuning, or minus chance where that has none.
    standard_error : float
        Of the gain, by leaving out groups; NaN with fewer than three.
    gain_low, gain_high : float
        95 % interval of the gain, which is a paired difference, by leaving out groups; NaN with fewer than three.
    """

    name: str
    statistic: float
    low: float
    high: float
    gain: float
    standard_error: float
    gain_low: float = math.nan
    gain_high: float = math.nan


@dataclass(frozen=True)
class Selection:
    """The decision among the candidates.

    Parameters
    ----------
    before : CandidateResult
        The judge as it was; its gain is 0.
    candidates : tuple of CandidateResult
        Those that judged every selection row without a failure, best first.
    optimism : float
        The mean of the largest gain that so many candidates show by luck alone, were all of them equal.
    chosen : str
        The winner's name, or that of the judge as it was.
    after : CandidateResult, optional
        The winner with statistic, interval and gain as expected on other rows: corrected for the choice by these
        rows. None where the judge is unchanged.
    """

    before: CandidateResult
    candidates: tuple[CandidateResult, ...]
    optimism: float
    chosen: str
    after: CandidateResult | None = None

    @property
    def replaced(self) -> bool:
        """True if a candidate has won."""
        return self.chosen != self.before.name

    @property
    def verdict(self) -> str:
        """The decision in words."""
        if not self.candidates:
            return (
                "no candidate judged every selection row without a failure and gave numbers that have a statistic: "
                "the judge is unchanged"
            )
        best = self.candidates[0]
        kept = best.gain - self.optimism
        sums = (
            f"the best of {count(len(self.candidates), 'candidate')} gains {_gain(best.gain)}, {_gain(kept)} after "
            f"{statistic(self.optimism, 2)} for being the best of so many; standard error "
            f"{statistic(best.standard_error, 2)}"
        )
        if self.after is None:
            return f"{sums}: not enough, the judge is unchanged"
        return f"{sums}: it replaces the judge, and about {_gain(self.after.gain)} is to be expected on other rows"


def _gain(value: float) -> str:
    return statistic(value, 2, signed=True)


@dataclass(frozen=True)
class Tuning(NotebookRecord):
    """The record of a tuning: the decision, its evidence, its cost, and the instructions that changed.

    Parameters
    ----------
    method, objective : str
    selection : Selection
        The decision, with every candidate's statistic on the selection rows and its interval.
    before, after : dict of str to str
        By predictor, the instruction before and after.
    demos : int
        Demonstrations in the judge that was returned.
    learned, selected : int
        Rows to learn from, and rows to select by.
    bound : int
        The most requests that the run could send, known before it began.
    usage : Usage
        The requests that it sent; ``seconds`` by the clock, from first to last.
    discarded : int
        Candidates that judged every selection row but failed in at least one call.
    ended : str
        The reason for an end before the plan was done; empty if there was none.
    asked : str
        A note on the asked scale of a judge that is not asked in the raters' numbers, with the reason; otherwise empty.
    reported : mapping of str to (float, float)
        Of a judge of options, measures that were not searched by, on the selection rows before and after, uncorrected.
    groups : int
        Groups of the rows to select by, which intervals rest on; 0 if they were not counted.
    demonstrations : tuple of mapping of str to str
        The fields of each demonstration, as the model is shown them.
    signature : str
        The line that makes every number reproducible.
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
    reported: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    groups: int = 0
    demonstrations: tuple[Mapping[str, str], ...] = ()
    signature: str = ""

    @property
    def replaced(self) -> bool:
        """True if the judge that came back is another one."""
        return self.selection.replaced

    @property
    def chosen(self) -> CandidateResult:
        """The result of the judge that came back; that of a winner is corrected for the choice."""
        return self.selection.after or self.selection.before

    @property
    def helped(self) -> bool:
        """True if the gain to be expected on other rows has a 95 % interval above 0."""
        return self.selection.after is not None and self.selection.after.gain_low > 0

    @property
    def verdict(self) -> str:
        """The answer in one sentence: the gain on rows that no candidate has seen, and if it is more than luck."""
        found = self.selection
        if not found.candidates:
            return f"Tuning changed nothing: {found.verdict}."
        best = found.after or found.candidates[0]
        gain = f"{_gain(best.gain)} ({interval_stated(best.gain_low, best.gain_high)})"
        seen = f"on rows that no candidate has seen, the change in {self.objective} is"
        if found.after is not None:
            opening = "Tuning helped" if self.helped else "Not decided, though the judge was replaced"
            return f"{opening}: {seen} about {gain}."
        opening = "Not decided" if best.gain > 0 else "Tuning did not help"
        luck = statistic(found.optimism, 2)
        many = f"the best of {count(len(found.candidates), 'candidate')}, which brings {luck} by luck"
        return f"{opening}, and the judge is unchanged: {seen} {gain} for {many}."

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that must not be overlooked: failures, an early end, few groups."""
        few = measured_coverage("difference", self.groups) if self.groups else None
        held = (
            ""
            if few is None or math.isnan(few)
            else f": they held the truth in as few as {percent(few)} of simulated cases"
        )
        return (
            *([f"{count(self.discarded, 'candidate')} discarded for failed calls"] if self.discarded else []),
            *([f"ended early: {self.ended}"] if self.ended else []),
            *([] if few is None else [f"intervals rest on {count(self.groups, 'group')} of rows{held}"]),
        )

    def as_dict(self) -> dict[str, Any]:
        """The content of ``tuning.json``: JSON-ready, NaN as None."""
        return dict(jsonable({"schema_version": SCHEMA_VERSION, "helped": self.helped, **asdict(self)}))

    def __str__(self) -> str:
        return render_terminal(self._document())
