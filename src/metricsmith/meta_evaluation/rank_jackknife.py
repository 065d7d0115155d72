"""Rank correlations over all cells without one part of the segments at a time, as in the module `jackknife`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from metricsmith.meta_evaluation.grouping import FloatArray

__all__ = ["concordance_by_cell", "pooled_kendall", "pooled_spearman"]

IntArray = NDArray[np.int64]


def pooled_kendall(metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """Kendall's tau-b: what a part takes away is its pairs with everything, less those within it counted twice."""
    x, y, members = _cells(metric, gold, parts)
    by_cell = concordance_by_cell(x, y)
    total = int(by_cell.sum()) // 2
    counts = np.bincount(x), np.bincount(y)
    pairs = x.size * (x.size - 1) // 2
    untied = [pairs - int((count * (count - 1)).sum()) // 2 for count in counts]
    values = []
    for rows in members:
        inner = int(concordance_by_cell(*(np.unique(side[rows], return_inverse=True)[1] for side in (x, y))).sum()) // 2
        left = x.size - rows.size
        gone = pairs - left * (left - 1) // 2
        rest = [
            all_untied - gone + _ties_lost(side[rows], count)
            for all_untied, side, count in zip(untied, (x, y), counts, strict=True)
        ]
        scale = math.sqrt(float(rest[0]) * float(rest[1]))
        values.append((total - int(by_cell[rows].sum()) + inner) / scale if scale > 0 else math.nan)
    return np.asarray(np.clip(values, -1.0, 1.0))


def pooled_spearman(metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """Spearman's rho: ranks anew without each part, from how many cells have each value."""
    x, y, members = _cells(metric, gold, parts)
    counts = np.bincount(x), np.bincount(y)
    values = []
    for rows in members:
        left = x.size - rows.size
        ranks, squares = [], []
        for side, count in zip((x, y), counts, strict=True):
            rest = count - np.bincount(side[rows], minlength=count.size)
            rank = np.cumsum(rest) - (rest + left) / 2  # from the middle of all: ranks less (left + 1) / 2
            ranks.append(rank[side])
            squares.append(float(rest @ rank**2))
        product = float(ranks[0] @ ranks[1]) - float(ranks[0][rows] @ ranks[1][rows])
        scale = math.sqrt(squares[0]) * math.sqrt(squares[1])
        values.append(product / scale if scale > 0 else math.nan)
    return np.asarray(np.clip(values, -1.0, 1.0))


def concordance_by_cell(x: IntArray, y: IntArray) -> IntArray:
    """For each cell, with how many others it is concordant, less with how many it is discordant.

    Counts of cells that are lower in x and in y come from a wavelet matrix of y in the order of x: bit by bit from the
    highest, a range of places is led to where the cells with this bit 0, or 1, stand.

    Parameters
    ----------
    x, y : ndarray of int, shape (n,)
        Dense ranks from 0.

    References
    ----------
    Claude, Navarro and Ordonez (2015), "The wavelet matrix: an efficient wavelet tree for large alphabets".
    """
    n = x.size
    (x_below, x_upto), (y_below, y_upto) = (_places(side) for side in (x, y))
    stop = np.concatenate([x_below, x_below, x_upto, x_upto])
    bound = np.concatenate([y, y + 1, y, y + 1])
    start, lower = np.zeros_like(stop), np.zeros_like(stop)
    sequence = y[np.argsort(x, kind="stable")]
    for bit in reversed(range(int(y.max(initial=0) + 1).bit_length())):
        ones = (sequence >> bit & 1).astype(bool)
        zeros = np.concatenate([[0], np.cumsum(~ones)])
        up = (bound >> bit & 1).astype(bool)
        first, last = zeros[start], zeros[stop]
        lower += np.where(up, last - first, 0)
        start = np.where(up, zeros[-1] + start - first, first)
        stop = np.where(up, zeros[-1] + stop - last, last)
        sequence = np.concatenate([sequence[~ones], sequence[ones]])
    below_below, below_upto, upto_below, upto_upto = lower.reshape(4, n)
    concordant = below_below + (n - x_upto - y_upto + upto_upto)
    discordant = (x_below - below_upto) + (y_below - upto_below)
    return np.asarray(concordant - discordant)


def _cells(metric: FloatArray, gold: FloatArray, parts: IntArray) -> tuple[IntArray, IntArray, list[IntArray]]:
    """Dense ranks of the present cells on both sides, and the cells of each part."""
    present = ~np.isnan(gold)
    x, y = (np.unique(side[present], return_inverse=True)[1] for side in (metric, gold))
    part = parts[np.nonzero(present)[1]]
    stops = np.cumsum(np.bincount(part, minlength=parts.max(initial=-1) + 1))
    return x, y, np.split(np.argsort(part, kind="stable"), stops[:-1])


def _places(ranks: IntArray) -> tuple[IntArray, IntArray]:
    """How many have a lower rank than each, and how many no higher one."""
    upto = np.cumsum(np.bincount(ranks))
    return (upto - np.bincount(ranks))[ranks], upto[ranks]


def _ties_lost(ranks: IntArray, counts: IntArray) -> int:
    """Tied pairs that go with cells of these ranks, of so many cells of each rank."""
    levels, gone = np.unique(ranks, return_counts=True)
    before, after = counts[levels], counts[levels] - gone
    return int((before * (before - 1) - after * (after - 1)).sum()) // 2
