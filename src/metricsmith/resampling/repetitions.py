"""Predictions that were made several times (seeds): their mean agreement, its interval, and paired tests.

Repetitions are rows of an array of shape (s, n), NaN where a repetition has no prediction. A statistic that is
undefined in a repetition (a constant prediction) leaves that repetition out of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError
from metricsmith.resampling.draws import (
    FloatArray,
    Groups,
    IntArray,
    Statistic,
    aligned,
    check_draws,
    check_level,
    chunks,
    complete,
    draw_rows,
    evaluate,
    evaluate_rows,
    members_by_group,
)
from metricsmith.resampling.intervals import Interval, percentile_interval
from metricsmith.resampling.permutation import PermutationTest, permutation_p_value, standardized

__all__ = ["repeated_bootstrap", "repeated_mean", "repeated_permutation_test"]


def repeated_mean(statistic: Statistic, predictions: ArrayLike, rating: ArrayLike) -> float:
    """The mean over repetitions of ``statistic(prediction, rating)``; NaN if no repetition has one.

    Parameters
    ----------
    statistic : callable
    predictions : array_like, shape (s, n)
    rating : array_like, shape (n,)
    """
    y = np.asarray(rating, dtype=float)
    return float(_defined_mean(np.array([statistic(x, y) for x in _repetitions(predictions, y.size)])))


def repeated_bootstrap(
    statistic: Statistic,
    predictions: ArrayLike,
    rating: ArrayLike,
    groups: Groups | None = None,
    *,
    against: ArrayLike | None = None,
    redraw: bool = True,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    batched: bool = False,
) -> Interval:
    """Percentile interval of `repeated_mean` when groups and, if asked for, repetitions are drawn again.

    Each draw takes as many whole groups as there are, with replacement, and the same rows in all repetitions. With
    `redraw` it also takes as many repetitions as there are, with replacement. Few repetitions drawn with
    replacement vary less than new ones would: the part that they add is too small by the factor (s - 1) / s in
    variance, .8 for five.

    Parameters
    ----------
    statistic : callable
    predictions : array_like, shape (s, n)
    rating : array_like, shape (n,)
    groups : sequence of hashable, length n, optional
    against : array_like, shape (t, n), optional
        Repetitions of another prediction: the interval is that of the difference of the two means, on the rows that
        have every prediction. Rows are drawn for both together, repetitions for each by itself.
    redraw : bool
        False keeps the repetitions as they are: the interval speaks of rows alone.
    resamples, level, seed, batched
        As in `group_bootstrap`.

    Returns
    -------
    Interval
        NaN ends with fewer than two groups or when no draw is defined.

    Raises
    ------
    DataError
        If shapes do not fit or a group label is missing.
    OptionError
        If `resamples` or `level` is out of range.
    """
    check_draws(resamples)
    check_level(level)
    y = np.asarray(rating, dtype=float)
    sides = [_repetitions(predictions, y.size)]
    if against is not None:
        sides.append(_repetitions(against, y.size))
        stacked, y, codes = _complete(sides, y, groups)
        sides = [stacked[: len(sides[0])], stacked[len(sides[0]) :]]
    else:
        codes = aligned([y], groups)[1]
    members = members_by_group(codes)
    if len(members) < 2:
        return Interval(math.nan, math.nan, level, 0, 0)
    random = np.random.default_rng(seed)
    drawn = [rows for picks in chunks(resamples, y.size) for rows in draw_rows(members, picks, random)]
    means = [_drawn_means(statistic, side, y, drawn, random if redraw else None, batched) for side in sides]
    return percentile_interval(means[0] - means[1] if len(means) == 2 else means[0], level)


def repeated_permutation_test(
    statistic: Statistic,
    first: ArrayLike,
    second: ArrayLike,
    rating: ArrayLike,
    groups: Groups | None = None,
    *,
    permutations: int = 1000,
    seed: int = 0,
    batched: bool = False,
) -> PermutationTest:
    """Test the difference of two `repeated_mean` by swapping whole groups, in all repetitions at once.

    With one repetition this is `paired_permutation_test`, whose reading and source hold here too: every prediction is
    brought to mean 0 and sd 1 first, and rows that lack any prediction are left out. Repetitions in which either
    prediction has no statistic are left out of the means.

    Parameters
    ----------
    statistic : callable
    first, second : array_like, shape (s, n)
        Repetition k of the one is swapped with repetition k of the other.
    rating, groups, permutations, seed, batched
        As in `paired_permutation_test`.

    Raises
    ------
    DataError
        If shapes do not fit or a group label is missing.
    OptionError
        If `permutations` is below 1.
    """
    check_draws(permutations)
    y = np.asarray(rating, dtype=float)
    sides = [_repetitions(first, y.size), _repetitions(second, y.size)]
    if len(sides[0]) != len(sides[1]):
        raise DataError(f"{len(sides[0])} and {len(sides[1])} repetitions: give as many of both predictions")
    stacked, y, codes = _complete(sides, y, groups)
    stacked = np.array([standardized(row) for row in stacked])
    a, b = stacked[: len(sides[0])], stacked[len(sides[0]) :]
    observed = np.array([float(statistic(x, y)) - float(statistic(z, y)) for x, z in zip(a, b, strict=True)])
    counts = _multiplicities(np.concatenate([a, b], axis=1))
    random = np.random.default_rng(seed)
    groups_present = len(members_by_group(codes))
    draws = []
    for picks in chunks(permutations, codes.size):
        swap = (random.random((picks, groups_present)) < 0.5)[:, codes]
        ratings = np.broadcast_to(y, swap.shape)
        parts = np.empty((len(a), picks))
        for k, same in enumerate(counts):
            if same < k:
                parts[k] = parts[same]
                continue
            mixed = (np.where(swap, b[k], a[k]), np.where(swap, a[k], b[k]))
            one, other = (evaluate(statistic, [side, ratings], batched) for side in mixed)
            parts[k] = one - other
        draws.append(_defined_mean(parts[~np.isnan(observed)]))
    return permutation_p_value(float(_defined_mean(observed)), np.concatenate(draws))


def _repetitions(predictions: ArrayLike, n: int) -> FloatArray:
    values = np.asarray(predictions, dtype=float)
    if values.ndim != 2 or not len(values) or values.shape[1] != n:
        raise DataError(
            f"predictions of shape {values.shape} for {n} ratings: give one line of {n} predictions for each repetition"
        )
    return values


def _complete(
    sides: Sequence[FloatArray], rating: FloatArray, groups: Groups | None
) -> tuple[FloatArray, FloatArray, IntArray]:
    """All repetitions stacked, the ratings and the group numbers, on the rows that have everything."""
    columns, codes = complete([*np.vstack(sides), rating], groups)
    return np.array(columns[:-1]), columns[-1], codes


def _drawn_means(
    statistic: Statistic,
    predictions: FloatArray,
    rating: FloatArray,
    drawn: Sequence[IntArray],
    random: np.random.Generator | None,
    batched: bool,
) -> FloatArray:
    """The mean over repetitions for each drawn set of rows; `random` draws the repetitions, None keeps them."""
    values = np.empty((len(predictions), len(drawn)))
    for k, same in enumerate(_multiplicities(predictions)):
        if same < k:
            values[k] = values[same]
            continue
        start = 0
        for picks in chunks(len(drawn), rating.size):
            rows = drawn[start : start + picks]
            values[k, start : start + picks] = evaluate_rows(statistic, [predictions[k], rating], rows, batched)
            start += picks
    if random is None:
        return _defined_mean(values)
    picked = random.integers(len(values), size=values.shape)
    return _defined_mean(np.take_along_axis(values, picked, axis=0))


def _multiplicities(predictions: FloatArray) -> list[int]:
    """For each repetition the first that equals it: what is deterministic need not be computed again."""
    first: dict[bytes, int] = {}
    return [first.setdefault(row.tobytes(), k) for k, row in enumerate(predictions)]


def _defined_mean(values: FloatArray) -> FloatArray:
    """The mean along the first axis over what is not NaN; NaN where nothing is left."""
    defined = ~np.isnan(values)
    total, count = np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), math.nan))
