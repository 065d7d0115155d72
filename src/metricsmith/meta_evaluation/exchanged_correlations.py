"""Differences of correlations between two metrics that exchange cells, as in `exchanged_accuracies`.

Over all cells, sums over cells are linear in the swaps, so that a draw is a product with one vector. By item, a
mixture's rank sums are products of the swaps with small matrices: the order of two cells of an item depends on the
swaps of the two alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from metricsmith.meta_evaluation.exchanged_accuracies import BoolArray, CompleteCells, undefined_differences
from metricsmith.meta_evaluation.jackknife import concordance_by_cell
from metricsmith.meta_evaluation.matrices import CORRELATIONS, NOTHING, FloatArray, without_rounding
from metricsmith.stats.correlation import midranks
from metricsmith.stats.resampling.permutation import Swapped

__all__ = [
    "exchanged_item_kendall",
    "exchanged_item_pearson",
    "exchanged_item_spearman",
    "exchanged_pooled_kendall",
    "exchanged_pooled_pearson",
    "exchanged_pooled_spearman",
    "exchanged_system_correlations",
]

Sums = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
DIGITS = 13  # of a difference of correlations; what follows is rounding, and differences that are equal must be so
EXACT = 200  # systems up to which sums of ranks and their squares are whole numbers in single precision


def exchanged_pooled_pearson(first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
    """Exchanges Pearson's correlation over all cells: sums, sums of squares and of products are linear in the swaps."""
    present = ~np.isnan(gold)
    a, b, y = first[present], second[present], gold[present]
    if not y.size or not np.ptp(y):
        return undefined_differences
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


def exchanged_pooled_kendall(
    first: FloatArray, second: FloatArray, gold: FloatArray, *, approximately: bool = False
) -> Swapped | None:
    """Exchanges Kendall's tau-b over all cells; None where a mixture has ties, unless an approximation will do.

    With s = 1 for a kept and -1 for a swapped cell, concordant less discordant pairs are ``e + o`` for one mixture and
    ``e - o`` for the other, where o is linear in s. Without ties e cancels in the difference. With ties it counts by as
    much as the two mixtures differ in tied pairs, and its mean over all swaps stands for it.
    """
    present = ~np.isnan(gold)
    cells = int(present.sum())
    x, y = (np.unique(np.concatenate(sides), return_inverse=True)[1] for sides in (
        (first[present], second[present]), (gold[present],) * 2))  # fmt: skip
    alike = x[:cells] == x[cells:]
    counts = np.bincount(x) - np.bincount(x[:cells][alike], minlength=x.max(initial=-1) + 1)
    tied = bool((counts > 1).any())
    pairs = cells * (cells - 1) / 2
    gold_ties = np.bincount(y) / 2
    untied = pairs - float((gold_ties * (gold_ties - 1)).sum()) / 2
    if not untied > 0:
        return undefined_differences
    if tied and not approximately:
        return None
    concordance = concordance_by_cell(x, y)
    even, linear = float(concordance.sum()) / 8, (concordance[:cells] - concordance[cells:]) / 4
    total, size = linear.sum(), x.max() + 1

    def tied_pairs(chosen: NDArray[np.int64]) -> FloatArray:
        found = np.bincount(chosen.ravel(), minlength=len(chosen) * size).reshape(-1, size)
        return np.asarray((found * (found - 1.0)).sum(axis=1) / 2)

    def differences(swap: BoolArray) -> FloatArray:
        odd = total - 2 * (swap.astype(float) @ linear)
        if not tied:
            return np.asarray(2 * odd / math.sqrt(pairs * untied))
        places = np.arange(len(swap))[:, None] * size
        sides = (x[:cells] + places, x[cells:] + places)
        scales = [np.sqrt((pairs - tied_pairs(np.where(swap, *order))) * untied) for order in (sides[::-1], sides)]
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = (np.where(scale > 0, 1 / scale, math.nan) for scale in scales)
        return np.asarray(even * (one - other) + odd * (one + other))

    return differences


def exchanged_pooled_spearman(first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
    """Exchanges Spearman's rho over all cells: both metrics are sorted once, and ranks in a mixture are counted."""
    present = ~np.isnan(gold)
    scores, truth = np.concatenate([first[present], second[present]]), gold[present]
    cells = truth.size
    if not cells or not np.ptp(truth):
        return undefined_differences
    order = np.argsort(scores, kind="stable")
    cell, of_first = order % cells, order < cells
    levels = np.unique(scores, return_inverse=True)[1][order]
    after = np.cumsum(np.bincount(levels))
    start, stop = np.append(0, after)[levels], after[levels]
    wanted = 2 * midranks(truth)[cell] - (cells + 1)
    spread = float((wanted**2).sum() / 2)

    def value(ranks: FloatArray, chosen: BoolArray) -> FloatArray:
        ranks = np.where(chosen, ranks, 0.0)
        squares = np.einsum("dc,dc->d", ranks, ranks)
        scale = np.sqrt(np.where(squares > 0, squares, math.nan) * spread)
        return np.asarray(np.clip(ranks @ wanted / scale, -1.0, 1.0))

    def differences(swap: BoolArray) -> FloatArray:
        values = []
        for row in swap:
            chosen = row[cell] != of_first
            upto = np.append(0, np.cumsum(chosen))
            both = upto[start] + upto[stop]  # twice the rank from the middle, and as many as there are cells
            sides = ((both - cells, chosen), (start + stop - both - cells, ~chosen))
            values.append([float(value(ranks[None].astype(float), one[None])[0]) for ranks, one in sides])
        first_values, second_values = np.array(values).T
        return np.asarray(first_values - second_values)

    return differences


def exchanged_item_pearson(first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
    """Exchanges Pearson's correlation by item: sums, sums of squares and of products are linear in the swaps."""
    present = ~np.isnan(gold)
    counts = np.maximum(present.sum(axis=0), 1)
    sides, truth = np.where(present, [first, second], 0.0), np.where(present, gold, 0.0)
    truth = np.where(present, truth - truth.sum(axis=0) / counts, 0.0)
    varies = np.where(present, gold, -math.inf).max(axis=0) > np.where(present, gold, math.inf).min(axis=0)
    truth = np.where(varies, truth / np.maximum(np.abs(truth).max(axis=0), 1e-300), 0.0)
    sides = np.where(present, sides - sides.sum(axis=(0, 1)) / (2 * counts), 0.0)
    sides /= np.maximum(np.abs(sides).max(axis=(0, 1)), 1e-300)
    terms = np.stack([sides, sides**2, sides * truth], axis=2).transpose(0, 3, 2, 1)  # (2, items, 3, k)
    totals, apart = terms.sum(axis=3, keepdims=False), terms[1] - terms[0]
    spread = (truth**2).sum(axis=0)[:, None]

    def value(found: FloatArray) -> FloatArray:
        squares = found[:, 1] - found[:, 0] ** 2 / counts[:, None]
        return _mean(found[:, 2], np.where(squares > NOTHING * found[:, 1], squares, 0.0) * spread)

    def differences(swap: BoolArray) -> FloatArray:
        moved = apart @ _by_item(swap, present, float)
        found = value(totals[0][..., None] + moved) - value(totals[1][..., None] - moved)
        return np.asarray(np.round(found, DIGITS))

    return differences


def exchanged_item_kendall(first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
    """Exchanges Kendall's tau-b by item."""
    present = ~np.isnan(gold)
    truth = _order(gold, gold)
    concordant = _mixed_sums(first, second, truth)
    order = [_order(one, other) for one in (first, second) for other in (first, second)]
    pairs = (present[:, None] & present & ~np.eye(len(gold), dtype=bool)[..., None]).transpose(2, 0, 1)
    tied = any((np.abs(one) < pairs).any() for one in order)
    untied = _mixed_sums(first, second, None) if tied else None
    wanted = np.abs(truth).sum(axis=(1, 2), dtype=float)[:, None]
    every = pairs.sum(axis=(1, 2), dtype=float)[:, None]

    def differences(swap: BoolArray) -> FloatArray:
        kept = _by_item(~swap, present, truth.dtype)
        found = [sums.sum(axis=1, dtype=float) for sums in concordant(kept)]
        scales = [every, every] if untied is None else [sums.sum(axis=1, dtype=float) for sums in untied(kept)]
        return np.subtract(*(_mean(sums, scale * wanted) for sums, scale in zip(found, scales, strict=True)))

    return differences


def exchanged_item_spearman(first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
    """Exchanges Spearman's rho by item, from ranks less their mean, doubled: cells that are lower less cells higher."""
    present = ~np.isnan(gold)
    ranks = _mixed_sums(first, second, np.ones((), dtype=_order(gold, gold).dtype))
    truth = _order(gold, gold).sum(axis=2)
    spread = (truth**2).sum(axis=1, dtype=float)[:, None]

    def value(found: FloatArray) -> FloatArray:
        squares = np.einsum("ikd,ikd->id", found, found).astype(float)
        return _mean(np.einsum("ikd,ik->id", found, truth).astype(float), squares * spread)

    return lambda swap: np.subtract(*map(value, ranks(_by_item(~swap, present, truth.dtype))))


def _mixed_sums(first: FloatArray, second: FloatArray, weights: FloatArray | None) -> Sums:
    """Row sums of an order, weighted pair by pair (or its size, without weights), in both mixtures.

    The function takes which cells are kept and returns two arrays, all of shape (items, k, draws).
    """
    own = ~np.eye(len(first), dtype=bool)
    (aa, ab), (ba, bb) = (
        [
            _order(one, other) * own if weights is not None else np.abs(_order(one, other)) * own
            for other in (first, second)
        ]
        for one in (first, second)
    )
    if weights is not None:
        aa, ab, ba, bb = (matrix * weights for matrix in (aa, ab, ba, bb))
    sums = [matrix.sum(axis=2)[..., None] for matrix in (aa, ab, ba, bb)]

    def mixed(kept: FloatArray) -> tuple[FloatArray, FloatArray]:
        of_first, of_second = (aa - ab) @ kept, (ba - bb) @ kept
        mask = kept > 0
        return (
            np.where(mask, of_first + sums[1], of_second + sums[3]),
            np.where(mask, sums[2] - of_second, sums[0] - of_first),
        )

    return mixed


def _order(one: FloatArray, other: FloatArray) -> FloatArray:
    """Returns by item 1 where a cell of the one is above a cell of the other, -1 below; shape (items, k, k)."""
    signs = np.sign(one.T[:, :, None] - other.T[:, None, :])
    return np.nan_to_num(signs).astype(np.float32 if len(one) <= EXACT else float)


def _by_item(swap: BoolArray, present: BoolArray, dtype: DTypeLike) -> FloatArray:
    """Swaps of present cells as matrices of 0 and 1, shape (items, k, draws)."""
    turn = np.zeros((*present.shape, len(swap)), dtype=dtype)
    turn[present] = swap.T
    return np.ascontiguousarray(turn.transpose(1, 0, 2))


def _mean(sums: FloatArray, scales: FloatArray) -> FloatArray:
    """The mean over items of ``sums / sqrt(scales)`` where that is defined, shape (items, draws) -> (draws,)."""
    defined = np.broadcast_to(scales > 0, sums.shape)
    values = np.where(defined, np.clip(sums / np.sqrt(np.where(scales > 0, scales, 1.0)), -1.0, 1.0), 0.0)
    count = defined.sum(axis=0)
    return np.asarray(np.where(count > 0, values.sum(axis=0) / np.maximum(count, 1), math.nan))


def exchanged_system_correlations(correlation: str, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
    """Exchanges a correlation of system means."""
    cells = CompleteCells(first, second, gold)
    if not cells.segments:
        return undefined_differences
    truth = without_rounding(cells.gold.mean(axis=1), cells.gold)

    def value(sums: FloatArray) -> FloatArray:
        return CORRELATIONS[correlation](without_rounding(sums / cells.segments, cells.scores), truth)

    return lambda swap: np.subtract(*map(value, cells.sums(swap)))
