"""Rated rows with their groups, and what two sides of them must not share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.splits import instructions
from metricsmith.metric import content_hash
from metricsmith.report.record import RowRecord

__all__ = ["Rated", "group_of", "in_given_order", "shared_source"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Rated:
    """n rows with their ratings, shape (n,), and groups."""

    rows: list[dspy.Example]
    ratings: FloatArray
    groups: list[str]

    @classmethod
    def of(cls, rows: Sequence[dspy.Example], target: str) -> Rated:
        """Read ratings and groups; rows without a group are grouped by their input, if they have one."""
        ratings = np.array([float(row[target]) for row in rows], dtype=float)
        return cls(list(rows), ratings, [group_of(row, number) for number, row in enumerate(rows)])

    def take(self, indices: Sequence[int] | NDArray[np.intp]) -> Rated:
        """The rows at `indices`."""
        chosen = [int(index) for index in indices]
        return Rated([self.rows[i] for i in chosen], self.ratings[chosen], [self.groups[i] for i in chosen])

    def __add__(self, other: Rated) -> Rated:
        ratings = np.concatenate([self.ratings, other.ratings])
        return Rated([*self.rows, *other.rows], ratings, [*self.groups, *other.groups])

    def __len__(self) -> int:
        return len(self.rows)


def in_given_order(data: Sequence[RowRecord], places: Mapping[str, NDArray[np.intp]]) -> tuple[RowRecord, ...]:
    """The rows of a record, side by side, as they were given; names that only count them are given anew."""
    kept = [row for row in data if row.split not in places]
    for split, given in places.items():
        rows = [row for row in data if row.split == split]
        for number, place in enumerate(np.argsort(given).tolist()):
            row = rows[place]
            kept.append(replace(row, id=f"{split} {number}") if row.id == f"{split} {place}" else row)
    return tuple(kept)


def group_of(row: dspy.Example, number: int) -> str:
    """The row's group, or else its input, or else the row itself, whose place is `number`."""
    if row.get("group") is not None:
        return str(row["group"])
    return f"input {content_hash(row['input'])}" if row.get("input") else f"row {number}"


def shared_source(train: Rated, test: Rated) -> str:
    """What stands on both sides and must not: the same group (where rows name one), input or output.

    An input of more than a third of the training rows is an instruction and may stand on both. Where there are
    inputs, equal outputs are no leak, or are counted as twins.

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
    """The row's field, empty where it has none; of its group the one that it had before groups were joined."""
    own = row.get("own_group") if what == "group" and row.get("group") else None
    return str(own or row.get(what) or "")
