"""Which judgements are wanted: all, or what sequential composites find that they need, round by round.

A decision rests on what is known of the row and on nothing else, so that neither the order of the answers nor an
end and a new start changes what is asked. A row is looked at again when all that it wanted is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.metric import Sequential
from metricsmith.scoring.plan import Combined, Node
from metricsmith.scoring.results import PENDING, Results

__all__ = ["Rounds"]

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
        self._requests = [slots for group in plan.groups for slots in group.by_run.values() if len(slots) > 1]
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

    def _mark(self, node: Node, rows: IntArray, at: IntArray, marks: BoolArray, at_most: bool) -> None:
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

    def _parts(self, node: Combined, rows: IntArray) -> tuple[NDArray[np.float64], BoolArray, BoolArray]:
        """Numbers of a composite's parts, which are known and which are wanted, three arrays of shape (r, p)."""
        shape = (len(rows), len(node.parts))
        values, known = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        sequential = isinstance(node.metric, Sequential)
        for place, part in enumerate(node.parts):
            values[:, place], known[:, place] = self._state(part, rows, numbers=sequential)
        metric: Any = node.metric
        return values, known, metric.wanted(values, known) if sequential else np.ones(shape, dtype=bool)

    def _state(self, node: Node, rows: IntArray, *, numbers: bool) -> tuple[NDArray[np.float64], BoolArray]:
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


def _adaptive(node: Node) -> bool:
    return isinstance(node, Combined) and (isinstance(node.metric, Sequential) or any(map(_adaptive, node.parts)))
