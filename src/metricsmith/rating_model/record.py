"""The result of holding judges against people whose ratings may rightly differ, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from metricsmith.stats.resampling import Interval

__all__ = ["JudgeFigure", "JudgeSelection", "MeasureResult", "RivalJudge", "SweepCell", "Violation"]

UNDEFINED = Interval(math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class JudgeFigure:
    """One measure of one judge: its value, its interval, and the share of joint draws in which it is the best.

    Judges that are equally good in a draw share it.
    """

    judge: str
    value: float
    interval: Interval
    best: float


@dataclass(frozen=True, slots=True)
class MeasureResult:
    """All judges by one measure, and what comes of choosing by it. NaN where something is undefined.

    Parameters
    ----------
    name, sides : str
        The measure, and its aggregation of the judge and of people.
    higher_is_better : bool
    figures : tuple of JudgeFigure
        In the order of the judges.
    pick : str
        The best judge, the first of equals; empty where no judge has a value.
    corrected : float
        The pick's value less what choosing the best of several adds to it by chance; of a bias, its size. The draws
        tell how much: see `metricsmith.rating_model.selection.optimism`.
    downstream, regret : float
        The downstream value of the pick, and how far it falls short of the best judge's.
    regret_interval : Interval
        Of the regret on other items: from the lower end of the paired lead of that judge over the pick, or 0, to the
        largest upper end of the lead of any judge.
    expected_regret : float
        Mean regret of the judges that the draws pick: the price of choosing by this measure on so many items.
    rank_correlation : float
        Spearman's, over judges, between the measure and the downstream value, both so that higher is better.
    rank_interval : Interval
        Of the draws, around the value: ranks move in steps, so that leaving out one group often moves none.
    """

    name: str
    sides: str
    higher_is_better: bool
    figures: tuple[JudgeFigure, ...]
    pick: str = ""
    corrected: float = math.nan
    downstream: float = math.nan
    regret: float = math.nan
    regret_interval: Interval = UNDEFINED
    expected_regret: float = math.nan
    rank_correlation: float = math.nan
    rank_interval: Interval = UNDEFINED


@dataclass(frozen=True, slots=True)
class RivalJudge:
    """Another judge beside the chosen one, by the measure that decides.

    Parameters
    ----------
    judge : str
    lead : float
        Of the chosen judge, above 0 where it is better.
    interval : Interval
        Paired.
    low, high : float
        Bounds of the lead over all response sets that the choices allow; NaN where the measure has none.
    """

    judge: str
    lead: float
    interval: Interval
    low: float = math.nan
    high: float = math.nan

    @property
    def robust(self) -> bool:
        """True if the lead keeps its sign for every response set that the choices allow."""
        return self.low > 0


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One beta and threshold: the people's prevalence, the best judge downstream, and each measure's pick.

    Parameters
    ----------
    beta, threshold, prevalence : float
    best : str
        Empty where all judges are alike, as where every item is positive: such a cell says nothing of the choice.
    value : float
        The best decision consistency.
    picks : mapping of str to (str, float)
        By measure: the judge that it picks, and that judge's decision consistency.
    """

    beta: float
    threshold: float
    prevalence: float
    best: str
    value: float
    picks: Mapping[str, tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Violation:
    """Two judgements that two measures order in opposite ways: no monotone map takes one measure to the other.

    `better` and `worse` are (judge, item) by the first measure; `first` and `second` their two values by each measure.
    """

    better: tuple[str, str]
    worse: tuple[str, str]
    first: tuple[float, float]
    second: tuple[float, float]


@dataclass(frozen=True)
class JudgeSelection:
    """Judges held against people, and the one to take.

    Parameters
    ----------
    pick : str
        The best judge by `by`.
    by : str
        The measure that decides.
    verdict : {"chosen", "depends", "undecided"}
        It leads every rival on these items and whatever the choices leave open; it leads, but not under every
        assumption that was looked at, or under one that nobody declared; or its lead may be chance.
    reasons : tuple of str
    judges : tuple of str
        Those that were compared.
    results : tuple of MeasureResult
        In the order asked for, the downstream measures last.
    rivals : tuple of RivalJudge
    sweep : tuple of SweepCell
    violations : tuple of Violation
        Between the measure that people use most, the hit rate, and the one that decides.
    items, groups : int
        Of the comparison: rated by people and by every judge that was compared.
    left_out : mapping of str to str
        Judges that were not compared, with the reason.
    declared : bool
        False where nobody said which response sets are admissible, so that choices count as whole opinions.
    sets_known : bool
        True where people and all judges gave response sets, or vectors of them.
    settings : mapping of str to object
        Everything on which the numbers depend, seed and draws included.
    notes : tuple of str
    """

    pick: str
    by: str
    verdict: str
    reasons: tuple[str, ...]
    judges: tuple[str, ...]
    results: tuple[MeasureResult, ...]
    rivals: tuple[RivalJudge, ...]
    sweep: tuple[SweepCell, ...]
    violations: tuple[Violation, ...]
    items: int
    groups: int
    left_out: Mapping[str, str] = field(default_factory=dict)
    declared: bool = True
    sets_known: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def result(self, name: str) -> MeasureResult:
        """The result of one measure."""
        return next(found for found in self.results if found.name == name)

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)
