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

FEWEST_GROUPS = 5
"""Labelled groups that must hold a rating other than the most frequent one; unlabelled groups that must be there."""
LEAST_YOUDEN = 0.2
"""Rogan and Gladen's estimator is refused unless the interval of sensitivity + specificity - 1 lies above this."""
PRIOR_GROUPS = 4
"""The weight, in groups, of the slope over rows in lambda: few groups say little of the slope over groups."""
CAUTION = 0.25
"""Evidence that the judge knows nothing, in groups, which stands against that of the labelled groups."""
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
            raise OptionError(
                "strata= and unlabelled_strata= belong together, and difference= needs them: give one label per row "
                "for both sets"
            )
        y, f, x = (np.asarray(numbers, dtype=float) for numbers in (ratings, predictions, unlabelled))
        labels = [("labelled", row) for row in range(y.size)] if groups is None else [*groups]
        labels += [("unlabelled", row) for row in range(x.size)] if unlabelled_groups is None else [*unlabelled_groups]
        parts = [0] * (y.size + x.size) if strata is None else [*strata, *(unlabelled_strata or ())]
        names = [*difference] if difference is not None else [*dict.fromkeys(parts)]
        place = {name: k for k, name in enumerate(names)}
        aligned_rows([y, f], None)
        (both, part), codes = aligned_rows([np.concatenate([y + f, x]), [place.get(p, -1) for p in parts]], labels)
        kept = part >= 0
        known, n = kept & ~np.isnan(both), y.size
        sizes = np.bincount(part[n:][known[n:]], minlength=len(names))
        for k, name in enumerate(names):
            found = np.unique(codes[:n][known[:n] & (part[:n] == k)]).size
            if found < 2 or not sizes[k]:
                where = "" if strata is None else f" of {name!r}"
                raise DataError(
                    f"{found} labelled groups and {sizes[k]} unlabelled rows{where} have numbers: at least two groups "
                    "with rating and prediction, and one unlabelled row with a prediction, are needed: rate more rows"
                )
        weights = np.array([1.0, -1.0]) if difference is not None else sizes / sizes.sum()
        gone = kept & ~known
        return cls(
            y[known[:n]], f[known[:n]], codes[:n][known[:n]], part[:n][known[:n]], x[known[n:]], codes[n:][known[n:]],
            part[n:][known[n:]], weights, int(gone[:n].sum()), int(gone[n:].sum()),
        )  # fmt: skip

    @property
    def is_difference(self) -> bool:
        """True where the estimate is the difference of two strata."""
        return bool((self.weights < 0).any())

    @property
    def unlabelled_means(self) -> FloatArray:
        """The judge's mean on the unlabelled rows of each stratum, shape (K,)."""
        return _means(self.unlabelled, self.unlabelled_strata, self.weights.size)

    def few(self) -> str:
        """The reason why labelled or unlabelled groups are too few for more than the classical interval; else empty."""
        for part in [self.strata == 0, self.strata == 1] if self.is_difference else [self.strata >= 0]:
            values, counts = np.unique(self.ratings[part], return_counts=True)
            usual, groups = values[counts.argmax()], self.groups[part]
            telling = np.unique(groups[self.ratings[part] != usual]).size
            if telling < FEWEST_GROUPS:
                return (
                    f"{telling} of {np.unique(groups).size} labelled groups hold a rating other than {usual:g}, and "
                    f"{FEWEST_GROUPS} are needed: this is the mean of the ratings alone"
                )
        there = np.unique(self.unlabelled_groups).size
        return f"the unlabelled rows form {there} groups, too few to show how they vary" if there < FEWEST_GROUPS else ""

    def interval(
        self, terms: FloatArray, slopes: FloatArray | None, level: float, bounds: tuple[float, float] | None
    ) -> tuple[float, Interval]:
        """The sum over strata of weight times mean of the labelled rows' `terms`, shape (n,), and its interval.

        Parameters
        ----------
        terms : float array, shape (n,)
        slopes : float array, shape (K,), or None
            Rating points by which the terms of a stratum rise with the judge's mean on its unlabelled rows: their
            variance enters, by group, together with that of labelled rows of the same group. None: not at all.
        level : float
        bounds : (float, float) or None
            The ends do not leave them.
        """
        n = terms.size
        values, estimate = self._linear(terms)
        if slopes is None:
            alone = bounds if self.weights.size == 1 else None  # other linear terms know no bounds
            found = group_mean_interval(values, self.groups, level=level, bounds=alone)
        else:
            _, sums = self.unlabelled_terms(slopes)
            size = np.bincount(self.groups, minlength=sums.size)
            shift = n * (sums / np.maximum(size, 1))[self.groups]
            values = values + shift - shift.mean()
            rest = sums[(size == 0) & (np.bincount(self.unlabelled_groups, minlength=sums.size) > 0)]
            added = [(rest.size / (rest.size - 1) * float(rest @ rest), rest.size - 1)] if rest.size > 1 else []
            gain = self._doubted_gain(values)
            found = group_mean_interval(values, self.groups, level=level, added=[*gain, *added])
        if bounds is None:
            return estimate, found
        return estimate, Interval(max(found.low, bounds[0]), min(found.high, bounds[1]), level)

    def _linear(self, terms: FloatArray) -> tuple[FloatArray, float]:
        """Values whose plain mean, by group, varies as the weighted mean of the strata does; and that mean."""
        count = self.weights.size
        means = _means(terms, self.strata, count)
        estimate = float(self.weights @ means)
        size = np.bincount(self.strata, minlength=count)
        groups = np.bincount(np.unique(self.groups * count + self.strata) % count, minlength=count)
        every = np.unique(self.groups).size
        # g / (g - 1) is that of the stratum, not of all groups, where each has groups of its own
        share = terms.size * self.weights / size * np.sqrt(groups / (groups - 1) * (every - 1) / every)
        return estimate + share[self.strata] * (terms - means[self.strata]), estimate

    def unlabelled_terms(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Deviations that unlabelled rows bring into the estimate, and their sums by group, shape (all groups,)."""
        stratum = self.unlabelled_strata
        share = slopes * self.weights / np.bincount(stratum, minlength=self.weights.size)
        off = share[stratum] * (self.unlabelled - self.unlabelled_means[stratum])
        total = 1 + max(int(self.groups.max()), int(self.unlabelled_groups.max()))
        return off, np.bincount(self.unlabelled_groups, off, total)

    def _doubted_gain(self, values: FloatArray) -> list[tuple[float, int]]:
        """Variance added because few groups carry what the judge leaves unexplained: a share of the variance saved.

        Where a judge is nearly always right, the rows in which it errs are few or unseen, and the spread of the others
        says nothing. The share is `CAUTION` over it and the groups that carry the spread,
        ``(sum of squares)^2 / sum of fourth powers``.
        """
        codes = np.unique(self.groups, return_inverse=True)[1]
        sums, raw = (
            np.bincount(codes, numbers - numbers.mean()) ** 2 for numbers in (values, self._linear(self.ratings)[0])
        )
        g, n = sums.size, values.size
        carrying = float(sums.sum() ** 2 / (sums @ sums)) if sums.any() else 0.0
        saved = g / (g - 1) * max(float(raw.sum() - sums.sum()), 0.0) / n**2
        return [(CAUTION / (carrying + CAUTION) * saved, g - 1)]


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
        The classical mean and interval, with the reason as a note, where fewer than `FEWEST_GROUPS` labelled groups
        hold a rating other than the most frequent one, unlabelled groups are as few, or the terms are all alike.

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
    if note := sample.few():
        return _corrected(sample, "classical", level, bounds, note=note)
    each = _tuned(sample) if lam is None else np.full(sample.ratings.size, float(lam))
    terms = sample.ratings - each * (sample.predictions - sample.unlabelled_means[sample.strata])
    slopes = np.full(sample.weights.size, each.mean())
    return _corrected(sample, "ppi++" if lam is None else "ppi", level, bounds, terms, slopes, float(each.mean()))


def rogan_gladen(sample: LabelledSample, *, level: float = 0.95) -> CorrectedMean:
    """The prevalence by Rogan and Gladen: the judge's share of positives, with its two kinds of error taken out.

    It is ``(q + specificity - 1) / (sensitivity + specificity - 1)``, q the share of positives on the unlabelled rows,
    clipped to [0, 1]; by stratum. Unlike prediction-powered inference it does not need labelled rows as frequent in
    positives as the others, only a judge that errs alike on both.

    Parameters
    ----------
    sample : LabelledSample
        Ratings and predictions are 0 or 1.
    level : float
        Of the interval, by linear terms of sensitivity, specificity and q in `group_mean_interval`.

    Returns
    -------
    CorrectedMean
        The classical mean and interval where `prediction_powered_mean` falls back as well.

    Raises
    ------
    DataError
        If a number is not 0 or 1, or the interval of sensitivity + specificity - 1 does not lie above `LEAST_YOUDEN`:
        the estimate divides by it.

    References
    ----------
    Rogan and Gladen (1978), "Estimating prevalence from the results of a screening test".
    """
    y, f, x = sample.ratings, sample.predictions, sample.unlabelled
    for numbers in (y, f, x):
        if (other := numbers[(numbers != 0) & (numbers != 1)]).size:
            raise DataError(f"{other[0]:g} is neither 0 nor 1: Rogan and Gladen's estimator takes verdicts; use ppi++")
    if note := sample.few():
        return _corrected(sample, "classical", level, (0.0, 1.0), note=note)
    terms, slopes = np.zeros(y.size), np.zeros(sample.weights.size)
    for k, positives in enumerate(sample.unlabelled_means):
        here = sample.strata == k
        rate = float(y[here].mean())
        raised, alarm = (float(f[here & (y == truth)].mean()) if (y[here] == truth).any() else math.nan for truth in (1, 0))
        youden = raised - alarm
        hit, false = y[here] * (f[here] - raised) / rate, (1 - y[here]) * (f[here] - alarm) / (1 - rate)
        low = group_mean_interval(youden + hit - false, sample.groups[here], level=level).low
        low = youden if np.ptp(hit - false) == 0 else low
        if not low > LEAST_YOUDEN:
            raise DataError(
                f"sensitivity + specificity - 1 is {youden:.2f}, and its interval begins at {low:.2f}: Rogan and "
                f"Gladen's estimator divides by it and needs more than {LEAST_YOUDEN:g} there; use ppi++, or label more"
            )
        share = min(max((positives - alarm) / youden, 0.0), 1.0)
        slopes[k] = 1 / youden
        terms[here] = share - ((1 - share) * false + share * hit) / youden
    return _corrected(sample, "rogan-gladen", level, (0.0, 1.0), terms, slopes, math.nan)


def _corrected(
    sample: LabelledSample,
    method: Method,
    level: float,
    bounds: tuple[float, float] | None,
    terms: FloatArray | None = None,
    slopes: FloatArray | None = None,
    lam: float = 0.0,
    note: str = "",
) -> CorrectedMean:
    """The record of an estimate from terms, or of the classical one without terms, or where these are all alike."""
    if bounds is None and np.isin(sample.ratings, (0.0, 1.0)).all():
        bounds = 0.0, 1.0
    if bounds is not None and sample.is_difference:
        bounds = bounds[0] - bounds[1], bounds[1] - bounds[0]
    classical, around = sample.interval(sample.ratings, None, level, bounds)
    estimate, found = classical, around
    if terms is not None and not note:
        if np.ptp(terms) > 0:
            estimate, found = sample.interval(terms, slopes, level, bounds)
        else:
            note = "no labelled row shows an error of the judge: this is the mean of the ratings alone"
            method, lam = "classical", 0.0
    return CorrectedMean(
        estimate, found.low, found.high, level, method, lam, classical, around.low, around.high,
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
        return np.bincount(codes * count + stratum, values, g * count).reshape(g, count)

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
