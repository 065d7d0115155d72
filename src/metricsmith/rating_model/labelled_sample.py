"""Ratings and a judge's numbers of a small labelled set, and the judge's of a big unlabelled one, aligned by group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import FloatArray, IntArray
from metricsmith.stats.resampling import Groups, Interval, aligned_rows, group_mean_interval

__all__ = ["LabelledSample"]

FEWEST_GROUPS = 5  # labelled groups with a rating other than the most frequent one; unlabelled groups
CAUTION = 0.25  # evidence that the judge knows nothing, in groups, against that of the labelled groups


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
            If lengths differ, a number is infinite, or a stratum has no unlabelled row or fewer than two labelled
            groups.
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
        if (endless := sum(int(np.isinf(numbers).sum()) for numbers in (y, f, x))) > 0:
            raise DataError(f"{endless} numbers are infinite: correct them, or give NaN where there is none")
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
            most = values[counts == counts.max()][[0, -1]]  # of two that are as frequent, the one with fewer others
            telling, usual = min((np.unique(groups[ratings != value]).size, value) for value in most)
            if telling < FEWEST_GROUPS:
                of = f"{telling} of {np.unique(groups).size} labelled groups hold a rating other than {usual:g}"
                return f"{of}, and {FEWEST_GROUPS} are needed: the mean of the ratings alone"
        there = np.unique(self.unlabelled_groups).size
        few = f"the unlabelled rows form {there} groups, and {FEWEST_GROUPS} are needed: the mean of the ratings alone"
        return few if there < FEWEST_GROUPS else ""

    def linear(self, terms: FloatArray) -> tuple[float, FloatArray]:
        """The strata's weighted mean of terms, and values with that plain mean, which varies by group as it does."""
        count = self.weights.size
        if count == 1:
            return float(terms.mean()), terms
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

        The share is `CAUTION` over it and the groups that carry what a regression on the judge's numbers leaves of the
        ratings, ``(sum of squares)^2 / sum of fourth powers``: a judge that is nearly always right errs in few of them.
        """
        codes = np.unique(self.groups, return_inverse=True)[1]
        each = (values, self.linear(self.ratings)[1], self.linear(self.predictions)[1])
        now, rated, judged = (np.bincount(codes, side - side.mean()) for side in each)
        slope = rated @ judged / max(float(judged @ judged), np.finfo(float).tiny)
        left = (rated - slope * judged) ** 2
        carrying = left.sum() ** 2 / (left @ left) if left.sum() > 1e-12 * (rated @ rated) else 0.0
        saved = now.size / (now.size - 1) * max(float(rated @ rated - now @ now), 0.0) / values.size**2
        return CAUTION / (carrying + CAUTION) * saved, now.size - 1


def _means(values: FloatArray, strata: IntArray, count: int) -> FloatArray:
    """The mean of each stratum, shape (count,)."""
    return np.bincount(strata, values, count) / np.bincount(strata, minlength=count)
