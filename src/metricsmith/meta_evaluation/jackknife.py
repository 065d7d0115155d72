"""Intervals of measures over segments, and the measures without one part of the segments at a time.

The interval says how far another set of segments, or documents, might move a measure. In the ``jackknifed_``
functions matrices are of shape (k, n), NaN on both sides where either is; `parts` numbers the part of each segment from
0 to r - 1, none of them empty. They return the values without each part, shape (r,), NaN where undefined, but share the
work that the parts have in common: sums over all segments are made once, and a part takes its own away.

A percentile bootstrap would be too narrow with few documents, and would calibrate acc-t on segments that it holds
twice.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError
from metricsmith.meta_evaluation.matrices import (
    CORRELATIONS,
    NOTHING,
    FloatArray,
    Measure,
    measure_value,
    own_way,
    paired_matrices,
    without_rounding,
)
from metricsmith.meta_evaluation.pairwise import GoldPairs, differences
from metricsmith.stats.correlation import IntArray
from metricsmith.stats.resampling import MOST_REPLICATES, Groups, Interval, jackknife_interval
from metricsmith.stats.resampling.draws import aligned_rows, check_draws, check_level
from metricsmith.stats.resampling.intervals import percentile_interval

__all__ = [
    "concordance_by_cell",
    "jackknifed_calibrated_accuracies",
    "jackknifed_item_accuracies",
    "jackknifed_item_correlations",
    "jackknifed_pooled_kendall",
    "jackknifed_pooled_pearson",
    "jackknifed_pooled_spearman",
    "jackknifed_soft_accuracies",
    "jackknifed_system_correlations",
    "jackknifed_values",
    "measure_interval",
]


def measure_interval(
    measure: Measure,
    metric: ArrayLike,
    gold: ArrayLike,
    groups: Groups | None = None,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Interval of a measure over segments, for the systems given.

    Each group of segments is left out in turn (all its systems), a threshold is calibrated anew, and Student's t is
    taken on Fisher's z scale between the bounds of the measure: `metricsmith.stats.resampling.jackknife_interval`. For
    `SoftSystemAccuracy` the spread is that of infinitely many draws. `SystemAccuracy` moves in steps: its interval is
    the percentile bootstrap over groups.

    Parameters
    ----------
    measure : callable
        See `metricsmith.meta_evaluation.Measure`. One of `MEASURES` shares the work of all groups; any other is called
        once per group, and should neither draw at random nor move in steps.
    metric, gold : array_like, shape (k, n)
        NaN is missing; segments without a cell, for measures of systems without any of the cells, are left out first.
    groups : sequence of hashable, length n, optional
        What segments were drawn together (documents); None takes each segment by itself. With more than a thousand
        groups, several are left out at a time.
    level : float
    bounds : (float, float), optional
        The least and largest value possible; None takes those of the measure, if it has `bounds`.
    resamples, seed : int
        For the bootstrap.

    Returns
    -------
    Interval
        NaN ends with fewer than three groups, or where the measure is undefined for all segments or without one of
        the groups (`undefined` counts these).

    Raises
    ------
    DataError
        If shapes or lengths differ, a score is infinite or a group label is missing.
    OptionError
        If `level`, `bounds` or `resamples` has no meaning.
    """
    check_level(level)
    check_draws(resamples)
    x, y = paired_matrices(metric, gold)
    if groups is not None and len(groups) != y.shape[1]:
        raise DataError(f"{len(groups)} groups for {y.shape[1]} segments: give one group label per segment")
    codes = aligned_rows([np.zeros(y.shape[1])], groups)[1]
    present = ~np.isnan(y)
    used = present.all(axis=0) if getattr(measure, "whole_segments", False) else present.any(axis=0)
    x, y = x[:, used], y[:, used]
    parts = np.unique(codes[used], return_inverse=True)[1].astype(np.int64)
    count = int(parts.max(initial=-1)) + 1
    estimate = measure_value(measure, x, y) if count > 2 else math.nan
    if math.isnan(estimate):
        return Interval(math.nan, math.nan, level)
    if hasattr(measure, "redrawn"):
        times = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)
        return percentile_interval(own_way(measure, "redrawn", x, y, parts, times), level)
    parts %= MOST_REPLICATES
    values: FloatArray | None = own_way(measure, "left_out", x, y, parts)
    if values is None:
        values = jackknifed_values(measure, x, y, parts)
    return jackknife_interval(estimate, values, level=level, bounds=bounds or getattr(measure, "bounds", None))


def jackknifed_values(measure: Measure, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """Leaves each part out of any measure, which is computed anew each time."""
    kept = (parts != part for part in range(parts.max(initial=-1) + 1))
    return np.array([measure_value(measure, metric[:, rows], gold[:, rows]) for rows in kept])


def jackknifed_item_accuracies(
    metric: FloatArray, gold: FloatArray, parts: IntArray, epsilon: float, decimals: int | None
) -> FloatArray:
    """Leaves each part out of `pairwise_accuracy` by item at a given threshold."""
    pairs = GoldPairs(gold.T, decimals)
    tied, untied = pairs.distances(metric.T)
    right = [pairs.tied_groups[tied <= epsilon], pairs.untied_groups[untied > epsilon]]
    counts = np.bincount(np.concatenate(right), minlength=pairs.sizes.size)
    return _means(np.where(pairs.sizes > 0, counts / np.maximum(pairs.sizes, 1), math.nan), parts)


def jackknifed_item_correlations(correlation: str, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """Leaves each part out of `segment_correlation` by item."""
    return _means(CORRELATIONS[correlation](metric.T, gold.T), parts)


def jackknifed_calibrated_accuracies(
    metric: FloatArray, gold: FloatArray, parts: IntArray, decimals: int | None
) -> FloatArray:
    """Leaves each part out of acc-t by item, and calibrates the threshold without it.

    Over ascending thresholds the accuracy of all segments is a curve. What a part adds to it is a curve of few steps:
    between two of them the best threshold without the part is that of the whole.
    """
    pairs = GoldPairs(gold.T, decimals)
    weights = np.where(pairs.sizes > 0, 1 / np.maximum(pairs.sizes, 1), 0.0)
    tied, untied = pairs.distances(metric.T)
    concordant = untied > 0
    won, won_by = _sorted(tied, pairs.tied_groups)
    lost, lost_by = _sorted(untied[concordant], pairs.untied_groups[concordant])
    wrong = np.append(0.0, np.cumsum(weights[lost_by]))
    curve = np.cumsum(weights[won_by]) - wrong[np.searchsorted(lost, won, side="right")]
    curve = np.append(0.0, curve)  # before any gold tie is found; thresholds are those of `won`
    segments = np.concatenate([won_by, lost_by])
    places = np.concatenate([np.arange(won.size), np.searchsorted(won, lost)]) + 1
    steps = np.concatenate([weights[won_by], -weights[lost_by]])
    order = np.lexsort((places, parts[segments]))
    places, steps = places[order], steps[order]
    stops = np.cumsum(np.bincount(parts[segments], minlength=parts.max(initial=-1) + 1)).tolist()
    best = []
    for start, stop in zip([0, *stops], stops, strict=False):
        inside = places[start:stop] <= won.size  # a concordant pair beyond all gold ties moves no candidate
        own, moved = places[start:stop][inside], np.cumsum(steps[start:stop][inside])
        last = np.flatnonzero(np.diff(own, append=won.size + 1))
        highest = np.maximum.reduceat(curve, np.append(0, own[last]))
        best.append((highest - np.append(0.0, moved[last])).max())
    used = _without((pairs.sizes > 0).astype(float), parts)
    base = weights * np.bincount(lost_by, minlength=weights.size)
    return _ratio(_without(base, parts) + np.array(best), used)


def jackknifed_pooled_pearson(metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """Leaves each part out of Pearson's correlation over all cells."""
    present = ~np.isnan(metric)
    if not present.any():
        return np.full(parts.max(initial=-1) + 1, math.nan)
    x, y = (np.where(present, side - side[present].mean(), 0.0) for side in (metric, gold))
    counts = _without(present.sum(axis=0).astype(float), parts)
    terms = np.array([x, y, x * x, y * y, x * y]).sum(axis=1)
    sum_x, sum_y, *squares = _without(terms, parts)
    xx, yy, xy = (
        square - one * other / np.maximum(counts, 1)
        for square, one, other in zip(squares, (sum_x, sum_y, sum_x), (sum_x, sum_y, sum_y), strict=True)
    )
    vary = (xx > NOTHING * terms[2].sum()) & (yy > NOTHING * terms[3].sum())
    return np.clip(_ratio(np.where(vary, xy, math.nan), np.sqrt(np.where(vary, xx, 1) * np.where(vary, yy, 1))), -1, 1)


def jackknifed_system_correlations(
    correlation: str, metric: FloatArray, gold: FloatArray, parts: IntArray
) -> FloatArray:
    """Leaves each part out of a correlation of system means; complete segments only."""
    sizes = _without(np.ones(parts.size), parts)
    sizes[sizes == 0] = math.nan
    means = [without_rounding(_without(side, parts) / sizes, side).T for side in (metric, gold)]
    return CORRELATIONS[correlation](*means)


def jackknifed_soft_accuracies(metric: FloatArray, gold: FloatArray, parts: IntArray, undecided: float) -> FloatArray:
    """Leaves each part out of soft pairwise accuracy of infinitely many draws; complete segments only.

    The sum of differences with random signs has mean 0 and as variance their sum of squares, and is close to normal.
    A finite number of draws moves p in steps, which leaving out one segment of many mostly does not reach; the
    jackknife would magnify that noise by the number of segments.
    """
    from scipy.special import ndtr

    p_values = []
    for side in (metric, gold):
        apart = differences(side)
        total, squares = _without(apart, parts), _without(apart**2, parts)
        vary = squares > NOTHING * (apart**2).sum(axis=1, keepdims=True)
        p_values.append(np.where(vary, ndtr(-total / np.sqrt(np.where(vary, squares, 1.0))), undecided))
    return np.asarray(1 - np.abs(p_values[0] - p_values[1]).mean(axis=0))


def _sorted(distances: FloatArray, segments: IntArray) -> tuple[FloatArray, IntArray]:
    order = np.argsort(distances)
    return distances[order], segments[order]


def _means(values: FloatArray, parts: IntArray) -> FloatArray:
    """Returns the mean of the defined values by segment, shape (n,), without each part."""
    defined = ~np.isnan(values)
    return _ratio(_without(np.where(defined, values, 0.0), parts), _without(defined.astype(float), parts))


def _without(values: FloatArray | IntArray, parts: IntArray) -> FloatArray:
    """Returns sums along the last axis without each part, shape (..., n) -> (..., r)."""
    order = np.argsort(parts, kind="stable")
    starts = np.flatnonzero(np.diff(parts[order], prepend=-1))
    sums = np.add.reduceat(values[..., order], starts, axis=-1)
    return np.asarray(sums.sum(axis=-1, keepdims=True) - sums)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    defined = denominator > 0
    return np.asarray(np.where(defined, numerator / np.where(defined, denominator, 1.0), math.nan))


def jackknifed_pooled_kendall(metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """Leaves each part out of Kendall's tau-b over all cells.

    Tau-b is a sum over pairs, so that a part takes away the pairs of its cells with all cells. Pairs within the part
    are counted from both of their cells there: they are counted once more for the part alone and given back. The
    surplus of each cell over all others is computed once for all parts.
    """
    x, y, members = _ranked_cells(metric, gold, parts)
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
        rest = []
        for all_untied, side, count in zip(untied, (x, y), counts, strict=True):
            levels, fewer = np.unique(side[rows], return_counts=True)
            before, after = count[levels], count[levels] - fewer
            ties_lost = int((before * (before - 1) - after * (after - 1)).sum()) // 2
            rest.append(all_untied - gone + ties_lost)
        scale = math.sqrt(float(rest[0]) * float(rest[1]))
        values.append((total - int(by_cell[rows].sum()) + inner) / scale if scale > 0 else math.nan)
    return np.asarray(np.clip(values, -1.0, 1.0))


def jackknifed_pooled_spearman(metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """Leaves each part out of Spearman's rho over all cells.

    Without a part all ranks move. They follow from the number of cells with each value, from which those of the part
    are taken away: nothing is sorted again.
    """
    x, y, members = _ranked_cells(metric, gold, parts)
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
    """Returns for each cell the number of concordant other cells less the number of discordant ones.

    All pairs would be n^2; this is n log n. Counts of cells that are lower in x and in y come from a wavelet matrix of
    y in the order of x: bit by bit from the highest, a range of places is led to where the cells with this bit 0, or 1,
    stand.

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


def _ranked_cells(metric: FloatArray, gold: FloatArray, parts: IntArray) -> tuple[IntArray, IntArray, list[IntArray]]:
    """Returns dense ranks of the present cells on both sides, and the cells of each part."""
    present = ~np.isnan(gold)
    x, y = (np.unique(side[present], return_inverse=True)[1] for side in (metric, gold))
    part = parts[np.nonzero(present)[1]]
    stops = np.cumsum(np.bincount(part, minlength=parts.max(initial=-1) + 1))
    return x, y, np.split(np.argsort(part, kind="stable"), stops[:-1])


def _places(ranks: IntArray) -> tuple[IntArray, IntArray]:
    """Returns for each the number of lower ranks, and the number of ranks that are not higher."""
    upto = np.cumsum(np.bincount(ranks))
    return (upto - np.bincount(ranks))[ranks], upto[ranks]
