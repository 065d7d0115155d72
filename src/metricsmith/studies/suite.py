"""A shared task: every metric in every task of a suite, and on average."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress
from typing import Any

import numpy as np

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation.averaging import AveragedTask, average_table, task_seed
from metricsmith.meta_evaluation.evaluation import TaskResult, evaluate_task, side_by_side, tasks_by_name
from metricsmith.meta_evaluation.kept import Kept, key_of
from metricsmith.meta_evaluation.matrices import FloatArray, Measure, common_cells
from metricsmith.meta_evaluation.measures import SystemAccuracy
from metricsmith.meta_evaluation.ranking import RankTable, check_tests
from metricsmith.meta_evaluation.significance import PairTests, Swap
from metricsmith.meta_evaluation.suites import MetricScores, PairScores, Suite, SuiteTask, task_bounds
from metricsmith.report.meta_evaluation.record import settings_stated
from metricsmith.report.suite.record import LeftOut, SuiteAverage, SuiteColumn, SuiteEvaluation, SuiteMetric
from metricsmith.version import __version__

__all__ = ["evaluate_suite"]

LEVEL = 0.05  # of a difference that opens a cluster, as WMT publishes them
AVERAGE = "average"
DECIDING = (
    "two metrics were tested only where that decides a cluster of a task or of the average, with as many resamples as "
    "decide: p-values are coarse, and a dash stands for no test"
)
LIMIT = (
    "tests of SPA whose p-value lies further than .03 from .05 rest on the limit of many sign vectors, whose p-values "
    "are off by .005 in the middle and .06 at most; their draws enter the average"
)


@dataclass(frozen=True, slots=True)
class _Scores:
    """A task with the scores that it compares: gold and metrics of shape (k, n), segments' documents or none."""

    task: SuiteTask
    measure: Measure
    seed: int
    systems: tuple[str, ...]
    documents: tuple[str, ...]
    gold: FloatArray
    metrics: Mapping[str, FloatArray]


def evaluate_suite(
    suite: Suite,
    pairs: Sequence[PairScores],
    *,
    resamples: int = 1000,
    seed: int = 0,
    swap: Swap = "pairs",
    decimals: int | None = None,
    kept: Kept | None = None,
    tested: Callable[[str, int, int], None] | None = None,
    workers: int | None = None,
    notes: Sequence[str] = (),
) -> SuiteEvaluation:
    """Measure, rank and test all metrics in all tasks of a suite, and on average.

    Parameters
    ----------
    suite : Suite
    pairs : sequence of PairScores
        Every language pair of the suite's tasks once, as `read_suite` gives them.
    resamples : int
        Of each test, which ends early where its p-value is clear.
    seed : int
        Decides SPA's sign vectors and, with the name of a task, the draws of its tests and chance floors.
    swap, decimals
        As for `meta_evaluate`.
    kept : mutable mapping of str to ndarray, optional
        Numbers that are there already, and where new ones go, such as a `KeptFile`: a run that was ended goes on, and
        one with more metrics computes nothing again unless a new metric lacks outputs that the others have.
    tested : callable, optional
        Called after each test with the task (``average`` at last), how many of its tests are done, and of how many at
        least; never by two threads at once.
    workers : int, optional
        Threads, each with a task at a time; None takes one for each processor. Results do not depend on it.
    notes : sequence of str
        Put before this function's own.

    Returns
    -------
    SuiteEvaluation
        Metrics that a task lacks, or that are undefined there, have no average.

    Raises
    ------
    DataError
        If a language pair, its gold scores or all metrics of a task are missing.
    OptionError
        If an option has no meaning, or another measure than ``system-accuracy`` is pooled over language pairs.
    """
    check_tests(swap, None)
    by_pair = {scores.pair: scores for scores in pairs}
    known: Kept = {} if kept is None else kept
    left_out = [LeftOut(scores.pair, *line) for scores in pairs for line in scores.left_out]
    tables = {task.name: _scores(suite, task, by_pair, seed, decimals, left_out) for task in suite.tasks}
    for pair, silent in ((scores.pair, np.isnan(scores.segments).all(axis=0)) for scores in pairs):
        if silent.any():
            number = f"{int(silent.sum())} of {silent.size}"
            left_out.append(LeftOut(pair, "segment", number, "no gold score for any system"))
    testing: dict[str, Any] = {"resamples": resamples, "swap": swap, "kept": known}
    calls = {
        name: partial(
            evaluate_task, name, scores.measure, scores.metrics, scores.gold, groups=scores.documents or None,
            significance=LEVEL, seed=scores.seed, tests="deciding", **testing,
        )
        for name, scores in tables.items()
    }  # fmt: skip
    results = dict(zip(tables, side_by_side(calls, tested, workers), strict=True))
    averaged = {}
    for name, scores in tables.items():
        values = {one.name: one.value for one in results[name].metrics if one.rank is not None}
        sides, common = common_cells(list(scores.metrics.values()), scores.gold)
        matrices = dict(zip(scores.metrics, sides, strict=True))
        tests = PairTests(scores.measure, matrices, common, seed=scores.seed, deciding=LEVEL, **testing)
        averaged[name] = AveragedTask(values, tests.draws, scores.task.weight, task_bounds(scores.task))
    table = average_table(
        averaged, level=LEVEL, tested=None if tested is None else partial(tested, AVERAGE),
        workers=workers or os.cpu_count() or 1,
    )  # fmt: skip
    weights = math.fsum(task.weight for task in suite.tasks)
    columns = tuple(_column(scores, results[name], weights) for name, scores in tables.items())
    own_notes = [DECIDING, *([LIMIT] if any(task.measure == "spa" for task in suite.tasks) else [])]
    return SuiteEvaluation(
        suite=suite.name, source=suite.source, columns=columns, metrics=_metrics(suite, pairs, columns, table),
        averages=tuple(SuiteAverage(name, value, table.ranks[name]) for name, value in table.values.items()),
        p_values=tuple(map(tuple, table.p_values.tolist())),
        gold={scores.pair: scores.gold_name for scores in pairs}, left_out=tuple(dict.fromkeys(left_out)),
        seed=seed, resamples=resamples, signature=_signature(suite, pairs, columns, seed, resamples, swap, decimals),
        notes=(*notes, *(note for scores in pairs for note in scores.notes), *own_notes),
        warnings=tuple(_warnings(tables, columns)), swap=swap,
    )  # fmt: skip


def _scores(
    suite: Suite, task: SuiteTask, pairs: Mapping[str, PairScores], seed: int, decimals: int | None,
    left_out: list[LeftOut],
) -> _Scores:  # fmt: skip
    """The scores that a task compares; what it has to leave out is added to the list."""
    for pair in task.pairs:
        if pair not in pairs:
            raise DataError(f"{suite.name} needs {pair}, whose scores are not given: {', '.join(pairs) or 'none'} are")
    (measure,) = tasks_by_name([task.measure], seed=seed, decimals=decimals).values()
    parts = [_of_pair(pairs[pair], task.level, left_out) for pair in task.pairs]
    if len(parts) > 1:
        if not isinstance(measure, SystemAccuracy) or task.level != "sys":
            raise OptionError(
                f"{task.measure} by {task.level} cannot be pooled over {', '.join(task.pairs)}: only system-accuracy "
                f"by sys can; give every language pair a task of its own"
            )
        measure = replace(measure, sizes=tuple(len(gold) for _, gold, _ in parts))
    names = sorted(set.intersection(*(set(metrics) for _, _, metrics in parts)))
    if not names:
        raise DataError(f"{task.name}: no metric has scores by {task.level} in {', '.join(task.pairs)}")
    systems = [
        system if len(parts) == 1 else f"{pair}:{system}"
        for pair, (own, _, _) in zip(task.pairs, parts, strict=True)
        for system in own
    ]
    return _Scores(
        task, measure, task_seed(seed, task.name), tuple(systems),
        pairs[task.pairs[0]].documents if task.level == "seg" else (),
        np.concatenate([gold for _, gold, _ in parts]),
        {name: np.concatenate([metrics[name] for _, _, metrics in parts]) for name in names},
    )  # fmt: skip


def _of_pair(
    scores: PairScores, level: str, left_out: list[LeftOut]
) -> tuple[tuple[str, ...], FloatArray, dict[str, FloatArray]]:
    """Systems, gold and metrics of one language pair by segment or by system.

    One missing number would leave a task on system scores undefined for all: systems without gold are left out, and
    metrics that lack one of the others.
    """
    if level == "seg":
        given = {name: one.segments for name, one in scores.metrics.items() if one.segments is not None}
        return scores.systems, scores.segments, given
    gold = scores.system_scores
    if gold is None:
        raise DataError(
            f"{scores.pair} has no gold scores by system, which the suite needs: add "
            f"human-scores/{scores.pair}.{scores.gold_name}.sys.score"
        )
    rated = ~np.isnan(gold[:, 0])
    systems = tuple(compress(scores.systems, rated))
    lines = [
        ("system", system, "no gold score by system: not in tasks on these")
        for system in compress(scores.systems, ~rated)
    ]
    metrics = {}
    for name, own in ((name, one.systems[rated]) for name, one in scores.metrics.items() if one.systems is not None):
        lacking = ", ".join(compress(systems, np.isnan(own[:, 0])))
        if lacking:
            lines.append(("metric", name, f"no score by system for {lacking}: not in tasks on these"))
        else:
            metrics[name] = own
    left_out += [LeftOut(scores.pair, *line) for line in lines]
    return systems, gold[rated], metrics


def _column(scores: _Scores, result: TaskResult, weights: float) -> SuiteColumn:
    task = scores.task
    together = np.array([scores.gold, *scores.metrics.values()])
    return SuiteColumn(
        task.name, task.measure, task.level, task.pairs, scores.systems, segments=scores.gold.shape[1],
        outputs=int((~np.isnan(together)).all(axis=0).sum()), documents=len(set(scores.documents)),
        weight=task.weight / weights, bounds=task_bounds(task), result=result,
    )  # fmt: skip


def _metrics(
    suite: Suite, pairs: Sequence[PairScores], columns: Sequence[SuiteColumn], table: RankTable
) -> tuple[SuiteMetric, ...]:
    """All metrics that stand in a column, those with an average first."""
    measured = {one.name for column in columns for one in column.result.metrics}
    found: dict[str, MetricScores] = {}
    for name, one in chain.from_iterable(scores.metrics.items() for scores in pairs):
        found[name] = found.get(name, one) if not one.added else one

    def role(one: MetricScores) -> str:
        if one.added:
            return "added"
        if not suite.primary and not suite.baselines:
            return "unknown"
        return "primary" if one.base in suite.primary else "baseline" if one.base in suite.baselines else "contrastive"

    ordered = ((name, found[name]) for name in [*table.values, *sorted(measured - set(table.values))])
    return tuple(SuiteMetric(name, one.base, one.reference_free, role(one)) for name, one in ordered)


def _signature(
    suite: Suite, pairs: Sequence[PairScores], columns: Sequence[SuiteColumn], seed: int, resamples: int, swap: str,
    decimals: int | None,
) -> str:  # fmt: skip
    files = sorted({item for scores in pairs for item in scores.checksums.items()})
    parts = [
        f"metricsmith {__version__}",
        f"suite {suite.name} {key_of(suite.tasks, sorted(suite.pairs.items()))[:12]}",
        f"{len(files)} files {key_of(files)[:16]}",
        ", ".join(f"{scores.pair} {scores.gold_name} {len(scores.systems)} systems" for scores in pairs),
        f"{len({one.name for column in columns for one in column.result.metrics})} metrics",
        *settings_stated(decimals, seed, resamples, swap, deciding=True),
    ]
    return " | ".join(parts)


def _warnings(tables: Mapping[str, _Scores], columns: Sequence[SuiteColumn]) -> list[str]:
    """Warnings on outputs that gaps of a metric take from all others, and on undefined values or none above chance."""
    warnings = []
    for column in columns:
        scores = tables[column.name]
        rated = ~np.isnan(scores.gold)
        gaps = [name for name, metric in scores.metrics.items() if np.isnan(metric[rated]).any()]
        if gaps:
            warnings.append(
                f"{column.name} rests on {column.outputs} of {int(rated.sum())} rated outputs, those that all metrics "
                f"have: {', '.join(gaps)} lack{'s' if len(gaps) == 1 else ''} some"
            )
        undefined = [one.name for one in column.result.metrics if math.isnan(one.value)]
        if undefined:
            warnings.append(f"{column.name} is undefined for {', '.join(undefined)}, whose scores are all alike there")
        below = [one.name for one in column.result.metrics if one.value < one.chance.low]
        if below:
            verb = "agrees" if len(below) == 1 else "agree"
            warnings.append(
                f"{', '.join(below)} {verb} less than chance on {column.name}: if lower is better, say so with "
                f"lower_is_better (--lower-is-better)"
            )
    return warnings
