"""Which candidate replaces the judge: by the true statistic on rows that nobody learned from, or none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metricsmith.optimizers.objectives import Objective
from metricsmith.resampling import resampled_rows

__all__ = ["Finalist", "Selection", "choose"]

FloatArray = NDArray[np.float64]
RESAMPLES = 400


@dataclass(frozen=True)
class Finalist:
    """A candidate's statistic on the selection rows.

    Parameters
    ----------
    name : str
    statistic : float
        NaN where it is undefined, as for a judge that gives one number throughout.
    low, high : float
        95 % interval (group bootstrap, percentiles).
    gain : float
        Statistic minus that of the judge before tuning, or minus chance where that has none.
    standard_error : float
        Of the gain, by resampling groups; NaN where it is undefined.
    """

    name: str
    statistic: float
    low: float
    high: float
    gain: float
    standard_error: float


@dataclass(frozen=True)
class Selection:
    """The outcome.

    Parameters
    ----------
    before : Finalist
        The judge as it was; its gain is 0.
    finalists : tuple of Finalist
        Candidates that judged every selection row without a failure, best first.
    optimism : float
        By how much the best of so many noisy gains is too high on average (bootstrap of the largest gain).
    chosen : str
        The winner's name, or that of the judge as it was.
    """

    before: Finalist
    finalists: tuple[Finalist, ...]
    optimism: float
    chosen: str

    @property
    def replaced(self) -> bool:
        """Whether a candidate has won."""
        return self.chosen != self.before.name

    @property
    def verdict(self) -> str:
        """The decision in words."""
        if not self.finalists:
            return (
                "no candidate judged every selection row without a failure and gave numbers that have a statistic: "
                "the judge is unchanged"
            )
        best = self.finalists[0]
        kept = best.gain - self.optimism
        sums = (
            f"the best of {len(self.finalists)} candidates gains {best.gain:+.3f}, {kept:+.3f} after "
            f"{self.optimism:.3f} for being the best of so many; standard error {best.standard_error:.3f}"
        )
        return f"{sums}: it replaces the judge" if self.replaced else f"{sums}: not enough, the judge is unchanged"


def choose(
    objective: Objective,
    before: tuple[str, FloatArray],
    candidates: Mapping[str, FloatArray],
    ratings: FloatArray,
    groups: Sequence[str],
    *,
    seed: int = 0,
) -> Selection:
    """Take the best candidate if its gain, less the optimism of choosing, is at least one standard error.

    Parameters
    ----------
    objective : Objective
    before : (str, float array)
        Name and numbers, shape (n,), of the judge as it was; rows where it has none are left out for everybody.
    candidates : mapping of str to float array
        Numbers, shape (n,); a candidate with a NaN in the rows that are left is no finalist, nor is one without a
        statistic.
    ratings : float array, shape (n,)
    groups : sequence of str, length n
        Drawn as a whole.
    seed : int

    Returns
    -------
    Selection
    """
    kept = np.isfinite(before[1])
    labels = [group for group, keep in zip(groups, kept, strict=True) if keep]
    y, columns = ratings[kept], {before[0]: before[1][kept]}
    columns |= {name: values[kept] for name, values in candidates.items() if np.isfinite(values[kept]).all()}
    base = _defined(objective.statistic(columns[before[0]], y), objective)
    draws = resampled_rows(labels, RESAMPLES, seed) if labels else []
    resampled = {
        name: np.array([objective.statistic(values[rows], y[rows]) for rows in draws])
        for name, values in columns.items()
    }
    start = np.where(np.isnan(resampled[before[0]]), objective.chance, resampled[before[0]])
    found = {}
    for name, values in columns.items():
        own, statistic = resampled[name], objective.statistic(values, y)
        low, high = np.nanquantile(own, [0.025, 0.975]) if np.isfinite(own).any() else (math.nan, math.nan)
        error = float(np.nanstd(own - start, ddof=1)) if np.isfinite(own).sum() > 1 else math.nan
        found[name] = Finalist(name, statistic, float(low), float(high), statistic - base, error)
    original = found.pop(before[0])
    before_tuning = Finalist(original.name, original.statistic, original.low, original.high, 0.0, 0.0)
    finalists = sorted((one for one in found.values() if one.gain == one.gain), key=lambda one: -one.gain)
    if not finalists:
        return Selection(before_tuning, (), 0.0, before[0])
    stray = np.array([resampled[one.name] - start - one.gain for one in finalists])  # (k, draws): bootstrap noise
    defined = stray[:, np.isfinite(stray).any(axis=0)]  # a draw of equal ratings says nothing
    optimism = max(0.0, float(np.nanmax(defined, axis=0).mean())) if defined.size else math.inf
    best = finalists[0]
    wins = best.gain > 0 and best.gain - optimism >= best.standard_error
    return Selection(before_tuning, tuple(finalists), optimism, best.name if wins else before[0])


def _defined(statistic: float, objective: Objective) -> float:
    return objective.chance if math.isnan(statistic) else statistic
