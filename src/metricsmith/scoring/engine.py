"""Metrics x rows -> a table of judgements.

CPU metrics of one family are computed as one batch; judges run concurrently under one shared limit. A
failed judgement is counted and never becomes a number; too many of them stop the run.
"""

from __future__ import annotations

import contextvars
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from metricsmith.bank.base import BankMetric, judge_family
from metricsmith.errors import ModelFailure, OptionError
from metricsmith.metric import Metric
from metricsmith.records import Judgement, Status, Usage

__all__ = ["ScoreTable", "score", "tally"]


@dataclass(frozen=True)
class ScoreTable:
    """Judgements of m metrics on n rows.

    Parameters
    ----------
    metrics : tuple of Metric
    judgements : tuple of tuple of Judgement
        ``judgements[j][i]`` is metric j on row i.
    rows : int
        n, which no judgement tells where there are no metrics.
    """

    metrics: tuple[Metric, ...]
    judgements: tuple[tuple[Judgement, ...], ...]
    rows: int

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics' names, in column order."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def values(self) -> NDArray[np.float64]:
        """Raw numbers, shape (n, m); NaN where there is none."""
        columns = [[np.nan if j.raw is None else j.raw for j in column] for column in self.judgements]
        return np.array(columns, dtype=float).reshape(len(columns), self.rows).T

    @property
    def usage(self) -> Usage:
        """What all judgements cost together."""
        return sum((judgement.usage for column in self.judgements for judgement in column), Usage())

    def flat(self) -> list[Judgement]:
        """Every judgement."""
        return [judgement for column in self.judgements for judgement in column]

    def select(self, names: Iterable[str]) -> ScoreTable:
        """The table of the named metrics, in the order given."""
        index = {name: position for position, name in enumerate(self.names)}
        if len(index) < len(self.metrics):
            raise OptionError("two metrics share a name, so that columns cannot be told apart by it; rename one")
        chosen = [index[name] for name in names]
        return ScoreTable(
            tuple(self.metrics[position] for position in chosen),
            tuple(self.judgements[position] for position in chosen),
            self.rows,
        )


def tally(judgements: Iterable[Judgement]) -> dict[str, int]:
    """Count judgements by status; ``requested`` is the sum of all others."""
    counts = Counter(judgement.status for judgement in judgements)
    return {"requested": counts.total(), **{status.value: counts[status] for status in Status}}


def score(
    metrics: Sequence[Metric],
    rows: Sequence[dspy.Example],
    *,
    lm: Any = None,
    concurrency: int = 16,
    max_failure_rate: float = 0.2,
    progress: bool = False,
    run: int = 0,
) -> ScoreTable:
    """Judge every row by every metric.

    Parameters
    ----------
    metrics : sequence of Metric
        Bank metrics, judges, table columns or induced metrics, in any mixture.
    rows : sequence of dspy.Example
        Rows as `metricsmith.metric.make_row` builds them.
    lm : dspy.LM, optional
        The language model for judges; None takes the one in force.
    concurrency : int
        How many model requests may be in flight, over all judges together.
    max_failure_rate : float
        In [0, 1]: the share of model judgements that may fail. Rows that lack what a metric needs do
        not count.
    progress : bool
        Whether to draw a progress bar on standard error, if that is a terminal.
    run : int
        Which repetition this is; judges keep repetitions apart in the cache.

    Raises
    ------
    OptionError
        If something else than a metric is given.
    ModelFailure
        If more model judgements fail than `max_failure_rate` allows, as soon as that is certain; its
        ``judgements`` hold what was done.
    """
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise OptionError(f"{metric!r} is no metric; take one from the bank with default_bank().get(name)")
    judgements: list[list[Judgement | None]] = [[None] * len(rows) for _ in metrics]
    _score_in_batches(metrics, rows, judgements, run)
    jobs = [(j, i) for j, metric in enumerate(metrics) if metric.card.cost == "model" for i in range(len(rows))]
    with dspy.context(lm=lm) if lm is not None else nullcontext():
        _score_concurrently(metrics, rows, jobs, judgements, concurrency, max_failure_rate, progress, run)
    done = tuple(tuple(judgement for judgement in column if judgement is not None) for column in judgements)
    return ScoreTable(tuple(metrics), done, len(rows))


def _score_in_batches(
    metrics: Sequence[Metric], rows: Sequence[dspy.Example], judgements: list[list[Judgement | None]], run: int
) -> None:
    """Fill in what needs no model; a bank family (with one set of statistics) is computed once."""
    families: dict[tuple[int, int], list[int]] = {}
    for position, metric in enumerate(metrics):
        if isinstance(metric, BankMetric):
            families.setdefault((id(metric.family), id(metric.statistics)), []).append(position)
        elif metric.card.cost != "model":
            judgements[position] = list(metric.judge_batch(rows, run=run))
    for positions in families.values():
        members = [metric for p in positions if isinstance(metric := metrics[p], BankMetric)]
        for position, column in zip(positions, judge_family(members, rows, run=run), strict=True):
            judgements[position] = list(column)


def _score_concurrently(
    metrics: Sequence[Metric],
    rows: Sequence[dspy.Example],
    jobs: Sequence[tuple[int, int]],
    judgements: list[list[Judgement | None]],
    concurrency: int,
    max_failure_rate: float,
    progress: bool,
    run: int,
) -> None:
    """Run one-row jobs in threads that see the caller's DSPy context; stop once the gate is passed."""
    bearable = max_failure_rate * len(jobs) + 1e-9  # .29 x 100 is a little less than 29 in floats
    failures: list[Judgement] = []
    with (
        ThreadPoolExecutor(max(1, min(concurrency, len(jobs)))) as pool,
        tqdm(total=len(jobs), desc="scoring", disable=None if progress and jobs else True, leave=False) as bar,
    ):
        waiting: dict[Future[list[Judgement]], tuple[int, int]] = {}
        for j, i in jobs:
            context = contextvars.copy_context()
            waiting[pool.submit(context.run, metrics[j].judge_batch, [rows[i]], run=run)] = (j, i)
        try:
            for future in as_completed(waiting):
                j, i = waiting[future]
                judgement = judgements[j][i] = future.result()[0]
                bar.update()
                if not judgement.ok and judgement.status is not Status.SKIPPED:
                    failures.append(judgement)
                if len(failures) > bearable:
                    raise _too_many(failures, len(jobs), max_failure_rate, judgements)
        except ModelFailure as problem:
            problem.judgements = _answered(judgements)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _answered(judgements: Sequence[Sequence[Judgement | None]]) -> list[Judgement]:
    return [judgement for column in judgements for judgement in column if judgement is not None and judgement.ok]


def _too_many(
    failures: Sequence[Judgement],
    requested: int,
    gate: float,
    judgements: Sequence[Sequence[Judgement | None]],
) -> ModelFailure:
    kinds = Counter(judgement.status.value for judgement in failures)
    return ModelFailure(
        f"{len(failures)} of {requested} model judgements failed "
        f"({', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}), more than the "
        f"{gate:.0%} that are allowed; the first: {failures[0].metric}: {failures[0].error}; "
        f"{len(_answered(judgements))} were answered and stand in DSPy's cache, so the same run goes on from there"
    )
