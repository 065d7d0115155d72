"""Agreement of predictions with ratings, on one set of rows.

Rank correlations ask for the same order, kappas, balanced accuracy and F1 for the same labels. All of them are
statistics of the whole set; a row with a NaN on either side is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.stats.chance_corrected import Weights, table_kappa
from metricsmith.stats.correlation import (
    FloatArray,
    batch_kendall_tau_b,
    complete_pairs,
    kendall_tau_b,
    pearson,
    spearman,
)
from metricsmith.stats.resampling import (
    Groups,
    complete_rows,
    correlation_interval,
    labelled_rows,
    permutation_test,
    repeated_interval,
)

__all__ = [
    "Agreement",
    "Difference",
    "agreement",
    "balanced_accuracy",
    "cohen_kappa",
    "f1",
    "paired_agreement",
    "concordance_index",
    "quadratic_kappa",
]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of predictions with ratings, with its interval and its test.

    All statistics are NaN where undefined (fewer than two rows, a constant side).

    Parameters
    ----------
    n, groups : int
        Rows with both values, and how many groups they form.
    kendall_tau_b, pearson, spearman : float
        In [-1, 1].
    ci_low, ci_high : float
        95 % interval of `kendall_tau_b` (group jackknife; over folds for cross-validation).
    p_value : float
        Two-sided permutation p-value that respects groups.
    """

    n: int
    groups: int
    kendall_tau_b: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p_value: float = math.nan
    pearson: float = math.nan
    spearman: float = math.nan


@dataclass(frozen=True, slots=True)
class Difference:
    """The lead of one prediction over another in agreement with the raters, on the same rows.

    `n` rows of so many `groups` have a rating and both predictions. `kendall_tau_b` is tau-b of the first less that of
    the second, in [-2, 2], with its 95 % interval; NaN where undefined.
    """

    n: int
    groups: int
    kendall_tau_b: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan


def agreement(
    prediction: ArrayLike,
    rating: ArrayLike,
    groups: Groups | None = None,
    *,
    seed: int = 0,
    resamples: int = 1000,
) -> Agreement:
    """Measures the agreement of predictions with ratings on one set of rows.

    Parameters
    ----------
    prediction, rating : array_like, shape (n,)
        On any scales. Rows that are NaN on either side are left out.
    groups : sequence of hashable, length n, optional
        Rows of one group are drawn and exchanged together; None makes every row its own group.
    seed : int
    resamples : int
        Permutations of the test.

    Returns
    -------
    Agreement
        Kendall's tau-b with its 95 % interval (`metricsmith.stats.resampling.correlation_interval`) and the
        two-sided p-value of the group permutation test, Pearson's and Spearman's correlations. All NaN
        with fewer than two rows or a constant side; the interval also with fewer than three groups, or where
        tau-b is undefined without one of them. Both speak of new groups of the same kind: where the
        same few systems answer every prompt and differ in level, the rows of a system are not independent
        either, and interval and p-value are too sure of themselves about *other* systems: with six such systems the
        test rejected in .41 of simulated runs without any association beyond their levels (for these:
        `metricsmith.stats.resampling.new_systems`). With fewer than `metricsmith.stats.resampling.MINIMUM_GROUPS`
        groups p stays high.

    Raises
    ------
    DataError
        If lengths differ or a group label is missing.
    """
    x, y, labels = labelled_rows(prediction, rating, groups)
    present = ~(np.isnan(x) | np.isnan(y))
    x, y, labels = x[present], y[present], [labels[row] for row in np.flatnonzero(present)]
    n, count = len(x), len(set(labels))
    tau = kendall_tau_b(x, y)
    if math.isnan(tau):
        return Agreement(n, count)
    interval = correlation_interval(batch_kendall_tau_b, x, y, labels, batched=True)
    test = permutation_test(batch_kendall_tau_b, x, y, labels, permutations=resamples, seed=seed, batched=True)
    return Agreement(n, count, tau, interval.low, interval.high, test.p_value, pearson(x, y), spearman(x, y))


def paired_agreement(
    first: ArrayLike, second: ArrayLike, rating: ArrayLike, groups: Groups | None = None
) -> Difference:
    """Measures the lead of the first prediction over the second in agreement with ratings, on the rows that have both.

    Parameters
    ----------
    first, second, rating : array_like, shape (n,)
        On any scales. Rows that are NaN in any of the three are left out.
    groups : sequence of hashable, length n, optional
        Rows of one group are left out together; None makes every row its own group.

    Returns
    -------
    Difference
        The interval is that of `metricsmith.stats.resampling.repeated_interval`; without ends where either tau-b is
        undefined, or undefined without one of the groups, and with fewer than three groups.

    Raises
    ------
    DataError
        If lengths differ or a group label is missing.

    Examples
    --------
    >>> round(paired_agreement([1, 2, 3, 4], [1, 2, 4, 3], [1, 2, 3, 4]).kendall_tau_b, 3)
    0.333
    """
    (a, b, y), codes = complete_rows([first, second, rating], groups)
    gap = kendall_tau_b(a, y) - kendall_tau_b(b, y)
    interval = repeated_interval(batch_kendall_tau_b, [a], y, codes, against=[b], batched=True)
    return Difference(y.size, int(codes.max(initial=-1)) + 1, gap, interval.low, interval.high)


def cohen_kappa(prediction: ArrayLike, rating: ArrayLike, *, weights: Weights = "none") -> float:
    """Cohen's kappa: the surplus of equal labels over those by chance.

    ``(p - e) / (1 - e)`` with p the share of rows with equal labels and e what both sides' frequencies of
    labels give by chance; `metricsmith.stats.chance_corrected.table_kappa` takes tables of labels.

    Parameters
    ----------
    prediction, rating : array_like, shape (n,)
        Labels as numbers; equal means the same number. Round predictions to the labels beforehand.
    weights : {"none", "linear", "quadratic"}
        How a disagreement grows with the steps between the labels that occur, whatever their distance as numbers
        (which is what `quadratic_kappa` goes by).

    Returns
    -------
    float
        In [-1, 1]; NaN without rows, or where both sides give one and the same label throughout.

    Raises
    ------
    DataError
        If lengths differ.

    References
    ----------
    Cohen (1960), "A coefficient of agreement for nominal scales"; Cohen (1968), "Weighted kappa".

    Examples
    --------
    >>> cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])
    0.5
    """
    x, y = complete_pairs(prediction, rating)
    labels, places = np.unique(np.stack([x, y]), return_inverse=True)
    if labels.size < 2:
        return math.nan
    pairs = np.ravel_multi_index(tuple(places.reshape(2, -1)), (labels.size, labels.size))
    table = np.bincount(pairs, minlength=labels.size**2).reshape(labels.size, labels.size)
    return float(table_kappa(table, weights=weights))


def quadratic_kappa(prediction: ArrayLike, rating: ArrayLike) -> float:
    """Kappa with quadratic weights, by the distance of the numbers themselves.

    ``1 - mean((x - y)^2) / (var x + var y + (mean x - mean y)^2)``: the squared distance of a row's two numbers
    beside that of numbers drawn at random from either side. On labels with equal steps this is Cohen's weighted
    kappa; on continuous numbers it is Lin's concordance correlation, so that nothing has to be rounded. Unlike a
    correlation it falls when predictions use another part of the scale.

    Parameters
    ----------
    prediction, rating : array_like, shape (n,)
        On one and the same scale.

    Returns
    -------
    float
        In [-1, 1]; NaN without rows, or where both sides give one and the same number throughout.

    Raises
    ------
    DataError
        If lengths differ.

    References
    ----------
    Cohen (1968), "Weighted kappa"; Lin (1989), "A concordance correlation coefficient to evaluate
    reproducibility".

    Examples
    --------
    >>> round(quadratic_kappa([1, 2, 3], [2, 3, 4]), 3)
    0.571
    """
    x, y = complete_pairs(prediction, rating)
    if not x.size or not np.ptp(np.concatenate([x, y])):
        return math.nan
    unit = max(float(np.abs(x).max()), float(np.abs(y).max()))  # keeps squares of very large numbers finite
    x, y = x / unit, y / unit
    apart = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    return float(np.clip(1 - ((x - y) ** 2).mean() / apart, -1.0, 1.0))


def balanced_accuracy(prediction: ArrayLike, rating: ArrayLike) -> float:
    """The mean over the raters' labels of the share of its rows that are given this label.

    Parameters
    ----------
    prediction, rating : array_like, shape (n,)
        Labels as numbers, as for `cohen_kappa`.

    Returns
    -------
    float
        In [0, 1]; a constant prediction gets one over the number of labels. NaN with fewer than two labels
        among the ratings.

    Raises
    ------
    DataError
        If lengths differ.
    """
    x, y = complete_pairs(prediction, rating)
    labels = np.unique(y)
    return float(np.mean([(x[y == label] == label).mean() for label in labels])) if labels.size > 1 else math.nan


def f1(prediction: ArrayLike, rating: ArrayLike, *, positive: float | None = None) -> float:
    """F1, of one label or as the plain mean over all labels.

    ``2 tp / (2 tp + fp + fn)``; a label that only one side gives has F1 0.

    Parameters
    ----------
    prediction, rating : array_like, shape (n,)
        Labels as numbers, as for `cohen_kappa`.
    positive : float, optional
        The label that counts; None takes the mean over the labels of either side (macro F1).

    Returns
    -------
    float
        In [0, 1]; NaN without rows, or where `positive` is given by neither side.

    Raises
    ------
    DataError
        If lengths differ.
    """
    x, y = complete_pairs(prediction, rating)
    labels = np.union1d(x, y) if positive is None else np.array([positive], dtype=float)
    given = np.array([(x == label).sum() + (y == label).sum() for label in labels], dtype=float)
    if not x.size or not given.all():
        return math.nan
    hits = np.array([((x == label) & (y == label)).sum() for label in labels], dtype=float)
    return float((2 * hits / given).mean())


def concordance_index(prediction: ArrayLike, rating: ArrayLike) -> float:
    """The share of pairs with different ratings that are predicted in the raters' order.

    A pair with equal predictions counts half, so that a constant prediction gets .5. Pairs with equal ratings
    have no order and are left out.

    Parameters
    ----------
    prediction, rating : array_like, shape (n,)
        On any scales.

    Returns
    -------
    float
        In [0, 1]; NaN where no two ratings differ.

    Raises
    ------
    DataError
        If lengths differ.

    Examples
    --------
    >>> round(concordance_index([1, 3, 2], [1, 2, 3]), 3)
    0.667
    """
    x, y = complete_pairs(prediction, rating)
    predicted, ordered = _untied_pairs(x), _untied_pairs(y)
    if not ordered:
        return math.nan
    surplus = kendall_tau_b(x, y) * math.sqrt(predicted * ordered) if predicted else 0.0  # right minus wrong pairs
    return 0.5 + 0.5 * surplus / ordered


def _untied_pairs(values: FloatArray) -> int:
    counts = np.unique(values, return_counts=True)[1]
    return int(values.size * (values.size - 1) - (counts * (counts - 1)).sum()) // 2
