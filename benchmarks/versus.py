"""Simulates how often `versus` decides where there is no difference, and where there is one: remakes docs/versus.md.

Each run draws pairs in groups and asks `mean_difference` for its verdict::

    python benchmarks/versus.py --runs 2000 --seed 0

The first table counts "better" and "worse" together where the mean difference is 0, the second "better" where it is
not, beside a test of the same numbers that does not know which rows belong together. Pairs of a group are alike with
intraclass correlation .3; groups have 1, 3 or very uneven numbers of pairs (1 to 200, most of them few).
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from metricsmith.stats.mean_difference import MeanDifference, mean_difference

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Random = np.random.Generator

GROUPS = (3, 5, 6, 10, 30, 100)
SIZES = ("1", "3", "uneven")
ALIKE = 0.3  # intraclass correlation of the pairs of a group
WEIGHTS = (1.0, 0.6, 0.3)  # of the components of a discrete metric
SPREADS = {"normal": 1.0, "weighted steps": math.sqrt(0.4 * (1 + 0.36 + 0.09)), "skewed": 1.0}

HEAD = tuple(f"{groups} groups" for groups in GROUPS)
HOPELESS = "rare large losses"  # few rows show nothing of them

# Differences as functions of a uniform number, all of mean 0.
KINDS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "normal": ndtri,
    "mostly ties": lambda u: np.where(u < 0.1, -1.0, np.where(u < 0.9, 0.0, 1.0)),
    "weighted steps": lambda u: np.where(u < 0.2, -1.0, np.where(u < 0.8, 0.0, 1.0)),
    "skewed": lambda u: -np.log1p(-u) - 1,
    "ties and skewed": lambda u: np.where(u < 0.1, -1.5, np.where(u < 0.7, 0.0, 0.5)),
    HOPELESS: lambda u: np.where(u < 0.05, -3.0, np.where(u < 0.5, 0.0, 0.3)),
}


def group_sizes(kind: str, groups: int, random: Random) -> IntArray:
    """Pairs by group."""
    if kind != "uneven":
        return np.full(groups, int(kind))
    return np.minimum(random.geometric(0.15, groups) * random.choice([1, 1, 1, 4], groups), 200)


def alike(codes: IntArray, random: Random) -> FloatArray:
    """Uniform numbers, alike within groups; shape of `codes`."""
    level = random.normal(size=codes.max() + 1)[codes] if np.bincount(codes).max() > 1 else 0.0
    share = ALIKE if np.bincount(codes).max() > 1 else 0.0
    return np.asarray(ndtr(math.sqrt(share) * level + math.sqrt(1 - share) * random.normal(size=codes.size)))


def differences(kind: str, codes: IntArray, random: Random) -> FloatArray:
    """Differences of pairs, of mean 0."""
    times = WEIGHTS if kind == "weighted steps" else (1.0,)
    parts = [weight * KINDS[kind](alike(codes, random)) for weight in times]
    return np.asarray(np.sum(parts, axis=0))


def simulated(
    kind: str, size: str, groups: int, runs: int, seed: int, gain: float = 0.0
) -> Iterator[tuple[MeanDifference, bool]]:
    """Yields the difference found in each run, and if the unpaired test would have found B better."""
    random = np.random.default_rng([seed, zlib.crc32(f"{kind} {size} {groups}".encode())])
    for _ in range(runs):
        codes = np.repeat(np.arange(groups), group_sizes(size, groups, random))
        first = ndtri(alike(codes, random))  # rows differ far more than their versions do
        second = first + gain + differences(kind, codes, random)
        yield mean_difference(first, second, codes), unpaired(first, second, codes)


def unpaired(first: FloatArray, second: FloatArray, codes: IntArray) -> bool:
    """Welch's t of two means over groups that nobody paired: True if the second is larger at the .05 level."""
    groups = int(codes.max()) + 1
    errors = [
        groups / (groups - 1) * float((np.bincount(codes, side - side.mean()) ** 2).sum()) / side.size**2
        for side in (first, second)
    ]
    freedom = sum(errors) ** 2 / sum(error**2 / (groups - 1) for error in errors)
    return bool((second.mean() - first.mean()) / math.sqrt(sum(errors)) > stdtrit(freedom, 0.975))


RULES: dict[str, Callable[[MeanDifference], bool]] = {
    "both, with six groups or more": lambda found: found.verdict != "undecided",
    "interval alone": lambda found: found.interval.low > 0 or found.interval.high < 0,
    "exchanges alone": lambda found: found.p_value <= 0.05,
}


def share(found: Iterable[bool]) -> float:
    """Per cent."""
    return 100 * float(np.mean(list(found)))


def line(*cells: object) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def without_difference(runs: int, seed: int) -> None:
    """Print how often there is a verdict though there is no difference, and the most by either half of the rule."""
    line("differences", "pairs a group", *HEAD)
    line("---", "---", *["---:"] * len(GROUPS))
    most = {rule: [0.0] * len(GROUPS) for rule in RULES}
    for kind in KINDS:
        for size in SIZES:
            shares = []
            for place, groups in enumerate(GROUPS):
                found = [one for one, _ in simulated(kind, size, groups, runs, seed)]
                by_rule = {rule: share(map(says, found)) for rule, says in RULES.items()}
                shares.append(by_rule["both, with six groups or more"])
                if kind != HOPELESS:
                    for rule, own in by_rule.items():
                        most[rule][place] = max(most[rule][place], own)
            line(kind, size, *(f"{own:.1f}" for own in shares))
    print(f"\nThe most of all kinds but the last ({HOPELESS})\n")
    line("a verdict takes", *HEAD)
    line("---", *["---:"] * len(GROUPS))
    for rule, shares in most.items():
        line(rule, *(f"{own:.1f}" for own in shares))


def power(runs: int, seed: int) -> None:
    """Print how often B is found better where it gains, beside the unpaired test."""
    line("differences", "pairs a group", *HEAD)
    line("---", "---", *["---:"] * len(GROUPS))
    for kind, spread in SPREADS.items():
        for size in SIZES:
            cells = []
            for groups in GROUPS:
                found = list(simulated(kind, size, groups, runs, seed, gain=spread / 2))
                better = share(one.verdict == "better" for one, _ in found)
                cells.append(f"{better:.0f} / {share(other for _, other in found):.0f}")
            line(kind, size, *cells)


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"Verdicts without a difference, per cent of {options.runs} runs\n")
    without_difference(options.runs, options.seed)
    print("\nBetter where B gains half a standard deviation of the differences: versus / unpaired, per cent\n")
    power(options.runs, options.seed)


if __name__ == "__main__":
    main()
