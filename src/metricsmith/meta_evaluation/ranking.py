"""Many metrics side by side: ranks with significance clusters, and averages over tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.meta_evaluation.kept import Kept
from metricsmith.meta_evaluation.matrices import FloatArray, Measure, common_cells, measure_value, paired_matrices
from metricsmith.meta_evaluation.significance import PairTests, Swap
from metricsmith.threads import one_thread

__all__ = [
    "FEW_METRICS", "RankTable", "TaskAverage", "Tests", "average_over_tasks", "check_tests", "clusters", "rank_table",
]  # fmt: skip

Tests = Literal["all", "deciding"]
# People read the p-values of few metrics. Fifty have 1,225 pairs, and their clusters need 50 to 260 of them.
FEW_METRICS = 10
"""Up to so many metrics every two of them are tested, unless asked for otherwise."""


@dataclass(frozen=True, slots=True)
class RankTable:
    """Metrics by value, best first.

    Parameters
    ----------
    values : dict of str to float
        The measure of each metric; equal values stand in the order in which the metrics were given.
    ranks : dict of str to int
        From 1; metrics of one rank form a cluster: none of them is significantly better than another of it that
        stands further down.
    p_values : ndarray, shape (m, m)
        One-sided, above the diagonal: that the metric of the row is better than that of the column; NaN elsewhere, and
        for pairs that were not tested.
    cells, missing : int
        Cells that all metrics and gold have, and cells with gold that some metric lacks; 0 for averages over tasks.
    """

    values: dict[str, float]
    ranks: dict[str, int]
    p_values: FloatArray
    cells: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class TaskAverage:
    """One metric over several tasks: the weighted mean, and its place among all metrics, equal means sharing one."""

    value: float
    rank: int


@one_thread()
def rank_table(
    measure: Measure,
    metrics: Mapping[str, ArrayLike],
    gold: ArrayLike,
    *,
    level: float = 0.05,
    resamples: int = 1000,
    seed: int = 0,
    swap: Swap = "pairs",
    tests: Tests | None = None,
    tested: Callable[[int, int], None] | None = None,
    kept: Kept | None = None,
) -> RankTable:
    """Rank metrics by a measure, with clusters of those that a test cannot tell apart.

    Going down the table, a metric opens a new cluster as soon as a metric of the present one is significantly better.
    P-values are not corrected for their number, as in WMT's tables. A metric that is silent on hard segments would win
    if each were measured on its own cells.

    Parameters
    ----------
    measure : callable
        See `metricsmith.meta_evaluation.Measure`.
    metrics : mapping of str to array_like of shape (k, n)
        At least one. All are measured on the cells that all of them have.
    gold : array_like, shape (k, n)
    level : float
        P-values up to this one are significant; in (0, 1).
    resamples, seed : int
    swap : "pairs" or "scores"
        ``pairs`` tests acc-t, and any other accuracy with a calibrated threshold, by `perm_pairs` as WMT's metrics
        tasks of 2023 to 2025 do, and other measures by `perm_both`; ``scores`` tests all by `perm_both`.
    tests : "all" or "deciding", optional
        ``all`` tests every two metrics with all resamples. ``deciding`` goes down the table and tests a metric against
        those of the present cluster until one is better, each test with as many resamples as decide: it ends at p below
        .4 or above 10 times the level, and SPA and tau-b over all cells are approximated where their p-value is far
        from it (`perm_both`). By default ``all`` up to `FEW_METRICS` metrics.
    tested : callable, optional
        Called after each test with how many are done, and of how many; of how many at least, for ``deciding``.
    kept : mutable mapping of str to ndarray, optional
        As for `PairTests`.

    Raises
    ------
    DataError
        If there are no metrics, shapes differ, a score is infinite, or the measure of a metric is undefined.
    OptionError
        If `level` or `resamples` is out of range, or `swap` or `tests` has no meaning.

    References
    ----------
    The clusters of mt-metrics-eval, which WMT's metrics tasks publish. Tables 2 to 4 of GEMBA-MQM V2 have plain ranks
    instead: places by value, without a test.
    """
    if not 0 < level < 1:
        raise OptionError(f"level={level!r} must lie between 0 and 1, for example 0.05")
    check_tests(swap, tests)
    if not metrics:
        raise DataError("there are no metrics to rank: give at least one matrix of scores")
    given = paired_matrices(gold, gold)[0]
    found, common = common_cells(list(metrics.values()), gold)
    matrices = dict(zip(metrics, found, strict=True))
    values = {name: measure_value(measure, scores, common) for name, scores in matrices.items()}
    undefined = [name for name, value in values.items() if math.isnan(value)]
    if undefined:
        raise DataError(f"the measure of {', '.join(undefined)} is undefined (constant scores?): leave it out")
    names = sorted(values, key=lambda name: -values[name])
    every = (len(names) <= FEW_METRICS) if tests is None else tests == "all"

    pairs = PairTests(
        measure, matrices, common, swap=swap, resamples=resamples, seed=seed, deciding=None if every else level,
        kept=kept,
    )  # fmt: skip

    def p_value(better: int, worse: int) -> float:
        return pairs.draws(names[better], names[worse]).test("greater").p_value

    p_values, ranks = clusters(len(names), p_value, level, every, tested)
    cells = int((~np.isnan(common)).sum())
    return RankTable(
        {name: values[name] for name in names}, dict(zip(names, ranks, strict=True)),
        p_values, cells, int((~np.isnan(given)).sum()) - cells,
    )  # fmt: skip


def average_over_tasks(
    tasks: Mapping[str, Mapping[str, float]],
    *,
    weights: Mapping[str, float] | None = None,
    higher_is_better: bool = True,
) -> dict[str, TaskAverage]:
    """Average each metric over tasks, and rank by the average, best first.

    Parameters
    ----------
    tasks : mapping of task to mapping of metric to float
        The values, or the ranks, of one `RankTable` each. Every task must have the same metrics.
    weights : mapping of task to float, optional
        Above 0; None gives all tasks the same, as in Table 2 of GEMBA-MQM V2.
    higher_is_better : bool
        False for ranks.

    Raises
    ------
    DataError
        If there is no task, or a metric has no value in one.
    OptionError
        If the weights do not fit the tasks.
    """
    if not tasks:
        raise DataError("there are no tasks to average over: give at least one")
    weights = dict.fromkeys(tasks, 1.0) if weights is None else weights
    if set(weights) != set(tasks) or not all(weight > 0 and math.isfinite(weight) for weight in weights.values()):
        raise OptionError(f"weights {dict(weights)} must be one number above 0 for each of {', '.join(tasks)}")
    names = list(dict.fromkeys(name for values in tasks.values() for name in values))
    for task, values in tasks.items():
        absent = [name for name in names if math.isnan(values.get(name, math.nan))]
        if absent:
            raise DataError(f"{task} has no value for {', '.join(absent)}: an average needs every metric in every task")
    total = math.fsum(weights.values())
    means = {name: math.fsum(weights[task] * tasks[task][name] for task in tasks) / total for name in names}
    sign = -1 if higher_is_better else 1
    ordered = sorted(names, key=lambda name: sign * means[name])
    return {
        name: TaskAverage(means[name], 1 + sum(sign * other < sign * means[name] for other in means.values()))
        for name in ordered
    }


def clusters(
    metrics: int,
    p_value: Callable[[int, int], float],
    level: float,
    every: bool,
    tested: Callable[[int, int], None] | None = None,
) -> tuple[FloatArray, list[int]]:
    """P-values and ranks of metrics in order, best first, from the p-value of each two.

    Parameters
    ----------
    metrics : int
        How many there are.
    p_value : callable
        ``p_value(above, below)`` of two places from 0.
    level : float
        P-values up to this one open a new rank.
    every : bool
        Whether every two are tested, or those alone that decide a rank.
    tested : callable, optional
        As for `rank_table`.
    """
    p_values = np.full((metrics, metrics), math.nan)
    ranks: list[int] = []
    start = done = 0
    for place in range(metrics):
        beaten = False
        for above in range(0 if every else start, place):
            p_values[above, place] = p_value(above, place)
            beaten |= above >= start and bool(p_values[above, place] <= level)
            done += 1
            if tested is not None:
                tested(done, metrics * (metrics - 1) // 2 if every else done + metrics - 1 - place)
            if beaten and not every:
                break
        start = place if beaten else start
        ranks.append(ranks[-1] + beaten if ranks else 1)
    return p_values, ranks


def check_tests(swap: str, tests: str | None) -> tuple[Swap, Tests | None]:
    """Both, if they have a meaning for `rank_table`; else an `OptionError`."""
    chosen_tests = "all" if tests is None else tests
    for what, chosen, known in (("swap", swap, get_args(Swap)), ("tests", chosen_tests, get_args(Tests))):
        if chosen not in known:
            raise OptionError(
                f"unknown {what}={chosen!r} (--{what}){nearest(chosen, known)}; allowed are {' and '.join(known)}"
            )
    return cast(Swap, swap), cast("Tests | None", tests)
