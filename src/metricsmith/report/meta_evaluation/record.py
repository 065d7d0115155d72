"""A finished meta-evaluation as data: how well metrics agree with gold ratings, task by task."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.formats import jsonable
from metricsmith.meta_evaluation.evaluation import TaskResult, average_tasks, evaluate_tasks, tasks_by_name
from metricsmith.meta_evaluation.marked import MarkedErrors, MarkedRows, evaluate_marks
from metricsmith.meta_evaluation.measures import MEASURES, SystemCorrelation
from metricsmith.meta_evaluation.ranking import FEW_METRICS, TaskAverage, Tests
from metricsmith.meta_evaluation.significance import Swap
from metricsmith.report.notebook import NotebookRecord
from metricsmith.version import __version__

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SCHEMA_VERSION", "MetaEvaluation", "meta_evaluate", "settings_stated"]

SCHEMA_VERSION = 1
INDEPENDENT = "documents are not known: segments are taken to be independent, so that intervals may be too narrow"
DECIDING = (
    "two metrics were tested only where that decides a cluster, with as many resamples as decide: p-values are coarse, "
    "and a dash stands for no test (tests='all', --tests all, makes every test)"
)
FEW = 30  # groups below which jackknife intervals cover less than they say: docs/coverage.md


@dataclass(frozen=True)
class MetaEvaluation(NotebookRecord):
    """Metrics side by side.

    Parameters
    ----------
    target : str
        Name of the gold rating.
    tasks : tuple of TaskResult
        In the order in which they were asked for.
    averages : mapping of str to TaskAverage
        Over the two tasks of WMT24, best first; empty unless both were asked for.
    systems : tuple of str
    segments, outputs : int
        Segments, and outputs that gold and all metrics have: what everything was measured on.
    documents : int
        Documents of the segments; 0 if they are not known.
    seed, resamples : int
    signature : str
        The line that makes every number reproducible.
    notes, warnings : tuple of str
    title : str
    swap : "pairs" or "scores"
        As for `rank_table`.
    marked : MarkedErrors or None
        The errors that judges marked, beside those that people did; None unless both are known.
    """

    target: str
    tasks: tuple[TaskResult, ...]
    averages: Mapping[str, TaskAverage]
    systems: tuple[str, ...]
    segments: int
    outputs: int
    documents: int
    seed: int
    resamples: int
    signature: str
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = field(default=())
    title: str = "Metrics beside gold ratings"
    swap: Swap = "pairs"
    marked: MarkedErrors | None = None

    def to_pandas(self) -> pd.DataFrame:
        """One line for each metric, and each rater, in each task: value, interval, chance and cluster."""
        import pandas as pd

        return pd.DataFrame([
            {
                "task": task.task, "name": one.name, "rater": one in task.raters, "value": one.value,
                "low": one.interval.low, "high": one.interval.high, "chance": one.chance.mean, "rank": one.rank,
                "used": one.used, "dropped": one.dropped,
            }
            for task in self.tasks
            for one in (*task.metrics, *task.raters)
        ])  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """The content of ``meta_evaluation.json``: JSON-ready, NaN as None."""
        return dict(jsonable({"schema_version": SCHEMA_VERSION, **asdict(self)}))


def meta_evaluate(
    metrics: Mapping[str, ArrayLike],
    gold: ArrayLike,
    *,
    systems: Sequence[str],
    raters: Mapping[str, ArrayLike] | None = None,
    documents: Sequence[str] = (),
    tasks: Sequence[str] = (),
    decimals: int | None = None,
    resamples: int = 1000,
    seed: int = 0,
    swap: Swap = "pairs",
    tests: Tests | None = None,
    target: str = "gold",
    sources: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    tested: Callable[[str, int, int], None] | None = None,
    workers: int | None = None,
    marked: MarkedRows | None = None,
) -> MetaEvaluation:
    """Evaluate metrics against gold ratings, as `read_score_matrices` gives both.

    Parameters
    ----------
    metrics : mapping of str to array_like of shape (k, n)
        k systems in rows, n segments in columns; higher is better, NaN is missing.
    gold : array_like, shape (k, n)
    systems : sequence of str, length k
    raters : mapping of str to array_like of shape (k, n), optional
        The ratings that `gold` is the mean of: baselines.
    documents : sequence of str, length n
        Of the segments; empty takes each segment by itself.
    tasks : sequence of str
        Names of `MEASURES`; empty means those of WMT24, ``all`` every one.
    decimals : int, optional
        To which acc and acc-t round differences; None compares floats as they are.
    resamples, seed : int
        Of the test of each two metrics; the seed also decides SPA's draws and the chance floor.
    swap, tests
        As for `rank_table`: acc-t is tested by exchanging decisions about pairs, as in WMT, or scores; and every two
        metrics are tested, or those that decide a cluster.
    target : str
        What the rating is called.
    sources : mapping of str to str, optional
        Names and checksums of files, for the signature.
    notes : sequence of str
    tested : callable, optional
        Called after each test of two metrics with the task, how many are done, and of how many: at the size of a WMT
        test set one takes seconds. Tasks take turns.
    workers : int, optional
        As for `evaluate_tasks`.
    marked : MarkedRows, optional
        Errors that judges and people marked, to be compared by `evaluate_marks`.

    Raises
    ------
    DataError
        If there is no metric, shapes differ, a score is infinite, or metrics have no output in common.
    OptionError
        If an option has no meaning.
    """
    measures = tasks_by_name(tasks, seed=seed, decimals=decimals)
    deciding = tests == "deciding" or (tests is None and len(metrics) > FEW_METRICS)
    results = evaluate_tasks(
        measures, metrics, gold, raters=raters, groups=documents or None, resamples=resamples, seed=seed, swap=swap,
        tests=tests, tested=tested, workers=workers,
    )  # fmt: skip
    together = np.array([np.asarray(scores, dtype=float) for scores in (gold, *metrics.values())])
    segments = together.shape[2]
    return MetaEvaluation(
        target=target,
        tasks=results,
        averages=average_tasks(results),
        systems=tuple(systems),
        segments=segments,
        outputs=int((~np.isnan(together)).all(axis=0).sum()),
        documents=len(set(documents)),
        seed=seed,
        resamples=resamples,
        signature=" | ".join(
            [
                f"metricsmith {__version__}",
                *(f"{what} {source}" for what, source in (sources or {}).items()),
                f"{len(systems)} systems, {segments} segments",
                f"tasks {', '.join(measures)}",
                *settings_stated(decimals, seed, resamples, swap, deciding=deciding),
            ]
        ),
        notes=(*notes, *([] if documents else [INDEPENDENT]), *([DECIDING] if deciding else [])),
        swap=swap,
        marked=None if marked is None else evaluate_marks(marked, permutations=resamples, seed=seed),
        warnings=tuple(_warnings(results, len(systems), len(set(documents)) or segments)),
    )


def settings_stated(decimals: int | None, seed: int, resamples: int, swap: str, *, deciding: bool) -> list[str]:
    """Parts of a signature: the settings that decide numbers, beside the scores."""
    return [
        f"differences {'as floats' if decimals is None else f'rounded to {decimals} decimals'}",
        f"seed {seed}, {resamples} resamples",
        *(["tests exchange scores"] if swap == "scores" else []),
        *(["deciding tests only"] if deciding else []),
    ]


def _warnings(results: Sequence[TaskResult], systems: int, groups: int) -> list[str]:
    """Warnings on metrics below chance, withheld or undefined figures, and too few groups."""
    lines = [(result.task, one) for result in results for one in result.metrics]
    warnings = [
        f"{one.name} agrees less than chance on {task} ({one.value:.3f}, chance {one.chance.mean:.3f}): if lower is "
        f"better, say so with lower_is_better (--lower-is-better)"
        for task, one in lines
        if one.value < one.chance.low
    ]
    two = [task for task in dict(lines) if systems == 2 and isinstance(MEASURES.get(task), SystemCorrelation)]
    if two:
        warnings.append(
            f"{', '.join(two)} is withheld: two systems correlate 1 or -1 whatever their scores; system-accuracy says "
            f"whether they stand in the gold order"
        )
    undefined = [f"{one.name} on {task}" for task, one in lines if math.isnan(one.value) and task not in two]
    if undefined:
        warnings.append(
            f"undefined, because all scores are alike or no segment has enough of them: {', '.join(undefined)}"
        )
    if groups < FEW:
        warnings.append(f"intervals rest on {groups} groups of segments: below {FEW} they tend to be too narrow")
    return warnings
