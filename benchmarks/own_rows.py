"""Intervals and tests over the test sets of five seeds, with the regressions that are tested simulated along.

Three rows a group; six features and the rating have levels of the group. Each seed draws three groups in ten as its
test set and thirty of the other rows to learn from. Of the two predictions one knows the first three features, the
other the last three, which share in the rating alike, so that the true difference is 0. *Learned* ones are fitted by
least squares for each seed, *fixed* ones have the true weights. The truth of a mean is that over further studies::

    python benchmarks/own_rows.py --replications 400 --seed 0
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import mean_interval, repeated_interval, repeated_mean, repeated_permutation_test

FloatArray = NDArray[np.float64]
WEIGHTS = np.array([1.0, 0.5, 0.0])
SEEDS, ROWS, SHARE, LEARNING = 5, 3, 0.3, 30
COLUMNS = ("rows, seeds", "rows", "over seeds", "difference", "p < .05", "both")


def study(
    random: np.random.Generator, groups: int, learned: bool
) -> tuple[FloatArray, FloatArray, FloatArray, list[int]]:
    """Both predictions, shape (5, n) with NaN outside the test set of the seed; ratings; groups."""
    labels = np.repeat(np.arange(groups), ROWS)
    features = random.normal(size=(labels.size, 6)) + random.normal(size=(groups, 6))[labels]
    rating = features @ np.tile(WEIGHTS, 2) + random.normal(size=groups)[labels] + 2 * random.normal(size=labels.size)
    sides = np.full((2, SEEDS, labels.size), np.nan)
    for seed in range(SEEDS):
        test = np.isin(labels, random.choice(groups, int(SHARE * groups), replace=False))
        rows = random.choice(np.flatnonzero(~test), LEARNING, replace=False)
        for side, known in enumerate((features[:, :3], features[:, 3:])):
            weights = np.linalg.lstsq(known[rows], rating[rows], rcond=None)[0] if learned else WEIGHTS
            sides[side, seed, test] = known[test] @ weights
    return sides[0], sides[1], rating, labels.tolist()


def measured(groups: int, learned: bool, replications: int, seed: int) -> dict[str, float]:
    """The shares of studies by `COLUMNS`: three intervals that hold the mean, one the difference; p; p and interval."""

    def draw(kind: int, k: int) -> np.random.Generator:
        return np.random.default_rng([seed, kind, groups, k])

    further = (study(draw(0, k), groups, learned) for k in range(2 * replications))
    truth = np.mean([repeated_mean(kendall_tau_b, own, rating, own_rows=True) for own, _, rating, _ in further])
    hits = dict.fromkeys(COLUMNS, 0)
    for k in range(replications):
        own, other, rating, labels = study(draw(1, k), groups, learned)
        taus = [repeated_mean(kendall_tau_b, [line], rating, own_rows=True) for line in own]
        settings = {"groups": labels, "batched": True, "own_rows": True}
        found = {
            "rows, seeds": repeated_interval(batch_kendall_tau_b, own, rating, **settings),
            "rows": repeated_interval(batch_kendall_tau_b, own, rating, between=False, **settings),
            "over seeds": mean_interval(taus, bounds=(-1.0, 1.0)),
        }
        for name, interval in found.items():
            hits[name] += interval.low <= truth <= interval.high
        apart = repeated_interval(batch_kendall_tau_b, own, rating, against=other, **settings)
        test = repeated_permutation_test(batch_kendall_tau_b, own, other, rating, permutations=199, seed=k, **settings)
        holds = apart.low <= 0 <= apart.high
        hits["difference"] += holds
        hits["p < .05"] += test.p_value <= 0.05
        hits["both"] += test.p_value <= 0.05 and not holds
    return {name: count / replications for name, count in hits.items()}


def main() -> None:
    """Print a line for each number of groups and kind of prediction, in per cent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--groups", type=int, nargs="+", default=[20, 40, 100])
    options = parser.parse_args()
    print(f"| groups | predictions | {' | '.join(COLUMNS)} |\n|{'---|' * (2 + len(COLUMNS))}")
    for groups in options.groups:
        for learned in (False, True):
            shares = measured(groups, learned, options.replications, options.seed)
            figures = " | ".join(f"{100 * share:.1f}" for share in shares.values())
            print(f"| {groups} | {'learned' if learned else 'fixed'} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
