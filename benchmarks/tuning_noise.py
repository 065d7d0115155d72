"""The share of runs in which luck replaces a tuned judge, and the error of its figure then; no model is asked.

Judge and candidates follow a normal quality with a correlation each and have noise of their own, of which a share is
common to all. Ratings are five levels of that quality. `choose` decides on the selection rows; the judge that comes
back is then measured on 1,000 fresh rows::

    python benchmarks/tuning_noise.py --runs 500
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from paired_intervals import LEVELS

from metricsmith.optimizers.objectives import OBJECTIVES
from metricsmith.optimizers.tuning.selection import choose
from metricsmith.stats.correlation import kendall_tau_b

FRESH = 1000
COLUMNS = (
    "replaced",
    "standard error",
    "as it reads",
    "corrected",
    "interval holds",
    "fresh rows",
    "gain",
    "fresh gain",
)


@dataclass(frozen=True, slots=True)
class Case:
    """Candidates, rows, groups, how alike judges err, and how far judge and candidates follow the quality."""

    candidates: int
    rows: int
    groups: int
    alike: float
    before: float
    after: float


SHAPES = ((1, 40, 20, 0.0), (4, 40, 20, 0.0), (8, 40, 20, 0.5), (14, 60, 30, 0.5), (4, 40, 4, 0.0), (8, 24, 6, 0.0))
STRENGTHS = ((0.0, 0.0), (0.2, 0.35), (0.2, 0.55))
CASES = [Case(*shape, *strength) for strength in STRENGTHS for shape in SHAPES]


def judged(case: Case, n: int, random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ratings, shape (n,), and what judge and candidates give, shape (k + 1, n), in whole and half points."""
    quality, common = random.normal(size=(2, n))
    values = []
    for r in (case.before, *(case.after,) * case.candidates):
        noise = math.sqrt(case.alike) * common + math.sqrt(1 - case.alike) * random.normal(size=n)
        values.append(np.round(2 * (r * quality + math.sqrt(1 - r * r) * noise)) / 2)
    return np.searchsorted(LEVELS, quality).astype(float), np.array(values)


def simulate(case: Case, runs: int, seed: int = 0) -> dict[str, float]:
    """Means over the runs, from ``as it reads`` on over those in which the judge was replaced; gains in tau-b."""
    random = np.random.default_rng([seed, CASES.index(case)])
    labels = [str(row * case.groups // case.rows) for row in range(case.rows)]
    errors, won = [], []
    for run in range(runs):
        ratings, (own, *others) = judged(case, case.rows, random)
        names = {str(number): values for number, values in enumerate(others)}
        found = choose(OBJECTIVES["kendall_tau_b"], ("before", own), names, ratings, labels, seed=run)
        errors.append(found.candidates[0].standard_error)
        fresh, (start, *later) = judged(case, FRESH, random)
        if found.after is None:
            continue
        now = kendall_tau_b(later[int(found.chosen)], fresh)
        after, gain = found.after, now - kendall_tau_b(start, fresh)
        held = after.low <= now <= after.high
        won.append((found.candidates[0].statistic, after.statistic, held, now, after.gain, gain))
    means = np.mean(won, axis=0) if won else np.full(6, math.nan)
    return dict(zip(COLUMNS, (len(won) / runs, float(np.mean(errors)), *means.tolist()), strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"| candidates | rows, groups | alike | correlations | {' | '.join(COLUMNS)} |")
    print(f"|---|---|---|---|{'---:|' * len(COLUMNS)}")
    for case in CASES:
        cells = " | ".join(f"{value:.3f}" for value in simulate(case, options.runs, options.seed).values())
        shape = f"{case.candidates} | {case.rows}, {case.groups} | {case.alike:g} | {case.before:g}, {case.after:g}"
        print(f"| {shape} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
