"""The average of metrics over the tasks of a suite, and the test of two averages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from metricsmith.errors import DataError
from metricsmith.meta_evaluation.matrices import FloatArray
from metricsmith.meta_evaluation.ranking import average_over_tasks, clusters
from metricsmith.stats.resampling.permutation import PermutationDraws
from metricsmith.threads import in_threads, one_thread

__all__ = ["AverageTable", "AveragedTask", "average_draws", "average_table", "task_seed"]


@dataclass(frozen=True, slots=True)
class AveragedTask:
    """One task's part of an average.

    Parameters
    ----------
    values : mapping of str to float
        Of the metrics for which the task's measure is defined, best first.
    draws : callable
        ``draws(better, worse)`` gives the draws of the task's test of two metrics, as `PairTests` makes them.
    weight : float
        Above 0; relative to those of other tasks.
    bounds : (float, float)
        The range of values that is mapped to [0, 1].
    """

    values: Mapping[str, float]
    draws: Callable[[str, str], PermutationDraws] = field(repr=False)
    weight: float = 1.0
    bounds: tuple[float, float] = (0.0, 1.0)

    def mapped(self, name: str) -> float:
        """A metric's value, on the scale from 0 to 1."""
        low, high = self.bounds
        return (self.values[name] - low) / (high - low)


@dataclass(frozen=True, slots=True)
class AverageTable:
    """Averages of metrics, best first.

    Parameters
    ----------
    values : dict of str to float
        In [0, 1]; equal ones in the order of their names.
    ranks : dict of str to int
        As in `RankTable`.
    p_values : ndarray, shape (m, m)
        One-sided, above the diagonal; NaN where two were not tested.
    """

    values: dict[str, float]
    ranks: dict[str, int]
    p_values: FloatArray


@one_thread()
def average_table(
    tasks: Mapping[str, AveragedTask],
    *,
    level: float = 0.05,
    every: bool = False,
    tested: Callable[[int, int], None] | None = None,
    workers: int = 1,
) -> AverageTable:
    """The weighted mean over tasks of each metric's mapped values, with clusters of those that no test tells apart.

    Parameters
    ----------
    tasks : mapping of str to AveragedTask
        At least one. A metric that one of them lacks has no average.
    level : float
        P-values up to this one open a new cluster.
    every : bool
        Whether every two metrics are tested, or those that decide a cluster.
    tested : callable, optional
        As for `rank_table`.
    workers : int
        Threads that make the draws of several tasks side by side.

    Raises
    ------
    DataError
        If there is no task.

    References
    ----------
    The averages and clusters of mt-metrics-eval, which WMT's metrics tasks of 2023 to 2025 publish. P-values are
    ``(b + 1) / (m + 1)`` as everywhere in this package, the tool's ``b / m``.
    """
    if not tasks:
        raise DataError("there are no tasks to average over: give at least one")
    names = sorted(set.intersection(*(set(task.values) for task in tasks.values())))
    if not names:
        return AverageTable({}, {}, np.zeros((0, 0)))
    mapped = {label: {name: task.mapped(name) for name in names} for label, task in tasks.items()}
    means = average_over_tasks(mapped, weights={label: task.weight for label, task in tasks.items()})
    ordered = list(means)

    def p_value(above: int, below: int) -> float:
        draws = average_draws(list(tasks.values()), ordered[above], ordered[below], workers=workers)
        return draws.test("greater").p_value

    p_values, ranks = clusters(len(ordered), p_value, level, every, tested)
    return AverageTable({name: means[name].value for name in ordered}, dict(zip(ordered, ranks, strict=True)), p_values)


def average_draws(tasks: Sequence[AveragedTask], first: str, second: str, *, workers: int = 1) -> PermutationDraws:
    """Draws of the first metric's average less the second's: of each task the weighted, mapped differences, added up.

    Tasks are drawn independently, which is for them to see to (`task_seed`). In each the better metric there is tested
    against the worse, so that two metrics are drawn once however averages stand, and the sign is turned where the
    second is the better. A task whose test ended early repeats its draws up to the longest. Each task's
    observed difference is that of its test, which is computed as its draws are.

    Parameters
    ----------
    tasks : sequence of AveragedTask
        All of which have both metrics.
    first, second : str
    workers : int
        As for `average_table`.
    """
    turned = [list(task.values).index(first) > list(task.values).index(second) for task in tasks]
    calls = [
        partial(task.draws, *((second, first) if turn else (first, second)))
        for task, turn in zip(tasks, turned, strict=True)
    ]
    found = in_threads(calls, workers, "metricsmith averages")
    scale = sum(task.weight for task in tasks)
    longest = max(one.draws.size for one in found)
    observed, draws = 0.0, np.zeros(longest)
    for task, turn, one in zip(tasks, turned, found, strict=True):
        low, high = task.bounds
        share = (-1 if turn else 1) * task.weight / scale / (high - low)
        observed += share * one.observed
        draws += share * np.resize(one.draws, longest)
    return PermutationDraws(observed, draws)


def task_seed(seed: int, task: str) -> int:
    """The seed of a task's tests, by its name: two tasks share no draws, whichever others there are."""
    return int(np.random.SeedSequence([seed, *task.encode()]).generate_state(1, np.uint64)[0])
