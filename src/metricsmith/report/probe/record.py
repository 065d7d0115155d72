"""A finished probe as data: how each metric moved when outputs were changed on purpose, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from metricsmith.formats import jsonable
from metricsmith.records import Task, Usage
from metricsmith.report.notebook import NotebookRecord
from metricsmith.stats.ceiling import RaterCeiling
from metricsmith.stats.validity import PairedMean, Sensitivity

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CHANCE", "SCHEMA_VERSION", "Attack", "Kind", "ProbeRecord", "StrategyResult", "Subject", "Surprise"]

SCHEMA_VERSION = 1
CHANCE = 0.5  # the sensitivity of a metric that knows nothing and never ties
Kind = Literal["metric", "component", "baseline", "null"]


@dataclass(frozen=True, slots=True)
class Subject:
    """One metric, and how it moved.

    Parameters
    ----------
    name, label : str
        Its column; how it is called in tables.
    kind : str
        ``metric``: what is probed; ``component``: a part of it, in the direction in which it counts there;
        ``baseline``: another metric; ``null``: one that knows nothing.
    lacking : str
        Why it could not be probed; empty if it was. The rest is None then.
    still : bool
        Whether it gave all outputs the same number, so that its stability means nothing.
    sensitivity : Sensitivity or None
        Share of worse outputs that scored strictly lower.
    magnitude, stability : PairedMean or None
        On the unit that `ProbeRecord.unit` names; None for a metric that is `still`, or without such perturbations.
    p_sensitivity, p_stability : float
        Two-sided, against the metric that is probed, swapped in whole groups, after Holm over all others; NaN for
        itself and where there is no number.
    """

    name: str
    label: str
    kind: Kind
    lacking: str = ""
    still: bool = False
    sensitivity: Sensitivity | None = None
    magnitude: PairedMean | None = None
    stability: PairedMean | None = None
    p_sensitivity: float = math.nan
    p_stability: float = math.nan

    @property
    def insensitive(self) -> bool:
        """True if worse outputs do not clearly fall more often than they rise: `Sensitivity.balance` reaches 0.

        A low share of falls may come from ties alone, and a mean drop from a few large ones, so that neither decides.
        """
        if self.lacking or self.sensitivity is None or self.sensitivity.n == 0:
            return False
        return not self.sensitivity.balance.low > 0


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """One way of changing outputs, and how the metric that is probed moved.

    Parameters
    ----------
    name, effect, strength, dimension, origin : str
        As of `Perturbation`.
    summary : str
        What it does.
    made, declined : int
        Outputs that were changed, and that were not.
    reason : str
        The most frequent reason for declining.
    sensitivity : Sensitivity or None
        For worse outputs.
    stability : PairedMean or None
        For outputs of the same quality.
    change : PairedMean or None
        Mean signed change of the score, on the unit that `ProbeRecord.unit` names.
    others : mapping of str to float
        By name of the other subjects, their sensitivity or stability, NaN where undefined.
    """

    name: str
    effect: str
    strength: str
    dimension: str
    origin: str
    summary: str
    made: int
    declined: int
    reason: str = ""
    sensitivity: Sensitivity | None = None
    stability: PairedMean | None = None
    change: PairedMean | None = None
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def answer(self) -> Literal["noticed", "missed", "open", "untried"]:
        """The decision of the sensitivity's interval beside `CHANCE`; ``untried`` without outputs made worse so."""
        if self.sensitivity is None or not self.sensitivity.n:
            return "untried"
        low, high = self.sensitivity.interval.low, self.sensitivity.interval.high
        return "noticed" if low > CHANCE else "missed" if high < CHANCE else "open"


@dataclass(frozen=True, slots=True)
class Attack:
    """An attempt to win a better score without better quality.

    Parameters
    ----------
    name, summary : str
    must_fall : bool
        Whether the changed output is worthless, so that a metric that does not fall has missed it; otherwise it is
        as good as the original at best, and must not rise.
    change : PairedMean
        Of the metric that is probed; NaN where it never moves.
    pairs : Sensitivity
        How often it fell and rose.
    others : mapping of str to float
        By name of the other subjects, their mean change, NaN where undefined.
    """

    name: str
    summary: str
    must_fall: bool
    change: PairedMean
    pairs: Sensitivity
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> Literal["held", "deceived", "open"]:
        """The decision of the change's interval, or of not a single pair that moved that way; otherwise ``open``.

        With one group alone nothing is decided.
        """
        interval, pairs = self.change.interval, self.pairs
        if pairs.groups < 2:
            return "open"
        if self.must_fall:
            return "held" if interval.high < 0 else "deceived" if interval.low >= 0 or pairs.value == 0 else "open"
        return "deceived" if interval.low > 0 else "held" if interval.high <= 0 or pairs.risen == 0 else "open"


@dataclass(frozen=True, slots=True)
class Surprise:
    """A pair on which the metric moved where it should not, or did not where it should.

    `original` and `changed` are the outputs, `before` and `after` the metric's raw numbers.
    """

    row: str
    strategy: str
    effect: str
    strength: str
    original: str
    changed: str
    before: float
    after: float


@dataclass(frozen=True)
class ProbeRecord(NotebookRecord):
    """A finished probe.

    Parameters
    ----------
    title : str
        What was probed.
    task : Task
    signature : str
        The line that makes every number reproducible.
    counts : mapping of str to int
        ``rows``, ``groups``, ``worse``, ``same``, ``attack``, ``declined``.
    unit : str
        In what unit sizes of changes are, one and the same for all metrics.
    subjects : tuple of Subject
        The metric first, then its components, baselines and nulls.
    strategies : tuple of StrategyResult
    attacks : tuple of Attack
    surprises : tuple of Surprise
        The largest ones first.
    judgements : mapping of str to int
        ``requested``, ``ok`` and every failure.
    usage, estimated : Usage
    warnings, notes : tuple of str
    raters : RaterCeiling, optional
        How people agree, and the ceiling that follows, where it is known who rated.
    """

    title: str
    task: Task
    signature: str
    counts: Mapping[str, int]
    unit: str
    subjects: tuple[Subject, ...]
    strategies: tuple[StrategyResult, ...]
    attacks: tuple[Attack, ...]
    surprises: tuple[Surprise, ...]
    judgements: Mapping[str, int]
    usage: Usage
    estimated: Usage
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    raters: RaterCeiling | None = None

    @property
    def metric(self) -> Subject:
        """The metric that is probed."""
        return self.subjects[0]

    def to_pandas(self) -> pd.DataFrame:
        """One line a metric: sensitivity, mean drop and stability with their intervals; NaN where there is none."""
        import pandas as pd

        lines = []
        for one in self.subjects:
            line: dict[str, Any] = {"name": one.name, "kind": one.kind, "lacking": one.lacking, "still": one.still}
            for name in ("sensitivity", "magnitude", "stability"):
                figure: Sensitivity | PairedMean | None = getattr(one, name)
                known = (math.nan,) * 3 if figure is None else (figure.value, figure.interval.low, figure.interval.high)
                line |= dict(zip((name, f"{name}_low", f"{name}_high"), known, strict=True))
            lines.append(line | {"p_sensitivity": one.p_sensitivity, "p_stability": one.p_stability})
        return pd.DataFrame(lines)

    def as_dict(self) -> dict[str, Any]:
        """The content of ``probe.json``; undefined numbers are None."""
        content = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        for attack, entry in zip(self.attacks, content["attacks"], strict=True):
            entry["verdict"] = attack.verdict
        for subject, entry in zip(self.subjects, content["subjects"], strict=True):
            entry["insensitive"] = subject.insensitive
        return jsonable(content)  # type: ignore[no-any-return]
