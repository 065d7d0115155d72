"""The test of pairwise accuracies that exchanges decisions about pairs instead of scores."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.meta_evaluation.grouping import Grouping, grouped, paired_matrices
from metricsmith.meta_evaluation.pairs import GoldPairs
from metricsmith.meta_evaluation.pairwise import check_epsilon
from metricsmith.stats.resampling import PermutationTest, permutation_p_value
from metricsmith.stats.resampling.draws import check_draws

__all__ = ["perm_pairs"]


def perm_pairs(
    first: ArrayLike,
    second: ArrayLike,
    gold: ArrayLike,
    *,
    by: Grouping = "item",
    epsilon: float | None = None,
    decimals: int | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> PermutationTest:
    """Test whether the first metric has a higher `pairwise_accuracy` than the second, by exchanging decisions.

    The tie threshold of each metric is found once, on the scores as they are. Each resample then exchanges what the
    two metrics decide about a pair (better, worse, tied) with probability 1/2, pair by pair. Pairs on which both are
    right or both wrong move nothing, so that a resample takes one binomial number for all groups of one size.

    `perm_both` exchanges scores and finds thresholds anew. Decisions can be exchanged into accuracies that no exchange
    of scores has, and all pairs of a segment are taken for independent, although they share outputs: the null is
    narrower, and smaller differences are significant.

    Parameters
    ----------
    first, second, gold : array_like, shape (k, n)
        NaN is missing; only cells that all three have take part.
    by, epsilon, decimals
        As for `pairwise_accuracy`; ``epsilon=None`` calibrates each metric by itself.
    resamples, seed : int

    Returns
    -------
    PermutationTest
        `observed` is the first's accuracy less the second's; `p_value` is one-sided, ``(b + 1) / (m + 1)`` with b of m
        resamples at least as great; NaN if no group has two cells.

    Raises
    ------
    DataError
        If the matrices differ in shape, a score is infinite, or there are more than 50 million pairs.
    OptionError
        If `resamples` is below 1, or `epsilon` or `by` has no meaning.

    References
    ----------
    The ``pairs`` test of mt-metrics-eval, which WMT's metrics tasks of 2023 to 2025 use for acc-t; it gives b / m, with
    its metrics in the other order.
    """
    check_draws(resamples)
    check_epsilon(epsilon)
    first, gold = paired_matrices(first, gold)
    second, gold = paired_matrices(second, gold)
    first = np.where(np.isnan(gold), math.nan, first)
    pairs = GoldPairs(grouped(gold, gold, by)[0], decimals)
    if not pairs.used:
        return permutation_p_value(math.nan, np.full(resamples, math.nan), "greater")
    right = []
    for metric in grouped(first, second, by):
        threshold = pairs.calibrated(metric)[1] if epsilon is None else epsilon
        tied, untied = pairs.distances(metric)
        right.append((tied <= threshold, untied > threshold))
    ahead, behind = (_by_group(pairs, one, other) for one, other in (right, right[::-1]))
    sizes, size_of = np.unique(pairs.sizes, return_inverse=True)
    won, lost = (np.bincount(size_of, weights=counts, minlength=sizes.size) for counts in (ahead, behind))
    share = np.where(sizes > 0, 1 / np.maximum(sizes, 1), 0.0) / pairs.used
    moving = (won + lost).astype(np.int64)
    taken = np.random.default_rng(seed).binomial(moving, 0.5, size=(resamples, sizes.size))
    return permutation_p_value(float((won - lost) @ share), (2 * taken - moving) @ share, "greater")


def _by_group(
    pairs: GoldPairs, one: tuple[NDArray[np.bool_], NDArray[np.bool_]], other: tuple[NDArray[np.bool_], ...]
) -> NDArray[np.int64]:
    """Pairs of each group on which the one metric is right and the other wrong."""
    groups = [pairs.tied_groups[one[0] & ~other[0]], pairs.untied_groups[one[1] & ~other[1]]]
    return np.bincount(np.concatenate(groups), minlength=pairs.sizes.size)
