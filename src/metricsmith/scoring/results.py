"""Judgements that are known, and those that are wanted."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.column import ColumnMetric, column_numbers
from metricsmith.errors import StoreError
from metricsmith.metric import Sequential, content_hash
from metricsmith.records import Judgement, Status, Usage
from metricsmith.scoring.plan import Expression, ScoringPlan, Term, content_key, earlier_fingerprint, store_key
from metricsmith.store import Key, Store

__all__ = [
    "ANSWERED_BADLY",
    "CODES",
    "PENDING",
    "Keys",
    "Results",
    "Rounds",
]

STATUSES = tuple(Status)
CODES = {status: code for code, status in enumerate(STATUSES)}
PENDING = -1
NEEDLESS = "not asked: nothing that was wanted rests on it"
logger = logging.getLogger("metricsmith.scoring")
notes = logging.getLogger("metricsmith.notes")  # what is worth a line on the terminal, once


@dataclass(frozen=True)
class Keys:
    """The rows' hashes, each computed once and only when first needed."""

    rows: Sequence[dspy.Example]

    @cached_property
    def texts(self) -> list[str]:
        """Of the four texts of each row."""
        return [content_key(row) for row in self.rows]

    @cached_property
    def wholes(self) -> list[str]:
        """Of every field of each row."""
        return [content_hash(row.toDict()) for row in self.rows]

    def contents(self, whole: bool) -> list[str]:
        """Rows with equal entries here get equal judgements."""
        return self.wholes if whole else self.texts

    def row(self, place: int, whole: bool) -> str:
        """The key of a row in a store."""
        return store_key(self.rows[place], self.contents(whole)[place])

    def first(self, whole: bool) -> NDArray[np.intp]:
        """For each row, the place of the first one with the same content, shape (n,)."""
        seen: dict[str, int] = {}
        places = (seen.setdefault(key, place) for place, key in enumerate(self.contents(whole)))
        return np.fromiter(places, dtype=np.intp, count=len(self.rows))


class Results:
    """Judgements of S slots on n rows.

    Parameters
    ----------
    plan : ScoringPlan
    rows : sequence of dspy.Example
    store : Store, optional
        Where whole judgements are; without one they are kept in memory.

    Attributes
    ----------
    values : float array, shape (S, n)
        Raw numbers; NaN where there is none.
    codes : int8 array, shape (S, n)
        Status by its place in `records.Status`, -1 while nothing is known.
    spent : list of Usage
        What this run paid for each slot.
    reused : int array, shape (S,)
        How many judgements of each slot came from the store.
    dropped : dict of int to str
        Slots of which nothing counts any more, and why.
    """

    def __init__(self, plan: ScoringPlan, rows: Sequence[dspy.Example], store: Store | None) -> None:
        shape = (len(plan.metric_runs), len(rows))
        self.plan, self.rows, self.store = plan, rows, store
        self.keys = Keys(rows)
        self.values = np.full(shape, np.nan)
        self.codes = np.full(shape, PENDING, dtype=np.int8)
        self.spent = [Usage() for _ in plan.metric_runs]
        self.reused = np.zeros(len(plan.metric_runs), dtype=np.int64)
        self.dropped: dict[int, str] = {}
        self.undone = ""
        self.needless = np.zeros(shape, dtype=bool)
        self.whole = [bool(getattr(slot.metric, "reads_whole_row", False)) for slot in plan.metric_runs]
        self.numbers: dict[int, int] = {}  # slot -> the metric's number in the store
        if store is not None:
            for place, slot in enumerate(plan.metric_runs):
                if slot.storable:
                    self.numbers[place] = store.metric(slot.fingerprint, slot.metric.name)
        self._kept: dict[int, list[Judgement | None]] = {
            place: [None] * len(rows)
            for place, slot in enumerate(plan.metric_runs)
            if place not in self.numbers and not isinstance(slot.metric, ColumnMetric)
        }
        self._unstored: dict[tuple[int, int], Judgement] = {}
        self._reading = [  # per kind of row key: from the store's number and repetition to the slot
            (whole, {
                (number, plan.metric_runs[place].run): place
                for place, number in self.numbers.items() if self.whole[place] is whole
            })
            for whole in (False, True)
        ]  # fmt: skip

    def first(self) -> dict[int, NDArray[np.intp]]:
        """For each slot that an asker answers, the first row with the same content, shape (n,)."""
        by_kind = {whole: self.keys.first(whole) for whole in {self.whole[place] for place in self.plan.asked}}
        return {place: by_kind[self.whole[place]] for place in self.plan.asked}

    def read_columns(self) -> None:
        """Read the numbers that the rows bring along; their judgements are made when they are asked for."""
        places = [place for place, slot in enumerate(self.plan.metric_runs) if isinstance(slot.metric, ColumnMetric)]
        names = [self.plan.metric_runs[place].metric.name for place in places]
        numbers = column_numbers([row.get("columns") or {} for row in self.rows], names)
        known = np.isfinite(numbers)
        self.values[places] = np.where(known, numbers, np.nan)
        self.codes[places] = np.where(known, CODES[Status.OK], CODES[Status.SKIPPED])

    def recall(self) -> None:
        """Take over everything that the store knows already; failures there are asked again."""
        for row in range(len(self.rows)):
            self.recall_row(row)
        unused = self._unused()
        if unused:
            notes.warning(
                "%s: %d judgements of an earlier prompt version are not used; they are asked anew", self.store, unused
            )

    def _unused(self) -> int:
        """The count of numbers still to be asked that the store has from the prompts before."""
        count = 0
        if self.store is None:
            return count
        for place in set(self.plan.asked) & set(self.numbers):
            slot = self.plan.metric_runs[place]
            earlier = self.store.number(earlier_fingerprint(slot)), slot.run, Status.OK
            for row in np.flatnonzero(self.codes[place] == PENDING).tolist() if earlier[0] > 0 else ():
                known = self.store.read(self.keys.row(row, self.whole[place]))
                count += any((number, run, status) == earlier for number, run, status, _ in known)
        return count

    def recall_row(self, row: int) -> None:
        """Take over what the store knows of one row."""
        for whole, places in self._reading:
            if not places or self.store is None:
                continue
            for number, run, status, raw in self.store.read(self.keys.row(row, whole)):
                place = places.get((number, run))
                if place is not None and status in _SETTLED and self.codes[place, row] == PENDING:
                    self.codes[place, row] = CODES[status]
                    self.values[place, row] = np.nan if raw is None else raw
                    self.reused[place] += 1

    def key(self, place: int, row: int) -> Key:
        """Where the store keeps a judgement."""
        return Key(self.keys.row(row, self.whole[place]), self.numbers[place], self.plan.metric_runs[place].run)

    def enter(self, place: int, row: int, judgement: Judgement) -> None:
        """Book one finished judgement."""
        self.codes[place, row] = CODES[judgement.status]
        self.values[place, row] = np.nan if judgement.raw is None else judgement.raw
        self.spent[place] += judgement.usage
        if place in self._kept:
            self._kept[place][row] = judgement

    def drop(self, place: int, reason: str) -> None:
        """Take a slot's numbers away: what failed stays as it is, all else is skipped for this reason."""
        self.dropped[place] = reason
        self.codes[place, ~np.isin(self.codes[place], _FAILED)] = CODES[Status.SKIPPED]
        self.values[place] = np.nan

    def keep(self, judgements: Iterable[tuple[int, int, Judgement]]) -> None:
        """Hold in memory what a store that failed did not take."""
        self._unstored.update(((place, row), judgement) for place, row, judgement in judgements)

    def close(self, reason: str, status: Status, wanted: NDArray[np.bool_]) -> None:
        """Give everything that is still unknown a status.

        Parameters
        ----------
        reason : str
            Why nothing more was asked.
        status : Status
            Of what was left undone.
        wanted : bool array, shape (S, n)
            What would still have been asked; all else was never needed, and is skipped for that reason.
        """
        self.undone = reason
        unknown = self.codes == PENDING
        self.needless = unknown & ~wanted
        self.codes[unknown & wanted] = CODES[status]
        self.codes[self.needless] = CODES[Status.SKIPPED]

    def judgement(self, place: int, row: int) -> Judgement:
        """The whole judgement, from memory or from the store.

        Raises
        ------
        StoreError
            If the store no longer holds it.
        """
        slot, status = self.plan.metric_runs[place], STATUSES[self.codes[place, row]]
        kept = self._kept[place][row] if place in self._kept else self._unstored.get((place, row))
        found = kept or (self._stored(place, row) if place in self.numbers else None)
        if isinstance(slot.metric, ColumnMetric):
            found = slot.metric.judge_batch([self.rows[row]], run=slot.run)[0]
        if found is not None and found.status is status:
            return found if found.metric == slot.metric.name else replace(found, metric=slot.metric.name)
        if status in _NOT_ASKED:
            reason = self.dropped.get(place) or (NEEDLESS if self.needless[place, row] else self.undone)
            return Judgement(slot.metric.name, status=status, error=reason, run=slot.run)
        raise StoreError(
            f"{self.store} does not hold the judgement of row {self.rows[row].get('id', row)!r} by {slot.metric.name} "
            "any more: it was pruned or changed since; run score again"
        )

    def detach(self) -> None:
        """The run is over: release the store's claims; judgements are read from it as they are asked for."""
        if self.store is not None:
            try:
                self.store.release()
            except StoreError as problem:  # what was scored stands; the claims end with this process or lapse
                logger.warning("claims were not given up: %s", problem)

    def _stored(self, place: int, row: int) -> Judgement | None:
        key = self.key(place, row)
        return None if self.store is None else self.store.judgement(key.row, key.metric, key.run)


ANSWERED_BADLY = tuple(CODES[status] for status in (Status.UNPARSABLE, Status.OUT_OF_RANGE, Status.REFUSED))
_FAILED = (*ANSWERED_BADLY, CODES[Status.TRANSPORT])
_SETTLED = frozenset({Status.OK, Status.SKIPPED})
_NOT_ASKED = frozenset({Status.BUDGET, Status.SKIPPED})


BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]


class Rounds:
    """What is to be asked, of S slots on n rows.

    Parameters
    ----------
    results : Results
    first : mapping of int to int array, shape (n,)
        For each asked slot, the first row with the same content; it is asked for the others.

    Attributes
    ----------
    adaptive : bool
        Whether any column may do without some of its slots.
    wanted : bool array, shape (S, n)
        What was found to be needed so far, asked for or known.
    due : bool array, shape (S, n)
        What is wanted, not known and not yet handed out; who hands it out takes the mark away.
    total : int
        How many asked judgements have become wanted that were not known then.
    """

    def __init__(self, results: Results, first: Mapping[int, IntArray]) -> None:
        plan = results.plan
        self.results, self.first = results, first
        self.nodes = [node for column in plan.columns for node in column]
        self.adaptive = any(map(_adaptive, self.nodes))
        self.wanted = np.zeros(results.codes.shape, dtype=bool)
        self.due = np.zeros(results.codes.shape, dtype=bool)
        self.total = 0
        self._started = False
        self._requests = [slots for group in plan.askers for slots in group.by_run.values() if len(slots) > 1]
        self._same: dict[int, list[int]] = defaultdict(list)  # row -> later rows that say the same
        for rows in {id(rows): rows for rows in first.values()}.values() if self.adaptive else ():
            for row in np.flatnonzero(rows != np.arange(len(rows))).tolist():
                self._same[int(rows[row])].append(row)

    def start(self) -> None:
        """Look at every row for the first time."""
        self._look(np.arange(len(self.results.rows)))
        self._started = True

    def after(self, rows: Iterable[int]) -> list[int]:
        """Look again where a round of `rows` has ended; the rows in which more is due now."""
        if not self.adaptive:
            return []
        ended = [row for row in sorted(rows) if self._ended(row)]
        again = {row: None for end in ended for row in (end, *self._same.get(end, ())) if not self.wanted[:, row].all()}
        return self._look(np.fromiter(again, dtype=np.intp)) if again else []

    def possible(self) -> BoolArray:
        """What was wanted or may still become so, shape (S, n); before the start, everything."""
        if not self._started:
            return np.ones(self.wanted.shape, dtype=bool)
        codes, found = self.results.codes, self.wanted.copy()
        waiting = self.wanted & (codes == PENDING)
        for place, first in self.first.items():
            waiting[place] &= codes[place, first] == PENDING
        rows = np.flatnonzero(waiting.any(axis=0))  # all others have what they wanted
        found[:, rows] |= self._marks(rows, at_most=True)
        return found

    def _ended(self, row: int) -> bool:
        """Whether all that the row wanted is known, of itself or of an earlier row that says the same."""
        codes = self.results.codes
        waiting = np.flatnonzero(self.wanted[:, row] & (codes[:, row] == PENDING)).tolist()
        return not any(codes[place, self.first[place][row]] == PENDING for place in waiting if place in self.first)

    def _look(self, rows: IntArray) -> list[int]:
        """Mark what these rows want now; the rows in which more is due."""
        marks = self._marks(rows, at_most=False)
        for slots in self._requests:  # what one request answers is asked together
            marks[slots] = marks[slots].any(axis=0)
        codes, more = self.results.codes, set()
        for place in np.flatnonzero(marks.any(axis=1)).tolist():
            new = rows[marks[place] & ~self.wanted[place, rows]]
            if place in self.first:
                asked = np.unique(self.first[place][new[codes[place, new] == PENDING]])
                asked = asked[~self.wanted[place, asked] & (codes[place, asked] == PENDING)]
                self.due[place, asked] = True
                more.update(asked.tolist())
                new = np.union1d(new, asked)
                self.total += int((codes[place, new] == PENDING).sum())
            self.wanted[place, new] = True
        return sorted(more)

    def _marks(self, rows: IntArray, *, at_most: bool) -> BoolArray:
        """The slots that these rows want, shape (S, r); `at_most`: all that may still become wanted."""
        marks = np.zeros((len(self.results.codes), len(rows)), dtype=bool)
        for node in self.nodes:
            self._mark(node, rows, np.arange(len(rows)), marks, at_most)
        return marks

    def _mark(self, node: Term, rows: IntArray, at: IntArray, marks: BoolArray, at_most: bool) -> None:
        """Mark the slots of a node in the columns `at`."""
        if isinstance(node, int):
            marks[node, at] = True
            return
        needed = np.ones((len(at), len(node.parts)), dtype=bool)
        if at_most or isinstance(node.metric, Sequential):
            _, known, wanted = self._parts(node, rows[at])
            needed = wanted | (at_most & (wanted & ~known).any(axis=1, keepdims=True))
        for part, column in zip(node.parts, needed.T, strict=True):
            if column.any():
                self._mark(part, rows, at[column], marks, at_most)

    def _parts(self, node: Expression, rows: IntArray) -> tuple[NDArray[np.float64], BoolArray, BoolArray]:
        """Numbers of a composite's parts, which are known and which are wanted, three arrays of shape (r, p)."""
        shape = (len(rows), len(node.parts))
        values, known = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        sequential = isinstance(node.metric, Sequential)
        for place, part in enumerate(node.parts):
            values[:, place], known[:, place] = self._state(part, rows, numbers=sequential)
        metric: Any = node.metric
        return values, known, metric.wanted(values, known) if sequential else np.ones(shape, dtype=bool)

    def _state(self, node: Term, rows: IntArray, *, numbers: bool) -> tuple[NDArray[np.float64], BoolArray]:
        """A node's numbers, if they are needed, and whether it is known, two arrays of shape (r,)."""
        if isinstance(node, int):
            codes, own = self.results.codes[node], rows
            if node in self.first:  # what an earlier row with the same content was told holds for this one
                own = np.where(codes[rows] == PENDING, self.first[node][rows], rows)
            return self.results.values[node, own], codes[own] != PENDING
        values, known, wanted = self._parts(node, rows)
        settled = np.asarray((known | ~wanted).all(axis=1))
        combined = np.full(len(rows), np.nan)
        if numbers and settled.any():
            combined[settled] = node.metric.combined(values[settled])
        return combined, settled


def _adaptive(node: Term) -> bool:
    return isinstance(node, Expression) and (isinstance(node.metric, Sequential) or any(map(_adaptive, node.parts)))
