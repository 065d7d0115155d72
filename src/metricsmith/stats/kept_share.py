"""The share of a paid metric's agreement with people that a free one keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError
from metricsmith.stats.correlation import FloatArray, IntArray, batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import Groups, complete_rows
from metricsmith.stats.resampling.clusters import left_out, student_interval
from metricsmith.stats.resampling.ratios import ratio_interval

__all__ = ["FEWEST_GROUPS", "KeptShare", "kept_share"]

FEWEST_GROUPS = 10
"""With fewer groups there is no share: its interval was not tried there (docs/distillation.md)."""


@dataclass(frozen=True, slots=True)
class KeptShare:
    """A ratio of two tau-b on the same rows.

    Parameters
    ----------
    n, groups : int
        Rows with both predictions and a rating, and their groups.
    value : float
        Below 0 or above 1 too; NaN where there is none.
    ci_low, ci_high : float
        95 % interval, by `metricsmith.stats.resampling.ratios.ratio_interval`.
    why_not : str
        The reason why there is no share; empty where there is one.
    """

    n: int
    groups: int
    value: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    why_not: str = ""


def kept_share(
    free: Sequence[ArrayLike],
    paid: Sequence[ArrayLike],
    ratings: Sequence[ArrayLike],
    groups: Sequence[Groups] | None = None,
) -> KeptShare:
    """The tau-b of `free` with ratings over that of `paid`: each the mean over folds of its tau-b inside them.

    Parameters
    ----------
    free, paid, ratings : sequence of array_like
        One array for each fold, or one in all for rows that were held out once; NaN where missing. More is better in
        all of them. Rows that lack one of the three are left out.
    groups : sequence of sequences, optional
        As many; a group stands in one fold only.

    Returns
    -------
    KeptShare
        Groups are left out in turn. With several folds variances are doubled, as those of
        `metricsmith.stats.fold_agreement.fold_mean`, since the folds' fits learned from each other's rows. There is no
        share, and a reason, where tau-b is undefined, with fewer than `FEWEST_GROUPS` groups or three in a fold, where
        the interval of the paid one's own agreement holds 0, so that the ratio could be anything, and where that
        ranks against people.

    Raises
    ------
    DataError
        If there is no fold, or numbers of folds or rows differ.
    """
    labels: Sequence[Groups | None] = [None] * len(free) if groups is None else groups
    if not len(free) or not len(free) == len(paid) == len(ratings) == len(labels):
        raise DataError(
            f"{len(free)} folds of one prediction, {len(paid)} of the other, {len(ratings)} of ratings, "
            f"{len(labels)} of groups: at least one is needed and as many of each; give one array per fold"
        )
    folds = [complete_rows(fold, names) for *fold, names in zip(free, paid, ratings, labels, strict=True)]
    counts = [int(codes.max(initial=-1)) + 1 for _, codes in folds]
    n, total = sum(codes.size for _, codes in folds), sum(counts)
    if total < FEWEST_GROUPS or min(counts) < 3:
        return KeptShare(n, total, why_not=f"it takes {FEWEST_GROUPS} groups of rated rows, and three in every fold")
    found = [_tau_pair(a, b, y, codes) for (a, b, y), codes in folds]
    top, bottom = np.mean([taus for taus, _ in found], axis=0).tolist()
    times = (2 if len(folds) > 1 else 1) / len(folds) ** 2
    of_top, of_bottom, common = (times * np.sum([squares for _, squares in found], axis=0)).tolist()
    if not math.isfinite(top + bottom + of_top + of_bottom):
        return KeptShare(n, total, why_not="tau-b is undefined, or undefined without one of the groups")
    freedom = total - len(folds)
    own = student_interval(bottom, of_bottom, freedom, total, level=0.95, bounds=(-1.0, 1.0))
    if own.high < 0:
        return KeptShare(n, total, why_not="the paid metric ranks against people")
    ends = ratio_interval(top, bottom, (of_top, of_bottom, common), freedom)
    if own.low <= 0 or math.isnan(ends.low):
        return KeptShare(n, total, why_not="the paid metric's own agreement with people cannot be told from 0")
    return KeptShare(n, total, top / bottom, ends.low, ends.high)


def _tau_pair(a: FloatArray, b: FloatArray, y: FloatArray, codes: IntArray) -> tuple[list[float], list[float]]:
    """Tau-b of both with the ratings, and by leaving out groups their variances and covariance."""
    both = [left_out(batch_kendall_tau_b, [one, y], codes, batched=True) for one in (a, b)]
    spread = (both[0].size - 1) * np.cov(both, bias=True)
    return [kendall_tau_b(one, y) for one in (a, b)], [spread[0, 0], spread[1, 1], spread[0, 1]]
