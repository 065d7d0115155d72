"""Rated rows with their groups, and what two sides of them must not share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.metric import content_hash

__all__ = ["Rated", "group_of", "shared_source"]

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


def group_of(row: dspy.Example, number: int) -> str:
    """The row's group, or else its input, or else the row itself, whose place is `number`."""
    if row.get("group") is not None:
        return str(row["group"])
    return f"input {content_hash(row['input'])}" if row.get("input") else f"row {number}"


def shared_source(train: Rated, test: Rated) -> str:
    """What stands on both sides and must not: the same group (where rows name one), input or output.

    Returns
    -------
    str
        A description of the first such thing, empty if there is none.
    """
    for what in ("group", "input", "output"):
        if what == "output" and any(row.get("input") for row in test.rows):
            continue  # equal short answers to different inputs are no leak
        seen = {row[what] for row in train.rows if row.get(what)}
        for row in test.rows:
            if row.get(what) in seen:
                return f"{what} {str(row[what])[:60]!r}"
    return ""
