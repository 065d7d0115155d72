"""Planning of a collection of ratings: how many of each item, how many items, and what people themselves reach."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings, places_of
from metricsmith.rating_model.vectors import TIE, hard
from metricsmith.stats.resampling import Interval, check_level, complete_rows, group_mean_interval
from metricsmith.stats.resampling.clusters import design_effect

__all__ = ["HumanCeiling", "RatingPlan", "RatingSpread", "flip_probability", "human_ceiling", "plan_ratings"]


def flip_probability(
    ratings_per_item: int,
    threshold: float,
    *,
    shares: ArrayLike | None = None,
    spread: RatingSpread | None = None,
) -> float:
    """The probability that m ratings decide an item otherwise than all possible ratings would.

    Parameters
    ----------
    ratings_per_item : int
        m, at least 1.
    threshold : float
        In (0, 1]: an item is positive where the share of ratings that speak for it is at least so large.
    shares : array_like, optional
        Each item's true share Omega; NaN are left out. Shares of few ratings are no true shares: take `spread`.
    spread : RatingSpread, optional
        Of a pilot: Omega has the Beta distribution with its mean and its variance between items. By default Omega is
        uniform.

    Raises
    ------
    OptionError
        If a number is out of range, or both shares and a spread are given.

    Examples
    --------
    >>> [round(flip_probability(m, 0.5), 3) for m in (1, 3, 10)]
    [0.25, 0.188, 0.123]
    """
    from scipy.special import betainc
    from scipy.stats import betabinom, binom

    m = ratings_per_item
    if not (m >= 1 and m % 1 == 0) or not 0 < threshold <= 1 or (shares is not None and spread is not None):
        raise OptionError(
            f"{m} ratings, threshold {threshold:g}: give a whole number from 1, a share in (0, 1], and shares or a "
            "spread"
        )
    counts = np.arange(m + 1)
    positive = counts / m >= threshold - TIE
    if shares is not None:
        omega = np.asarray(shares, dtype=float)
        omega = omega[~np.isnan(omega)]
        if ((omega < 0) | (omega > 1)).any():
            raise OptionError(f"shares from {omega.min():g} to {omega.max():g}: give shares from 0 to 1")
        said = binom.pmf(counts, m, omega[:, None]) @ positive
        flips = np.where(omega >= threshold - TIE, 1 - said, said)
        return float(flips.mean()) if omega.size else math.nan
    a, b = (1.0, 1.0) if spread is None else spread.beta
    below = betainc(a + counts, b + m - counts, threshold)  # the probability of a negative item given the ratings
    return float(betabinom.pmf(counts, m, a, b) @ np.where(positive, below, 1 - below))


@dataclass(frozen=True)
class RatingSpread:
    """The variances that a plan rests on, of ratings as numbers.

    Parameters
    ----------
    mean : float
    between, within : float
        Variance of items' true means, and of the ratings of one item around it; at least 0.
    group_size : float
        Items of a group, where items come in groups such as the sentences of a document; 1 where each stands alone.
    likeness : float
        What groups add to the variance of one item in the mean of all: `group_size` - 1 times the variance between
        groups.
    """

    mean: float
    between: float
    within: float
    group_size: float = 1.0
    likeness: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.between < math.inf and 0 <= self.within < math.inf and math.isfinite(self.mean)):
            raise OptionError(f"{self}: give a number, and variances from 0")

    @classmethod
    def of_pilot(cls, ratings: Ratings, positive: Sequence[str]) -> RatingSpread:
        """The spread of "the rating holds one of these options", 1 or 0, by the analysis of variance.

        Where the ratings have groups of items, these come in by `design_effect` of the items' shares.

        Raises
        ------
        DataError
            If fewer than two items, or none with two ratings, were rated.
        """
        values = ratings.given[:, places_of(positive, ratings.options, "positive options")].any(axis=1).astype(float)
        size = ratings.per_item
        rated, total = size[size > 0].astype(float), values.size
        if rated.size < 2 or total == rated.size:
            raise DataError(
                f"{rated.size} items with {total} ratings: a pilot needs two items, and two ratings of some item"
            )
        means = np.bincount(ratings.item, values, minlength=size.size) / np.maximum(size, 1)
        within = float(((values - means[ratings.item]) ** 2).sum() / (total - rated.size))
        among = float((rated * (means[size > 0] - values.mean()) ** 2).sum() / (rated.size - 1))
        typical = (total - (rated**2).sum() / total) / (rated.size - 1)
        found = cls(float(values.mean()), max(0.0, (among - within) / typical), within)
        (shares,), codes = complete_rows([np.where(size > 0, means, math.nan)], ratings.groups)
        group_size = float((np.bincount(codes) ** 2).sum()) / rated.size
        likeness = (design_effect(shares, codes) - 1) * found.variance(total / rated.size)
        return replace(found, group_size=group_size, likeness=likeness)

    @property
    def beta(self) -> tuple[float, float]:
        """Parameters of the Beta distribution of items' shares; an `OptionError` where the variance allows none."""
        most = self.mean * (1 - self.mean)
        if not 0 < self.between < most:
            raise OptionError(
                f"variance {self.between:g} between items: with mean {self.mean:g} it must be in (0, {most:g})"
            )
        size = most / self.between - 1
        return self.mean * size, (1 - self.mean) * size

    def variance(self, ratings_per_item: float) -> float:
        """Of the mean of an item's m ratings: ``between + within / m``."""
        return self.between + self.within / ratings_per_item

    def half_width(self, items: int, ratings_per_item: int, level: float = 0.95) -> float:
        """Of the mean's t interval, as expected: ``t sqrt((between + within / m + likeness) / n)``.

        The degrees of freedom are groups - 1; infinite for one group.
        """
        from scipy.special import stdtrit

        freedom = items / self.group_size - 1
        t = float(stdtrit(freedom, (1 + level) / 2)) if freedom > 0 else math.inf
        return t * math.sqrt((self.variance(ratings_per_item) + self.likeness) / items)


@dataclass(frozen=True)
class RatingPlan:
    """Items and ratings of each, what they cost, and the half width of the mean's interval to expect."""

    items: int
    ratings_per_item: int
    half_width: float
    cost: float


def plan_ratings(
    spread: RatingSpread,
    *,
    half_width: float | None = None,
    budget: float | None = None,
    ratings_per_item: int | None = None,
    most_items: int = 1_000_000,
    item_cost: float = 0.0,
    rating_cost: float = 1.0,
    level: float = 0.95,
) -> RatingPlan:
    """The cheapest plan for a half width, or the narrowest interval for a budget.

    Every item is rated by raters of its own, or by raters who do not differ in level; the interval speaks of new items,
    which come in groups like those of the pilot.

    Parameters
    ----------
    spread : RatingSpread
    half_width, budget : float
        One of them; above 0.
    ratings_per_item : int, optional
        By default the best of 1 to 1,000, which is about ``sqrt(item_cost within / (rating_cost between))``.
    most_items : int
        Items that there are.
    item_cost, rating_cost : float
        Of an item whatever its ratings, at least 0, and of each rating, above 0.
    level : float
        Of the interval.

    Raises
    ------
    OptionError
        If a number is out of range, all ratings are alike, or no plan meets the wish.
    """
    check_level(level)
    if spread.between + spread.within <= 0:
        raise OptionError(
            f"all ratings are alike (mean {spread.mean:g}), and no number of items follows from that: name fewer "
            "positive options, or gather a pilot that has others, too"
        )
    goal = half_width if budget is None else budget
    if (half_width is None) == (budget is None) or goal is None or not 0 < goal < math.inf:
        raise OptionError("give either a half width or a budget, a number above 0")
    if not (0 < rating_cost < math.inf and 0 <= item_cost < math.inf):
        raise OptionError(f"an item costs {item_cost:g}, a rating {rating_cost:g}: give at least 0, and more than 0")
    if ratings_per_item is not None and not (ratings_per_item >= 1 and ratings_per_item % 1 == 0):
        raise OptionError(f"{ratings_per_item} ratings per item: give a whole number from 1, or None for the best one")
    plans = []
    for m in range(1, 1001) if ratings_per_item is None else [ratings_per_item]:
        price = item_cost + m * rating_cost
        if budget is not None:
            items = min(most_items, int(goal / price + 1e-9))
        else:
            items = _first_that_meets(spread, goal, m, most_items, level)
        if 1 < items <= most_items:
            plans.append(RatingPlan(items, m, spread.half_width(items, m, level), items * price))
    if not plans:
        raise OptionError(f"no plan of at most {most_items} items meets the wish: allow more items or a wider interval")
    return min(plans, key=lambda plan: (plan.half_width if half_width is None else plan.cost, plan.ratings_per_item))


def _first_that_meets(spread: RatingSpread, wished: float, m: int, most_items: int, level: float) -> int:
    """The least number of items with this half width; `most_items` + 1 where more are needed."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    least = max(2, int((z / wished) ** 2 * (spread.variance(m) + spread.likeness)))  # t is larger than z
    return bisect_left(range(most_items + 1), -wished, lo=least, key=lambda items: -spread.half_width(items, m, level))


@dataclass(frozen=True)
class HumanCeiling:
    """Agreement of one rater with the others: a judge as good as one person, compared in the same way, reaches as much.

    It is no limit: a judge that gives the most frequent choice of many people exceeds it. Nor is it comparable with a
    hit rate, which is against all raters; `alternative_annotator_test` holds judges against all but one.

    Parameters
    ----------
    hit_rate : float
        Of a fresh rater's choice with the mode of the item's other raters, ties split.
    agreement : float
        Of a fresh rater's choice with that of another one, the mean of the others' shares of it. No judge's expected
        Brier score is below ``1 - agreement``.
    hit_rate_interval, agreement_interval : Interval
        By leaving out groups (`group_mean_interval`).
    items, left_out : int
        Items with two ratings or more, and the others.
    """

    hit_rate: float
    agreement: float
    hit_rate_interval: Interval
    agreement_interval: Interval
    items: int
    left_out: int


def human_ceiling(ratings: Ratings, *, level: float = 0.95) -> HumanCeiling:
    """The agreement of people with each other on forced choices; NaN where no item has two ratings.

    For ratings on a scale as numbers, `metricsmith.stats.rater_ceiling` has the ceiling of Kendall's tau-b.
    Response sets are refused with an `OptionError`.
    """
    given = np.eye(len(ratings.options))[ratings.chosen]
    others = ratings.counts[ratings.item] - given
    hits = (hard(others) * given).sum(axis=1)
    same = (others * given).sum(axis=1) / np.maximum(others.sum(axis=1), 1)
    size, means = ratings.per_item, []
    for values in (hits, same):
        total = np.bincount(ratings.item, values, minlength=size.size)
        means.append(np.where(size > 1, total / np.maximum(size, 1), math.nan))
    several = int((size > 1).sum())
    hit_rate, agreement = (float(np.nanmean(values)) if several else math.nan for values in means)
    intervals = [group_mean_interval(values, ratings.groups, level=level, bounds=(0.0, 1.0)) for values in means]
    return HumanCeiling(hit_rate, agreement, intervals[0], intervals[1], several, size.size - several)
