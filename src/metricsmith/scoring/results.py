"""Judgements that are known, numbers in arrays and the rest in a store or in memory, and judgements that are wanted.

Wanted are all, or those that sequential composites find that they need, round by round. The rounds work like this:

- A row asks for the parts that its composites want now; when all of them are known the row's round has ended.
- The row is then looked at again: what the composites want beyond that is its next round, until they want no more.
- A decision rests on what is known of the row and on nothing else, so that neither the order of the answers nor an end
  and a new start changes what is asked.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.column import ColumnMetric, column_numbers
from metricsmith.errors import StoreError
from metricsmith.metric import Labels, Sequential, content_key
from metricsmith.records import Judgement, Status, Usage
from metricsmith.scoring.plan import Expression, ScoringPlan, Term, earlier_fingerprint
from metricsmith.store import Key, Store

__all__ = ["ANSWERED_BADLY", "CODES", "FAILED", "PENDING", "Keys", "Results", "Rounds", "store_key"]

STATUSES = tuple(Status)
CODES = {status: code for code, status in enumerate(STATUSES)}
PENDING = -1
ANSWERED_BADLY = tuple(CODES[status] for status in (Status.UNPARSABLE, Status.OUT_OF_RANGE, Status.REFUSED))
FAILED = (*ANSWERED_BADLY, CODES[Status.TRANSPORT])
NEEDLESS = "not asked: nothing that was wanted rests on it"
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]
notes = logging.getLogger("metricsmith.notes")  # what is worth a line on the terminal, once


def store_key(row: dspy.Example, content: str) -> str:
    """The row's place in a store: its content and, where it has one, its id.

    The id tells two rows with equal texts apart in a store; within a run equal texts are asked once.
    """
    row_id = row.get("id")
    if row_id is None:
        return content
    return f"{content} {row_id}".encode("utf-8", "backslashreplace").decode("utf-8")  # files hold no lone surrogates


@dataclass(frozen=True)
class Keys:
    """The rows' hashes, each computed once and only when first needed."""

    rows: Sequence[dspy.Example]
    known: dict[Labels, list[str]] = field(default_factory=dict)

    def contents(self, reads: Labels) -> list[str]:
        """The hash of each row for metrics that read these labels; rows with equal hashes get equal judgements."""
        if reads not in self.known:
            self.known[reads] = [content_key(row, reads) for row in self.rows]
        return self.known[reads]

    def row(self, place: int, reads: Labels) -> str:
        """The key of a row in a store."""
        return store_key(self.rows[place], self.contents(reads)[place])

    def first(self, reads: Labels) -> IntArray:
        """For each row, the place of the first one with the same content, shape (n,)."""
        seen: dict[str, int] = {}
        places = [seen.setdefault(key, place) for place, key in enumerate(self.contents(reads))]
        return np.array(places, dtype=np.intp)


class Results:
    """Judgements of S metric runs on n rows.

    Parameters
    ----------
    plan : ScoringPlan
    rows : sequence of dspy.Example
    store : Store, optional
        The keeper of whole judgements; without one they are kept in memory.

    Attributes
    ----------
    values : float array, shape (S, n)
        Raw numbers; NaN where there is none.
    codes : int8 array, shape (S, n)
        Status by its place in `records.Status`, -1 while nothing is known.
    spent : list of Usage
        The cost of each metric run in this scoring.
    reused : int array, shape (S,)
        How many judgements of each metric run came from the store.
    dropped : dict of int to str
        Metric runs of which nothing counts any more, and why.
    left : bool array, shape (S, n)
        Judgements that were wanted and not asked any more when the run was cut short.
    numbers : dict of int to int
        For each metric run whose judgements a store keeps, the metric's number there.
    """

    def __init__(self, plan: ScoringPlan, rows: Sequence[dspy.Example], store: Store | None) -> None:
        shape = (len(plan.metric_runs), len(rows))
        self.plan, self.rows, self.store = plan, rows, store
        self.keys = Keys(rows)
        self.values = np.full(shape, np.nan)
        self.codes = np.full(shape, PENDING, dtype=np.int8)
        self.spent = [Usage()] * len(plan.metric_runs)
        self.reused = np.zeros(len(plan.metric_runs), dtype=np.int64)
        self.dropped: dict[int, str] = {}
        self.undone = ""
        self.needless = np.zeros(shape, dtype=bool)
        self.left = np.zeros(shape, dtype=bool)
        self.numbers: dict[int, int] = {}
        self._kept: dict[int, list[Judgement | None]] = {}
        self._unstored: dict[tuple[int, int], Judgement] = {}
        self._places: dict[
            Labels, dict[tuple[int, int], int]
        ] = {}  # per kind of row key, by number and run in the store
        self._others: set[int] = set()  # numbers of metrics in the store that this plan lacks
        for place, one in enumerate(plan.metric_runs):
            if store is not None and one.storable:
                self.numbers[place] = store.metric(one.fingerprint, one.name)
                self._places.setdefault(one.reads, {})[self.numbers[place], one.run] = place
            elif not isinstance(one.metric, ColumnMetric):
                self._kept[place] = [None] * len(rows)

    def read_columns(self) -> None:
        """Read the numbers that the rows bring along; their judgements are made when they are asked for."""
        runs = self.plan.metric_runs
        if places := [place for place, one in enumerate(runs) if isinstance(one.metric, ColumnMetric)]:
            columns = [row.get("columns") or {} for row in self.rows]
            numbers = column_numbers(columns, [runs[place].name for place in places])
            known = np.isfinite(numbers)
            self.values[places] = np.where(known, numbers, np.nan)
            self.codes[places] = np.where(known, CODES[Status.OK], CODES[Status.SKIPPED])

    def recall(self) -> None:
        """Take over everything that the store knows already; failures there are asked again.

        A note counts the judgements still to be asked that the store has from the prompts before.
        """
        if self.store is None:
            return
        for row in range(len(self.rows)):
            self.recall_row(row)
        unused = 0
        for place in set(self.plan.asked) & self.numbers.keys() if self._others else ():
            one = self.plan.metric_runs[place]
            earlier = self.store.number(earlier_fingerprint(one)), one.run, Status.OK
            for row in np.flatnonzero(self.codes[place] == PENDING).tolist() if earlier[0] in self._others else ():
                known = self.store.read(self.keys.row(row, one.reads))
                unused += any((number, run, status) == earlier for number, run, status, _ in known)
        if unused:
            notes.warning(
                "%s: %d judgements of an earlier prompt version are not used; they are asked anew", self.store, unused
            )

    def recall_row(self, row: int) -> None:
        """Take over the judgements of one row that the store knows."""
        if self.store is None:
            return
        for reads, places in self._places.items():
            for number, run, status, raw in self.store.read(self.keys.row(row, reads)):
                place = places.get((number, run))
                if place is None:
                    self._others.add(number)
                elif status in _SETTLED and self.codes[place, row] == PENDING:
                    self.codes[place, row] = CODES[status]
                    self.values[place, row] = np.nan if raw is None else raw
                    self.reused[place] += 1

    def key(self, place: int, row: int) -> Key:
        """The key under which the store keeps a judgement."""
        one = self.plan.metric_runs[place]
        return Key(self.keys.row(row, one.reads), self.numbers[place], one.run)

    def enter(self, place: int, row: int, judgement: Judgement) -> None:
        """Book one finished judgement."""
        self.codes[place, row] = CODES[judgement.status]
        self.values[place, row] = np.nan if judgement.raw is None else judgement.raw
        self.spent[place] += judgement.usage
        if place in self._kept:
            self._kept[place][row] = judgement

    def drop(self, place: int, reason: str) -> None:
        """Take a metric run's numbers away: failures stay as they are, all else is skipped for this reason."""
        self.dropped[place] = reason
        self.codes[place, ~np.isin(self.codes[place], FAILED)] = CODES[Status.SKIPPED]
        self.values[place] = np.nan

    def keep(self, judgements: Iterable[tuple[int, int, Judgement]]) -> None:
        """Hold in memory what a store that failed did not take."""
        self._unstored.update(((place, row), judgement) for place, row, judgement in judgements)

    def close(self, reason: str, status: Status, wanted: BoolArray) -> None:
        """Give everything that is still unknown a status.

        Parameters
        ----------
        reason : str
            Why nothing more was asked.
        status : Status
            The status of all that was left undone.
        wanted : bool array, shape (S, n)
            Judgements that would still have been asked; all others were never needed, and are skipped for that reason.
        """
        self.undone = reason
        unknown = self.codes == PENDING
        self.needless, self.left = unknown & ~wanted, unknown & wanted
        self.codes[self.left] = CODES[status]
        self.codes[self.needless] = CODES[Status.SKIPPED]

    def judgement(self, place: int, row: int) -> Judgement:
        """The whole judgement, from memory or from the store.

        Raises
        ------
        StoreError
            If the store no longer holds it.
        """
        one, status = self.plan.metric_runs[place], STATUSES[self.codes[place, row]]
        found = self._kept[place][row] if place in self._kept else self._unstored.get((place, row))
        if found is None and place in self.numbers and self.store is not None:
            key = self.key(place, row)
            found = self.store.judgement(key.row, key.metric, key.run)
        if isinstance(one.metric, ColumnMetric):
            found = one.metric.judge_batch([self.rows[row]], run=one.run)[0]
        if found is not None and found.status is status:
            return found if found.metric == one.name else replace(found, metric=one.name)
        if status in _NOT_ASKED:
            reason = self.dropped.get(place) or (NEEDLESS if self.needless[place, row] else self.undone)
            return Judgement(one.name, status=status, error=reason, run=one.run)
        raise StoreError(
            f"{self.store} does not hold the judgement of row {self.rows[row].get('id', row)!r} by {one.name} "
            "any more: it was pruned or changed since; run score again"
        )


_SETTLED = frozenset({Status.OK, Status.SKIPPED})
_NOT_ASKED = frozenset({Status.BUDGET, Status.SKIPPED})


class Rounds:
    """The judgements to ask, of S metric runs on n rows.

    Parameters
    ----------
    results : Results

    Attributes
    ----------
    first : dict of int to int array, shape (n,)
        For each asked metric run, the first row with the same content; it is asked for the others.
    adaptive : bool
        Whether any column may do without some of its metric runs.
    wanted : bool array, shape (S, n)
        Judgements that were found to be needed so far, asked for or known.
    due : bool array, shape (S, n)
        Judgements that are wanted, not known and not yet handed out; handing one out takes its mark away.
    total : int
        How many judgements are computed here, or asked and have become wanted, that were not known then.
    """

    def __init__(self, results: Results) -> None:
        plan = results.plan
        kinds = {place: plan.metric_runs[place].reads for place in plan.asked}
        by_kind = {reads: results.keys.first(reads) for reads in set(kinds.values())}
        self.results, self.first = results, {place: by_kind[reads] for place, reads in kinds.items()}
        self.terms = [term for column in plan.columns for term in column]
        self.adaptive = any(map(_adaptive, self.terms))
        self.wanted = np.zeros(results.codes.shape, dtype=bool)
        self.due = np.zeros(results.codes.shape, dtype=bool)
        self.total = 0
        self._started = False
        self._requests = [places for asker in plan.askers for places in asker.by_run.values() if len(places) > 1]
        self._same: dict[int, list[int]] = defaultdict(list)  # row -> later rows that say the same
        for rows in by_kind.values() if self.adaptive else ():
            for row in np.flatnonzero(rows != np.arange(len(rows))).tolist():
                self._same[int(rows[row])].append(row)

    def start(self) -> None:
        """Look at every row for the first time."""
        self._look(np.arange(len(self.results.rows)))
        self._started = True

    def drop(self, place: int, reason: str) -> list[int]:
        """`Results.drop`; returns the rows that were not known yet."""
        left: list[int] = np.flatnonzero(self.results.codes[place] == PENDING).tolist()
        self.results.drop(place, reason)
        self.total -= len(left)
        return left

    def after(self, rows: Iterable[int]) -> list[int]:
        """Look again where a round of `rows` has ended; returns the rows in which more is due now."""
        codes = self.results.codes
        again: dict[int, None] = {}
        for row in sorted(rows) if self.adaptive else ():
            waiting = np.flatnonzero(self.wanted[:, row] & (codes[:, row] == PENDING)).tolist()
            # A judgement that is known of an earlier row with the same content is as good as the row's own.
            if not any(codes[place, self.first[place][row]] == PENDING for place in waiting if place in self.first):
                again |= {one: None for one in (row, *self._same.get(row, ())) if not self.wanted[:, one].all()}
        return self._look(np.fromiter(again, dtype=np.intp)) if again else []

    def possible(self) -> BoolArray:
        """Judgements that were wanted or may still become so, shape (S, n); before the start, all."""
        if not self._started:
            return np.ones(self.wanted.shape, dtype=bool)
        codes, found = self.results.codes, self.wanted.copy()
        waiting = self.wanted & (codes == PENDING)
        for place, first in self.first.items():
            waiting[place] &= codes[place, first] == PENDING
        rows = np.flatnonzero(waiting.any(axis=0))  # all others have what they wanted
        found[:, rows] |= self._marks(rows, at_most=True)
        return found

    def _look(self, rows: IntArray) -> list[int]:
        """Mark the judgements that these rows want now; returns the rows in which more is due."""
        marks = self._marks(rows, at_most=False)
        for places in self._requests:  # what one request answers is asked together
            marks[places] = marks[places].any(axis=0)
        codes, more = self.results.codes, set()
        for place in np.flatnonzero(marks.any(axis=1)).tolist():
            new = rows[marks[place] & ~self.wanted[place, rows]]
            if place in self.first:
                # Only the first of the rows with the same content is asked; the others are given its judgement.
                asked = np.unique(self.first[place][new[codes[place, new] == PENDING]])
                asked = asked[~self.wanted[place, asked] & (codes[place, asked] == PENDING)]
                self.due[place, asked] = True
                more.update(asked.tolist())
                new = np.union1d(new, asked)
                self.total += int((codes[place, new] == PENDING).sum())
            self.wanted[place, new] = True
        return sorted(more)

    def _marks(self, rows: IntArray, *, at_most: bool) -> BoolArray:
        """The metric runs that these rows want, shape (S, r); `at_most`: all that may still become wanted."""
        marks = np.zeros((len(self.results.codes), len(rows)), dtype=bool)
        for term in self.terms:
            self._mark(term, rows, np.arange(len(rows)), marks, at_most)
        return marks

    def _mark(self, term: Term, rows: IntArray, at: IntArray, marks: BoolArray, at_most: bool) -> None:
        """Mark the metric runs of a term in the columns `at`."""
        if isinstance(term, int):
            marks[term, at] = True
            return
        needed = np.ones((len(at), len(term.parts)), dtype=bool)
        if at_most or isinstance(term.metric, Sequential):
            _, known, wanted = self._parts(term, rows[at])
            needed = wanted | (at_most & (wanted & ~known).any(axis=1, keepdims=True))
        for part, column in zip(term.parts, needed.T, strict=True):
            if column.any():
                self._mark(part, rows, at[column], marks, at_most)

    def _parts(self, term: Expression, rows: IntArray) -> tuple[NDArray[np.float64], BoolArray, BoolArray]:
        """Numbers of an expression's parts, which are known and which are wanted, three arrays of shape (r, p)."""
        shape = (len(rows), len(term.parts))
        values, known = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        sequential = isinstance(term.metric, Sequential)
        for place, part in enumerate(term.parts):
            values[:, place], known[:, place] = self._state(part, rows, numbers=sequential)
        metric: Any = term.metric
        return values, known, metric.wanted(values, known) if sequential else np.ones(shape, dtype=bool)

    def _state(self, term: Term, rows: IntArray, *, numbers: bool) -> tuple[NDArray[np.float64], BoolArray]:
        """A term's numbers, if they are needed, and whether it is known, two arrays of shape (r,)."""
        if isinstance(term, int):
            codes, own = self.results.codes[term], rows
            if term in self.first:  # a judgement of an earlier row with the same content holds for this one
                own = np.where(codes[rows] == PENDING, self.first[term][rows], rows)
            return self.results.values[term, own], codes[own] != PENDING
        values, known, wanted = self._parts(term, rows)
        settled = np.asarray((known | ~wanted).all(axis=1))
        combined = np.full(len(rows), np.nan)
        if numbers and settled.any():
            combined[settled] = term.metric.combined(values[settled])
        return combined, settled


def _adaptive(term: Term) -> bool:
    return isinstance(term, Expression) and (isinstance(term.metric, Sequential) or any(map(_adaptive, term.parts)))
