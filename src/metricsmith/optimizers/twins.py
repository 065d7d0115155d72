"""Test rows with a twin in training: outputs that are equal, or differ by one word, under another source."""

from __future__ import annotations

from collections.abc import Sequence

import dspy
import numpy as np
from numpy.typing import NDArray

__all__ = ["twin_note"]

_BASE, _INVERSE = np.uint64(0x9E3779B97F4A7C15), np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))


def twin_note(sides: Sequence[tuple[Sequence[dspy.Example], Sequence[dspy.Example]]]) -> str:
    """A line on how many test rows have a twin among the training rows, empty where none has.

    A twin's output has the same words in the same order, or one word more or less. Equal outputs of eight words or
    more stay on one side already (`datasets.splits`), unless the sides were given.

    Parameters
    ----------
    sides : sequence of (training rows, test rows)
        One pair, or one for each fold. Rows without an output have no twin.
    """
    equal = close = 0
    for train, test in sides:
        learned, held = _shortened(train), _shortened(test)
        known, near = {whole for whole, _ in learned}, {one for _, parts in learned for one in parts.tolist()}
        alone = [(whole, parts) for whole, parts in held if whole not in known]
        equal += len(held) - len(alone)
        close += sum(whole in near or not known.isdisjoint(parts.tolist()) for whole, parts in alone)
    if not equal + close:
        return ""
    tested = sum(len(test) for _, test in sides)
    kinds = [f"{equal} with the same output"] * (equal > 0) + [f"{close} with one word more or less"] * (close > 0)
    return (
        f"{equal + close} of {tested} test rows ({(equal + close) / tested:.0%}) have a twin under another source in "
        f"training: {', '.join(kinds)}"
    )


def _shortened(rows: Sequence[dspy.Example]) -> list[tuple[int, NDArray[np.uint64]]]:
    """Of each output one number for all its words, and one for what is left without each of them."""
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
