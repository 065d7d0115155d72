"""A finished shared task as data: how well metrics agree with people in every task, and on average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from metricsmith.formats import jsonable
from metricsmith.meta_evaluation.evaluation import TaskResult
from metricsmith.meta_evaluation.significance import Swap
from metricsmith.report.notebook import NotebookRecord

__all__ = ["SCHEMA_VERSION", "LeftOut", "SuiteAverage", "SuiteColumn", "SuiteEvaluation", "SuiteMetric"]

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class SuiteMetric:
    """One metric of a suite.

    Parameters
    ----------
    name : str
        As in all tables: the base name, followed by ``[noref]`` if it used no reference.
    base : str
        Without its references.
    reference_free : bool
    role : "primary", "baseline", "contrastive", "added" or "unknown"
        ``added`` for a judge of one's own; ``unknown`` where the suite names no metrics.
    """

    name: str
    base: str
    reference_free: bool
    role: str


@dataclass(frozen=True, slots=True)
class SuiteColumn:
    """One task of a suite.

    Parameters
    ----------
    name, measure, level : str
        As in `SuiteTask`.
    pairs, systems : tuple of str
        Language pairs; systems, with their pair and a colon before where the task is pooled.
    segments, outputs, documents : int
        What it was measured on; 1 segment for scores by system, documents 0 where segments are not grouped.
    weight : float
        Share of the average; all tasks together have 1.
    bounds : (float, float)
        What is mapped to [0, 1] in the average.
    result : TaskResult
        Metrics that are absent in this task do not stand in it.
    """

    name: str
    measure: str
    level: str
    pairs: tuple[str, ...]
    systems: tuple[str, ...]
    segments: int
    outputs: int
    documents: int
    weight: float
    bounds: tuple[float, float]
    result: TaskResult


@dataclass(frozen=True, slots=True)
class SuiteAverage:
    """One metric over all tasks of a suite.

    Parameters
    ----------
    name : str
    value : float
        Weighted mean of the mapped values, in [0, 1].
    rank : int
        The cluster, from 1.
    """

    name: str
    value: float
    rank: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A system, metric or segment that took no part.

    Parameters
    ----------
    pair : str
        Language pair.
    kind : "system", "metric" or "segment"
    name, reason : str
    """

    pair: str
    kind: str
    name: str
    reason: str


@dataclass(frozen=True)
class SuiteEvaluation(NotebookRecord):
    """A suite's table.

    Parameters
    ----------
    suite, source : str
        Name, and where it is defined.
    columns : tuple of SuiteColumn
        In the order of the suite.
    metrics : tuple of SuiteMetric
        All that stand in a column; those with an average first, best first, then the others by name.
    averages : tuple of SuiteAverage
        Best first; metrics that are absent, or undefined, in a task have none.
    p_values : tuple of tuple of float
        One-sided, above the diagonal, for the metrics of `averages` in their order; NaN where two were not tested.
    gold : mapping of str to str
        The name of people's scores by language pair.
    left_out : tuple of LeftOut
    seed, resamples : int
    signature : str
        The line that makes every number reproducible.
    notes, warnings : tuple of str
    title : str
    swap : "pairs" or "scores"
        As for `rank_table`.
    """

    suite: str
    source: str
    columns: tuple[SuiteColumn, ...]
    metrics: tuple[SuiteMetric, ...]
    averages: tuple[SuiteAverage, ...]
    p_values: tuple[tuple[float, ...], ...]
    gold: Mapping[str, str]
    left_out: tuple[LeftOut, ...]
    seed: int
    resamples: int
    signature: str
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    title: str = "Metrics of a shared task"
    swap: Swap = "pairs"

    def as_dict(self) -> dict[str, Any]:
        """The content of ``suite.json``: JSON-ready, NaN as None."""
        return dict(jsonable({"schema_version": SCHEMA_VERSION, **asdict(self)}))
