"""Rows with several references as flat pairs, so that one call scores them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.base import FloatArray, TextBatch

__all__ = ["Pairs", "pair_up", "string_scorer"]


@dataclass(frozen=True, slots=True)
class Pairs:
    """m pairs of output and reference out of n rows, row by row, references in the order given.

    `counts[i]` is the number of pairs of row i; blank references make none.
    """

    outputs: Sequence[str]
    references: Sequence[str]
    counts: NDArray[np.int64]

    def best(self, values: FloatArray, *, highest: bool = True) -> FloatArray:
        """Returns the best of each row's values: (m,) to (n,); NaN for a row without pairs."""
        result = np.full(len(self.counts), np.nan)
        filled = self.counts > 0
        if filled.any():
            choose = np.maximum if highest else np.minimum
            result[filled] = choose.reduceat(values, self._starts[filled])
        return result

    def best_index(self, values: FloatArray) -> NDArray[np.int64]:
        """Returns the place of each row's best pair: (m,) to (n,); the first of ties, -1 for a row without pairs."""
        starts = self._starts
        return np.array(
            [
                start + int(np.argmax(values[start : start + count])) if count else -1
                for start, count in zip(starts.tolist(), self.counts.tolist(), strict=True)
            ],
            dtype=np.int64,
        )

    @property
    def _starts(self) -> NDArray[np.int64]:
        return np.cumsum(self.counts) - self.counts


def pair_up(batch: TextBatch) -> Pairs:
    """Pairs each output with each of its references that is not blank."""
    kept = [[text for text in references if text.strip()] for references in batch.references]
    counts = np.array([len(references) for references in kept], dtype=np.int64)
    outputs = [output for output, references in zip(batch.outputs, kept, strict=True) for _ in references]
    return Pairs(outputs, [text for references in kept for text in references], counts)


def string_scorer(scorer: Any, outputs: Sequence[str], references: Sequence[str]) -> FloatArray:
    """Applies a rapidfuzz scorer to m pairs of strings in one call: shape (m,).

    Parameters
    ----------
    scorer : callable
        One of `rapidfuzz.distance`, for example ``Levenshtein.distance``.
    outputs, references : sequence of str
        m strings each.
    """
    from rapidfuzz.process import cpdist

    return np.asarray(cpdist(outputs, references, scorer=scorer, dtype=np.float64), dtype=float)
