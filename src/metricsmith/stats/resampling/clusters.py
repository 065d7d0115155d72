"""Closed-form intervals of a share, a mean and a correlation over rows that come in groups.

Each was chosen by simulation from several candidates: docs/coverage.md, remade by ``benchmarks/coverage.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b_left_out
from metricsmith.stats.resampling.draws import (
    FloatArray,
    Groups,
    IntArray,
    Statistic,
    check_level,
    chunks,
    complete_rows,
    values_by_selection,
)
from metricsmith.stats.resampling.intervals import Interval, wilson_interval

__all__ = [
    "MOST_REPLICATES", "correlation_interval", "design_effect", "group_mean_interval", "jackknife_interval",
    "left_out", "share_interval",
]  # fmt: skip

CAUTION = 0.25
"""The evidence that groups are all of a piece, in groups, that stands against the estimate: see `design_effect`."""
MOST_REPLICATES = 1000  # with more groups the jackknife leaves out several at a time


def share_interval(hits: ArrayLike, groups: Groups | None = None, *, level: float = 0.95) -> Interval:
    """Wilson's interval of a share over rows that come in groups, on the size that n independent rows would have.

    That effective size is n over the `design_effect`: with groups of one row each n itself, with groups in which all
    rows are alike about the number of groups.

    Parameters
    ----------
    hits : array_like, shape (n,)
        In [0, 1]: a miss, a hit or, where a tie counts half, .5. NaN are left out and counted.
    groups : sequence of hashable, length n, optional
    level : float

    Returns
    -------
    Interval
        Within [0, 1]; NaN ends without rows. Rows that are all hits or all misses count as many as there are groups,
        one group alone counts as one row.

    Raises
    ------
    DataError
        If a hit lies outside [0, 1], lengths differ or a group label is missing.
    OptionError
        If `level` is out of range.

    References
    ----------
    Korn and Graubard (1998), "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data": an interval of a proportion on the effective size. Wilson's in place of theirs, and
    without their correction for few groups, which covered too often with 10 to 30 groups.
    """
    check_level(level)
    (values,), codes = complete_rows([hits], groups)
    undefined = np.size(hits) - values.size
    _check_bounds(values, 0.0, 1.0)
    if not values.size:
        return Interval(math.nan, math.nan, level, 0, undefined)
    size = values.size / design_effect(values, codes)
    found = wilson_interval(min(float(values.mean()) * size, size), size, level=level)
    return Interval(found.low, found.high, level, 0, undefined)


def design_effect(hits: FloatArray, codes: IntArray) -> float:
    """Returns the factor by which groups multiply the variance of a share: ``1 + (m - 1) rho``, at least 1, at most m.

    m is the group size as a row sees it, ``sum of sizes^2 / n``; rho is the analysis-of-variance estimate of the
    intraclass correlation. Where few groups hold one of both outcomes rho says little and is often far too small, so
    that it is moved toward 1 as if `CAUTION` groups had said so; hits that are all alike leave it at 1. Unmoved, the
    interval held the truth in 88 to 91 % of runs where one group of thirty holds all misses.

    Parameters
    ----------
    hits : float array, shape (n,)
        In [0, 1], n at least 1, no NaN.
    codes : int array, shape (n,)
        The group of each row, numbered from 0.

    References
    ----------
    Kish (1965), Survey Sampling, sections 5.4 and 8.2; Donner (1986), "A review of inference procedures for the
    intraclass correlation coefficient in the one-way random effects model".
    """
    sizes = np.bincount(codes)
    n, g = hits.size, sizes.size
    largest = float(sizes @ sizes) / n
    if largest == 1 or g == 1 or np.ptp(hits) == 0:
        return largest
    means = np.bincount(codes, hits) / sizes
    between = float(sizes @ (means - hits.mean()) ** 2) / (g - 1)
    within = float(((hits - means[codes]) ** 2).sum()) / (n - g)
    typical = (n - largest) / (g - 1)
    rho = (between - within) / (between + (typical - 1) * within)
    telling = min(np.unique(codes[hits < 1]).size, np.unique(codes[hits > 0]).size)
    rho += (1 - rho) * CAUTION / (telling + CAUTION)
    return 1 + (largest - 1) * min(max(rho, 0.0), 1.0)


def group_mean_interval(
    values: ArrayLike,
    groups: Groups | None = None,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    added: Sequence[tuple[float, int]] = (),
) -> Interval:
    """Interval of the mean over rows that come in groups: Student's t, corrected for the skewness of the groups.

    The squared error of the mean of n rows in g groups is ``g / (g - 1) sum over groups of (sum of v - mean)^2 / n^2``,
    the degrees of freedom are g - 1, and Hall's transformation moves both ends to the side of the long tail: many
    zeros and a few large values would otherwise leave the interval short on that side.

    Parameters
    ----------
    values : array_like, shape (n,)
        NaN are left out and counted.
    groups : sequence of hashable, length n, optional
    level : float
    bounds : (float, float), optional
        The least and the largest value possible; the interval does not leave them.
    added : sequence of (float, int)
        Variances that these rows do not show (such as that of a mean of other rows, which the values contain), as for
        `jackknife_interval`. They have no skewness; values that are all alike have an interval by them alone.

    Returns
    -------
    Interval
        NaN ends with fewer than two groups. Values that are all alike say nothing of what others are: NaN ends too,
        or, with `bounds`, as far from the value as groups that may have gone unseen (Wilson's upper end for none of
        g) could take the mean.

    Raises
    ------
    DataError
        If a value lies outside `bounds`, lengths differ or a group label is missing.
    OptionError
        If `level` is out of range or `bounds` are not in order.

    References
    ----------
    Cochran (1977), Sampling Techniques, section 9A (clusters of unequal size, ratio to size). Hall (1992), "On the
    removal of skewness by transformation": the cubic one, inverted exactly.
    """
    from scipy.special import stdtrit

    check_level(level)
    least, largest = (-math.inf, math.inf) if bounds is None else bounds
    _check_order((least, largest))
    (numbers,), codes = complete_rows([values], groups)
    _check_bounds(numbers, least, largest)
    undefined, n = np.size(values) - numbers.size, numbers.size
    sizes = np.bincount(codes)
    g = sizes.size
    if g < 2:
        return Interval(math.nan, math.nan, level, 0, undefined)
    mean = float(numbers.mean())
    if np.ptp(numbers) == 0 and not any(variance for variance, _ in added):
        if bounds is None:
            return Interval(math.nan, math.nan, level, 0, undefined)
        unseen = wilson_interval(0, n**2 / float(sizes @ sizes), level=level).high
        low, high = mean - unseen * (mean - least), mean + unseen * (largest - mean)
        return Interval(low, high, level, 0, undefined)
    sums = np.bincount(codes, numbers - mean)
    squares = float(sums @ sums)
    shown = g / (g - 1) * squares / n**2
    variance, freedom = _with_added(shown, g - 1, added)
    error = math.sqrt(variance)
    # Of a group, over the root of g.
    skewness = float((sums**3).sum()) / squares**1.5 * (shown / variance) ** 1.5 if shown > 0 else 0.0
    t = float(stdtrit(freedom, (1 + level) / 2))
    sides = [t, -t]
    if abs(skewness) >= 1e-6:  # the Studentised means whose transformations by Hall are t and -t
        sides = [3 / skewness * (math.cbrt(1 + skewness * (side - skewness / 6)) - 1) for side in sides]
    low, high = (mean - side * error for side in sides)
    return Interval(max(low, least), min(high, largest), level, 0, undefined)


def correlation_interval(
    statistic: Statistic,
    x: ArrayLike,
    y: ArrayLike,
    groups: Groups | None = None,
    *,
    level: float = 0.95,
    batched: bool = False,
) -> Interval:
    """Interval of a correlation by leaving out each group in turn: Student's t on Fisher's z scale.

    Parameters
    ----------
    statistic : callable
        ``statistic(x, y)`` in [-1, 1].
    x, y : array_like, shape (n,)
        Rows that are NaN on either side are left out first.
    groups : sequence of hashable, length n, optional
        With more than a thousand, several are left out at a time.
    level : float
    batched : bool
        Whether `statistic` works along the last axis of float arrays and leaves NaN rows out.

    Returns
    -------
    Interval
        `draws` counts the groups left out in turn. NaN ends with fewer than three groups, or where the statistic is
        undefined for all rows or without one of the groups (then it rests on that group: `undefined` counts them). A
        correlation of 1 or -1 has no spread on this scale: both ends are that value.

    Raises
    ------
    DataError
        If lengths differ or a group label is missing.
    OptionError
        If `level` is out of range.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 11 (jackknife standard error); Fisher
    (1921), for the scale, on which the spread depends little on the correlation.
    """
    columns, codes = complete_rows([x, y], groups)
    estimate = float(statistic(*columns)) if columns[0].size else math.nan
    parts = np.empty(0) if math.isnan(estimate) else left_out(statistic, columns, codes, batched)
    return jackknife_interval(estimate, parts, level=level, bounds=(-1.0, 1.0))


def left_out(
    statistic: Statistic, columns: Sequence[FloatArray], codes: IntArray, batched: bool, present: int = 0
) -> FloatArray:
    """Returns the statistic without each group in turn, or without several at a time beyond `MOST_REPLICATES` groups.

    Parameters
    ----------
    statistic : callable
        ``statistic(*columns)``.
    columns : sequence of float arrays, each of shape (n,)
        Without NaN.
    codes : int array, shape (n,)
        The group of each row, numbered from 0.
    batched : bool
        Whether `statistic` works along the last axis and leaves NaN rows out.
    present : int
        The number of groups, where there are more than these rows show.

    Returns
    -------
    ndarray, shape (g,)
        Empty with fewer than three groups.
    """
    g = min(max(int(codes.max(initial=-1)) + 1, present), MOST_REPLICATES)
    if statistic is batch_kendall_tau_b and batched and g > 2:
        x, y = columns
        return kendall_tau_b_left_out(x, y, codes % g, g)
    parts: list[float] = []
    for count in chunks(g if g > 2 else 0, codes.size):
        kept = [np.flatnonzero(codes % g != part) for part in range(len(parts), len(parts) + count)]
        parts.extend(values_by_selection(statistic, columns, kept, batched).tolist())
    return np.array(parts)


def jackknife_interval(
    estimate: float,
    replicates: ArrayLike,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    added: Sequence[tuple[float, int]] = (),
) -> Interval:
    """Interval of a statistic from its values without each group in turn: Student's t with g - 1 degrees of freedom.

    Parameters
    ----------
    estimate : float
        The statistic of all groups.
    replicates : array_like, shape (g,)
        The statistic without each of g groups.
    level : float
    bounds : (float, float), optional
        The least and the largest value possible. With them the interval is taken on Fisher's z scale of the values
        brought to [-1, 1] (for (0, 1) half the log odds), and does not leave them.
    added : sequence of (float, int)
        Variances that leaving out groups does not see (such as that of repetitions), each with its degrees of
        freedom. They are added to that of the groups; the degrees of freedom of the sum are Satterthwaite's.

    Returns
    -------
    Interval
        `draws` counts the replicates. NaN ends with fewer than three, or if the estimate or a replicate is NaN
        (`undefined` counts these). An estimate at a bound has no spread on that scale: both ends are that value.

    Raises
    ------
    OptionError
        If `level` is out of range or `bounds` are not in order.

    References
    ----------
    Satterthwaite (1946), "An approximate distribution of estimates of variance components".
    """
    check_level(level)
    parts = np.asarray(replicates, dtype=float)
    g, undefined = parts.size, int(np.count_nonzero(np.isnan(parts)))
    if bounds is not None:
        _check_order(bounds)
    if g < 3 or undefined or math.isnan(estimate):
        return Interval(math.nan, math.nan, level, g - undefined if g > 2 else 0, undefined)
    variance, freedom = _with_added(jackknife_variance(parts), g - 1, added)
    return student_interval(estimate, variance, freedom, g, level=level, bounds=bounds)


def jackknife_variance(replicates: FloatArray) -> float:
    """The variance of a statistic from its values without each of g groups, shape (g,), g at least 2."""
    return float((replicates.size - 1) * np.var(replicates))


def student_interval(
    estimate: float, variance: float, freedom: float, draws: int, *, level: float, bounds: tuple[float, float] | None
) -> Interval:
    """Student's t interval with `freedom` degrees; `bounds` and an estimate at one as for `jackknife_interval`."""
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(variance)
    if bounds is None:
        return Interval(estimate - half, estimate + half, level, draws)
    _check_order(bounds)
    centre, reach = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    place = (estimate - centre) / reach
    if abs(place) >= 1 or half == 0:
        return Interval(estimate, estimate, level, draws)
    z, half = math.atanh(place), half / (reach * (1 - place**2))
    return Interval(centre + reach * math.tanh(z - half), centre + reach * math.tanh(z + half), level, draws)


def _with_added(variance: float, freedom: int, added: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """A variance with others added to it, and Satterthwaite's degrees of freedom of the sum."""
    terms = [(variance, freedom), *added]
    total = math.fsum(term for term, _ in terms)
    spread = math.fsum(term**2 / degrees for term, degrees in terms)
    return total, total**2 / spread if added and spread > 0 else freedom


def _check_order(bounds: tuple[float, float]) -> None:
    if not bounds[0] < bounds[1]:
        raise OptionError(f"bounds ({bounds[0]:g}, {bounds[1]:g}) are not in order: give the least value first")


def _check_bounds(values: FloatArray, least: float, largest: float) -> None:
    outside = values[(values < least) | (values > largest)]
    if outside.size:
        raise DataError(
            f"a value of {outside[0]:g} lies outside [{least:g}, {largest:g}]: check what it measures, or give NaN "
            "where there is no value"
        )
