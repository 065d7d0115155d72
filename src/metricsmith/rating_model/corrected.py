"""Mean ratings of a big unlabelled set, from a judge's numbers there and on a small labelled set.

A judge's mean alone is biased by the judge; the mean of a few ratings is unbiased and wide. Prediction-powered
inference takes the judge's mean and corrects it by the error that the labelled rows show. Rogan and Gladen's estimator
turns the share of the judge's positives into a prevalence. Measured coverage: docs/corrected_means.md.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from metricsmith.errors import DataError, OptionError
from metricsmith.formats import points, raw
from metricsmith.rating_model.labelled_sample import LabelledSample
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.resampling import group_mean_interval

__all__ = ["CorrectedMean", "Method", "prediction_powered_mean", "rogan_gladen"]

Method = Literal["ppi++", "ppi", "rogan-gladen", "classical"]

LEAST_YOUDEN = 0.2  # below the interval of sensitivity + specificity - 1
PRIOR_GROUPS = 4  # weight of the slope over rows in lambda: few groups say little of the slope over groups


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

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-ready data; None for NaN."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    def __str__(self) -> str:
        ends, weight = f"{raw(100 * self.level)} %", "" if math.isnan(self.lam) else f", lambda {raw(self.lam, 3)}"
        alone = f"{points(self.classical_low, 1)} to {points(self.classical_high, 1)}"
        rated = f"{self.labelled} ratings in {self.groups} groups"
        used = f"{self.unlabelled} rows corrected by {rated}"
        if self.method == "classical":
            used = f"by {rated}; the metric's {self.unlabelled} other numbers are not used"
        lines = [
            f"{points(self.estimate, 1)} ({ends} interval {points(self.low, 1)} to {points(self.high, 1)}; "
            f"{self.method}{weight}), {used}",
            f"{points(self.classical, 1)} ({ends} interval {alone}) by the ratings alone",
            f"{points(self.plain, 1)} by the metric alone",
        ]
        gone = f"{self.missing} labelled and {self.unlabelled_missing} other rows without a number are left out"
        lines += [gone] * bool(self.missing or self.unlabelled_missing) + [self.note] * bool(self.note)
        return "\n".join(lines)


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
    groups. So lambda takes any scale and any direction of the judge, and is not clipped.

    Parameters
    ----------
    sample : LabelledSample
    lam : float, optional
        A lambda for all rows, in rating points for a point of the judge; by default it is tuned.
    level : float
        Nominal coverage of the interval: `group_mean_interval` of the terms, with the unlabelled rows' variance.
    bounds : (float, float), optional
        The least and the largest rating, which the estimate and its ends do not leave; by default 0 and 1 where all
        ratings are one of these.

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
        reach = (-1.0, 1.0) if youden == 1 else None  # no error seen: as far as groups that went unseen could take it
        low = group_mean_interval(youden + hit - alarm, sample.groups[here], level=level, bounds=reach).low
        if not low > LEAST_YOUDEN:
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
    found = (estimate, around.low, around.high, classical.low, classical.high)
    estimate, *ends = (float(np.clip(value, low, high)) for value in found)
    return CorrectedMean(
        estimate, ends[0], ends[1], level, method, lam, mean, ends[2], ends[3],
        float(sample.weights @ sample.unlabelled_means), sample.ratings.size, np.unique(sample.groups).size,
        sample.unlabelled.size, np.unique(sample.unlabelled_groups).size, sample.missing, sample.unlabelled_missing,
        note,
    )  # fmt: skip


def _tuned(sample: LabelledSample) -> FloatArray:
    """The lambda of each labelled row, shape (n,), from the other groups: see `prediction_powered_mean`.

    Sums over the other groups, about the mean of their rows, follow from the sums over all.
    """
    y, f = (values - values.mean() for _, values in map(sample.linear, (sample.ratings, sample.predictions)))
    off, sums = sample.unlabelled_terms(np.full(sample.weights.size, float(y.size)))
    own, codes = np.unique(sample.groups, return_inverse=True)
    alone, size = np.delete(sums, own), np.bincount(codes)
    rated, judged = (np.bincount(codes, side).astype(float) for side in (y, f))
    across, rest = judged - sums[own], y.size - size

    def by_group(a: FloatArray, moved_a: FloatArray, b: FloatArray, moved_b: FloatArray) -> FloatArray:
        mixed = moved_a * (size @ b - size * b) + moved_b * (size @ a - size * a)
        return np.asarray(a @ b - a * b + mixed / rest + moved_a * moved_b * (size @ size - size**2) / rest**2)

    def by_row(a: FloatArray, sum_a: FloatArray, b: FloatArray, sum_b: FloatArray) -> FloatArray:
        return np.asarray(a @ b - np.bincount(codes, a * b) - sum_a * sum_b / rest)

    part = rest / y.size  # the unlabelled rows vary against all labelled rows, which the others stand for
    groups = _ratio(
        by_group(rated, rated, across, judged), by_group(across, judged, across, judged) + part * (alone @ alone)
    )
    rows = _ratio(by_row(y, rated, f, judged), by_row(f, judged, f, judged) + part * (off @ off))
    return np.asarray(((own.size - 1) * groups + PRIOR_GROUPS * rows) / (own.size - 1 + PRIOR_GROUPS))[codes]


def _ratio(over: FloatArray, under: FloatArray) -> FloatArray:
    """The quotient, 0 where the judge's numbers do not vary."""
    return np.divide(over, under, out=np.zeros_like(under), where=under > 1e-12 * under.max(initial=0.0))
