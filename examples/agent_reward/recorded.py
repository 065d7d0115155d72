"""Recorded runs of an agent on tau-bench: the agreement of counts of calls with the reward, and what induction adds.

``python examples/agent_study.py --recorded taubench_train_runs.csv`` prints them. The 104 runs (25 tasks, Qwen3-32B)
come with the AutoMetrics repository (MIT) and are not part of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agent_reward.counts import Measure, calls, measured, table_lines, transfers, turns, writing_calls
from metricsmith import AutoMetrics, Table, score
from metricsmith.bank import CodeMetric
from metricsmith.bank.base import numbers_kept
from metricsmith.data import read_taubench
from metricsmith.formats import ends, interval, p_value, statistic
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import (
    Interval,
    holm,
    jackknife_interval,
    repeated_interval,
    repeated_mean,
    repeated_permutation_test,
)

FREE = frozenset({"12", "13", "15", "17", "18", "21", "24"})
"""Those of tasks 0 to 24 whose gold actions write nothing and which have nothing to be told: tau-bench's task file
(``tau_bench/envs/airline/tasks_test.py`` of sierra-research/tau-bench). Doing nothing earns their reward."""

Floats = NDArray[np.float64]
SPLITS, LEARNED = 20, 12  # splits by task, and the tasks of each that are learned from
COUNTS = (transfers, writing_calls, calls, turns)
CHOSEN = "count chosen on the 12 tasks"
BASELINES: dict[str, Callable[[str], float]] = {
    "calls of transfer_to_human": transfers,
    "no writing call": lambda output: float(not writing_calls(output)),
    "fewer writing calls": lambda output: -float(writing_calls(output)),
}


@dataclass(frozen=True)
class Added:
    """An induced metric beside a count, on the runs of tasks that it has not seen: means over splits by task."""

    candidates: str
    count: str
    tau_b: float
    count_tau_b: float
    interval: Interval  # of the difference
    p: float  # by swapping whole tasks in all splits at once, Holm's over all comparisons


def agreement(table: Table) -> list[tuple[Measure, Interval]]:
    """Each of `BASELINES` against the reward, and Student's interval on tau-b itself beside the measure's own.

    Both leave out one task at a time; the measure's stands on Fisher's scale.
    """
    rewards, tasks, found = _rewards(table), _tasks(table), []
    for name, x in _baselines(table).items():
        measure = measured(name, x, rewards, tasks.tolist())
        without = [kendall_tau_b(x[tasks != task], rewards[tasks != task]) for task in np.unique(tasks)]
        found.append((measure, jackknife_interval(measure.kendall_tau_b, without)))
    return found


def unexplained(table: Table) -> list[str]:
    """The tasks, not `FREE`, of runs with reward 1 and no writing call: the database cannot be as the gold's there."""
    silent = [row.group for row in table.rows if row.reward == 1 and not writing_calls(row.output)]
    return [task for task in silent if task not in FREE]


def added(table: Table) -> list[Added]:
    """Induce a metric without a model from the runs of 12 tasks, and hold it against each count on the others.

    The candidates are the default bank's metrics, alone and with the counts of `COUNTS` as code. The splits are drawn
    by seed; tau-b is taken on the runs of the tasks that a split holds back. `BASELINES` were chosen on all runs; of
    `CHOSEN` the count and its sign are chosen from `COUNTS` in each split on the tasks that the metric sees, too.
    """
    rewards, tasks, found = _rewards(table), _tasks(table), list[Added]()
    held = np.array([_held_back(tasks, seed) for seed in range(SPLITS)])
    beside = _baselines(table) | {CHOSEN: np.array([_chosen(table, ~rows) for rows in held])}
    compared = {"batched": True, "own_rows": True}
    with numbers_kept():
        for candidates, own in (("bank", ()), ("bank and counts", tuple(map(CodeMetric.from_function, COUNTS)))):
            induced = np.array([_predictions(table, rows, own, seed) for seed, rows in enumerate(held)])
            for name, numbers in beside.items():
                count = np.where(held, numbers, np.nan)
                means = (repeated_mean(kendall_tau_b, side, rewards, own_rows=True) for side in (induced, count))
                truth = (rewards, tasks.tolist())
                interval = repeated_interval(batch_kendall_tau_b, induced, *truth, against=count, **compared)
                test = repeated_permutation_test(batch_kendall_tau_b, induced, count, *truth, **compared)
                found.append(Added(candidates, name, *means, interval, test.p_value))
    adjusted = holm([one.p for one in found])
    return [replace(one, p=float(p)) for one, p in zip(found, adjusted, strict=True)]


def _held_back(tasks: NDArray[np.str_], seed: int) -> NDArray[np.bool_]:
    return ~np.isin(tasks, np.random.default_rng(seed).permutation(np.unique(tasks))[:LEARNED])


def _chosen(table: Table, learned: NDArray[np.bool_]) -> Floats:
    """The count of all runs, with its sign, that agrees best with the reward on those learned from."""
    numbers = np.array([[of(row.output) for row in table.rows] for of in COUNTS], dtype=float)
    taus = np.array([kendall_tau_b(one[learned], _rewards(table)[learned]) for one in numbers])
    best = np.nanargmax(np.abs(taus))
    return np.asarray(np.sign(taus[best]) * numbers[best])


def _predictions(table: Table, held: NDArray[np.bool_], own: tuple[CodeMetric, ...], seed: int) -> Floats:
    """The metric's numbers of the rows held back, NaN for those learned from."""
    learned, others = ([table.rows[place] for place in np.flatnonzero(side)] for side in (~held, held))
    optimizer = AutoMetrics(table.task, bank="existing", metrics=own or None, seed=seed, progress=False)
    values = np.full(len(held), np.nan)
    values[held] = score([optimizer.compile(learned)], others, progress=False).run()[:, 0]
    return values


def _baselines(table: Table) -> dict[str, Floats]:
    return {name: np.array([of(row.output) for row in table.rows], dtype=float) for name, of in BASELINES.items()}


def _rewards(table: Table) -> Floats:
    return np.array([row.reward for row in table.rows], dtype=float)


def _tasks(table: Table) -> NDArray[np.str_]:
    return np.array([row.group for row in table.rows])


def shown(path: str | Path) -> Iterator[str]:
    """The figures of a file of runs, line by line."""
    table = read_taubench(path)
    odd = unexplained(table)
    first = [
        (one.name, statistic(one.kendall_tau_b), ends(plain, 2), interval(one.low, one.high, 2))
        for one, plain in agreement(table)
    ]
    yield f"{len(table.rows)} runs of {len(set(_tasks(table)))} tasks; tau-b with the reward, by task"
    yield from table_lines(("", "tau-b", "Student", "Fisher"), first)
    numbers = ", ".join(sorted(set(odd), key=int))
    yield f"{len(odd)} runs of tasks {numbers} have reward 1 without a writing call that the task needs"
    yield ""
    second = [
        (
            one.candidates, one.count, statistic(one.tau_b), statistic(one.count_tau_b),
            statistic(one.tau_b - one.count_tau_b, 2), ends(one.interval, 2), p_value(one.p),
        )
        for one in added(table)
    ]  # fmt: skip
    yield f"induced from {LEARNED} tasks, on the other 13: means over {SPLITS} splits"
    header = ("candidates", "beside", "tau-b", "its tau-b", "difference", "interval", "p (Holm)")
    yield from table_lines(header, second, texts=2)
