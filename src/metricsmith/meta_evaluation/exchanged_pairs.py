"""acc-t of two metrics that exchange cells, again and again: what all exchanges share is computed once."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from metricsmith.meta_evaluation.grouping import FloatArray
from metricsmith.meta_evaluation.pairs import GoldPairs

__all__ = ["ExchangedPairs"]

BoolArray = NDArray[np.bool_]
Codes = NDArray[np.uint16]

BINS = 8192  # of candidate thresholds; codes, twice as many, must fit into 16 bits


class ExchangedPairs:
    """The distances that a pair can have, by which metric each of its two cells has, in bins of thresholds.

    The candidates are 0 and the distances of gold ties. A bin ends at a candidate and holds the distances down to the
    bin before. A pair has a code: the bin of a gold tie, the bin and `bins` more of a concordant pair, or `bins` where
    it is neither. With a and b for the metrics, the codes of the four choices are ``aa``, ``ab``, ``ba`` and ``bb``.
    Bit by bit, the code in force is ``aa ^ (s & (aa ^ ba)) ^ (t & (aa ^ ab)) ^ (s & t & (aa ^ ab ^ ba ^ bb))``, where
    s and t have all bits set if the first and the second cell is exchanged.

    Parameters
    ----------
    pairs : GoldPairs
        With groups that are alike in size.
    first, second : ndarray, shape (groups, members)
        The metrics, NaN where gold is.
    bins : int
        More of them leave less to sort, and cost time themselves; at most 32,766.
    """

    def __init__(self, pairs: GoldPairs, first: FloatArray, second: FloatArray, bins: int = BINS) -> None:
        self._pairs = pairs
        self._sides = pairs.in_order(first), pairs.in_order(second)
        choices = list(itertools.product(self._sides, repeat=2))
        candidates = np.zeros(1)
        for sides in choices:
            rows = zip(pairs.rows(*sides), pairs.tied_places, strict=True)
            candidates = np.unique(np.concatenate([candidates, *(np.abs(row[places]) for row, places in rows)]))
        step = -(-candidates.size // bins)
        self._exact = step == 1  # a bin holds no second candidate
        self._bounds = np.append(0.0, candidates[:0:-step][::-1])
        self._bins = self._bounds.size
        aa, ab, ba, bb = (self._codes(*sides) for sides in choices)
        self._terms = aa, aa ^ ba, aa ^ ab, aa ^ ab ^ ba ^ bb
        self._code = np.empty_like(aa)
        members, self._groups = pairs.cells.shape
        self._starts = np.append(0, np.cumsum(np.arange(members - 1, 0, -1) * self._groups))

    def accuracy(self, swap: BoolArray) -> float:
        """acc-t of the first metric where it takes the second's cells, True in `swap`, shape (groups, members).

        The end of a bin has the accuracy of a threshold. Inside it is higher by the bin's concordant pairs at most, and
        pairs are sorted only where that would be above all ends.
        """
        turned = np.take(np.ascontiguousarray(swap.T), self._pairs.cells)
        self._encode(turned)
        counts = np.bincount(self._code, minlength=2 * self._bins + 1)
        won, lost = counts[: self._bins], counts[self._bins :]
        lost[0] = 0  # pairs that are right at no threshold
        ends = np.cumsum(won - lost[:-1])
        best = int(ends.max())
        promising = np.flatnonzero(ends + lost[:-1] > best)
        if promising.size and not self._exact:
            low, high = int(promising[0]), int(promising[-1])
            best = max(best, int(ends[low - 1]) + self._most(turned, low, high))
        return float((best + int(lost.sum())) / int(self._pairs.sizes.max()) / self._pairs.used)

    def _codes(self, columns: FloatArray, others: FloatArray) -> Codes:
        """Of all pairs, where the first cell is of one metric and the second of another."""
        codes = [np.zeros(0, dtype=np.uint16)]
        rows = self._pairs.rows(columns, others)
        for apart, tied, untied in zip(rows, self._pairs.tied_places, self._pairs.untied_places, strict=True):
            code = np.full(apart.size, self._bins, dtype=np.uint16)
            code[tied] = np.searchsorted(self._bounds, np.abs(apart[tied]))
            code[untied] += np.searchsorted(self._bounds, np.maximum(apart[untied], 0.0)).astype(np.uint16)
            codes.append(code)
        return np.concatenate(codes)

    def _encode(self, turned: BoolArray) -> None:
        """The code of every pair."""
        masks = -turned.astype(np.uint16)
        for first, (start, stop) in enumerate(itertools.pairwise(self._starts)):
            base, one, other, both = (term[start:stop].reshape(-1, self._groups) for term in self._terms)
            code = self._code[start:stop].reshape(-1, self._groups)
            np.bitwise_and(masks[first + 1 :], both, out=code)
            code ^= one
            code &= masks[first]
            code ^= base
            code ^= masks[first + 1 :] & other

    def _most(self, turned: BoolArray, low: int, high: int) -> int:
        """The most that a threshold in these bins wins, less what it loses, of the pairs in them."""
        columns = np.where(turned, *self._sides[::-1]).ravel()
        found, passed = (np.sort(self._distances(columns, low + more, high + more)) for more in (0, self._bins))
        gain = np.arange(1, found.size + 1) - np.searchsorted(passed, found, side="right")
        return int(gain.max(initial=0))

    def _distances(self, columns: FloatArray, low: int, high: int) -> FloatArray:
        """Of the pairs with codes from `low` to `high`, in size."""
        places = np.flatnonzero((self._code >= low) & (self._code <= high))
        first = np.searchsorted(self._starts, places, side="right") - 1
        places -= self._starts[first]
        first *= self._groups
        apart = np.asarray(columns[first + places % self._groups] - columns[first + self._groups + places])
        np.abs(apart, out=apart)
        return apart if self._pairs.decimals is None else np.round(apart, self._pairs.decimals, out=apart)
