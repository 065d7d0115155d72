"""Mean ratings of a big unlabelled set, from a judge's numbers there and on a small labelled set.

A judge's mean alone is biased by the judge; the mean of a few ratings is unbiased and wide. Prediction-powered
inference takes the judge's mean and corrects it by the error that the labelled rows show. Rogan and Gladen's estimator
turns the share of the judge's positives into a prevalence. Measured coverage: docs/corrected_means.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import FloatArray, IntArray
from metricsmith.stats.resampling import Groups, Interval, aligned_rows, group_mean_interval

__all__ = ["CorrectedMean", "LabelledSample", "Method", "prediction_powered_mean", "rogan_gladen"]

Method = Literal["ppi++", "ppi", "rogan-gladen", "classical"]

FEWEST_GROUPS = 5  # labelled groups with a rating other than the most frequent one; unlabelled groups
LEAST_YOUDEN = 0.2  # below the interval of sensitivity + specificity - 1
PRIOR_GROUPS = 4  # weight of the slope over rows in lambda: few groups say little of the slope over groups
CAUTION = 0.25  # evidence that the judge knows nothing, in groups, against that of the labelled groups
FOLDS = 100  # with more labelled groups several share a lambda


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """A mean rating, a prevalence (of ratings 0 and 1) or a difference of two, corrected by labelled rows.

    Parameters
    ----------
    estimate, low, high : float
        The corrected mean and its interval, in rating points; NaN ends where nothing shows how far it may be off.
    level : float
        Nominal coverage in (0, 1).
    method : str
        The method that was used: ``classical`` also where the one asked for was not possible.
    lam : float
        Lambda, the weight of the judge, in rating points for a point of the judge: the mean over labelled rows. 0 for
        ``classical``, NaN for ``rogan-gladen``.
    classical, classical_low, classical_high : float
        The mean of the labelled rows' ratings alone, with its interval.
    plain : float
        The mean of the judge's numbers on the unlabelled rows, uncorrected, on the judge's own scale.
    labelled, groups, unlabelled, unlabelled_groups : int
        Rows that entered, and how many groups they form.
    missing, unlabelled_missing : int
        Labelled rows left out for want of the rating or the judge's number; unlabelled rows without the latter.
    note : str
        The reason in words where another method than the one asked for was used; else empty.
    """

    estimate: float
    low: float
    high: float
    level: float
    method: Method
    lam: float
    classical: float
    classical_low: float
    classical_high: float
    plain: float
    labelled: int
    groups: int
    unlabelled: int
    unlabelled_groups: int
    missing: int
    unlabelled_missing: int
    note: str = ""


@dataclass(frozen=True)
class LabelledSample:
    """Ratings and a judge's numbers of n labelled rows, the judge's of N others, in K strata; built by `of`.

    Groups are numbered from 0, those of both sets together; strata are places of `weights`, shape (K,), and the
    estimate is the sum over strata of weight times mean. `missing` and `unlabelled_missing` count the rows with NaN.
    """

    ratings: FloatArray
    predictions: FloatArray
    groups: IntArray
    strata: IntArray
    unlabelled: FloatArray
    unlabelled_groups: IntArray
    unlabelled_strata: IntArray
    weights: FloatArray
    missing: int
    unlabelled_missing: int

    @classmethod
    def of(
        cls,
        ratings: ArrayLike,
        predictions: ArrayLike,
        unlabelled: ArrayLike,
        *,
        groups: Groups | None = None,
        unlabelled_groups: Groups | None = None,
        strata: Sequence[Hashable] | None = None,
        unlabelled_strata: Sequence[Hashable] | None = None,
        difference: tuple[Hashable, Hashable] | None = None,
    ) -> LabelledSample:
        """Check and align the numbers; no row may stand in both sets.

        Parameters
        ----------
        ratings, predictions : array_like, shape (n,)
            Of the labelled rows: a random sample, within strata, of what the unlabelled rows are a sample of. The
            judge's numbers may be on any scale. Rows with a NaN are left out and counted.
        unlabelled : array_like, shape (N,)
            The judge's numbers on the other rows; NaN are left out and counted.
        groups, unlabelled_groups : sequence of hashable, optional
            Rows that are alike; a label on both sides is one group. By default each row is a group.
        strata, unlabelled_strata : sequence of hashable, optional
            Parts that were labelled to different shares: each counts by its share of the unlabelled rows.
        difference : (hashable, hashable), optional
            Two strata, such as systems: the estimate is the mean of the first less that of the second.

        Raises
        ------
        DataError
            If lengths differ, or a stratum has no unlabelled row or fewer than two labelled groups.
        OptionError
            If strata are given for one set alone, or a difference without strata.
        """
        if (strata is None) != (unlabelled_strata is None) or (difference is not None and strata is None):
            raise OptionError("strata= and unlabelled_strata= go together, and difference= needs them: give both")
        y, f, x = (np.asarray(numbers, dtype=float) for numbers in (ratings, predictions, unlabelled))
        n = aligned_rows([y, f], None)[1].size
        labels = [("labelled", row) for row in range(n)] if groups is None else [*groups]
        labels += [("unlabelled", row) for row in range(x.size)] if unlabelled_groups is None else [*unlabelled_groups]
        parts = [0] * (n + x.size) if strata is None else [*strata, *(unlabelled_strata or ())]
        names = [*(dict.fromkeys(parts) if difference is None else difference)]
        places = [names.index(part) if part in names else -1 for part in parts]
        (values, stratum), codes = aligned_rows([np.concatenate([y + f, x]), places], labels)
        known, first = (stratum >= 0) & ~np.isnan(values), np.arange(values.size) < n
        own, other = known & first, known & ~first
        sizes = np.bincount(stratum[other], minlength=len(names))
        for k, name in enumerate(names):
            found = np.unique(codes[own & (stratum == k)]).size
            if found < 2 or not sizes[k]:
                raise DataError(
                    f"{found} labelled groups and {sizes[k]} unlabelled rows{f' of {name!r}' if strata else ''} have "
                    "numbers: two such groups with rating and prediction, and a row, are needed: rate or judge more"
                )
        gone = [int(((stratum >= 0) & side & ~known).sum()) for side in (first, ~first)]
        weights = sizes / sizes.sum() if difference is None else np.array([1.0, -1.0])
        return cls(
            y[own[:n]], f[own[:n]], codes[own], stratum[own], x[other[n:]], codes[other], stratum[other], weights, *gone
        )

    @property
    def unlabelled_means(self) -> FloatArray:
        """The judge's mean on the unlabelled rows of each stratum, shape (K,)."""
        return _means(self.unlabelled, self.unlabelled_strata, self.weights.size)

    def too_few(self) -> str:
        """The reason why groups are too few for more than the classical interval; empty where they are enough."""
        for k in range(self.weights.size):
            ratings, groups = self.ratings[self.strata == k], self.groups[self.strata == k]
            values, counts = np.unique(ratings, return_counts=True)
            usual = values[counts.argmax()]
            telling = np.unique(groups[ratings != usual]).size
            if telling < FEWEST_GROUPS:
                of = f"{telling} of {np.unique(groups).size} labelled groups hold a rating other than {usual:g}"
                return f"{of}, and {FEWEST_GROUPS} are needed: the mean of the ratings alone"
        there = np.unique(self.unlabelled_groups).size
        few = f"the unlabelled rows form {there} groups, and {FEWEST_GROUPS} are needed: the mean of the ratings alone"
        return few if there < FEWEST_GROUPS else ""

    def linear(self, terms: FloatArray) -> tuple[float, FloatArray]:
        """The strata's weighted mean of terms, and values of which it is the plain mean, varying by group as it does."""
        count = self.weights.size
        means, size = _means(terms, self.strata, count), np.bincount(self.strata, minlength=count)
        estimate = float(self.weights @ means)
        groups = np.bincount(np.unique(self.groups * count + self.strata) % count)
        every = np.unique(self.groups).size
        # A stratum with groups of its own has its own g / (g - 1).
        share = terms.size * self.weights / size * np.sqrt(groups / (groups - 1) * (every - 1) / every)
        return estimate, estimate + share[self.strata] * (terms - means[self.strata])

    def unlabelled_terms(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Deviations that unlabelled rows bring into the estimate, and their sums by group, shape (all groups,)."""
        stratum = self.unlabelled_strata
        share = slopes * self.weights / np.bincount(stratum, minlength=self.weights.size)
        off = share[stratum] * (self.unlabelled - self.unlabelled_means[stratum])
        total = 1 + max(int(self.groups.max()), int(self.unlabelled_groups.max()))
        return off, np.bincount(self.unlabelled_groups, off, total).astype(float)

    def interval(self, terms: FloatArray, slopes: FloatArray, level: float, unseen: float) -> tuple[float, Interval]:
        """The weighted mean of terms that hold `slopes`, shape (K,), times the unlabelled rows' means; its interval.

        Unlabelled rows vary together with the labelled rows of their group, or else in a variance of their own.
        """
        estimate, values = self.linear(terms)
        sums, n = self.unlabelled_terms(slopes)[1], terms.size
        size = np.bincount(self.groups, minlength=sums.size)
        shift = n * (sums / np.maximum(size, 1))[self.groups]
        values = values + shift - shift.mean()
        rest = sums[np.setdiff1d(self.unlabelled_groups, self.groups)]
        added = [(rest.size / (rest.size - 1) * float(rest @ rest), rest.size - 1)] if rest.size > 1 else []
        doubt, freedom = self._doubt(values)
        added.append((doubt + unseen, freedom))
        return estimate, group_mean_interval(values, self.groups, level=level, added=added)

    def _doubt(self, values: FloatArray) -> tuple[float, int]:
        """A share of the variance that the judge saves, for groups in which it errs that are few or unseen.

        The share is `CAUTION` over it and the groups that carry the spread, ``(sum of squares)^2 / sum of fourth
        powers``: where a judge is nearly always right, the spread of the rows shows little of how far it may be wrong.
        """
        codes = np.unique(self.groups, return_inverse=True)[1]
        left, whole = (np.bincount(codes, side - side.mean()) ** 2 for side in (values, self.linear(self.ratings)[1]))
        carrying = left.sum() ** 2 / max(left @ left, np.finfo(float).tiny)
        saved = left.size / (left.size - 1) * max(float(whole.sum() - left.sum()), 0.0) / values.size**2
        return CAUTION / (carrying + CAUTION) * saved, left.size - 1


def prediction_powered_mean(
    sample: LabelledSample,
    *,
    lam: float | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> CorrectedMean:
    """The mean by prediction-powered inference: PPI++ with a lambda from other groups, or PPI with a lambda given.

    The estimate is ``mean(y - lambda (f - mean of f on the unlabelled rows))`` over labelled rows with ratings y and
    judge's numbers f, by stratum. PPI is lambda 1, the mean of the ratings alone lambda 0. The lambda of a group
    minimises the variance as the other groups show it: the regression through 0 of the ratings' sums by group on the
    judge's, both as deviations from the mean, the unlabelled rows' among the latter; with one row a group it is
    ``cov(y, f) / ((1 + n / N) var f)``. It is averaged with the same slope over rows, which counts as `PRIOR_GROUPS`
    groups. So it takes any scale and any direction of the judge, and is not clipped.

    Parameters
    ----------
    sample : LabelledSample
    lam : float, optional
        A lambda for all rows, in rating points for a point of the judge; by default it is tuned.
    level : float
        Nominal coverage of the interval: `group_mean_interval` of the terms, with the unlabelled rows' variance.
    bounds : (float, float), optional
        The least and the largest rating; by default 0 and 1 where all ratings are one of these.

    Returns
    -------
    CorrectedMean
        The classical mean and interval, and the reason, where fewer than five labelled groups of a stratum hold a
        rating other than the most frequent one, or unlabelled groups are as few.

    Raises
    ------
    DataError
        If a rating lies outside `bounds`.
    OptionError
        If `level` is out of range, `bounds` are not in order or `lam` is not finite.

    References
    ----------
    Angelopoulos et al. (2023), "Prediction-powered inference"; Angelopoulos, Duchi and Zrnic (2023), "PPI++: efficient
    prediction-powered inference", with its lambda (section 6) here by group and cross-fitted.
    """
    if lam is not None and not math.isfinite(lam):
        raise OptionError(f"lam={lam:g} must be a finite number: 1 is PPI, 0 the mean of the ratings, None tunes it")
    if bounds is None and np.isin(sample.ratings, (0, 1)).all():
        bounds = 0.0, 1.0
    each = _tuned(sample) if lam is None else np.full(sample.ratings.size, float(lam))
    terms = sample.ratings - each * (sample.predictions - sample.unlabelled_means[sample.strata])
    slopes = np.full(sample.weights.size, each.mean())
    return _corrected(sample, "ppi++" if lam is None else "ppi", level, bounds, terms, slopes, float(each.mean()))


def rogan_gladen(sample: LabelledSample, *, level: float = 0.95) -> CorrectedMean:
    """The prevalence by Rogan and Gladen: the judge's share of positives, with its two kinds of error taken out.

    It is ``(q + specificity - 1) / (sensitivity + specificity - 1)`` with the share q of positives on the unlabelled
    rows, by stratum, clipped to [0, 1]. The labelled rows may hold more positives or fewer than the others, as long as
    the judge errs alike on both.

    Parameters
    ----------
    sample : LabelledSample
        Ratings and predictions are 0 or 1.
    level : float
        Of the interval: `group_mean_interval` of linear terms of sensitivity, specificity and q. What Agresti and
        Coull's variance of the two rates has more than theirs is added, for errors that few groups do not show.

    Returns
    -------
    CorrectedMean
        The classical mean and interval where `prediction_powered_mean` gives them too.

    Raises
    ------
    DataError
        If a number is not 0 or 1, or the interval of sensitivity + specificity - 1, by which the estimate divides,
        does not lie above .2.

    References
    ----------
    Rogan and Gladen (1978), "Estimating prevalence from the results of a screening test"; Agresti and Coull (1998).
    """
    y, f, x = sample.ratings, sample.predictions, sample.unlabelled
    for numbers in (y, f, x):
        if (other := numbers[(numbers != 0) & (numbers != 1)]).size:
            raise DataError(f"{other[0]:g} is neither 0 nor 1: Rogan and Gladen's estimator takes verdicts; use ppi++")
    terms, slopes, unseen = np.zeros(y.size), np.ones(sample.weights.size), 0.0
    for k, positives in enumerate(sample.unlabelled_means if not sample.too_few() else ()):
        here = sample.strata == k
        ours, judged = y[here], f[here]
        hits, alarms = float(judged[ours == 1].mean()), float(judged[ours == 0].mean())
        hit, alarm = ours * (judged - hits) / ours.mean(), (1 - ours) * (judged - alarms) / (1 - ours.mean())
        youden = hits - alarms
        low = group_mean_interval(youden + hit - alarm, sample.groups[here], level=level).low
        if not (low > LEAST_YOUDEN or youden == 1):
            raise DataError(
                f"sensitivity + specificity - 1 is {youden:.2f}, and its interval begins at {low:.2f}: Rogan and "
                f"Gladen's estimator divides by it and needs more than {LEAST_YOUDEN:g} there; use ppi++, or label more"
            )
        share = min(max((positives - alarms) / youden, 0.0), 1.0)
        terms[here], slopes[k] = share - ((1 - share) * alarm + share * hit) / youden, 1 / youden
        for rate, part, truth in ((alarms, 1 - share, 0), (hits, share, 1)):
            size = np.unique(sample.groups[here & (y == truth)]).size
            smooth = (rate * size + 2) / (size + 4)
            more = smooth * (1 - smooth) / (size + 4) - rate * (1 - rate) / size
            unseen += (sample.weights[k] * part / youden) ** 2 * max(more, 0.0)
    return _corrected(sample, "rogan-gladen", level, (0.0, 1.0), terms, slopes, math.nan, unseen)


def _corrected(
    sample: LabelledSample,
    method: Method,
    level: float,
    bounds: tuple[float, float] | None,
    terms: FloatArray,
    slopes: FloatArray,
    lam: float,
    unseen: float = 0.0,
) -> CorrectedMean:
    """The record of an estimate from terms, or of the classical one where groups are too few."""
    estimate, values = sample.linear(sample.ratings)
    alone = bounds if sample.weights.size == 1 else None  # other linear values keep to no bounds
    around = classical = group_mean_interval(values, sample.groups, level=level, bounds=alone)
    mean, note = estimate, sample.too_few()
    if note:
        method, lam = "classical", 0.0
    else:
        estimate, around = sample.interval(terms, slopes, level, unseen)
    low, high = (-math.inf, math.inf) if bounds is None else bounds
    if sample.weights[-1] < 0:  # of a difference
        low, high = low - high, high - low
    ends = tuple(float(np.clip(end, low, high)) for one in (around, classical) for end in (one.low, one.high))
    return CorrectedMean(
        estimate, ends[0], ends[1], level, method, lam, mean, ends[2], ends[3],
        float(sample.weights @ sample.unlabelled_means), sample.ratings.size, np.unique(sample.groups).size,
        sample.unlabelled.size, np.unique(sample.unlabelled_groups).size, sample.missing, sample.unlabelled_missing,
        note,
    )  # fmt: skip


def _tuned(sample: LabelledSample) -> FloatArray:
    """The lambda of each labelled row, shape (n,), from the groups of other folds: see `prediction_powered_mean`.

    Deviations are from the mean of the other folds; sums over them follow from those over all groups.
    """
    own, codes = np.unique(sample.groups, return_inverse=True)
    g, count, stratum = own.size, sample.weights.size, sample.strata
    fold = np.arange(g) % FOLDS
    held = fold == np.arange(min(g, FOLDS))[:, None]  # (folds, g)

    def sums(values: FloatArray) -> FloatArray:  # (g, K)
        return np.bincount(codes * count + stratum, values, g * count).reshape(g, count).astype(float)

    y, f = (numbers - _means(numbers, stratum, count)[stratum] for numbers in (sample.ratings, sample.predictions))
    size, sum_y, sum_f, products, squares = map(sums, (np.ones(y.size), y, f, y * f, f * f))
    left = np.maximum(size.sum(axis=0) - held @ size, 1)  # (folds, K)
    share = sample.weights / left
    shift_y, shift_f = held @ sum_y / left, held @ sum_f / left  # of all groups' mean over that of the other folds
    off, sums_off = sample.unlabelled_terms(np.ones(count))
    alone = np.delete(sums_off, own)
    across = np.where(held, 0, share @ sum_f.T + (share * shift_f) @ size.T - sums_off[own])
    up = np.where(held, 0, share @ sum_y.T + (share * shift_y) @ size.T)
    by_group = _ratio((up * across).sum(axis=1), (across**2).sum(axis=1) + alone @ alone)
    products, squares = (rows.sum(axis=0) - held @ rows for rows in (products, squares))
    by_row = _ratio(
        (share**2 * (products - left * shift_y * shift_f)).sum(axis=1),
        (share**2 * (squares - left * shift_f**2)).sum(axis=1) + off @ off,
    )
    others = g - held.sum(axis=1)
    return np.asarray(((others * by_group + PRIOR_GROUPS * by_row) / (others + PRIOR_GROUPS))[fold[codes]])


def _means(values: FloatArray, strata: IntArray, count: int) -> FloatArray:
    """The mean of each stratum, shape (count,)."""
    return np.bincount(strata, values, count) / np.bincount(strata, minlength=count)


def _ratio(over: FloatArray, under: FloatArray) -> FloatArray:
    """The quotient, 0 where the judge's numbers do not vary."""
    return np.divide(over, under, out=np.zeros_like(under), where=under > 1e-12 * under.max(initial=0.0))
