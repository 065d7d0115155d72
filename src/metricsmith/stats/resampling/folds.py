"""The mean of a statistic over the folds of a cross-validation, with its interval and test.

Chosen by simulation with the fit inside: docs/coverage.md, remade by ``benchmarks/splits.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.resampling.draws import FloatArray, check_level

__all__ = ["FEWEST_GROUPS", "FEW_GROUPS", "FoldMean", "fold_mean"]

FEWEST_GROUPS = 5
"""With fewer groups there is no interval: none was tried."""
FEW_GROUPS = 10
"""With fewer groups than this an interval needs at most `FEW_FOLDS` folds, and is made by leaving out groups."""
FEW_FOLDS = 3


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
    """Average a statistic over folds whose predictions come from fits that learned from each other's ratings.

    The groups of a fold tell how far its value would move with other groups, its fit as it is: with g groups and
    their influences u the squared error of a fold is ``g / (g - 1) sum u^2``. That is half of the truth where there is
    nothing to be found. With r the chance association of each fold, the value of a fold goes with ``r_f`` times the
    sum of all other folds' r (its fit learned from them), the sum of all values with ``2 sum over f < g of r_f r_g``,
    and its variance is twice the sum of the folds' variances, whatever the number of folds. The squared error is
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
        Whether most ratings are one and the same: the squared error of a fold is then taken ``g / (g - 1)`` times
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
    pulls: list[FloatArray] = [np.asarray(influences[fold], dtype=float) for fold in counted]
    groups, smallest = sum(pull.size for pull in pulls), min(pull.size for pull in pulls)
    if groups >= FEW_GROUPS and smallest > 1:
        variance, freedom = _by_influence(pulls, 2 if skewed else 1), groups - folds
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


def _by_influence(pulls: Sequence[FloatArray], power: int) -> float:
    """Twice the squared error of the mean over folds whose fits stay as they are."""
    parts = [(pull.size / (pull.size - 1)) ** power * float(pull @ pull) for pull in pulls]
    return 2 * math.fsum(parts) / len(parts) ** 2


def _by_leaving_out(values: FloatArray, without: Sequence[ArrayLike]) -> float:
    """The jackknife's squared error of the mean; a fold that is undefined without a group drops out of that mean."""
    means = []
    for fold, parts in enumerate(without):
        others = np.delete(values, fold)
        means += [np.append(others, part[~np.isnan(part)]).mean() for part in np.asarray(parts, dtype=float)[:, None]]
    return (len(means) - 1) * float(np.var(means))
