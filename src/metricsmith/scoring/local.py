"""The judgements that this machine computes, in chunks of which each is booked before the next is begun.

Metrics with weights get chunks of about five seconds of work, so that a run that ends early loses little. Families of
one checkpoint go through the rows side by side: the encodings of a chunk that one has made are there for the next.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import dspy
import numpy as np

from metricsmith.bank.base import FAULTS, BankMetric, judge_family
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.weighted import model_of_metric
from metricsmith.errors import DataError, MetricsmithError
from metricsmith.records import Judgement, Status, Usage
from metricsmith.scoring.plan import ScoringPlan
from metricsmith.scoring.results import PENDING, Results

__all__ = ["Chunk", "local_chunks", "told_once"]

ROWS_AT_A_TIME = 1_000
FIRST_ROWS = 8  # of metrics with weights, whose speed is not known yet
SECONDS = 5.0  # of work in a later chunk of theirs
GROWTH = 4  # from one chunk to the next at most, since the first texts may be the short ones
MOST_FAILED = 8  # rows in succession without any number, after which a family is given up

notes = logging.getLogger("metricsmith.notes")
_told: ContextVar[set[str] | None] = ContextVar("metricsmith_families_told", default=None)


@contextmanager
def told_once() -> Iterator[None]:
    """Say of a family only once inside that it is given up, however many scoring runs give it up."""
    token = _told.set(set())
    try:
        yield
    finally:
        _told.reset(token)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some judgements of one family, each with the place of its metric run and its row.

    Parameters
    ----------
    places : tuple of int
        The family's metric runs.
    judgements : list of (int, int, Judgement)
    seconds : float
        Spent on them.
    ended : str
        The error for which the family is given up; empty where it is not.
    """

    places: tuple[int, ...]
    judgements: list[tuple[int, int, Judgement]]
    seconds: float
    ended: str


def local_chunks(results: Results) -> Iterator[Chunk]:
    """Compute unknown judgements in row order; metrics with weights come last.

    An error of a family, as from loading its weights, ends this family and no other: what is left of it has that error
    without being tried.

    Raises
    ------
    DataError
        If a row cannot be read.
    """
    for weights, families in _by_checkpoint(results.plan):
        works = [_Family(results, places) for places in families]
        places = [place for work in works for place in work.places]
        left = np.flatnonzero((results.codes[places] == PENDING).any(axis=0)).tolist()
        size = FIRST_ROWS if weights else ROWS_AT_A_TIME
        while left:
            numbers, left, seconds = left[:size], left[size:], 0.0
            for work in works:
                if chunk := work.chunk(numbers):
                    seconds += chunk.seconds
                    yield chunk
            if weights:
                fitting = int(SECONDS * len(numbers) / seconds) if seconds else ROWS_AT_A_TIME
                size = max(1, min(fitting, GROWTH * size, ROWS_AT_A_TIME))


class _Family:
    """Metric runs that share their work."""

    def __init__(self, results: Results, places: tuple[int, ...]) -> None:
        self.results, self.places = results, places
        self.metrics: list[Any] = [results.plan.metric_runs[place].metric for place in places]
        self.failed = 0  # rows in succession
        self.ended = ""

    def chunk(self, numbers: Sequence[int]) -> Chunk | None:
        """Judge those of the rows of which something is unknown; None if nothing is."""
        pending = self.results.codes[np.ix_(self.places, numbers)] == PENDING
        numbers = [number for number, left in zip(numbers, pending.any(axis=0), strict=True) if left]
        if not numbers:
            return None
        began = time.perf_counter()
        columns = self._judged([self.results.rows[number] for number in numbers])
        seconds = time.perf_counter() - began
        found = [
            (place, number, judgement)
            for place, column in zip(self.places, columns, strict=True)
            for number, judgement in zip(numbers, column, strict=True)
            if self.results.codes[place, number] == PENDING
        ]
        if model_of_metric(self.metrics[0]) is not None:  # work that is worth a count, shared equally
            spent = Usage(seconds=seconds / len(found))
            found = [(place, number, replace(judgement, usage=spent)) for place, number, judgement in found]
        return Chunk(self.places, found, seconds, self.ended)

    def _judged(self, rows: list[dspy.Example]) -> list[list[Judgement]]:
        """The judgements of these rows by each metric; after the error that ends the family, that error."""
        if not self.ended:
            try:
                columns = self._computed(rows)
            except (KeyboardInterrupt, DataError):
                raise
            except (MetricsmithError, *FAULTS) as problem:
                kind = "" if isinstance(problem, MetricsmithError) else f"{type(problem).__name__}: "
                self._end(f"{kind}{problem}")
            else:
                failed = [judgement.error for judgement in columns[0] if judgement.status is Status.TRANSPORT]
                numbers = any(judgement.ok for column in columns for judgement in column)
                self.failed = 0 if numbers else self.failed + len(failed)
                if self.failed >= MOST_FAILED:
                    self._end(f"{self.failed} rows in succession failed, such as: {failed[-1]}")
                return columns
        return [
            [Judgement(metric.name, status=Status.TRANSPORT, error=self.ended)] * len(rows) for metric in self.metrics
        ]

    def _computed(self, rows: list[dspy.Example]) -> list[list[Judgement]]:
        if not isinstance(self.metrics[0], BankMetric):
            return [metric.judge_batch(rows) for metric in self.metrics]
        if self.metrics[0].statistics is None:  # the plan could not bind them: this tells why
            self.metrics[0].fit(self.results.rows)
        return judge_family(self.metrics, rows)

    def _end(self, error: str) -> None:
        self.ended, name = error, self.metrics[0].card.name
        told = _told.get()
        if told is None or name not in told:
            notes.warning("%s: not computed any further: %s", ", ".join(one.name for one in self.metrics), error)
        if told is not None:
            told.add(name)


def _by_checkpoint(plan: ScoringPlan) -> list[tuple[bool, list[tuple[int, ...]]]]:
    """The families, those of one checkpoint together; True stands with those that have weights."""
    found: dict[Any, list[tuple[int, ...]]] = {}
    for places in plan.families:
        spec = model_of_metric(plan.metric_runs[places[0]].metric)
        network = None if spec is None else replace(spec, name="", weights="", choices=(), options=())
        found.setdefault(network or places, []).append(places)
    return sorted(((isinstance(key, ModelSpec), families) for key, families in found.items()), key=lambda one: one[0])
