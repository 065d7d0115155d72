"""Agreement of held-out predictions with ratings over the folds of a cross-validation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError
from metricsmith.records import Agreement, Difference
from metricsmith.stats.correlation import (
    batch_kendall_tau_b,
    kendall_tau_b,
    kendall_tau_b_influence,
    pearson,
    spearman,
)
from metricsmith.stats.resampling import FEW_GROUPS, FoldMean, Groups, fold_mean
from metricsmith.stats.resampling.draws import FloatArray, IntArray, complete

__all__ = ["agreement_over_folds", "difference_over_folds"]

Fold = tuple[FloatArray, FloatArray, IntArray]  # predictions, ratings and numbers of the groups

# Below these no interval of a cross-validation was tried: docs/coverage.md.
FEWEST_ROWS = 30
FEWEST_OTHERS = 10  # rows that do not have the commonest rating
SKEWED = 0.35  # share of these below which the more cautious interval is taken


def agreement_over_folds(
    predictions: Sequence[ArrayLike],
    ratings: Sequence[ArrayLike],
    groups: Sequence[Groups] | None = None,
) -> Agreement:
    """Measure agreement as the mean over the folds of a cross-validation.

    Predictions of different folds come from different fits and are never ranked against each other: every
    statistic is computed inside each fold and averaged; folds in which it is undefined are left out.

    Parameters
    ----------
    predictions, ratings : sequence of array_like
        One pair of arrays per fold: held-out predictions and their ratings, NaN where missing.
    groups : sequence of sequences, optional
        One per fold; a group stands in one fold only.

    Returns
    -------
    Agreement
        `n` and `groups` count over all folds. Interval and p-value are those of
        `metricsmith.stats.resampling.fold_mean`, from how much the groups of a fold move its tau-b; NaN where too
        few groups or rows, or too few ratings besides the commonest, leave none that can be relied on.
        Permuting held-out predictions inside folds would reject too often (.11 to .16 at .05 on noise), because
        the folds' fits depend on each other's ratings.

    Raises
    ------
    DataError
        If there is no fold, or the numbers of folds or rows differ.
    """
    folds = _folds(predictions, ratings, groups)
    found = _fold_mean(*_taus(folds), folds)
    scored = [(x, y) for x, y, _ in folds if not math.isnan(kendall_tau_b(x, y))]
    correlations = (_defined_mean([statistic(*fold) for fold in scored]) for statistic in (pearson, spearman))
    return Agreement(*_sizes(folds), found.value, found.low, found.high, found.p_value, *correlations)


def difference_over_folds(
    predictions: Sequence[ArrayLike],
    others: Sequence[ArrayLike],
    ratings: Sequence[ArrayLike],
    groups: Sequence[Groups] | None = None,
) -> Difference:
    """Compare two sets of held-out predictions by the mean over folds of the difference of their tau-b.

    Parameters
    ----------
    predictions, others, ratings : sequence of array_like
        Three arrays per fold, NaN where missing; rows that both predict are compared.
    groups : sequence of sequences, optional
        One per fold; a group stands in one fold only.

    Returns
    -------
    Difference
        Positive where `predictions` agree better, in [-2, 2]; folds in which either tau-b is undefined are dropped.
        Interval and its reasons to be absent as in `agreement_over_folds`.

    Raises
    ------
    DataError
        As `agreement_over_folds`.
    """
    shared = [
        np.where(np.isnan(np.asarray(one, dtype=float) + np.asarray(other, dtype=float)), math.nan, rated)
        for one, other, rated in zip(predictions, others, ratings, strict=True)
    ]
    folds, rivals = _folds(predictions, shared, groups), _folds(others, shared, groups)
    first, second = _taus(folds), _taus(rivals)
    values = [one - other for one, other in zip(first[0], second[0], strict=True)]
    influences, without = (
        [one - other for one, other in zip(*sides, strict=True)]
        for sides in ((first[1], second[1]), (first[2], second[2]))
    )
    found = _fold_mean(values, influences, without, folds, limit=2.0)
    return Difference(*_sizes(folds), found.value, found.low, found.high)


def _folds(
    predictions: Sequence[ArrayLike], ratings: Sequence[ArrayLike], groups: Sequence[Groups] | None
) -> list[Fold]:
    """The rows with both values, fold by fold."""
    labels: Sequence[Groups | None] = [None] * len(predictions) if groups is None else groups
    if not len(predictions) or not len(predictions) == len(ratings) == len(labels):
        raise DataError(
            f"{len(predictions)} folds of predictions, {len(ratings)} of ratings, {len(labels)} of groups: "
            "at least one is needed and as many of each; give one array per fold"
        )
    folds = []
    for prediction, rating, names in zip(predictions, ratings, labels, strict=True):
        (x, y), codes = complete([prediction, rating], names)
        folds.append((x, y, codes))
    return folds


def _sizes(folds: Sequence[Fold]) -> tuple[int, int]:
    """Rows and groups over all folds."""
    return sum(x.size for x, _, _ in folds), sum(np.unique(codes).size for _, _, codes in folds)


def _taus(folds: Sequence[Fold]) -> tuple[list[float], list[FloatArray], list[FloatArray]]:
    """By fold tau-b, the influence of its groups on it, and, unless it has many groups, tau-b without each."""
    taus, influences, without = list[float](), list[FloatArray](), list[FloatArray]()
    for x, y, codes in folds:
        taus.append(kendall_tau_b(x, y))
        influences.append(np.bincount(codes, kendall_tau_b_influence(x, y)).astype(float))
        groups = np.unique(codes)[:, None]
        groups = groups if groups.size < FEW_GROUPS else groups[:0]
        without.append(batch_kendall_tau_b(np.where(codes == groups, math.nan, x), y))
    return taus, influences, without


def _fold_mean(
    values: Sequence[float],
    influences: Sequence[FloatArray],
    without: Sequence[FloatArray],
    folds: Sequence[Fold],
    limit: float = 1.0,
) -> FoldMean:
    """`fold_mean`, without interval where the ratings vary less than in any simulation."""
    ratings = np.concatenate([y for _, y, _ in folds])
    others = ratings.size - int(np.unique(ratings, return_counts=True)[1].max(initial=0))
    found = fold_mean(values, influences, without, skewed=others < SKEWED * ratings.size, limit=limit)
    if ratings.size < FEWEST_ROWS or others < FEWEST_OTHERS:
        return FoldMean(found.value, folds=found.folds, dropped=found.dropped)
    return found


def _defined_mean(values: ArrayLike) -> float:
    numbers = np.asarray(values, dtype=float)
    defined = numbers[~np.isnan(numbers)]
    return math.fsum(defined) / defined.size if defined.size else math.nan
