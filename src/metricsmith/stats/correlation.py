"""Kendall tau-b, Pearson and Spearman, plain and within groups: the only home of correlations.

The plain functions take two 1-D arrays and return a float. The ``batch_`` functions work along the last
axis and broadcast over the others, so that a thousand resamples cost one call. A pair with a NaN on
either side is left out everywhere; a correlation of fewer than two pairs or of a constant side is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError

__all__ = [
    "GroupedCorrelation",
    "batch_kendall_tau_b",
    "batch_pearson",
    "batch_spearman",
    "complete_pairs",
    "grouped_correlation",
    "kendall_tau_b",
    "kendall_tau_b_influence",
    "kendall_tau_b_left_out",
    "midranks",
    "pearson",
    "quotient",
    "spearman",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BLOCK = 1_000_000  # pairs of rows looked at together


@dataclass(frozen=True, slots=True)
class GroupedCorrelation:
    """The mean over groups of the correlation inside each group.

    Parameters
    ----------
    value : float
        In [-1, 1]; NaN if no group has a defined correlation.
    groups_used, groups_dropped : int
        Groups that enter the mean, and groups whose correlation is undefined.
    """

    value: float
    groups_used: int
    groups_dropped: int


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's rank correlation with the tau-b correction for ties.

    ``(C - D) / sqrt((C + D + X) (C + D + Y))`` over all pairs of rows: C concordant, D discordant,
    X tied in y only, Y tied in x only.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Pairs with a NaN are left out; infinite values rank at the ends.

    Returns
    -------
    float
        In [-1, 1]. 1: same order, 0: as many pairs agree as disagree. NaN for fewer than two pairs or a
        constant side.

    Raises
    ------
    DataError
        If the arrays are not 1-D of the same length.

    References
    ----------
    Kendall (1945), "The treatment of ties in ranking problems"; counting as in Knight (1966), O(n log n).

    Examples
    --------
    >>> kendall_tau_b([1, 2, 3], [1, 3, 2])
    0.3333333333333333
    """
    return float(batch_kendall_tau_b(*_columns(x, y)))


def kendall_tau_b_influence(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """The influence of each row on `kendall_tau_b`: its derivative by the row's weight, weights being 1.

    With a weight w on row i and 1 on all others tau-b is about ``tau + (w - 1) influence[i]``. The influences add up
    to 0; those of a group of rows add up to the group's.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Without NaN.

    Returns
    -------
    float array, shape (n,)
        NaN where tau-b is undefined.

    Raises
    ------
    DataError
        If the arrays are not 1-D of the same length.

    References
    ----------
    Efron (1982), The Jackknife, the Bootstrap and Other Resampling Plans, chapter 6 (the infinitesimal jackknife).

    Examples
    --------
    >>> kendall_tau_b_influence([1, 2, 3], [1, 3, 2]).round(3).tolist()
    [0.444, -0.222, -0.222]
    """
    x, y = _columns(x, y)
    sides = _by_row(x, y)
    agreeing, x_untied, y_untied = sides.sum(axis=1)
    if not x_untied * y_untied:
        return np.full(x.size, math.nan)
    scale = math.sqrt(x_untied * y_untied)
    return np.asarray(
        2 * sides[0] / scale - agreeing / scale * (sides[1] / x_untied + sides[2] / y_untied), dtype=float
    )


def kendall_tau_b_left_out(x: ArrayLike, y: ArrayLike, part: IntArray, parts: int) -> FloatArray:
    """`kendall_tau_b` without the rows of each part in turn, from one pass over all pairs.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Without NaN.
    part : int array, shape (n,)
        The part of each row, from 0.
    parts : int
        The number of parts; one without rows leaves all.

    Returns
    -------
    float array, shape (parts,)
        To the last bit those of `kendall_tau_b` on the rows that are left: pairs are counted in whole numbers.
    """
    x, y = _columns(x, y)
    by_row = _by_row(x, y)
    left = by_row.sum(axis=1, keepdims=True) - [2 * np.bincount(part, weights=side, minlength=parts) for side in by_row]
    for one in np.flatnonzero(np.bincount(part) > 1):  # pairs inside a part went out twice
        left[:, one] += _by_row(x[part == one], y[part == one]).sum(axis=1)
    agreeing, x_untied, y_untied = left / 2
    return _ratio(agreeing, np.sqrt(x_untied * y_untied))


def _by_row(x: FloatArray, y: FloatArray) -> FloatArray:
    """For each row its concordant less discordant pairs, those not tied in x, and those not tied in y; shape (3, n)."""
    sides = np.zeros((3, x.size))
    step = max(1, _BLOCK // max(x.size, 1))
    for start in range(0, x.size, step):
        rows = slice(start, start + step)
        a, b = (np.subtract(v[rows, None] > v, v[rows, None] < v, dtype=np.int8) for v in (x, y))
        sides[:, rows] = [pairs.sum(axis=1, dtype=np.int32) for pairs in (a * b, np.abs(a), np.abs(b))]
    return sides


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's product-moment correlation.

    Parameters, errors and undefined cases as in `kendall_tau_b`; infinite values make it NaN.
    """
    return float(batch_pearson(*_columns(x, y)))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation: Pearson's of the midranks.

    Parameters, errors and undefined cases as in `kendall_tau_b`.
    """
    return float(batch_spearman(*_columns(x, y)))


def grouped_correlation(
    correlation: Callable[[FloatArray, FloatArray], float],
    x: ArrayLike,
    y: ArrayLike,
    groups: Sequence[Hashable] | NDArray[np.generic],
) -> GroupedCorrelation:
    """Average a correlation computed inside each group, every group counting once.

    Parameters
    ----------
    correlation : callable
        `kendall_tau_b`, `pearson`, `spearman` or any function of two 1-D arrays.
    x, y : array_like, shape (n,)
    groups : sequence of hashable, length n
        The group of each row (a source, a prompt, a system).

    Raises
    ------
    DataError
        If the lengths differ.
    """
    x, y = _columns(x, y)
    if len(groups) != x.size:
        raise DataError(f"{len(groups)} groups for {x.size} rows: give one group label per row")
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    values = [correlation(x[rows], y[rows]) for rows in members.values()]
    defined = [value for value in values if not math.isnan(value)]
    mean = math.fsum(defined) / len(defined) if defined else math.nan
    return GroupedCorrelation(mean, len(defined), len(values) - len(defined))


def complete_pairs(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The pairs of two 1-D arrays in which neither side is NaN; their number is the length."""
    x, y = _columns(x, y)
    present = ~(np.isnan(x) | np.isnan(y))
    return x[present], y[present]


def batch_kendall_tau_b(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """`kendall_tau_b` along the last axis: arrays of shapes broadcasting to (..., n) -> shape (...)."""
    x, y, missing = _aligned(x, y)
    if x.shape[-1] < 2 or not missing.size:
        return np.full(missing.shape[:-1], math.nan)
    n = x.shape[-1]
    x_levels, x_ties = _dense_ranks(x)
    y_levels, y_ties = _dense_ranks(y)
    joint = np.sort(x_levels * n + y_levels, axis=-1)
    discordant = _inversions(joint % n)
    # All NaN pairs share the top level on both sides: tied with each other, concordant with the rest.
    absent = missing.sum(axis=-1)
    false_pairs = absent * (n - absent)
    pairs = n * (n - 1) // 2
    concordant = pairs - x_ties - y_ties + _tied_pairs(joint) - discordant - false_pairs
    x_untied, y_untied = pairs - x_ties - false_pairs, pairs - y_ties - false_pairs
    scale = np.sqrt(x_untied.astype(float) * y_untied.astype(float))
    return _ratio((concordant - discordant).astype(float), scale)


def batch_pearson(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """`pearson` along the last axis: arrays of shapes broadcasting to (..., n) -> shape (...)."""
    x, y, missing = _aligned(x, y)
    if x.shape[-1] < 2:
        return np.full(missing.shape[:-1], math.nan)
    x, y = _unit_range_deviations(x), _unit_range_deviations(y)
    with np.errstate(invalid="ignore"):
        scale = np.sqrt((x * x).sum(axis=-1)) * np.sqrt((y * y).sum(axis=-1))
        return _ratio((x * y).sum(axis=-1), scale)


def batch_spearman(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """`spearman` along the last axis: arrays of shapes broadcasting to (..., n) -> shape (...)."""
    x, y, _ = _aligned(x, y)
    return batch_pearson(midranks(x), midranks(y))


def midranks(values: ArrayLike) -> FloatArray:
    """Ranks from 1 along the last axis; ties share the mean of their ranks, NaN stays NaN."""
    values = np.asarray(values, dtype=float)
    order, levels = _ordered_levels(values)
    first = _run_starts(levels)
    last = values.shape[-1] - 1 - np.flip(_run_starts(np.flip(levels, axis=-1)), axis=-1)
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=-1)
    return np.where(np.isnan(values), math.nan, ranks)


def _columns(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 1 or x.shape != y.shape:
        raise DataError(
            f"cannot pair arrays of shapes {x.shape} and {y.shape}: a correlation takes two 1-D arrays "
            "of one length; give one value per row on each side, NaN where there is none"
        )
    return x, y


def _aligned(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Both sides with NaN where either is, and the mask of those; complete sides are not broadcast."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    missing = np.isnan(x) | np.isnan(y)
    if missing.any():
        x, y = np.where(missing, math.nan, x), np.where(missing, math.nan, y)
    return x, y, missing


def quotient(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """The quotient of arrays, the second of which broadcasts; NaN where it is not above 0."""
    return np.asarray(np.divide(top, bottom, out=np.full(np.shape(top), math.nan), where=bottom > 0))


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    return np.clip(quotient(numerator, denominator), -1.0, 1.0)


def _unit_range_deviations(values: FloatArray) -> FloatArray:
    """Deviations from the mean over the largest one (no overflow); 0 for NaN and for a constant side."""
    present = ~np.isnan(values)
    high = np.where(present, values, -math.inf).max(axis=-1, keepdims=True)
    low = np.where(present, values, math.inf).min(axis=-1, keepdims=True)
    varies = high > low
    unit = np.where(varies, np.maximum(np.abs(high), np.abs(low)), 1.0)
    with np.errstate(invalid="ignore"):
        scaled = np.where(present & varies, values / unit, 0.0)
        mean = scaled.sum(axis=-1, keepdims=True) / np.maximum(present.sum(axis=-1, keepdims=True), 1)
        deviations = np.where(present & varies, scaled - mean, 0.0)
        largest = np.abs(deviations).max(axis=-1, keepdims=True)
        return np.asarray(deviations / np.where(largest > 0, largest, 1.0))


def _ordered_levels(values: FloatArray) -> tuple[IntArray, IntArray]:
    """The sorting order along the last axis, and dense ranks from 0 in that order; all NaN share the top."""
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    below, above = ordered[..., :-1], ordered[..., 1:]
    levels = np.zeros(values.shape, dtype=np.int64)
    np.cumsum((below < above) | (np.isnan(above) & ~np.isnan(below)), axis=-1, out=levels[..., 1:])
    return order, levels


def _dense_ranks(values: FloatArray) -> tuple[IntArray, IntArray]:
    """Dense ranks in the original order, and the number of tied pairs."""
    order, levels = _ordered_levels(values)
    ranks = np.empty_like(levels)
    np.put_along_axis(ranks, order, levels, axis=-1)
    return ranks, _tied_pairs(levels)


def _run_starts(ordered: IntArray) -> IntArray:
    """For each place in an ordered array, where its run of equal values begins."""
    starts = np.zeros(ordered.shape, dtype=np.int64)
    places = np.arange(1, ordered.shape[-1])
    np.maximum.accumulate(np.where(ordered[..., 1:] != ordered[..., :-1], places, 0), axis=-1, out=starts[..., 1:])
    return starts


def _tied_pairs(ordered: IntArray) -> IntArray:
    return np.asarray((np.arange(ordered.shape[-1]) - _run_starts(ordered)).sum(axis=-1))


def _inversions(values: IntArray) -> IntArray:
    """Number of pairs in descending order along the last axis, ties not counted.

    Radix from the highest bit of the ranks: two ranks part at exactly one bit, and there the pair is an
    inversion if the upper one stands first. Ranks are padded to a power of two, so that each block of
    ``2 half`` ranks holds exactly `half` lower ones.
    """
    n, batch = values.shape[-1], values.shape[:-1]
    size = 1 << (n - 1).bit_length()
    rows = values.reshape(-1, n)
    ranks = np.empty((len(rows), size), dtype=np.int32)
    ranks[:, n:] = np.arange(n, size)
    order = np.argsort(rows, axis=-1, kind="stable")
    np.put_along_axis(ranks, order, np.arange(n, dtype=np.int32)[None], axis=-1)
    total = np.zeros(len(rows), dtype=np.int64)
    half = size // 2
    while half:
        blocks = ranks.reshape(len(rows), -1, 2 * half)
        lower = (blocks & half) == 0
        places = lower @ np.arange(2 * half, dtype=float)
        total += places.sum(axis=-1).astype(np.int64) - blocks.shape[1] * (half * (half - 1) // 2)
        ranks = np.stack([blocks[mask].reshape(len(rows), -1, half) for mask in (lower, ~lower)], axis=2)
        half //= 2
    return total.reshape(batch)
