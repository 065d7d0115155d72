"""Rows of any number, judged piece by piece under one rate limiter and one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import nan
from os import PathLike
from typing import Any, Literal

import dspy
import numpy as np
from tqdm import tqdm

from metricsmith.bank.base import FAULTS, BankMetric
from metricsmith.errors import (
    DataError,
    Interrupted,
    MetricsmithError,
    ModelFailure,
    NeedsError,
    OptionError,
    StoreError,
)
from metricsmith.metric import Labels, Metric, Part, content_hash, content_key
from metricsmith.model_calls.limits import Budget, Concurrency
from metricsmith.model_calls.rate_limiter import RateLimiter
from metricsmith.records import Judgement, Usage
from metricsmith.report.scored.record import ScoredRow
from metricsmith.scoring.coordinator import Coordinator
from metricsmith.scoring.engine import coordinator
from metricsmith.scoring.explanations import explanations, scored_metrics
from metricsmith.scoring.local import told_once
from metricsmith.scoring.plan import scoring_plan
from metricsmith.scoring.table import ScoreTable
from metricsmith.store import Store

__all__ = ["ScoringStream"]


class ScoringStream:
    """A metric, or several beside each other, at work on rows that are never all in memory.

    What depends on all rows is taken from them in a first pass, where anything does: the corpus of bank metrics that
    are bound to none (its texts are in memory then), and which texts occur more than once, so that a model is asked
    once for them. So numbers do not depend on the pieces. Of rows that an earlier process has judged no answers are
    at hand: a text of theirs that comes again is asked again, unless DSPy's cache has it.

    A piece is judged whole before the next is begun, so that a row that waits holds up at most a piece.

    Parameters
    ----------
    metrics : sequence of Metric
        One: a row's prediction is its judgement, taken apart where it has components. Several: each is a part.
    rows : callable
        Gives all rows anew, from the start.
    concurrency, store, budget
        As for `metricsmith.scoring.score`; the budget is for all pieces together.

    Attributes
    ----------
    judging : tuple of Metric
        The metrics whose judgements make up a row: components, or `metrics` themselves.
    usage : Usage
        Spent so far.
    complete : int
        The number of rows so far that came before the first of which a judgement was left undone.
    problem : MetricsmithError or None
        The error with which the model stopped. Rows that follow have the status of what is not asked.

    Raises
    ------
    OptionError, NeedsError
        As `metricsmith.scoring.score` does before it starts.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        rows: Callable[[], Iterable[dspy.Example]],
        *,
        concurrency: Literal["auto"] | int | Concurrency = "auto",
        store: str | PathLike[str] | Store | None = None,
        budget: Budget | None = None,
    ) -> None:
        if not metrics:
            raise OptionError("metrics is empty: give one metric or more")
        self.metrics = tuple(metrics)
        self.judging = tuple(_bound(scored_metrics(metrics[0]) if len(metrics) == 1 else metrics, rows))
        self.plan = scoring_plan(self.judging)
        self._options: tuple[Any, ...] = (concurrency, store, budget, 1.0)
        self._limiter = RateLimiter(Concurrency.of(concurrency), budget)
        self._answers = _Answers({self.plan.metric_runs[place].reads for place in self.plan.asked}, rows)
        self.usage = Usage()
        self.complete, self._cut = 0, False
        self.problem: MetricsmithError | None = None

    @property
    def fingerprint(self) -> str:
        """A hash of everything that changes a number: metrics, their corpus, and the model that is asked."""
        combined = [metric.fingerprint() for metric in self.metrics]
        return content_hash([one.fingerprint for one in self.plan.metric_runs], *combined)

    def scored(
        self,
        pieces: Iterable[Sequence[tuple[dspy.Example, Mapping[str, str]]]],
        *,
        total: int | None = None,
        progress: bool = False,
    ) -> Iterator[list[ScoredRow]]:
        """Yield the scored rows of each piece, in order.

        Parameters
        ----------
        pieces : iterable of sequence of (dspy.Example, mapping)
            Rows, each with the texts that stay beside its scores.
        total : int, optional
            The number of rows, for the progress bar.
        progress : bool
            Whether to draw one on standard error, if that is a terminal.

        Raises
        ------
        Interrupted, StoreError
            As `metricsmith.scoring.score` does; the rows that were complete are yielded before.
        DataError
            If a row cannot be read.
        """
        with told_once(), tqdm(total=total, desc="rows", unit="row", disable=None if progress else True) as bar:
            for piece in pieces:
                rows = [row for row, _ in piece]
                options = (*self._options, progress and bool(self.plan.asked), False, self._limiter)
                run = coordinator(self.plan, rows, *options)
                self._answers.give(run)
                try:
                    table = run.finish()
                except (Interrupted, StoreError) as stop:
                    if stop.table is not None:
                        yield self._rows(stop.table, piece[: stop.table.complete])
                    raise
                except ModelFailure as stop:
                    if stop.table is None:
                        raise
                    table, self.problem = stop.table, self.problem or stop
                self._answers.take(run)
                self.usage += table.usage
                yield self._rows(table, piece)
                bar.update(len(piece))
                if run.store is not None:
                    run.store.close()

    def _rows(self, table: ScoreTable, piece: Sequence[tuple[dspy.Example, Mapping[str, str]]]) -> list[ScoredRow]:
        """The scored rows of the first rows of a table."""
        if not self._cut:
            self.complete += table.complete
            self._cut = table.complete < len(table.rows)
        if len(self.metrics) == 1:
            taken_apart = explanations(self.metrics[0], table)
            pairs = zip(piece, taken_apart[: len(piece)], strict=True)
            return [ScoredRow.of(row["id"], cells, explanation) for (row, cells), explanation in pairs]
        return [
            ScoredRow(row["id"], cells, None, nan, tuple(map(_beside, self.metrics, judgements)))
            for (row, cells), *judgements in zip(piece, *map(table.column, range(len(self.metrics))), strict=False)
        ]


def _beside(metric: Metric, judgement: Judgement) -> Part:
    """The judgement of one of several metrics, which adds to nothing."""
    return Part(
        metric.name, metric.output.description, nan, metric.output.higher_is_better is not False, nan, nan, judgement
    )


def _bound(metrics: Sequence[Metric], rows: Callable[[], Iterable[dspy.Example]]) -> list[Metric]:
    """The metrics, those that need a corpus and have none bound to all rows; a missing package is told by the run."""
    found: list[Metric] = []
    corpus: list[dspy.Example] = []
    statistics: dict[Any, Any] = {}  # by family
    for metric in metrics:
        if isinstance(metric, BankMetric) and metric.statistics is None and metric.family.statistics is not None:
            key = metric.family.statistics, metric.family.model
            corpus = corpus or list(rows())
            try:
                with suppress(NeedsError):
                    statistics[key] = statistics.get(key) or metric.fit(corpus).statistics
            except MetricsmithError:
                raise
            except FAULTS as problem:  # pieces must never be corpora of their own
                raise DataError(
                    f"the corpus of {metric.name} cannot be made of all rows: {type(problem).__name__}: {problem}; "
                    f"score fewer rows, or bind the metric to a corpus with fit(rows)"
                ) from problem
            metric = replace(metric, statistics=statistics.get(key))
        found.append(metric)
    return found


class _Answers:
    """The judgements of texts that occur more than once, which those who are asked are asked for once."""

    def __init__(self, reads: set[Labels], rows: Callable[[], Iterable[dspy.Example]]) -> None:
        digests: dict[Labels, list[int]] = {labels: [] for labels in reads}
        for row in rows() if reads else ():
            for labels, known in digests.items():
                known.append(_digest(content_key(row, labels)))
        counted = {
            labels: np.unique(np.array(known, np.uint64), return_counts=True) for labels, known in digests.items()
        }
        self._again = {labels: set(found[counts > 1].tolist()) for labels, (found, counts) in counted.items()}
        self._known: dict[tuple[str, int, str], Judgement] = {}

    def give(self, run: Coordinator) -> None:
        """Book what earlier pieces know."""
        for place, row, key in self._repeated(run):
            if (known := self._known.get(key)) is not None:
                run.results.enter(place, row, known)
                run.results.keep([(place, row, known)])

    def take(self, run: Coordinator) -> None:
        """Keep what later pieces may want."""
        for place, row, key in self._repeated(run):
            if key not in self._known and not (run.results.left | run.results.needless)[place, row]:
                self._known[key] = replace(run.results.judgement(place, row), usage=Usage())

    def _repeated(self, run: Coordinator) -> Iterator[tuple[int, int, tuple[str, int, str]]]:
        """Yield place and row of the judgements whose texts occur more than once."""
        for place in run.plan.asked:
            one = run.plan.metric_runs[place]
            for row, content in enumerate(run.results.keys.contents(one.reads)):
                if _digest(content) in self._again[one.reads]:
                    yield place, row, (one.fingerprint, one.run, content)


def _digest(content: str) -> int:
    return int(content[:16], 16)
