"""Intervals of proportions (Wilson), means (Student) and resampled values, and the coverage measured in simulations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import OptionError
from metricsmith.stats.resampling.draws import check_level
from metricsmith.stats.resampling.permutation import Alternative

__all__ = [
    "ENOUGH_GROUPS",
    "Interval",
    "MEASURED",
    "mean_interval",
    "mean_test",
    "measured_coverage",
    "percentile_interval",
    "symmetric_interval",
    "signed_rank_test",
    "wilson_interval",
]

ENOUGH_GROUPS = 30
"""From here on the intervals cover about as often as they say: docs/coverage.md."""
# The lowest coverage over all simulated kinds of data at the 95 % level, by number of groups: the lines "lowest" of
# `python benchmarks/coverage.py --replications 2000 --seed 0`, which remakes them (tau, difference: 400 replications).
# Of differences those intervals count that have ends: it is beside them that the number is printed.
MEASURED = {
    "share": {5: 0.916, 10: 0.904, 18: 0.926},
    "mean": {5: 0.809, 10: 0.905, 18: 0.923},
    "tau": {5: 0.877, 10: 0.94, 18: 0.922},
    "difference": {3: 0.926, 5: 0.746, 10: 0.912, 18: 0.907},
}


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval.

    Parameters
    ----------
    low, high : float
        The ends; NaN if the interval is undefined.
    level : float
        Nominal coverage in (0, 1).
    draws : int
        Resamples that entered; 0 for closed forms.
    undefined : int
        Resamples left out because the statistic was NaN.
    """

    low: float
    high: float
    level: float = 0.95
    draws: int = 0
    undefined: int = 0


def percentile_interval(draws: ArrayLike, level: float) -> Interval:
    """The middle `level` of resampled values; undefined ones are left out and counted."""
    values = np.asarray(draws, dtype=float)
    defined = values[~np.isnan(values)]
    if not defined.size:
        return Interval(math.nan, math.nan, level, 0, values.size)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, defined.size, values.size - defined.size)


def symmetric_interval(estimate: float, draws: ArrayLike, *, level: float, bounds: tuple[float, float]) -> Interval:
    """The values as near to the estimate as the middle `level` of resampled values by distance, within `bounds`.

    For statistics that move in steps, or that chance pulls to one side, such as a rank correlation of few systems:
    resampling pulls it as far again, and percentiles then miss on that side. Undefined draws are left out and counted.

    References
    ----------
    Hall (1988), "On symmetric bootstrap confidence intervals".
    """
    distance = np.abs(np.asarray(draws, dtype=float) - estimate)
    near = distance[~np.isnan(distance)]
    reach = float(np.quantile(near, level)) if near.size else math.nan
    low, high = max(estimate - reach, bounds[0]), min(estimate + reach, bounds[1])
    return Interval(low, high, level, near.size, distance.size - near.size)


def wilson_interval(successes: float, trials: float, *, level: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion; [0, 1] is never left, 0 or all successes are fine.

    Parameters
    ----------
    successes, trials : float
        ``0 <= successes <= trials``. No trials give NaN ends.
    level : float

    Raises
    ------
    OptionError
        If the counts contradict each other.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference".
    """
    check_level(level)
    if not 0 <= successes <= trials:
        raise OptionError(
            f"{successes:g} successes in {trials:g} trials is impossible: successes must lie between 0 "
            "and the number of trials; check the counts"
        )
    if trials == 0:
        return Interval(math.nan, math.nan, level)
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low, high, level)


def mean_test(values: ArrayLike, *, test_to_train: float = 0.0, alternative: Alternative = "two-sided") -> float:
    """P-value of Student's t-test that a mean is 0, for values whose training rows overlap.

    Parameters and source as for `mean_interval`; NaN with fewer than two values. Values that are all equal
    have p 0 where their mean is what the alternative (unequal to 0, or greater) says, else p 1.
    """
    from scipy.special import stdtr

    mean, error, m = _mean_error(values, test_to_train)
    if m < 2:
        return math.nan
    two_sided = alternative == "two-sided"
    if error == 0:
        return 0.0 if mean > 0 or (two_sided and mean < 0) else 1.0
    return float(2 * stdtr(m - 1, -abs(mean) / error) if two_sided else stdtr(m - 1, -mean / error))


def signed_rank_test(values: ArrayLike) -> float:
    """P-value of Wilcoxon's signed-rank test that values lie around 0, against greater ones.

    Parameters
    ----------
    values : array_like, shape (m,)
        NaN are left out, zeros as well; without any other value p is 1, and NaN with fewer than two values.

    References
    ----------
    Wilcoxon (1945), "Individual comparisons by ranking methods"; exact where no two values tie in size, else by the
    normal approximation (scipy).
    """
    from scipy.stats import wilcoxon

    numbers = np.asarray(values, dtype=float).ravel()
    defined = numbers[~np.isnan(numbers)]
    if defined.size < 2:
        return math.nan
    return float(wilcoxon(defined, alternative="greater").pvalue) if defined.any() else 1.0


def mean_interval(
    values: ArrayLike,
    *,
    level: float = 0.95,
    test_to_train: float = 0.0,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Student's t interval of a mean, widened for values whose training rows overlap.

    The variance of the mean of m values is taken as ``s^2 (1/m + test_to_train)``.

    Parameters
    ----------
    values : array_like, shape (m,)
        NaN are left out and counted; fewer than two values give NaN ends.
    level : float
    test_to_train : float
        0 for independent values. For values from cross-validation, rows tested over rows trained on:
        ``1 / (k - 1)`` for k folds.
    bounds : (float, float)
        The least and the largest value possible; the interval does not leave them.

    References
    ----------
    Nadeau and Bengio (2003), "Inference for the generalization error" (corrected resampled t-test).
    """
    from scipy.special import stdtrit

    check_level(level)
    undefined = int(np.isnan(np.asarray(values, dtype=float)).sum())
    mean, error, m = _mean_error(values, test_to_train)
    if m < 2:
        return Interval(math.nan, math.nan, level, 0, undefined)
    half = float(stdtrit(m - 1, (1 + level) / 2)) * error
    return Interval(max(mean - half, bounds[0]), min(mean + half, bounds[1]), level, 0, undefined)


def _mean_error(values: ArrayLike, test_to_train: float) -> tuple[float, float, int]:
    """Mean and its standard error over the defined values, and how many these are."""
    numbers = np.asarray(values, dtype=float).ravel()
    defined = numbers[~np.isnan(numbers)]
    if defined.size < 2:
        return math.nan, math.nan, defined.size
    error = float(defined.std(ddof=1)) * math.sqrt(1 / defined.size + test_to_train)
    return float(defined.mean()), error, defined.size


def measured_coverage(kind: str, groups: int) -> float | None:
    """The lowest coverage that a 95 % interval of this kind had in simulations with about so few groups.

    Parameters
    ----------
    kind : str
        ``share`` (`share_interval`), ``mean`` (`group_mean_interval`), ``tau`` (`correlation_interval` of tau-b) or
        ``difference`` (`repeated_interval` of the tau-b of one prediction less that of another).
    groups : int
        How many groups the interval stands on.

    Returns
    -------
    float or None
        In (0, 1): of the nearest simulated number of groups that is not above `groups`; NaN below the fewest that
        were simulated, 5 (3 for a difference). None with `ENOUGH_GROUPS` or more, where nothing needs saying.

    Raises
    ------
    OptionError
        If there is no such kind.

    Examples
    --------
    >>> measured_coverage("share", 40) is None
    True
    """
    if kind not in MEASURED:
        raise OptionError(f"no coverage was measured for {kind!r}: choose one of {', '.join(MEASURED)}")
    if groups >= ENOUGH_GROUPS:
        return None
    table = MEASURED[kind]
    return table[max(few)] if (few := [count for count in table if count <= groups]) else math.nan
