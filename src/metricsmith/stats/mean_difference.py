"""The mean difference of two versions on pairs of rows, the verdict that it allows, and the pairs that would decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.stats.correlation import FloatArray, IntArray
from metricsmith.stats.resampling import Groups, complete_rows, group_mean_interval, paired_permutation_test
from metricsmith.stats.validity import PairedMean, Sensitivity, sensitivity

__all__ = ["FEWEST_GROUPS", "MeanDifference", "mean_difference"]

SIGNIFICANT = 0.05
FEWEST_GROUPS = 6
"""With fewer no exchange of whole groups has a p below .05: five groups have 32 arrangements, two of them extreme."""
POWER = 0.8  # of the comparison that would decide
MOST_TIMES = 100  # the pairs here: a number of pairs beyond is none that anyone should collect for the difference seen


@dataclass(frozen=True, slots=True)
class MeanDifference(PairedMean):
    """The mean of a second version less that of a first, over pairs.

    Parameters
    ----------
    name : str
    first, second : float
        Means over the pairs; `value` is the second less the first.
    wins : Sensitivity
        Share of the pairs that the second wins, with its interval; `tied`, and `risen` for those that it loses.
    sign : int
        1 where higher is better, -1 where lower is.
    p_value, p_adjusted : float
        Two-sided, by exchanging the versions in whole groups; and after Holm, where several claims are made.
    needed : float
        About as many pairs of this kind would decide in four of five cases, if the difference stays as it is here; inf
        where that is more than a hundred times the pairs here, NaN where nothing shows how pairs vary.
    detectable : float
        The difference that as many pairs as here show in four of five cases.
    """

    name: str
    first: float
    second: float
    wins: Sensitivity
    sign: int
    p_value: float
    p_adjusted: float
    needed: float
    detectable: float

    @property
    def verdict(self) -> Literal["better", "worse", "undecided"]:
        """The second version is better or worse where interval and test both say so, else ``undecided``."""
        gain = self.sign * self.value
        if not (self.p_adjusted <= SIGNIFICANT and (self.interval.low > 0 or self.interval.high < 0)):
            return "undecided"
        return "better" if gain > 0 else "worse"


def mean_difference(
    first: ArrayLike,
    second: ArrayLike,
    groups: Groups | None = None,
    *,
    name: str = "",
    higher_is_better: bool = True,
    width: float = math.inf,
    seed: int = 0,
) -> MeanDifference:
    """Measures the mean of ``second - first`` over pairs that come in groups.

    Parameters
    ----------
    first, second : array_like, shape (n,)
        Numbers of the two versions on the same rows; pairs that are NaN on either side are left out and counted.
    groups : sequence of hashable, length n, optional
        Pairs of one group are exchanged and left out together; None makes every pair its own group.
    name : str
    higher_is_better : bool
    width : float
        Of the scale that the numbers are on, where it has ends; it bounds the interval as long as no pair differs by
        more.
    seed : int
        Of the exchanges.

    Returns
    -------
    MeanDifference
        The interval is `group_mean_interval`'s, at 95 %; the p-value that of a thousand exchanges of the versions in
        whole groups. Either alone is wrong too often: the interval where groups have very uneven sizes, the exchanges
        where few pairs lose much and many win a little (docs/versus.md). NaN without pairs.

    Raises
    ------
    DataError
        If lengths differ or a group label is missing.

    Examples
    --------
    >>> found = mean_difference([1, 2, 3, 2, 1, 2, 3], [2, 3, 4, 4, 2, 3, 3])
    >>> round(found.value, 2), found.verdict, found.wins.tied
    (1.0, 'better', 0.14285714285714285)
    """
    (a, b), codes = complete_rows([first, second], groups)
    sign, count = 1 if higher_is_better else -1, int(codes.max(initial=-1)) + 1
    gaps = b - a
    bounds = (-width, width) if math.isfinite(width) and np.abs(gaps).max(initial=0) <= width else None
    sums = [np.bincount(codes, side) for side in (a, b)]
    test = paired_permutation_test(_total, sums[1], sums[0], batched=True, standardize=False, seed=seed)
    p_value = test.p_value if count > 1 else math.nan
    needed, detectable = _outlook(gaps, codes)
    means = [float(side.mean()) if side.size else math.nan for side in (gaps, a, b)]
    return MeanDifference(
        means[0], group_mean_interval(gaps, codes, bounds=bounds), gaps.size, count, np.size(first) - gaps.size, name,
        means[1], means[2], sensitivity(sign * b, sign * a, codes), sign, p_value, p_value, needed, detectable,
    )  # fmt: skip


def _total(values: FloatArray) -> FloatArray:
    return np.asarray(values.sum(axis=-1))


def _outlook(gaps: FloatArray, codes: IntArray) -> tuple[float, float]:
    """The pairs that would decide, and the difference that these pairs show, each in `POWER` of all cases."""
    from scipy.special import stdtrit

    count = int(codes.max(initial=-1)) + 1
    if count < 2 or np.ptp(gaps) == 0:
        return math.nan, math.nan
    mean, often = float(gaps.mean()), NormalDist().inv_cdf(POWER)
    spread = float((np.bincount(codes, gaps - mean) ** 2).sum()) / (count - 1) * (count / gaps.size) ** 2  # of a group

    def reach(groups: float) -> float:
        return float(stdtrit(groups - 1, 1 - SIGNIFICANT / 2)) + often

    detectable = reach(count) * math.sqrt(spread / count)
    if mean == 0:
        return math.inf, detectable
    wanted = float(FEWEST_GROUPS)
    for _ in range(4):  # the quantile hardly changes with the groups
        wanted = max(FEWEST_GROUPS, spread * (reach(wanted) / mean) ** 2)
    pairs = max(math.ceil(wanted), count + 1) * gaps.size / count
    return (pairs if pairs <= MOST_TIMES * gaps.size else math.inf), detectable
