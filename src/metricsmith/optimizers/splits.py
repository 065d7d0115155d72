"""Rated rows, the division of a run's rows for training and testing, and the texts that both must not share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.splits import Split, group_of, instructions
from metricsmith.errors import DataError
from metricsmith.formats import percent
from metricsmith.records import Task
from metricsmith.report.induction.record import RowRecord
from metricsmith.stats.correlation import FloatArray

__all__ = ["RatedRows", "Splits", "in_given_order", "shared_source", "split_rated", "twin_note"]

_BASE, _INVERSE = np.uint64(0x9E3779B97F4A7C15), np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))


@dataclass(frozen=True)
class RatedRows:
    """n rows with their ratings, shape (n,), or (n, K) for the shares of K options among a row's raters, and groups."""

    rows: list[dspy.Example]
    ratings: FloatArray
    groups: list[str]

    @classmethod
    def of(cls, rows: Sequence[dspy.Example], target: str) -> RatedRows:
        """Read ratings and groups; rows without a group are grouped by their input, if they have one."""
        ratings = np.array([float(row[target]) for row in rows], dtype=float)
        return cls(list(rows), ratings, [group_of(row, number) for number, row in enumerate(rows)])

    def take(self, indices: Sequence[int] | NDArray[np.intp]) -> RatedRows:
        """The rows at `indices`."""
        chosen = [int(index) for index in indices]
        return RatedRows([self.rows[i] for i in chosen], self.ratings[chosen], [self.groups[i] for i in chosen])

    def __add__(self, other: RatedRows) -> RatedRows:
        ratings = np.concatenate([self.ratings, other.ratings])
        return RatedRows([*self.rows, *other.rows], ratings, [*self.groups, *other.groups])

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Splits:
    """The rows that a run is fitted to, and those that it is tested on.

    Parameters
    ----------
    kind : str
        ``holdout``, ``file``, ``cv`` or ``train_only``.
    train, test : RatedRows
        `test` is empty except for ``holdout`` and ``file``.
    unrated : sequence of dspy.Example
    folds : sequence of Split
        Of the training rows, for ``cv``.
    origin : str
        Where the rows come from and how they were split, for the signature line.
    notes : sequence of str
        What was guessed or left out when they were read.
    split : str
        How rows were set aside, and why so, in a sentence.
    places : mapping of str to int array
        For each of ``train``, ``test`` and ``unrated`` the places at which its rows were given, for the report: rows
        stand in the order of their contents (`splits.content_order`), so that nothing depends on that of the file.
    warnings : sequence of str
        What speaks against the data; the first warnings of the report.
    """

    kind: str
    train: RatedRows
    test: RatedRows
    unrated: Sequence[dspy.Example] = ()
    folds: Sequence[Split] = ()
    origin: str = ""
    notes: Sequence[str] = field(default=())
    places: Mapping[str, NDArray[np.intp]] = field(default_factory=dict)
    warnings: Sequence[str] = field(default=())
    split: str = ""

    def with_learning(self, more: RatedRows) -> Splits:
        """These splits with further rows, which are learned from in every fold and tested on in none."""
        places = np.arange(len(self.train), len(self.train) + len(more))
        folds = [Split(np.concatenate([fold.train, places]), fold.test) for fold in self.folds]
        origin = f"{self.origin} | {len(more)} further rows learned from and never tested on"
        return replace(self, train=self.train + more, folds=folds, origin=origin)


def in_given_order(data: Sequence[RowRecord], places: Mapping[str, NDArray[np.intp]]) -> tuple[RowRecord, ...]:
    """The rows of a record in the order in which they were given; ids that only count rows are given anew."""
    kept = [row for row in data if row.split not in places]
    for split, given in places.items():
        rows = [row for row in data if row.split == split]
        for number, place in enumerate(np.argsort(given).tolist()):
            row = rows[place]
            kept.append(replace(row, id=f"{split} {number}") if row.id == f"{split} {place}" else row)
    return tuple(kept)


def split_rated(rows: Sequence[dspy.Example], task: Task) -> tuple[list[dspy.Example], list[dspy.Example]]:
    """Rows with and without a rating; a rating off the scale is a `DataError`."""
    rated, unrated = [], []
    for number, row in enumerate(rows):
        value = row.get(task.target)
        if value is None or value != value:
            unrated.append(row)
        elif not task.scale.contains(float(value)):
            raise DataError(
                f"row {row.get('id', number)!r}: {task.target} is {value!r}, but the scale runs from {task.scale}"
            )
        else:
            rated.append(row)
    return rated, unrated


def shared_source(train: RatedRows, test: RatedRows) -> str:
    """The first group (where rows name one), input or output that stands in training and test rows and must not.

    An input of more than a third of the training rows is an instruction and may stand on both. Where there are inputs,
    equal outputs are no leak, or are counted as twins. One refusal in both files should not stop a run.

    Returns
    -------
    str
        A description of the first such thing, empty if there is none.
    """
    for what in ("group", "input", "output"):
        if what == "output" and any(row.get("input") for row in test.rows):
            continue
        known = [_of(row, what) for row in train.rows]
        seen = set(known) - {""}
        if what == "input":
            seen -= set(instructions(known, range(len(known))))
        for row in test.rows:
            if _of(row, what) in seen:
                return f"{what} {_of(row, what)[:60]!r}"
    return ""


def _of(row: dspy.Example, what: str) -> str:
    """The row's field as text, empty without one; for its group the one from before groups were joined."""
    own = row.get("own_group") if what == "group" and row.get("group") else None
    return str(own or row.get(what) or "")


def twin_note(splits: Sequence[tuple[Sequence[dspy.Example], Sequence[dspy.Example]]]) -> str:
    """A line on the number of test rows that have a twin among the training rows; empty without any.

    A twin's output has the same words in the same order, or one word more or less. Equal outputs of eight words or
    more stay on one side already (`datasets.splits`), unless the splits were given.

    Parameters
    ----------
    splits : sequence of (training rows, test rows)
        One pair, or one for each fold. Rows without an output have no twin.
    """
    equal = close = 0
    for train, test in splits:
        learned, held = _shortened(train), _shortened(test)
        known, near = {whole for whole, _ in learned}, {one for _, parts in learned for one in parts.tolist()}
        alone = [(whole, parts) for whole, parts in held if whole not in known]
        equal += len(held) - len(alone)
        close += sum(whole in near or not known.isdisjoint(parts.tolist()) for whole, parts in alone)
    if not equal + close:
        return ""
    tested = sum(len(test) for _, test in splits)
    kinds = [f"{equal} with the same output"] * (equal > 0) + [f"{close} with one word more or less"] * (close > 0)
    return (
        f"{equal + close} of {tested} test rows ({percent((equal + close) / tested)}) have a twin under another "
        f"source in training: {', '.join(kinds)}"
    )


def _shortened(rows: Sequence[dspy.Example]) -> list[tuple[int, NDArray[np.uint64]]]:
    """For each output one number for all its words, and one for the rest without each of its words."""
    numbers = []
    for row in rows:
        words = str(row.get("output") or "").lower().split()
        if not words:
            continue
        # A polynomial in an odd base modulo 2 ** 64: taking out word i moves the rest down by one power.
        terms = np.array([hash(word) & (2**64 - 1) for word in words], dtype=np.uint64)
        powers = np.cumprod(np.full(len(words), _BASE, dtype=np.uint64))
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms * powers, dtype=np.uint64)])
        without = sums[:-1] + (sums[-1] - sums[1:]) * _INVERSE
        numbers.append((int(sums[-1]), without if len(words) > 1 else without[:0]))
    return numbers
