"""Differences of a measure between two metrics whose cells are exchanged: the draws of `perm_both` with less work.

All functions take the first and second metric and gold, matrices of shape (k, n), NaN in all three where in any. They
do once what the draws have in common and return a function of swaps: bool of shape (draws, cells), True where the
metrics are exchanged, the present cells taken row by row. It returns the measure of the first less that of the second,
shape (draws,).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from metricsmith.meta_evaluation.exchanged_pairs import ExchangedPairs
from metricsmith.meta_evaluation.grouping import FloatArray, Grouping, grouped
from metricsmith.meta_evaluation.pairs import GoldPairs
from metricsmith.stats.resampling.permutation import Swapped

__all__ = ["accuracies", "calibrated_accuracies", "pooled_pearson"]

BoolArray = NDArray[np.bool_]
NOTHING = 1e-12  # of a sum of squares: what is left of it by rounding alone


def accuracies(
    first: FloatArray, second: FloatArray, gold: FloatArray, by: Grouping, epsilon: float, decimals: int | None
) -> Swapped:
    """`pairwise_accuracy` at a given threshold.

    Whether a pair is right depends on the swaps of its two cells; with s = 1 for a kept and -1 for a swapped cell that
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
        return lambda swap: np.full(len(swap), math.nan)
    terms = np.zeros(truth.shape, dtype=np.int64)
    for row in range(len(truth) - 1):
        order = _signs(truth[row] - truth[row + 1 :], decimals)
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


def calibrated_accuracies(
    first: FloatArray, second: FloatArray, gold: FloatArray, by: Grouping, decimals: int | None
) -> Swapped:
    """acc-t, with a new threshold for both metrics in every draw; what gold says of the pairs is kept."""
    present = ~np.isnan(gold)
    pairs = GoldPairs(grouped(gold, gold, by)[0], decimals)
    if not pairs.used:
        return lambda swap: np.full(len(swap), math.nan)
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


def pooled_pearson(first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
    """Pearson's correlation over all cells: sums, sums of squares and of products are linear in the swaps."""
    present = ~np.isnan(gold)
    a, b, y = first[present], second[present], gold[present]
    if not y.size or not np.ptp(y):
        return lambda swap: np.full(len(swap), math.nan)
    y = (y - y.mean()) / np.ptp(y)
    centre = (a.mean() + b.mean()) / 2
    a, b = a - centre, b - centre
    unit = max(float(np.abs(a).max()), float(np.abs(b).max()), 1e-300)
    terms = [np.column_stack([side, side * side, side * y]) for side in (a / unit, b / unit)]
    sums, apart = [term.sum(axis=0) for term in terms], terms[1] - terms[0]
    spread = float((y * y).sum())

    def correlation(found: FloatArray) -> FloatArray:
        squares = found[:, 1] - found[:, 0] ** 2 / y.size
        defined = squares > NOTHING * found[:, 1]
        scale = np.sqrt(np.where(defined, squares, 1.0) * spread)
        return np.asarray(np.where(defined, np.clip(found[:, 2] / scale, -1.0, 1.0), math.nan))

    def differences(swap: BoolArray) -> FloatArray:
        moved = swap.astype(float) @ apart
        return correlation(sums[0] + moved) - correlation(sums[1] - moved)

    return differences


def _signs(apart: FloatArray, decimals: int | None) -> FloatArray:
    return np.sign(apart if decimals is None else np.round(apart, decimals))


def _right(apart: FloatArray, order: FloatArray, epsilon: float, decimals: int | None) -> NDArray[np.int8]:
    """1 for pairs that a metric ties or orders as gold does; 0 where a cell is missing."""
    if decimals is not None:
        apart = np.round(apart, decimals)
    tied = np.abs(apart) <= epsilon
    return np.asarray(np.where(tied, 0.0, np.sign(apart)) == order, dtype=np.int8)
