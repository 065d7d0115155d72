"""Rows that belong together: connected parts by id, input, source and long output, and what is no source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["LONG_OUTPUT", "connected_parts", "instructions", "long_output"]

LONG_OUTPUT = 8  # words; two systems rarely hit upon the same so many by themselves
_MOST_OF_A_SOURCE = 1 / 3  # share of all outputs; what more of them share says what to do, not about what


def connected_parts(*keys: Sequence[Hashable]) -> NDArray[np.intp]:
    """Number the parts into which shared keys join n rows, over any number of steps.

    Parameters
    ----------
    *keys : sequence of hashable, shape (n,)
        Rows that have an entry in common, each within one sequence, belong together. None joins nothing.

    Returns
    -------
    int array, shape (n,)
        Part numbers from 0 in order of first appearance.

    Examples
    --------
    >>> connected_parts(["a", "b", "c", "d"], ["x", None, "x", None]).tolist()
    [0, 1, 0, 2]
    """
    parent = list(range(len(keys[0])))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for column in keys:
        first: dict[Hashable, int] = {}
        for row, key in enumerate(column):
            if key is not None:
                parent[root(row)] = root(first.setdefault(key, row))
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(root(row), len(numbers)) for row in range(len(parent))], dtype=np.intp)


def long_output(text: str) -> str | None:
    """The words of an output of eight words or more, which is nobody else's by chance; None for a shorter one."""
    words = text.split()
    return " ".join(words) if len(words) >= LONG_OUTPUT else None


def instructions(values: Sequence[str], outputs: Sequence[Hashable]) -> dict[str, int]:
    """The values that more than a third of the outputs share, and how many do: instructions, no sources.

    Parameters
    ----------
    values : sequence of str, shape (n,)
        Ids or inputs; empty ones are none.
    outputs : sequence of hashable, shape (n,)
        Equal for rows that rate one output, which then counts once.
    """
    counts = Counter(value for value, _ in set(zip(values, outputs, strict=True)))
    most = len(set(outputs)) * _MOST_OF_A_SOURCE
    return {value: count for value, count in counts.items() if value and count > most}
