"""Agreement on systems: the order of their mean scores, and the confidence in each pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation.matrices import FloatArray, complete_segments, paired_matrices
from metricsmith.meta_evaluation.pairwise import differences
from metricsmith.stats.correlation import IntArray

__all__ = [
    "SoftPairwiseAccuracy",
    "SystemPairwiseAccuracy",
    "Ties",
    "order_of_pairs",
    "random_signs",
    "reached",
    "redrawn_accuracies",
    "soft_pairwise_accuracy",
    "system_p_values",
    "system_pairs",
    "system_pairwise_accuracy",
]

Ties = Literal["half", "full"]
BLOCKS = 20  # of sign vectors, for the jackknife
MOST_KEPT = 1 << 22  # signs, 32 MB
ROUNDING = 1e-9  # of the largest sum of a segment's scores: sums that are closer are equal but for rounding


@dataclass(frozen=True, slots=True)
class SystemPairwiseAccuracy:
    """The share of system pairs in the gold order.

    Parameters
    ----------
    value : float
        In [0, 1]; NaN without pairs.
    agreeing, pairs : int
        So that several language pairs can be added up: ``sum(agreeing) / sum(pairs)``.
    segments, segments_dropped : int
        Segments that the means rest on, and segments that some system lacks.
    """

    value: float
    agreeing: int
    pairs: int
    segments: int
    segments_dropped: int


@dataclass(frozen=True, slots=True)
class SoftPairwiseAccuracy:
    """The likeness of metric and gold in their confidence about each system pair.

    Parameters
    ----------
    value : float
        In [0, 1]; NaN with fewer than two systems or without segments.
    error : float
        Monte-Carlo standard error of `value`: the change that another seed would make. NaN with fewer than 20 draws.
        With 1,000 draws it is near .001, the distance between neighbours in published tables.
    pairs : int
        Pairs of systems.
    segments, segments_dropped : int
        As in `SystemPairwiseAccuracy`.
    """

    value: float
    error: float
    pairs: int
    segments: int
    segments_dropped: int


def system_pairwise_accuracy(
    metric: ArrayLike, gold: ArrayLike, *, sizes: Sequence[int] = ()
) -> SystemPairwiseAccuracy:
    """Share of system pairs whose mean scores are in the same order, or equal, on both sides.

    Parameters
    ----------
    metric, gold : array_like, shape (k, n)
        NaN is missing; a segment that lacks a score of any system on either side is left out for all systems.
        System scores that are given as such are a matrix with one column.
    sizes : sequence of int
        How many systems, from the first row on, each language pair has: only systems of one language pair are compared.
        Empty takes all systems as of one.

    Raises
    ------
    DataError
        If the matrices differ in shape, a score is infinite or `sizes` do not sum to k.

    References
    ----------
    Kocmi et al. (2021), "To ship or not to ship".
    """
    x, y = complete_segments(metric, gold)
    segments, given = x.shape[1], np.shape(metric)[1]
    pairs = system_pairs(len(x), sizes)[0].size
    if not pairs or not segments:
        return SystemPairwiseAccuracy(math.nan, 0, 0, segments, given - segments)
    orders = [order_of_pairs(scores.sum(axis=1), scores, sizes) for scores in (x, y)]
    agreeing = int(np.count_nonzero(orders[0] == orders[1]))
    return SystemPairwiseAccuracy(agreeing / pairs, agreeing, pairs, segments, given - segments)


def redrawn_accuracies(
    metric: FloatArray, gold: FloatArray, parts: IntArray, times: IntArray, sizes: Sequence[int] = ()
) -> FloatArray:
    """`system_pairwise_accuracy` with parts of the segments taken several times or not at all, shape (draws,).

    Parameters
    ----------
    metric, gold : ndarray, shape (k, n)
        Complete segments only.
    parts : ndarray of int, shape (n,)
        From 0 to r - 1.
    times : ndarray of int, shape (draws, r)
    sizes : sequence of int
        As for `system_pairwise_accuracy`.
    """
    if not system_pairs(len(metric), sizes)[0].size:
        return np.full(len(times), math.nan)
    weights = times[:, parts].astype(float)
    orders = [order_of_pairs(weights @ scores.T, scores, sizes) for scores in (metric, gold)]
    return np.asarray((orders[0] == orders[1]).mean(axis=1))


def soft_pairwise_accuracy(
    metric: ArrayLike, gold: ArrayLike, *, draws: int = 1000, seed: int = 0, ties: Ties = "half"
) -> SoftPairwiseAccuracy:
    """Soft pairwise accuracy (SPA, 1 - PCE): ``1 - mean |p_gold - p_metric|`` over pairs of systems.

    ``p`` is the one-sided p-value of a paired permutation test that the one system is better than the other
    (`system_p_values`); the same sign vectors serve all pairs and both sides.

    Parameters
    ----------
    metric, gold : array_like, shape (k, n)
        NaN is missing; a segment that lacks a score of any system on either side is left out for all systems.
    draws, seed : int
        Sign vectors, at least 1, and what decides them.
    ties : "half" or "full"
        How draws count that equal what was observed. ``full`` is the public tool's rule: there the result depends
        on the order of the systems where scores tie, and a constant metric gets anything between 0 and 1. With
        ``half`` the order never matters and a constant metric is undecided (p = .5) about every pair. On real ratings
        the two differ by less than .0002.

    Returns
    -------
    SoftPairwiseAccuracy
        1 for the gold scores themselves.

    Raises
    ------
    DataError
        If the matrices differ in shape or a score is infinite.
    OptionError
        If an option has no meaning.

    References
    ----------
    Thompson et al. (2024), "Improving statistical significance in human evaluation of automatic metrics via soft
    pairwise accuracy".
    """
    if draws < 1:
        raise OptionError(f"{draws} draws: at least 1 is needed; 1000 is customary")
    if ties not in ("half", "full"):
        raise OptionError(f"unknown ties={ties!r}; allowed are half and full")
    x, y = complete_segments(metric, gold)
    segments, given = x.shape[1], np.shape(metric)[1]
    pairs = len(x) * (len(x) - 1) // 2
    if not pairs or not segments:
        return SoftPairwiseAccuracy(math.nan, math.nan, 0, segments, given - segments)
    blocks = min(BLOCKS, draws)
    sizes = np.diff(np.linspace(0, draws, blocks + 1).astype(int))
    starts = np.cumsum(sizes) - sizes
    flipped = np.vstack([x, y]) @ random_signs(draws, segments, seed)
    sides = (x, flipped[: len(x)]), (y, flipped[len(x) :])
    sums = [reached(sums, scores, ties, starts) for scores, sums in sides]
    gap = (sums[0] - sums[1]).T  # (blocks, pairs)
    value = 1 - float(np.abs(gap.sum(axis=0)).mean()) / draws
    without = 1 - np.abs(gap.sum(axis=0) - gap).mean(axis=1) / np.maximum(draws - sizes, 1)
    error = math.sqrt((blocks - 1) * float(without.var())) if blocks == BLOCKS else math.nan
    return SoftPairwiseAccuracy(value, error, pairs, segments, given - segments)


def system_p_values(scores: ArrayLike, signs: ArrayLike, *, ties: Ties = "half") -> FloatArray:
    """One-sided p-values that a system is better than another, by paired permutation of their segment scores.

    Parameters
    ----------
    scores : array_like, shape (k, n)
        Without missing cells.
    signs : array_like, shape (draws, n)
        1 where the two systems keep a segment's scores, -1 where they exchange them.
    ties : "half" or "full"
        As in `soft_pairwise_accuracy`.

    Returns
    -------
    ndarray, shape (k, k)
        Above the diagonal, at (i, j), the share of draws in which the difference of i and j is at least as great
        as observed; NaN elsewhere. No draw is added, so that p can be 0.

    Raises
    ------
    DataError
        If a score is missing or infinite, or shapes do not match.
    """
    matrix, flips = paired_matrices(scores, scores)[0], np.asarray(signs, dtype=float)
    if np.isnan(matrix).any():
        raise DataError("a score is missing: leave out its segment for all systems, say with complete_segments")
    if flips.ndim != 2 or not len(flips) or flips.shape[1] != matrix.shape[1]:
        raise DataError(f"signs of shape {flips.shape} do not match {matrix.shape[1]} segments: give (draws, segments)")
    result = np.full((len(matrix), len(matrix)), math.nan)
    reach = reached(matrix @ flips.T, matrix, ties)[:, 0]
    result[np.triu_indices(len(matrix), 1)] = reach / len(flips)
    return result


def random_signs(draws: int, segments: int, seed: int) -> FloatArray:
    """Sign vectors in columns, shape (segments, draws), read-only; the last ones are kept for the next metric."""
    return (_kept_signs if draws * segments <= MOST_KEPT else _drawn_signs)(draws, segments, seed)


def _drawn_signs(draws: int, segments: int, seed: int) -> FloatArray:
    signs = np.where(np.random.default_rng(seed).random((draws, segments)) < 0.5, -1.0, 1.0).T
    signs.flags.writeable = False
    return signs


_kept_signs = lru_cache(maxsize=2)(_drawn_signs)


def reached(flipped: FloatArray, scores: FloatArray, ties: Ties, starts: IntArray | None = None) -> FloatArray:
    """Returns the number of draws above the observed difference of each pair of systems; ties count as `ties` says.

    Parameters
    ----------
    flipped : ndarray, shape (k, draws)
        Sums of the scores with random signs.
    scores : ndarray, shape (k, n)
    ties : "half" or "full"
    starts : ndarray of int, optional
        Where blocks of draws begin; None takes all as one.

    Returns
    -------
    ndarray, shape (pairs, blocks)
    """
    surplus = differences(flipped - scores.sum(axis=1, keepdims=True))
    slack = ROUNDING * float(np.abs(scores).max(initial=0.0))
    blocks = np.zeros(1, dtype=np.int64) if starts is None else starts
    above, tied_or_above = (
        np.add.reduceat(reach, blocks, axis=1, dtype=np.int64) for reach in (surplus > slack, surplus >= -slack)
    )
    return np.asarray((above + tied_or_above) / 2 if ties == "half" else tied_or_above.astype(float))


def system_pairs(systems: int, sizes: Sequence[int] = ()) -> tuple[IntArray, IntArray]:
    """The first and the second of each two systems; of each two of one language pair where `sizes` tells these apart.

    Raises
    ------
    DataError
        If `sizes` do not sum to the number of systems.
    """
    upper, lower = np.triu_indices(systems, 1)
    if not sizes:
        return upper, lower
    if sum(sizes) != systems or min(sizes) < 0:
        raise DataError(f"language pairs of {', '.join(map(str, sizes))} systems are not {systems}: give all rows once")
    of = np.repeat(np.arange(len(sizes)), sizes)
    inside = of[upper] == of[lower]
    return upper[inside], lower[inside]


def order_of_pairs(sums: FloatArray, scores: FloatArray, sizes: Sequence[int] = ()) -> FloatArray:
    """Signs of the differences of all pairs of systems, 0 where they differ by rounding alone.

    Parameters
    ----------
    sums : ndarray, shape (..., k)
        Of scores.
    scores : ndarray
        The largest decides how much rounding may change.
    sizes : sequence of int
        As for `system_pairs`.

    Returns
    -------
    ndarray, shape (..., pairs)
    """
    upper, lower = system_pairs(sums.shape[-1], sizes)
    apart = sums[..., upper] - sums[..., lower]
    return np.where(np.abs(apart) <= ROUNDING * float(np.abs(scores).max(initial=0.0)), 0.0, np.sign(apart))
