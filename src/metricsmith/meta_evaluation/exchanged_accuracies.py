"""Differences of accuracies between two metrics that exchange cells: the draws of `perm_both` with less work.

All functions here and in `exchanged_correlations` take the first and second metric and gold, matrices of shape (k, n),
NaN in all three where in any. They do once what the draws have in common and return a function of swaps: bool of shape
(draws, cells), True where the metrics are exchanged, the present cells taken row by row. It returns the measure of the
first less that of the second, shape (draws,).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from metricsmith.meta_evaluation.matrices import NOTHING, FloatArray, Grouping, grouped
from metricsmith.meta_evaluation.pairwise import GoldPairs
from metricsmith.meta_evaluation.systems import Ties, order_of_pairs, random_signs, reached, system_pairs
from metricsmith.stats.resampling.permutation import Swapped

__all__ = [
    "CompleteCells",
    "ExchangedPairs",
    "exchanged_accuracies",
    "exchanged_calibrated_accuracies",
    "exchanged_soft_accuracies",
    "exchanged_soft_accuracies_limit",
    "exchanged_system_accuracies",
    "undefined_differences",
]

BoolArray = NDArray[np.bool_]
Codes = NDArray[np.uint16]
BINS = 8192  # of candidate thresholds; codes, twice as many, must fit into 16 bits
AT_ONCE = 8  # draws, whose matrices then lie in the cache


def exchanged_accuracies(
    first: FloatArray, second: FloatArray, gold: FloatArray, by: Grouping, epsilon: float, decimals: int | None
) -> Swapped:
    """Exchanges `pairwise_accuracy` at a given threshold.

    A pair is right or wrong by the swaps of its two cells alone; with s = 1 for a kept and -1 for a swapped cell that
    is ``a + b s_i + c s_j + d s_i s_j``. The other metric has the opposite signs, so that a and d cancel in the
    difference: it is linear in s, and a draw is a sum over cells.
    """
    present = ~np.isnan(gold)
    cells = [np.ascontiguousarray(grouped(side, side, by)[0].T) for side in (first, second, gold)]
    metrics, truth = cells[:2], cells[2]
    counts = np.count_nonzero(~np.isnan(truth), axis=0)
    sizes = counts * (counts - 1) // 2
    used = int(np.count_nonzero(sizes))
    if not used:
        return undefined_differences
    terms = np.zeros(truth.shape, dtype=np.int64)
    for row in range(len(truth) - 1):
        apart = truth[row] - truth[row + 1 :]
        order = np.sign(apart if decimals is None else np.round(apart, decimals))
        (kept, kept_swapped), (swapped_kept, swapped) = (
            [_right(one[row] - other[row + 1 :], order, epsilon, decimals) for other in metrics] for one in metrics
        )
        even, odd = kept - swapped, kept_swapped - swapped_kept
        terms[row] += (even + odd).sum(axis=0)
        terms[row + 1 :] += even - odd
    scale = 1 / np.where(sizes > 0, sizes, 1) / (2 * used)
    alike = (sizes[sizes > 0] == sizes.max()).all()  # then sums of whole numbers, without rounding
    shared = float(scale[np.argmax(sizes)]) if alike else 1.0
    weighted = terms.astype(float) if alike else terms * scale
    vector = (weighted if by == "item" else weighted.T.reshape(gold.shape))[present]
    total = vector.sum()
    return lambda swap: np.asarray((total - 2 * (swap.astype(float) @ vector)) * shared)


def exchanged_calibrated_accuracies(
    first: FloatArray, second: FloatArray, gold: FloatArray, by: Grouping, decimals: int | None
) -> Swapped:
    """Exchanges acc-t, with a new threshold for both metrics in every draw; gold's part in the pairs is kept."""
    present = ~np.isnan(gold)
    pairs = GoldPairs(grouped(gold, gold, by)[0], decimals)
    if not pairs.used:
        return undefined_differences
    alike = ExchangedPairs(pairs, *grouped(first, second, by)) if pairs.weights is None else None

    def value(turned: BoolArray) -> float:
        if alike is not None:
            return alike.accuracy(turned)
        return pairs.calibrated(np.where(turned, *grouped(second, first, by)))[0]

    def difference(row: BoolArray) -> float:
        swapped = np.zeros(gold.shape, dtype=bool)
        swapped[present] = row
        turned = grouped(swapped, swapped, by)[0]
        return value(turned) - value(~turned)

    return lambda swap: np.array([difference(row) for row in swap])


def _right(apart: FloatArray, order: FloatArray, epsilon: float, decimals: int | None) -> NDArray[np.int8]:
    """1 for pairs that a metric ties or orders as gold does; 0 where a cell is missing."""
    if decimals is not None:
        apart = np.round(apart, decimals)
    tied = np.abs(apart) <= epsilon
    return np.asarray(np.where(tied, 0.0, np.sign(apart)) == order, dtype=np.int8)


class ExchangedPairs:
    """acc-t of two metrics that exchange cells again and again: the distances that a pair can have, in bins.

    A new threshold for every draw would sort all pairs each time. A pair has only four distances, though, by the metric
    from which each of its two cells comes. They are put into bins of thresholds once; a draw then counts pairs by bin
    and sorts those of the few bins that can hold the best threshold.

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
        """Returns the codes of all pairs whose first cell is of one metric and the second of another."""
        codes = [np.zeros(0, dtype=np.uint16)]
        rows = self._pairs.rows(columns, others)
        for apart, tied, untied in zip(rows, self._pairs.tied_places, self._pairs.untied_places, strict=True):
            code = np.full(apart.size, self._bins, dtype=np.uint16)
            code[tied] = np.searchsorted(self._bounds, np.abs(apart[tied]))
            code[untied] += np.searchsorted(self._bounds, np.maximum(apart[untied], 0.0)).astype(np.uint16)
            codes.append(code)
        return np.concatenate(codes)

    def _encode(self, turned: BoolArray) -> None:
        """Sets the code of every pair for a draw."""
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
        """Returns the distances of the pairs with codes from `low` to `high`."""
        places = np.flatnonzero((self._code >= low) & (self._code <= high))
        first = np.searchsorted(self._starts, places, side="right") - 1
        places -= self._starts[first]
        first *= self._groups
        apart = np.asarray(columns[first + places % self._groups] - columns[first + self._groups + places])
        np.abs(apart, out=apart)
        return apart if self._pairs.decimals is None else np.round(apart, self._pairs.decimals, out=apart)


def exchanged_system_accuracies(
    first: FloatArray, second: FloatArray, gold: FloatArray, sizes: Sequence[int] = ()
) -> Swapped:
    """Exchanges `system_pairwise_accuracy`."""
    cells = CompleteCells(first, second, gold)
    if not cells.segments or not system_pairs(len(gold), sizes)[0].size:
        return undefined_differences
    truth = order_of_pairs(cells.gold.sum(axis=1), cells.gold, sizes)

    def value(sums: FloatArray) -> FloatArray:
        return np.asarray((order_of_pairs(sums, cells.scores, sizes) == truth).mean(axis=1))

    return lambda swap: np.subtract(*map(value, cells.sums(swap)))


def exchanged_soft_accuracies(
    first: FloatArray, second: FloatArray, gold: FloatArray, draws: int, seed: int, ties: Ties
) -> Swapped:
    """Exchanges SPA: gold's p-values are made once, and several draws share a product with the sign vectors."""
    cells = CompleteCells(first, second, gold)
    if not cells.segments or len(gold) < 2:
        return undefined_differences
    signs = random_signs(draws, cells.segments, seed)
    truth = reached(cells.gold @ signs, cells.gold, ties)
    both = cells.scores.sum(axis=0) @ signs

    def differences(swap: BoolArray) -> FloatArray:
        values = []
        for turn in cells.turns(swap):
            mixed, other = np.where(turn, *cells.scores[::-1]), np.where(turn, *cells.scores)
            flipped = (mixed.reshape(-1, cells.segments) @ signs).reshape(*turn.shape[:2], draws)
            for sums, *sides in zip(flipped, mixed, other, strict=True):
                pairs = zip((sums, both - sums), sides, strict=True)
                near, far = (float(np.abs(reached(found, side, ties) - truth).mean()) for found, side in pairs)
                values.append((far - near) / draws)
        return np.array(values)

    return differences


def exchanged_soft_accuracies_limit(
    first: FloatArray, second: FloatArray, gold: FloatArray, undecided: float
) -> Swapped:
    """Exchanges SPA of infinitely many sign vectors, with p-values ``Phi(-T / sqrt(SS))``.

    T and SS are the sum and the sum of squares of the differences of two systems. The squares follow from the Gram
    matrix of the systems' scores. With m the mean of the two metrics, h half their difference and s = 1 for a kept and
    -1 for a swapped cell, the scores are ``m + s h`` and ``m - s h``, and the Gram matrices of both are sums of the
    same three products.
    """
    from scipy.special import ndtr

    cells = CompleteCells(first, second, gold)
    if not cells.segments or len(gold) < 2:
        return undefined_differences
    upper, lower = np.triu_indices(len(gold), 1)
    mean, half = cells.scores.mean(axis=0), (cells.scores[0] - cells.scores[1]) / 2
    floor = NOTHING * float((cells.scores**2).sum(axis=2).max())

    def p_values(sums: FloatArray, gram: FloatArray) -> FloatArray:
        squares = np.diagonal(gram, axis1=-2, axis2=-1)
        spread = squares[..., upper] + squares[..., lower] - 2 * gram[..., upper, lower]
        vary = spread > floor
        apart = (sums[..., lower] - sums[..., upper]) / np.sqrt(np.where(vary, spread, 1.0))
        return np.asarray(np.where(vary, ndtr(apart), undecided))

    truth = p_values(cells.gold.sum(axis=1), cells.gold @ cells.gold.T)
    fixed, fixed_sums = mean @ mean.T, mean.sum(axis=1)

    def differences(swap: BoolArray) -> FloatArray:
        values = []
        for turn in cells.turns(swap):
            moved = np.where(turn, -half, half)
            even = fixed + moved @ moved.transpose(0, 2, 1)
            odd = moved @ mean.T
            odd, odd_sums = odd + odd.transpose(0, 2, 1), moved.sum(axis=2)
            near, far = (
                np.abs(p_values(fixed_sums + sign * odd_sums, even + sign * odd) - truth).mean(axis=-1)
                for sign in (1, -1)
            )
            values.append(far - near)
        return np.concatenate(values)

    return differences


class CompleteCells:
    """Two metrics, shape (2, k, segments), and gold, on the segments that lack no cell."""

    def __init__(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> None:
        self.present = ~np.isnan(gold)
        self.whole = self.present.all(axis=0)
        self.gold = gold[:, self.whole]
        self.scores = np.array([first[:, self.whole], second[:, self.whole]])
        self.segments = self.gold.shape[1] if self.gold.size else 0

    def turns(self, swap: BoolArray) -> Iterator[BoolArray]:
        """Yields the swaps as matrices of shape (draws, k, segments), a few draws at a time."""
        for start in range(0, len(swap), AT_ONCE):
            rows = swap[start : start + AT_ONCE]
            if self.present.all():
                yield rows.reshape(-1, *self.present.shape)
                continue
            turn = np.zeros((len(rows), *self.present.shape), dtype=bool)
            turn[:, self.present] = rows
            yield turn[:, :, self.whole]

    def sums(self, swap: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Returns sums of both metrics by system, shape (draws, k)."""
        first, second = self.scores.sum(axis=2)
        moves = (self.scores[1] - self.scores[0])[:, :, None]
        found = [turn.transpose(1, 0, 2).astype(float) @ moves for turn in self.turns(swap)]
        moved = np.concatenate(found, axis=1)[..., 0].T
        return first + moved, second - moved


def undefined_differences(swap: BoolArray) -> FloatArray:
    """Returns NaN for each draw: no exchange makes the measure defined."""
    return np.full(len(swap), math.nan)
