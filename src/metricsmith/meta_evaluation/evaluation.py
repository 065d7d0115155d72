"""Several metrics on several tasks: values with intervals and clusters, and the values of chance and of raters."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import astuple, dataclass, replace
from functools import partial
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation.jackknife import measure_interval
from metricsmith.meta_evaluation.kept import Kept, key_of, taken
from metricsmith.meta_evaluation.matrices import FloatArray, Measure, measure_value, paired_matrices
from metricsmith.meta_evaluation.measures import MEASURES, SegmentAccuracy, SoftSystemAccuracy, measure
from metricsmith.meta_evaluation.ranking import TaskAverage, Tests, average_over_tasks, rank_table
from metricsmith.meta_evaluation.significance import ChanceFloor, Swap, chance_floors
from metricsmith.stats.resampling import Groups, Interval
from metricsmith.threads import in_threads, one_thread
from metricsmith.version import __version__

__all__ = [
    "MetricResult",
    "TaskResult",
    "WMT24",
    "average_tasks",
    "evaluate_task",
    "evaluate_tasks",
    "mean_rating",
    "side_by_side",
    "tasks_by_name",
]

WMT24 = ("spa", "acc-t")
"""The two measures that WMT24 averages, over language pairs, and Table 2 of GEMBA-MQM V2 after it."""
# A `MetricResult` and its chance floor as arrays: how many numbers they have, and which of them are counts.
NUMBERS, FLOOR = (9, (3, 4, 7, 8)), (7, (5, 6))
NOTHING = ChanceFloor(math.nan, math.nan, math.nan, math.nan, math.nan, 0, 0)


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One metric, or one rater, on one task.

    Parameters
    ----------
    name : str
    value : float
        Of the measure; NaN if it is undefined (constant scores).
    interval : Interval
        95 % by default; NaN ends where it is undefined.
    chance : ChanceFloor
        The values of the metric's own scores when they are laid at random beside the outputs, for measures on systems
        too: a metric that knows nothing knows no systems either.
    rank : int or None
        The cluster, from 1. None for raters, which are measured against other gold scores, and undefined values.
    epsilon : float
        The tie threshold of acc-t; NaN for other measures.
    error : float
        Monte-Carlo standard error of SPA; NaN for other measures.
    used, dropped : int
        Groups (segments or systems) of a grouped measure, segments of a measure on systems: how many the value rests
        on, and how many are left out.
    """

    name: str
    value: float
    interval: Interval
    chance: ChanceFloor
    rank: int | None = None
    epsilon: float = math.nan
    error: float = math.nan
    used: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class TaskResult:
    """All metrics on one task.

    Parameters
    ----------
    task : str
        Name of the measure.
    metrics : tuple of MetricResult
        Best first, undefined ones last.
    raters : tuple of MetricResult
        Each rater against the mean of the others.
    p_values : tuple of tuple of float
        As in `RankTable`, for the metrics that have a rank, in their order; NaN where two were not tested.
    """

    task: str
    metrics: tuple[MetricResult, ...]
    raters: tuple[MetricResult, ...]
    p_values: tuple[tuple[float, ...], ...]


def tasks_by_name(names: Sequence[str], *, seed: int = 0, decimals: int | None = None) -> dict[str, Measure]:
    """Measures of `MEASURES`, each once, in the order given.

    Parameters
    ----------
    names : sequence of str
        Empty means `WMT24`, ``all`` every measure.
    seed : int
        Of SPA's draws.
    decimals : int, optional
        To which acc and acc-t round differences.

    Raises
    ------
    OptionError
        If a name is unknown, or `seed` or `decimals` is negative.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise OptionError(f"seed={seed!r} must be a whole number from 0")
    if decimals is not None and decimals < 0:
        raise OptionError(f"decimals={decimals} must be 0 or more: 6 is free of float noise")
    found: dict[str, Measure] = {}
    for name in (name for given in names or WMT24 for name in (MEASURES if given == "all" else (given,))):
        found[name] = statistic = measure(name)
        if isinstance(statistic, SoftSystemAccuracy):
            found[name] = replace(statistic, seed=seed)
        elif isinstance(statistic, SegmentAccuracy):
            found[name] = replace(statistic, decimals=decimals)
    return found


@one_thread()
def evaluate_task(
    task: str,
    statistic: Measure,
    metrics: Mapping[str, ArrayLike],
    gold: ArrayLike,
    *,
    raters: Mapping[str, ArrayLike] | None = None,
    groups: Groups | None = None,
    level: float = 0.95,
    significance: float = 0.05,
    resamples: int = 1000,
    seed: int = 0,
    swap: Swap = "pairs",
    tests: Tests | None = None,
    tested: Callable[[int, int], None] | None = None,
    kept: Kept | None = None,
) -> TaskResult:
    """Measure, rank and test metrics on one task.

    Parameters
    ----------
    task : str
        What the task is called.
    statistic : callable
        See `metricsmith.meta_evaluation.Measure`.
    metrics : mapping of str to array_like of shape (k, n)
        At least one; higher is better, NaN is missing. All are measured on the cells that all of them have.
    gold : array_like, shape (k, n)
    raters : mapping of str to array_like of shape (k, n), optional
        The ratings that `gold` is the mean of. Each is measured against the mean of the others, where there are any.
    groups : sequence of hashable, length n, optional
        Documents of the segments, for the interval; None takes each segment by itself.
    level, significance : float
        Of the intervals, and of the differences that open a new cluster.
    resamples, seed : int
        Of `rank_table`; the chance floor takes 200 permutations.
    swap, tests, tested
        As for `rank_table`.
    kept : mutable mapping of str to ndarray, optional
        Values, intervals, floors and draws that are there already, and where new ones go.

    Raises
    ------
    DataError
        If there is no metric, shapes differ, a score is infinite, or a metric shares no cell with all others and gold.
    OptionError
        If `level`, `significance` or `resamples` is out of range.
    """
    matrices, common = _common(metrics, gold)
    known: Kept = {} if kept is None else kept
    how = key_of(__version__, statistic, groups, level, seed)

    def results(sides: Mapping[str, FloatArray], truth: FloatArray) -> dict[str, MetricResult]:
        keys = {name: key_of("result", how, scores, truth) for name, scores in sides.items()}
        for name in (name for name in sides if keys[name] not in known):  # each is kept as soon as it is there
            interval = measure_interval(statistic, sides[name], truth, groups, level=level)
            known[keys[name]] = _numbers(statistic(sides[name], truth), interval)
        floors = {name: f"{keys[name]} floor" for name in sides}
        new = [name for name in sides if floors[name] not in known and not math.isnan(known[keys[name]][0])]
        chances = chance_floors(statistic, [sides[name] for name in new], truth, seed=seed) if new else []
        for name, chance in zip(new, chances, strict=True):
            known[floors[name]] = np.array(astuple(chance), dtype=float)
        return {
            name: _result(
                name,
                [taken(known, key, size, size, counts) for key, (size, counts) in parts if key in known],
                level,
            )
            for name in sides
            for parts in [((keys[name], NUMBERS), (floors[name], FLOOR))]
        }

    values = {name: measure_value(statistic, scores, common) for name, scores in matrices.items()}
    defined = {name: scores for name, scores in matrices.items() if not math.isnan(values[name])}
    ranks: dict[str, int] = {}
    p_values: tuple[tuple[float, ...], ...] = ()
    if defined:
        table = rank_table(
            statistic, defined, common, level=significance, resamples=resamples, seed=seed, swap=swap, tests=tests,
            tested=tested, kept=known,
        )  # fmt: skip
        ranks, p_values = table.ranks, tuple(map(tuple, table.p_values.tolist()))
    lines = results(matrices, common)
    ordered = [*ranks, *(name for name in matrices if name not in ranks)]
    others = [results({name: own}, rest)[name] for name, (own, rest) in _each_against_the_others(raters or {}).items()]
    return TaskResult(
        task, tuple(replace(lines[name], rank=ranks.get(name)) for name in ordered), tuple(others), p_values
    )


def evaluate_tasks(
    measures: Mapping[str, Measure],
    metrics: Mapping[str, ArrayLike],
    gold: ArrayLike,
    *,
    tested: Callable[[str, int, int], None] | None = None,
    workers: int | None = None,
    **settings: Any,
) -> tuple[TaskResult, ...]:
    """`evaluate_task` for several measures side by side, in their order.

    Threads and not processes: numpy lets go of the interpreter in sorts, products and sums, nothing is copied, and a
    library must not start the user's script anew.

    Parameters
    ----------
    measures : mapping of str to callable
        As `tasks_by_name` gives them.
    metrics, gold
        As for `evaluate_task`.
    tested : callable, optional
        Called after each test with the task, how many of its tests are done, and of how many; never by two at once.
    workers : int, optional
        Threads, each with a task at a time; None takes one for each processor. Results do not depend on it.
    settings
        Further options of `evaluate_task`.

    Raises
    ------
    DataError
        As `evaluate_task`.
    OptionError
        If `workers` is below 1, and as `evaluate_task`.
    """
    tasks = {
        task: partial(evaluate_task, task, statistic, metrics, gold, **settings) for task, statistic in measures.items()
    }
    return side_by_side(tasks, tested, workers)


def side_by_side(
    tasks: Mapping[str, Callable[..., TaskResult]],
    tested: Callable[[str, int, int], None] | None = None,
    workers: int | None = None,
) -> tuple[TaskResult, ...]:
    """Results of several tasks that are made side by side, in their order; where one fails, the others end early.

    Parameters
    ----------
    tasks : mapping of str to callable
        Each takes `tested` of `evaluate_task`.
    tested, workers
        As for `evaluate_tasks`.

    Raises
    ------
    OptionError
        If `workers` is below 1.
    """
    if workers is not None and workers < 1:
        raise OptionError(f"workers={workers} must be at least 1, or None for as many as there are processors")
    one_at_a_time, ended = Lock(), Event()

    def progress(task: str, done: int, total: int) -> None:
        if ended.is_set():  # another task failed, or the user gave up: what is under way stops here
            raise CancelledError
        if tested is not None:
            with one_at_a_time:
                tested(task, done, total)

    calls = [partial(make, tested=partial(progress, task)) for task, make in tasks.items()]
    with one_thread():
        return tuple(in_threads(calls, workers or os.cpu_count() or 1, "metricsmith measures", on_error=ended.set))


def average_tasks(results: Sequence[TaskResult], names: Sequence[str] = WMT24) -> dict[str, TaskAverage]:
    """The mean of each metric over the tasks of these names; empty unless there are all of them.

    Metrics whose value is undefined in one of them have no mean. By default these are two tasks alone: accuracies and
    correlations have different floors, and half of the measures are variants of each other.
    """
    values = {result.task: {one.name: one.value for one in result.metrics} for result in results}
    if not set(names) <= set(values):
        return {}
    whole = [
        name for name in values[names[0]] if not any(math.isnan(values[task].get(name, math.nan)) for task in names)
    ]
    return average_over_tasks({task: {name: values[task][name] for name in whole} for task in names}) if whole else {}


def mean_rating(raters: Sequence[ArrayLike]) -> FloatArray:
    """The mean of several raters' ratings in each cell, NaN where there is none.

    It is rounded to 12 significant digits of the ratings: sums of tenths that should be equal, or 0, differ in the last
    bit, and measures that count ties would take them for different ratings.

    Parameters
    ----------
    raters : sequence of array_like, each of shape (k, n)
        At least one; NaN is missing.
    """
    stack = np.array([np.asarray(ratings, dtype=float) for ratings in raters])
    present = ~np.isnan(stack)
    count = present.sum(axis=0)
    means = np.where(present, stack, 0.0).sum(axis=0) / np.maximum(count, 1)
    means[np.abs(means) < 1e-12 * np.where(present, np.abs(stack), 0.0).max(axis=0)] = 0.0
    rounded = np.array([float(f"{mean:.12g}") for mean in means.ravel()]).reshape(means.shape)
    return np.where(count > 0, rounded, math.nan)


def _common(metrics: Mapping[str, ArrayLike], gold: ArrayLike) -> tuple[dict[str, FloatArray], FloatArray]:
    """Returns metrics and gold without the cells that one of them lacks."""
    if not metrics:
        raise DataError("there are no metrics to evaluate: give at least one matrix of scores")
    common = paired_matrices(gold, gold)[0]
    for name, scores in metrics.items():
        common = paired_matrices(scores, common)[1]
        if np.isnan(common).all():
            raise DataError(
                f"{name} has no score for an output that the ratings and the metrics before it have: leave it out, or "
                f"evaluate it by itself"
            )
    return {name: paired_matrices(scores, common)[0] for name, scores in metrics.items()}, common


def _each_against_the_others(raters: Mapping[str, ArrayLike]) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Returns by name a rater's ratings and the mean of the others', for raters who share an output with another.

    The mean of all ratings contains the rater's own, which would flatter.
    """
    pairs = {}
    for name, ratings in raters.items():
        others = [other for who, other in raters.items() if who != name]
        if others:
            own, rest = paired_matrices(ratings, mean_rating(others))
            if not np.isnan(own).all():
                pairs[name] = own, rest
    return pairs


def _value(found: Any) -> float:
    return float(found.value if hasattr(found, "value") else found)


def _numbers(found: Any, interval: Interval) -> FloatArray:
    """The content of a `MetricResult` but for its chance floor, as an array."""
    used = getattr(found, "groups_used", getattr(found, "segments", 0))
    dropped = getattr(found, "groups_dropped", getattr(found, "segments_dropped", 0))
    beside = (getattr(found, name, math.nan) for name in ("epsilon", "error"))
    ends = interval.low, interval.high, interval.draws, interval.undefined
    return np.array([_value(found), *beside, used, dropped, *ends], dtype=float)


def _result(name: str, parts: Sequence[FloatArray], level: float) -> MetricResult:
    """A `MetricResult` out of its `_numbers` and its chance floor, if it has one."""
    # Records that are equal stay so: there is one NaN.
    value, epsilon, error, used, dropped, low, high, drawn, undefined, *chance = (
        math.nan if math.isnan(number) else number for number in np.concatenate(parts).tolist()
    )
    floor = NOTHING
    if chance:
        observed, mean, least, most, p_value, draws, without = chance
        floor = ChanceFloor(observed, mean, least, most, p_value, int(draws), int(without))
    interval = Interval(low, high, level, int(drawn), int(undefined))
    return MetricResult(
        name, value, interval, floor, epsilon=epsilon, error=error, used=int(used), dropped=int(dropped)
    )
