"""Rows that are alike in two ways, as outputs of one system and as answers to one prompt: tau-b and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError
from metricsmith.stats.resampling.clusters import jackknife_variance, student_interval
from metricsmith.stats.resampling.draws import FloatArray, IntArray, check_level
from metricsmith.stats.resampling.intervals import Interval

__all__ = ["PairTau", "pair_tau", "two_way_interval", "two_way_variance"]

_CELLS = 1 << 20  # of a matrix of pairs that is held at a time


@dataclass(frozen=True, slots=True)
class PairTau:
    """Kendall's tau-b over pairs of rows, in all and without each group of rows.

    Parameters
    ----------
    value : float
        In [-1, 1]; NaN where no pair differs in prediction, or none in rating.
    pairs : int
        Pairs that count.
    without : tuple of float array
        One array for each grouping: the value without each of its groups, in the order of their numbers.
    """

    value: float
    pairs: int
    without: tuple[FloatArray, ...] = ()


def pair_tau(
    predictions: ArrayLike,
    ratings: ArrayLike,
    *,
    kinds: IntArray | None = None,
    only: Sequence[IntArray] = (),
    groupings: Sequence[IntArray] = (),
) -> PairTau:
    """Kendall's tau-b over some of the pairs of rows, where each pair may have predictions of its own.

    ``(C - D) / sqrt(X Y)`` over the pairs that count: C concordant, D discordant, X and Y untied in prediction and
    in rating. With all pairs and one prediction a row this is `metricsmith.stats.correlation.kendall_tau_b`.

    Parameters
    ----------
    predictions : array_like, shape (n,) or (m, n)
        One prediction a row, or with `kinds` in row c the predictions that count in pairs with rows of kind c.
    ratings : array_like, shape (n,)
    kinds : int array, shape (n,), optional
        In [0, m).
    only : sequence of int array, shape (n,)
        Pairs count only where the two rows have equal numbers in each.
    groupings : sequence of int array, shape (n,)
        Group numbers from 0, for the values without each group.

    Returns
    -------
    PairTau

    Raises
    ------
    DataError
        If a prediction or a rating is NaN, or shapes differ.
    """
    y = np.asarray(ratings, dtype=float)
    table = np.atleast_2d(np.asarray(predictions, dtype=float))
    n = y.size
    if table.shape[-1] != n or y.ndim != 1 or np.isnan(table).any() or np.isnan(y).any():
        raise DataError(
            f"predictions of shape {np.shape(predictions)} and {n} ratings cannot be paired: give one of each per row, "
            "and leave rows out that lack one"
        )
    kinds = np.zeros(n, dtype=np.int64) if kinds is None else kinds
    sums, pairs = np.zeros((3, n)), 0
    inside = [np.zeros((3, int(codes.max(initial=-1)) + 1)) for codes in groupings]
    step = max(1, _CELLS // max(n, 1))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        counting = np.ones((y[rows].size, n), dtype=bool)
        for codes in only:
            counting &= codes[rows, None] == codes
        pairs += int(np.count_nonzero(counting))
        x_signs = _signs(table[kinds, rows].T, table[kinds[rows]]) * counting
        y_signs = _signs(y[rows, None], y[None]) * counting
        products = (x_signs * y_signs, np.abs(x_signs), np.abs(y_signs))
        sums[:, rows] = [product.sum(axis=1, dtype=np.int64) for product in products]
        for codes, within in zip(groupings, inside, strict=True):
            same = codes[rows, None] == codes
            for kind, product in enumerate(products):
                shared = (product * same).sum(axis=1, dtype=np.int64)
                within[kind] += np.bincount(codes[rows], shared, within.shape[1])
    totals = sums.sum(axis=1, keepdims=True) / 2
    without = []
    for codes, within in zip(groupings, inside, strict=True):
        touched = np.array([np.bincount(codes, kind, within.shape[1]) for kind in sums]) - within / 2
        without.append(_ratio(totals - touched))
    return PairTau(float(_ratio(totals)[0]), (pairs - n) // 2, tuple(without))


def two_way_interval(
    estimate: float,
    first: ArrayLike,
    second: ArrayLike,
    cells: ArrayLike,
    *,
    refitted: ArrayLike | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = (-1.0, 1.0),
) -> Interval:
    """Interval of a statistic of rows that are grouped in two ways, from its values without each group.

    The variance is that of leaving out groups of the first kind, plus that of the second, less that of leaving out
    the cells in which they meet, and at least either of the first two.

    Parameters
    ----------
    estimate : float
        The statistic of all rows.
    first, second, cells : array_like
        The statistic without each group of the first kind (prompts), without each of the second (systems), and
        without the rows that belong to one of either.
    refitted : array_like, optional
        The statistic without each group of the second kind (or each of several blocks of them) in the fit too: see
        `_second_variance`.
    level : float
    bounds : (float, float), optional
        As for `metricsmith.stats.resampling.jackknife_interval`: the interval is taken on Fisher's z scale.

    Returns
    -------
    Interval
        Student's t, with degrees of freedom by Satterthwaite's rule: the part of the variance that the second kind
        makes up has as many as there are groups of it, or blocks of them in `refitted`, less one (`draws` counts them);
        what is added to it has as many as there are groups of the first kind, less one. NaN ends with fewer than three
        values of a kind, or if one is NaN (`undefined` counts them).

    Notes
    -----
    Intervals were 1.27 times as wide as by leaving out systems alone, 1.32 times with the degrees of freedom of systems
    for the whole variance. Rules with degrees of freedom for what two systems contribute together were narrower (1.23)
    and covered .926 and .932 of 2,000 runs in two kinds of data, too near the least that was asked.

    Raises
    ------
    OptionError
        If `level` is out of range or `bounds` are not in order.

    References
    ----------
    Satterthwaite (1946), "An approximate distribution of estimates of variance components".
    """
    check_level(level)
    by_first, by_second, by_cell = (np.asarray(values, dtype=float) for values in (first, second, cells))
    again = None if refitted is None else np.asarray(refitted, dtype=float)
    given = [by_first, by_second, by_cell, *([] if again is None else [again])]
    undefined = sum(int(np.count_nonzero(np.isnan(values))) for values in given)
    if min(values.size for values in given) < 3 or undefined or math.isnan(estimate):
        return Interval(math.nan, math.nan, level, 0, undefined)
    variance = two_way_variance(by_first, by_second, by_cell, again)
    units = by_second.size if again is None else min(by_second.size, again.size)
    share = _second_variance(by_second, again) / variance if variance > 0 else 1.0
    freedom = 1 / (share**2 / (units - 1) + (1 - share) ** 2 / (by_first.size - 1))
    return student_interval(estimate, variance, freedom, units, level=level, bounds=bounds)


def two_way_variance(first: FloatArray, second: FloatArray, cells: FloatArray, refitted: FloatArray | None) -> float:
    """The variance of `two_way_interval`; see there.

    References
    ----------
    Cameron, Gelbach and Miller (2011), "Robust inference with multiway clustering".
    """
    by_first, by_second, by_cell = (
        jackknife_variance(first),
        _second_variance(second, refitted),
        jackknife_variance(cells),
    )
    return max(by_first + by_second - by_cell, by_first, by_second)


def _second_variance(second: FloatArray, refitted: FloatArray | None) -> float:
    """The part of the variance that groups of the second kind contribute.

    Where a fit has learned from them, two of them contribute together, one by the rows that are judged and one by those
    learned from. Of what they contribute so, leaving a group out of the rows to judge finds ``r / 2``, leaving it out
    of the fit too ``2 / r`` of the variance, with ``r = (n - 2) / (n - 1)`` for n values in `refitted`; the two are
    weighted so that together they find the whole. What a group contributes by itself, both have.

    In first trials, leaving out of the rows to judge alone covered .84 to .92 where systems differ much, out of the
    fits too .97 to 1.00 at up to twice the width.

    References
    ----------
    Efron and Stein (1981), "The jackknife estimate of variance" (that it counts twice what two contribute together).
    """
    found = jackknife_variance(second)
    if refitted is None:
        return found
    n = refitted.size
    return found + (n - 2) / (3 * n - 4) * (jackknife_variance(refitted) - found)


def _signs(left: FloatArray, right: FloatArray) -> NDArray[np.int8]:
    return np.asarray((left > right).astype(np.int8) - (left < right).astype(np.int8))


def _ratio(sums: FloatArray) -> FloatArray:
    """Surplus, untied on one side and untied on the other, shape (3, g) -> (g,)."""
    scale = np.sqrt(sums[1] * sums[2])
    return np.where(scale > 0, sums[0] / np.where(scale > 0, scale, 1.0), math.nan)
