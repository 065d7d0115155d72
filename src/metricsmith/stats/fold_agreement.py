"""Agreement over the folds of a cross-validation: the mean of a statistic over folds, its interval and its test.

The interval was chosen by simulation with the fit inside: docs/coverage.md, remade by ``benchmarks/splits.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.agreement import Agreement, Difference
from metricsmith.stats.correlation import (
    FloatArray,
    IntArray,
    batch_kendall_tau_b,
    kendall_tau_b,
    kendall_tau_b_influence,
    pearson,
    spearman,
)
from metricsmith.stats.resampling import Groups, check_level, complete_rows

__all__ = [
    "FEWEST_GROUPS", "FEW_GROUPS", "FoldMean", "agreement_over_folds", "difference_over_folds", "fold_mean",
]  # fmt: skip

FEWEST_GROUPS = 5
"""With fewer groups there is no interval: none was tried."""
FEW_GROUPS = 10
"""With fewer groups than this an interval needs at most `FEW_FOLDS` folds, and is made by leaving out groups."""
FEW_FOLDS = 3
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
    """Measures agreement as the mean over the folds of a cross-validation.

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
        `fold_mean`, from how much the groups of a fold move its tau-b; NaN where too
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
    correlations = []
    for statistic in (pearson, spearman):
        defined = [value for value in (statistic(*fold) for fold in scored) if not math.isnan(value)]
        correlations.append(math.fsum(defined) / len(defined) if defined else math.nan)
    return Agreement(*_sizes(folds), found.value, found.low, found.high, found.p_value, *correlations)


def difference_over_folds(
    predictions: Sequence[ArrayLike],
    others: Sequence[ArrayLike],
    ratings: Sequence[ArrayLike],
    groups: Sequence[Groups] | None = None,
) -> Difference:
    """Compares two sets of held-out predictions by the mean over folds of the difference of their tau-b.

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
    """Returns the rows with both values, fold by fold."""
    labels: Sequence[Groups | None] = [None] * len(predictions) if groups is None else groups
    if not len(predictions) or not len(predictions) == len(ratings) == len(labels):
        raise DataError(
            f"{len(predictions)} folds of predictions, {len(ratings)} of ratings, {len(labels)} of groups: "
            "at least one is needed and as many of each; give one array per fold"
        )
    folds = []
    for prediction, rating, names in zip(predictions, ratings, labels, strict=True):
        (x, y), codes = complete_rows([prediction, rating], names)
        folds.append((x, y, codes))
    return folds


def _sizes(folds: Sequence[Fold]) -> tuple[int, int]:
    """Returns the numbers of rows and groups over all folds."""
    return sum(x.size for x, _, _ in folds), sum(np.unique(codes).size for _, _, codes in folds)


def _taus(folds: Sequence[Fold]) -> tuple[list[float], list[FloatArray], list[FloatArray]]:
    """Returns by fold tau-b, the influence of its groups on it, and, unless it has many groups, tau-b without each."""
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


@dataclass(frozen=True, slots=True)
class FoldMean:
    """A statistic averaged over folds.

    Parameters
    ----------
    value : float
        The mean over the folds in which it is defined; NaN if there is none.
    low, high : float
        The interval; NaN where there are too few groups.
    p_value : float
        Two-sided, that the mean is 0, of the same t; NaN where there is no interval.
    folds, dropped : int
        Folds that enter the mean, and folds in which the statistic is undefined.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    folds: int = 0
    dropped: int = 0


def fold_mean(
    values: ArrayLike,
    influences: Sequence[ArrayLike],
    without: Sequence[ArrayLike] = (),
    *,
    skewed: bool = False,
    level: float = 0.95,
    limit: float = 1.0,
) -> FoldMean:
    """Averages a statistic over folds whose predictions come from fits that learned from each other's ratings.

    The groups of a fold tell how far its value would move with other groups, its fit as it is: with g groups and
    their influences u the squared error of a fold is ``g / (g - 1) sum u^2``. That is half of the truth where there is
    nothing to be found. With r the chance association of each fold, the value of a fold goes with ``r_f`` times the
    sum of all other folds' r (its fit learned from them), the sum of all values with ``2 sum over f < g of r_f r_g``,
    and its variance is twice the sum of the folds' variances, for any number of folds. The squared error is
    therefore doubled; where the association is strong that is cautious. Student's t on Fisher's z scale, with as many
    degrees of freedom as there are groups beyond the folds.

    With fewer than `FEW_GROUPS` groups influences say too little. There each group is left out in turn, the mean
    taken over the folds in which the statistic is then defined, and the jackknife of all groups stands alone: it is
    so much too wide with two groups a fold that nothing needs doubling.

    Parameters
    ----------
    values : array_like, shape (k,)
        The statistic in each fold; NaN where it is undefined, which drops the fold.
    influences : sequence of array_like, length k
        By fold the influence of each of its groups on its value, adding up to 0 in each fold
        (`metricsmith.stats.correlation.kendall_tau_b_influence`, summed by group).
    without : sequence of array_like, length k
        By fold its value without each of its groups, NaN where that is undefined. Needed with fewer than `FEW_GROUPS`
        groups.
    skewed : bool
        True where most ratings are one and the same: the squared error of a fold is then taken ``g / (g - 1)`` times
        larger, since few groups hold the others.
    level : float
    limit : float
        Values lie from minus this to this, and so does the interval: 1 for a correlation, 2 for a difference of two.

    Returns
    -------
    FoldMean
        Without interval and p-value where no method held the truth in simulations: with fewer than
        `FEWEST_GROUPS` groups in the folds that count; with fewer than `FEW_GROUPS` if there are more than three
        folds or ratings are skewed; with more where a fold has a single group. A mean at either limit has no spread
        on the z scale: both ends are that value.

    Raises
    ------
    DataError
        If there are not as many influences as values.
    OptionError
        If `level` is out of range or `limit` is not positive.

    References
    ----------
    Efron (1982), The Jackknife, the Bootstrap and Other Resampling Plans, chapter 6 (the infinitesimal jackknife);
    Fisher (1921), for the scale. Bengio and Grandvalet (2004), "No unbiased estimator of the variance of k-fold
    cross-validation": folds depend on each other through what their fits learned from.
    """
    from scipy.special import stdtr, stdtrit

    check_level(level)
    if not limit > 0:
        raise OptionError(f"limit={limit:g} must be positive: 1 for a correlation, 2 for a difference of two")
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or len(influences) != numbers.size or (without and len(without) != numbers.size):
        raise DataError(f"{numbers.size} values and {len(influences)} influences: give one of each for every fold")
    counted = np.flatnonzero(~np.isnan(numbers)).tolist()
    folds, dropped = len(counted), numbers.size - len(counted)
    if not folds:
        return FoldMean(math.nan, dropped=dropped)
    mean = math.fsum(numbers[counted]) / folds
    moves: list[FloatArray] = [np.asarray(influences[fold], dtype=float) for fold in counted]
    groups, smallest = sum(move.size for move in moves), min(move.size for move in moves)
    if groups >= FEW_GROUPS and smallest > 1:
        power = 2 if skewed else 1
        parts = [(move.size / (move.size - 1)) ** power * float(move @ move) for move in moves]
        # Twice the squared error of the mean over folds whose fits stay as they are.
        variance, freedom = 2 * math.fsum(parts) / len(parts) ** 2, groups - folds
    elif FEWEST_GROUPS <= groups < FEW_GROUPS and folds <= FEW_FOLDS and not skewed and without:
        variance, freedom = _by_leaving_out(numbers[counted], [without[fold] for fold in counted]), groups - 1
    else:
        return FoldMean(mean, folds=folds, dropped=dropped)
    place = mean / limit
    if abs(place) >= 1 or variance == 0:
        return FoldMean(mean, mean, mean, float(mean == 0), folds, dropped)
    z, error = math.atanh(place), math.sqrt(variance) / (limit * (1 - place**2))
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    p_value = float(2 * stdtr(freedom, -abs(z) / error))
    return FoldMean(mean, limit * math.tanh(z - half), limit * math.tanh(z + half), p_value, folds, dropped)


def _by_leaving_out(values: FloatArray, without: Sequence[ArrayLike]) -> float:
    """Returns the jackknife's squared error of the mean; a fold that is undefined without a group drops out there."""
    means = []
    for fold, parts in enumerate(without):
        others = np.delete(values, fold)
        means += [np.append(others, part[~np.isnan(part)]).mean() for part in np.asarray(parts, dtype=float)[:, None]]
    return (len(means) - 1) * float(np.var(means))
