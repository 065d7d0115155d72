"""Which candidate replaces the judge: by the true statistic on rows that nobody learned from, or none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from metricsmith.optimizers.objectives import Objective
from metricsmith.records import Usage
from metricsmith.stats.resampling import jackknife_interval
from metricsmith.stats.resampling.clusters import left_out
from metricsmith.stats.resampling.draws import aligned

__all__ = ["Finalist", "Selection", "Tuning", "choose"]

FloatArray = NDArray[np.float64]
DRAWS = 2000
SHARES = np.linspace(0, 1, 21)
LEAST_WINS = 20  # draws with a winner from which its luck can be averaged


@dataclass(frozen=True)
class Finalist:
    """A candidate's statistic on the selection rows.

    Parameters
    ----------
    name : str
    statistic : float
        NaN where it is undefined, as for a judge that gives one number throughout.
    low, high : float
        95 % interval by leaving out groups: `metricsmith.stats.resampling.jackknife_interval`.
    gain : float
        Statistic minus that of the judge before tuning, or minus chance where that has none.
    standard_error : float
        Of the gain, by leaving out groups; NaN with fewer than three.
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
        By how much the best of so many noisy gains is too high on average, were all candidates equal.
    chosen : str
        The winner's name, or that of the judge as it was.
    after : Finalist, optional
        The winner with statistic, interval and gain as they are to be expected on other rows: corrected for its having
        been chosen by these. None where the judge is unchanged.
    """

    before: Finalist
    finalists: tuple[Finalist, ...]
    optimism: float
    chosen: str
    after: Finalist | None = None

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
        if self.after is None:
            return f"{sums}: not enough, the judge is unchanged"
        return f"{sums}: it replaces the judge, and about {self.after.gain:+.3f} is to be expected on other rows"


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
        Left out as a whole.
    seed : int

    Returns
    -------
    Selection

    Notes
    -----
    The statistics without each group in turn have a covariance; normal draws from it stand for the luck that all
    candidates have together. Their largest is the optimism. The winner's luck is its mean over the draws in which some
    candidate wins, with true gains such that winners have on average the gain that is seen: a share of the gains seen,
    found on a grid from 0 (all is luck) to 1. docs/tuning.md has the simulation.
    """
    kept = np.isfinite(before[1])
    y, columns = ratings[kept], {before[0]: before[1][kept]}
    columns |= {name: values[kept] for name, values in candidates.items() if np.isfinite(values[kept]).all()}
    codes = np.unique(aligned([ratings], groups)[1][kept], return_inverse=True)[1]
    statistic, batched = objective.batch or objective.statistic, objective.batch is not None
    parts = {name: left_out(statistic, [values, y], codes, batched) for name, values in columns.items()}
    apart = {name: _departures(values, objective.chance) for name, values in parts.items()}
    base = _defined(objective.statistic(columns[before[0]], y), objective)

    def finalist(name: str, less: float = 0.0, gain: float | None = None) -> Finalist:
        """With its statistic less this much, and the gain that is left; by default as they are seen."""
        value = objective.statistic(columns[name], y) - less
        interval = jackknife_interval(value, parts[name], bounds=objective.bounds)
        error = float(np.sqrt(((apart[name] - apart[before[0]]) ** 2).sum())) if parts[name].size else math.nan
        return Finalist(name, value, interval.low, interval.high, value - base if gain is None else gain, error)

    found = [finalist(name) for name in columns if name != before[0]]
    finalists = sorted((one for one in found if one.gain == one.gain), key=lambda one: -one.gain)
    start = replace(finalist(before[0]), gain=0.0)
    if not finalists:
        return Selection(start, (), 0.0, before[0])
    best, draws = finalists[0], np.random.default_rng(seed).normal(size=(apart[before[0]].size, DRAWS))
    noise = np.array([apart[one.name] @ draws for one in finalists])
    stray = noise - apart[before[0]] @ draws
    optimism = max(0.0, float(stray.max(axis=0).mean())) if draws.size else math.inf
    if not (best.gain > 0 and best.gain - optimism >= best.standard_error):
        return Selection(start, tuple(finalists), optimism, before[0])
    level, gain = _luck(finalists, optimism, noise, stray)
    after = finalist(best.name, level, best.gain - gain)
    return Selection(start, tuple(finalists), optimism, best.name, after)


def _departures(parts: FloatArray, chance: float) -> FloatArray:
    """Departures from their mean of a statistic without each group; scaled, so that their squares sum to its variance.

    Where it is undefined without a group it counts as chance: a judge of one number for all has no skill.
    """
    known = np.where(np.isnan(parts), chance, parts)
    return np.asarray((known - known.mean()) * math.sqrt(1 - 1 / known.size)) if known.size else known


def _luck(finalists: Sequence[Finalist], optimism: float, noise: FloatArray, stray: FloatArray) -> tuple[float, float]:
    """By how much the winner's statistic and gain are too high for its having won; `choose` says how that is known.

    `noise` and `stray` are draws of the luck in statistics and gains, shape (k, draws), best finalist first. No more
    than the whole gain is luck.
    """
    gains = np.array([one.gain for one in finalists])[:, None]
    bars = optimism + np.array([one.standard_error for one in finalists])
    found, every = (0.0, 0.0), np.arange(stray.shape[1])
    for share in SHARES:
        drawn = share * gains + stray
        first = drawn.argmax(axis=0)
        best = drawn[first, every]
        wins = (best > 0) & (best >= bars[first])
        if wins.sum() < LEAST_WINS:
            continue
        seen, of_mean = float(gains[0, 0]), float(best[wins].mean())
        if share and of_mean > seen:
            break
        part = min(1.0, seen / of_mean)
        means = float(noise[first, every][wins].mean()), float(stray[first, every][wins].mean())
        found = part * max(0.0, means[0]), part * max(0.0, means[1])  # below 0 by the chance of the draws alone
    return found


def _defined(statistic: float, objective: Objective) -> float:
    return objective.chance if math.isnan(statistic) else statistic


@dataclass(frozen=True)
class Tuning:
    """How a judge was tuned, with what stands for the result.

    Parameters
    ----------
    method, objective : str
    selection : Selection
        The decision; every candidate's statistic on the selection rows with its interval.
    before, after : dict of str to str
        By predictor, the instruction before and after.
    demos : int
        Demonstrations in the judge that was returned.
    learned, selected : int
        Rows of either side.
    bound : int
        The most requests that the run could send, known before it began.
    usage : Usage
        What it did send; ``seconds`` by the clock, from first to last.
    discarded : int
        Candidates that judged every selection row but failed in at least one call.
    ended : str
        Why the search ended before its plan, empty if it did not.
    asked : str
        How the judge is asked instead of in the raters' numbers, and why; empty if it is asked in these.
    """

    method: str
    objective: str
    selection: Selection
    before: dict[str, str]
    after: dict[str, str]
    demos: int
    learned: int
    selected: int
    bound: int
    usage: Usage
    discarded: int = 0
    ended: str = ""
    asked: str = ""

    @property
    def replaced(self) -> bool:
        """Whether the judge that came back is another one."""
        return self.selection.replaced

    @property
    def chosen(self) -> Finalist:
        """The judge that came back; where it was chosen by the selection rows, its figures are corrected for that."""
        return self.selection.after or self.selection.before

    @property
    def _correction(self) -> str:
        """The words behind a corrected figure; empty for an uncorrected one."""
        if self.selection.after is None:
            return ""
        seen = self.selection.finalists[0].statistic
        return f", corrected for having been chosen by these rows, on which it reads {seen:.3f}"

    def __str__(self) -> str:
        before, chosen = self.selection.before, self.chosen
        lines = [
            f"{self.method} for {self.objective}: {self.learned} rows to learn from, {self.selected} to select by",
            f"before {_figures(before)}",
            f"{'after' if self.replaced else 'unchanged'} {_figures(chosen)}{self._correction}",
            self.selection.verdict,
            f"requests: at most {self.bound}, sent {self.usage.requests}",
        ]
        lines += [self.asked] if self.asked else []
        lines += [f"{self.discarded} candidates discarded for failed calls"] if self.discarded else []
        return "\n".join(lines + ([f"ended early: {self.ended}"] if self.ended else []))


def _figures(one: Finalist) -> str:
    return f"{one.statistic:.3f} (95 % interval {one.low:.3f} to {one.high:.3f})"
