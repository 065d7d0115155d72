"""Shared tasks as data: the test sets, language pairs and measures of a suite, what counts, and the scores.

A suite's table has one column for each `SuiteTask`. Definitions of the WMT metrics tasks stand in
`metricsmith.meta_evaluation.wmt_suites`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from metricsmith.meta_evaluation.measures import MEASURES
from metricsmith.stats.correlation import FloatArray

__all__ = ["MetricScores", "PairScores", "PairRules", "ScoreLevel", "Suite", "SuiteTask", "task_bounds"]

ScoreLevel = Literal["sys", "seg"]
"""The score files that a task reads: one score by system, or one by system and segment."""


@dataclass(frozen=True, slots=True)
class SuiteTask:
    """One column of a suite's table: a measure in one language pair, or pooled over several.

    Parameters
    ----------
    measure : str
        A key of `MEASURES`, which says how segments are grouped, too; ``system-accuracy`` over several pairs counts
        the pairs of systems of all of them, none across language pairs.
    pairs : tuple of str
        Language pairs; more than one for a pooled task.
    level : "sys" or "seg"
        Whether scores by system or by segment are read.
    weight : float
        Above 0; in the average, relative to the weights of the other tasks.
    bounds : (float, float), optional
        The range that is mapped to [0, 1] before averaging; None takes the measure's own.
    """

    measure: str
    pairs: tuple[str, ...]
    level: ScoreLevel = "seg"
    weight: float = 1.0
    bounds: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """Unique in a suite: ``en-de spa``, ``all system-accuracy``."""
        return f"{self.pairs[0] if len(self.pairs) == 1 else 'all'} {self.measure}"


@dataclass(frozen=True, slots=True)
class PairRules:
    """The gold and the systems of one language pair.

    Parameters
    ----------
    gold : str
        Name of the people's scores: ``human-scores/PAIR.GOLD.LEVEL.score``.
    reference : str
        The standard reference, which is never scored. A metric counts if it used this reference or none.
    human : bool
        Whether human translations, the other references, are scored as systems.
    outliers : tuple of str
        Systems that are left out.
    """

    gold: str = "mqm"
    reference: str = "refA"
    human: bool = False
    outliers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """A shared task: what is measured on which test set, and what counts.

    Parameters
    ----------
    name : str
    test_set : str
        The test set's folder below the root of the data.
    pairs : mapping of str to PairRules
        By language pair, in the order of the table.
    tasks : tuple of SuiteTask
        In the order of the table.
    primary, baselines : tuple of str
        Base names of the metrics that took part officially, and of the organisers' own; all others are contrastive.
        Empty where a suite does not say.
    source : str
        The text in which the definition was read.
    """

    name: str
    test_set: str
    pairs: Mapping[str, PairRules]
    tasks: tuple[SuiteTask, ...]
    primary: tuple[str, ...] = field(default=(), repr=False)
    baselines: tuple[str, ...] = field(default=(), repr=False)
    source: str = ""


@dataclass(frozen=True, slots=True)
class MetricScores:
    """One metric's scores in one language pair, for the systems and segments of its `PairScores`.

    Parameters
    ----------
    name : str
        ``BLEU``; with ``[noref]`` behind it if no reference was used. The same in all language pairs.
    base : str
        ``BLEU``.
    reference_free : bool
    segments : float array, shape (k, n), or None
        None without a file by segment.
    systems : float array, shape (k, 1), or None
        None without a file by system.
    added : bool
        Whether it is a judge of one's own and not of the folder. Then `segments` may hold NaN, which the folder's
        metrics must not, and `systems` are means over the segments that all the systems have a score for.
    """

    name: str
    base: str
    reference_free: bool
    segments: FloatArray | None = field(repr=False)
    systems: FloatArray | None = field(repr=False)
    added: bool = False


@dataclass(frozen=True, slots=True)
class PairScores:
    """Everything that a suite measures in one language pair; higher is better on all sides.

    Parameters
    ----------
    pair : str
    gold_name : str
    systems : tuple of str, length k
        Those that count, in the order of the gold file.
    documents : tuple of str, length n
        Of each segment.
    segments : float array, shape (k, n)
        People's scores; NaN is missing.
    system_scores : float array, shape (k, 1), or None
        People's scores by system, NaN is missing; None if there is no such file.
    metrics : mapping of str to MetricScores
        By name, sorted.
    left_out : tuple of (str, str, str)
        Kind (``system``, ``metric``, or ``segment`` for the gaps of a metric), name and reason.
    checksums : mapping of str to str
        16 hex digits of the sha256 of every file that was read, by its path from the test set's folder on; of added
        files by the path as given.
    """

    pair: str
    gold_name: str
    systems: tuple[str, ...]
    documents: tuple[str, ...] = field(repr=False)
    segments: FloatArray = field(repr=False)
    system_scores: FloatArray | None = field(repr=False)
    metrics: Mapping[str, MetricScores] = field(repr=False)
    left_out: tuple[tuple[str, str, str], ...]
    checksums: Mapping[str, str] = field(repr=False)
    notes: tuple[str, ...] = ()


def task_bounds(task: SuiteTask) -> tuple[float, float]:
    """The range of a task's values that is mapped to [0, 1]: its own, or its measure's."""
    own: tuple[float, float] = getattr(MEASURES[task.measure], "bounds")  # noqa: B009 (a Measure may have none)
    return task.bounds or own
