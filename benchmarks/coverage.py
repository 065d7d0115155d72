"""Simulates how often intervals and the permutation test of grouped rows hold: remakes docs/coverage.md.

Each cell draws many data sets with a known truth and counts how often a 95 % interval holds it, or how often the
test rejects at .05 where nothing is to be found::

    python benchmarks/coverage.py --replications 2000 --seed 0 --workers 2

Rows are alike inside groups: hits are beta-binomial with the stated intraclass correlation, values and pairs come
from a normal group level and a normal rest whose shares of variance it gives. Groups have 1, 3, 6 or uneven (1 to 11)
rows.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from paired_intervals import DIFFERENCE_METHODS, LEVELS, PAIRS, difference_intervals, normals
from rival_intervals import (
    TAILS,
    Ends,
    FloatArray,
    IntArray,
    bca_levels,
    bootstraps,
    drawn,
    students,
    sums_by_group,
    wilson,
)  # fmt: skip
from scipy.optimize import brentq
from scipy.special import ndtr, stdtrit

from metricsmith.stats.correlation import batch_kendall_tau_b
from metricsmith.stats.resampling import group_mean_interval, permutation_test, share_interval

Truth = float | str

GROUPS = (5, 10, 18, 30, 100)
CORRELATIONS = (0.0, 0.3, 0.6)
ROWS = ("1", "3", "6", "1-11")
SHARES = (0.5, 0.8, 0.95)
TAUS = (0.0, 0.3, 0.6)
PERMUTATIONS = 99


@dataclass(frozen=True, slots=True)
class Population:
    """Values as a function of a uniform number: their mean, and the bounds that an interval is told of."""

    quantile: Callable[[FloatArray], FloatArray]
    mean: float
    bounds: tuple[float, float]


POPULATIONS = {
    "symmetric in [-1, 1]": Population(lambda u: 2 * u - 1, 0.0, (-1, 1)),
    "drops: 10 % -.2, 50 % 0, rest up to 1": Population(
        lambda u: np.where(u < 0.1, -0.2, np.where(u < 0.6, 0, (u - 0.6) / 0.4)), 0.18, (-1, 1)
    ),
    "70 % zeros, rest up to 1": Population(lambda u: np.where(u < 0.7, 0, (u - 0.7) / 0.3), 0.15, (0, 1)),
    "90 % zeros, rest up to 1": Population(lambda u: np.where(u < 0.9, 0, (u - 0.9) / 0.1), 0.05, (0, 1)),
    "skewed (ninth power of a uniform number)": Population(lambda u: u**9, 0.1, (0, 1)),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of data: how many groups, what is true, how alike and how many the rows of a group are."""

    groups: int
    truth: Truth
    correlation: float
    rows: str

    def random(self, kind: str, seed: int) -> np.random.Generator:
        """Random numbers of this cell alone, whatever else is simulated."""
        return np.random.default_rng([seed, zlib.crc32(f"{kind} {self}".encode())])

    def sizes(self, random: np.random.Generator, count: int) -> IntArray:
        """Rows by group, shape (count, groups)."""
        if self.rows == "1-11":
            return random.integers(1, 12, size=(count, self.groups))
        return np.full((count, self.groups), int(self.rows))


def cells(truths: Iterable[Truth], groups: Sequence[int] = GROUPS) -> list[Cell]:
    """Every combination; with one row a group an intraclass correlation means nothing, and three rows have no tau-b."""
    return [
        Cell(g, truth, correlation, rows)
        for g in groups
        for truth in truths
        for correlation in CORRELATIONS
        for rows in ROWS
        if not (rows == "1" and (correlation or g < 5))
    ]


def shares(cell: Cell, replications: int, seed: int) -> dict[str, float]:
    """Coverage by method for a share."""
    random, truth = cell.random("share", seed), float(cell.truth)
    sizes = cell.sizes(random, replications)
    levels = np.full(sizes.shape, truth)
    if cell.correlation:
        total = 1 / cell.correlation - 1
        levels = random.beta(truth * total, (1 - truth) * total, size=sizes.shape)
    hits = random.binomial(sizes, levels)
    n, share = sizes.sum(axis=1), hits.sum(axis=1) / sizes.sum(axis=1)
    own = [
        share_interval(np.repeat(np.tile([1.0, 0.0], cell.groups), np.ravel([h, m - h], "F")), labels(m))
        for h, m in zip(hits, sizes, strict=True)
    ]
    largest = (sizes**2).sum(axis=1) / n
    error = ((hits - share[:, None] * sizes) ** 2).sum(axis=1) * cell.groups / (cell.groups - 1) / n**2
    with np.errstate(invalid="ignore"):
        effect = np.nan_to_num(error / (share * (1 - share) / n), nan=math.inf)
    effective = n / np.clip(effect, 1, largest)
    few = (stdtrit(n - 1.0, TAILS[1]) / stdtrit(cell.groups - 1.0, TAILS[1])) ** 2
    found = {
        "share_interval": _ends(own),
        "Wilson, effect by ratio estimator": wilson(share, effective),
        "the same, corrected for few groups": wilson(share, effective * few),
        "Wilson, rows independent": wilson(share, n),
        "percentile bootstrap": bootstraps(hits.astype(float), sizes, random)["percentile bootstrap"],
    }
    return {name: covered(ends, truth) for name, ends in found.items()}


def means(cell: Cell, replications: int, seed: int) -> dict[str, float]:
    """Coverage by method for a mean."""
    random, population = cell.random("mean", seed), POPULATIONS[str(cell.truth)]
    sizes = cell.sizes(random, replications)
    latent = math.sqrt(cell.correlation) * random.normal(size=(*sizes.shape, 1))
    latent = latent + math.sqrt(1 - cell.correlation) * random.normal(size=(*sizes.shape, sizes.max()))
    values, present = population.quantile(ndtr(latent)), np.arange(sizes.max()) < sizes[..., None]
    own = [
        group_mean_interval(rows[there], labels(m), bounds=population.bounds)
        for rows, there, m in zip(values, present, sizes, strict=True)
    ]
    sums = np.where(present, values, 0).sum(axis=2)
    found = {"group_mean_interval": _ends(own), "Student's t": students(sums, sizes)}
    found |= bootstraps(sums, sizes, random)
    return {name: covered(ends, population.mean) for name, ends in found.items()}


def taus(cell: Cell, replications: int, seed: int) -> dict[str, float]:
    """Coverage by method for tau-b of a continuous prediction with ratings from 1 to 5."""
    random, truth = cell.random("tau", seed), float(cell.truth)
    held: dict[str, int] = {}
    for _ in range(replications):
        prediction, rating, codes = pairs(cell, random)
        for name, (low, high) in tau_intervals(prediction, rating, codes, random).items():
            held[name] = held.get(name, 0) + bool(low <= truth <= high)
    return {name: count / replications for name, count in held.items()}


def differences(cell: Cell, replications: int, seed: int) -> dict[str, float]:
    """Coverage by method for the difference of two tau-b on the same rows, where the library's has ends; else last."""
    random, pair = cell.random("difference", seed), PAIRS[str(cell.truth)]
    first, second = (correlation_for(tau, tuple(pair.cuts.tolist())) for tau in pair.taus)
    ends = []
    for _ in range(replications):
        codes = labels(cell.sizes(random, 1)[0])
        x, z, y = math.sqrt(cell.correlation) * normals((first, second), cell.groups, random)[:, codes] + math.sqrt(
            1 - cell.correlation
        ) * normals((first, second), codes.size, random)
        found = difference_intervals(x, z, np.searchsorted(pair.cuts, y), codes, random)
        ends.append([found[name] for name in DIFFERENCE_METHODS])
    low, high = np.moveaxis(np.array(ends), 2, 0)
    there, truth = np.isfinite(low[:, 0]), pair.taus[0] - pair.taus[1]
    held = ((low <= truth) & (truth <= high))[there].mean(axis=0) if there.any() else [math.nan] * low.shape[1]
    return dict(zip(DIFFERENCE_METHODS, map(float, held), strict=True)) | {"no interval": float(1 - there.mean())}


def rejections(cell: Cell, replications: int, seed: int) -> dict[str, float]:
    """The share of runs in which the permutation test rejects at .05 although prediction and rating are unrelated."""
    random = cell.random("test", seed)
    rejected = 0
    for k in range(replications):
        prediction, rating, codes = pairs(cell, random)
        test = permutation_test(
            batch_kendall_tau_b, prediction, rating, codes, permutations=PERMUTATIONS, seed=k, batched=True
        )
        rejected += test.p_value <= 0.05
    return {"permutation_test": rejected / replications}


def labels(sizes: IntArray) -> IntArray:
    """The group of each row."""
    return np.repeat(np.arange(sizes.size), sizes)


def covered(ends: Ends, truth: float) -> float:
    """The share of intervals that hold the truth; one without ends holds nothing."""
    return float(np.mean((ends[0] <= truth) & (truth <= ends[1])))


def _ends(intervals: Sequence[object]) -> Ends:
    return tuple(np.array([getattr(found, end) for found in intervals]) for end in ("low", "high"))  # type: ignore[return-value]


CUTS = LEVELS
"""The places where a normal number becomes the next rating: 10, 15, 25, 30 and 20 % of ratings."""


def true_tau_b(correlation: float, cuts: FloatArray = CUTS) -> float:
    """Tau-b of the population in which `cuts` make ratings of a normal number that correlates so with another."""
    x = np.linspace(-8, 8, 4001)
    edges = np.concatenate([[-math.inf], cuts, [math.inf]])
    within = np.diff(ndtr((edges[:, None] - correlation * x) / math.sqrt(1 - correlation**2)), axis=0)
    mass = within * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    below, rating = mass.cumsum(axis=1) - mass / 2, mass.sum(axis=1)
    ordered = [(low, high) for high in range(len(mass)) for low in range(high)]
    concordant = sum(2 * (2 * (mass[high] * below[low]).sum() - rating[low] * rating[high]) for low, high in ordered)
    return float(concordant / math.sqrt(1 - rating @ rating))


@cache
def correlation_for(tau: float, cuts: tuple[float, ...] = tuple(CUTS.tolist())) -> float:
    """The normal correlation at which `true_tau_b` is `tau`."""
    return 0.0 if tau == 0 else float(brentq(lambda r: true_tau_b(r, np.array(cuts)) - tau, 0, 0.999))


def pairs(cell: Cell, random: np.random.Generator) -> tuple[FloatArray, IntArray, IntArray]:
    """Predictions, ratings and groups of one data set; group levels agree as far as rows inside groups do."""
    codes, r = labels(cell.sizes(random, 1)[0]), correlation_for(float(cell.truth))

    def correlated(count: int) -> FloatArray:
        x, rest = random.normal(size=(2, count))
        return np.array([x, r * x + math.sqrt(1 - r * r) * rest])

    x, y = math.sqrt(cell.correlation) * correlated(cell.groups)[:, codes] + math.sqrt(
        1 - cell.correlation
    ) * correlated(codes.size)
    return x, np.searchsorted(CUTS, y), codes


def tau_intervals(
    x: FloatArray, y: IntArray, codes: IntArray, random: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Intervals of tau-b from sums over pairs of groups; rows are sorted by group."""
    g = int(codes[-1]) + 1
    sx, sy = (np.sign(side[:, None] - side).astype(np.int8) for side in (x, y))
    tables = [sums_by_group(signs, codes) for signs in (sx * sy, np.abs(sx), np.abs(sy))]
    times = np.vstack([np.ones(g), drawn(g, random)])
    sides = [times @ table for table in tables]
    totals = [(times * side).sum(axis=1) for side in sides]
    left = [total[0] - 2 * side[0] + np.diag(table) for total, side, table in zip(totals, sides, tables, strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        tau, *draws = totals[0] / np.sqrt(totals[1] * totals[2])
        jackknife = left[0] / np.sqrt(left[1] * left[2])
        scale = np.sqrt(totals[1] * totals[2])[:, None]
        pull = 2 * sides[0] / scale - (totals[0][:, None] / scale) * sum(
            side / total[:, None] for side, total in zip(sides[1:], totals[1:], strict=True)
        )
        errors = np.sqrt(g / (g - 1) * (times * pull**2).sum(axis=1))
        some = np.array(draws)
        t, spread = float(stdtrit(g - 1, TAILS[1])), math.sqrt((g - 1) * np.var(jackknife))
        z, error = np.arctanh(tau), errors[0] / (1 - tau**2)
        studentised = (np.arctanh(some) - z) / (errors[1:] / (1 - some**2))
        studentised = studentised[np.isfinite(studentised)]
    some = some[np.isfinite(some)]
    if not (np.isfinite(tau) and studentised.size):
        return dict.fromkeys(TAU_METHODS, (math.nan, math.nan))
    half = t * spread / (1 - tau**2) if abs(tau) < 1 else 0.0
    low, high = np.quantile(studentised, TAILS)
    defined = bool(np.isfinite(jackknife).all())
    away = np.where(np.abs(some - tau) < 1e-12, 0.0, some - tau)
    levels = bca_levels(away, jackknife) if defined else np.array(TAILS)
    found = (
        (math.tanh(z - half), math.tanh(z + half)) if defined else (math.nan, math.nan),
        (tau - t * spread, tau + t * spread),
        (math.tanh(z - high * error), math.tanh(z - low * error)),
        tuple(np.quantile(some, levels)),
        tuple(np.quantile(some, TAILS)),
    )
    return dict(zip(TAU_METHODS, found, strict=True))


TAU_METHODS = (
    "correlation_interval",
    "group jackknife without Fisher's z",
    "Studentised bootstrap on Fisher's z",
    "BCa bootstrap",
    "percentile bootstrap",
)

Simulation = Callable[[Cell, int, int], Mapping[str, float]]
Results = Mapping[Cell, Mapping[str, float]]
STUDIES: dict[str, tuple[Simulation, tuple[Truth, ...]]] = {
    "share": (shares, SHARES),
    "mean": (means, tuple(POPULATIONS)),
    "tau": (taus, TAUS),
    "difference": (differences, tuple(PAIRS)),
    "test": (rejections, (0.0,)),
}


def simulate(
    kind: str, replications: int, seed: int, groups: Sequence[int] = GROUPS, workers: int = 1
) -> dict[Cell, Mapping[str, float]]:
    """Coverage (for ``test``: rejections) by cell and method; the library's own method stands first."""
    run, truths = STUDIES[kind]
    todo = cells(truths, groups)
    work = partial(run, replications=replications, seed=seed)
    if workers == 1:
        return {cell: work(cell) for cell in todo}
    with ProcessPoolExecutor(workers) as pool:
        return dict(zip(todo, pool.map(work, todo), strict=True))


def summary(results: Results) -> list[str]:
    """Lowest, mean and highest coverage of each method over the cells of each number of groups."""
    counts = sorted({cell.groups for cell in results})
    lines = [f"| | {' | '.join(f'{g} groups' for g in counts)} |", "|---|" + "---:|" * len(counts)]
    for method in next(iter(results.values())):
        found = [[results[cell][method] for cell in results if cell.groups == g] for g in counts]
        lines.append(f"| {method} | {' | '.join(_range(values) for values in found)} |")
    return lines


def _range(values: Sequence[float]) -> str:
    return f"{_percent(min(values))} / {_percent(float(np.mean(values)))} / {_percent(max(values))}"


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f}"


def details(results: Results) -> list[str]:
    """The library's own method, cell by cell."""
    columns = sorted({(cell.correlation, cell.rows) for cell in results}, key=lambda at: (at[0], ROWS.index(at[1])))
    heads = [f"{rows}{f' ({rho:g})' if rho else ''}" for rho, rows in columns]
    lines = [f"| groups | truth | {' | '.join(heads)} |", "|---:|---|" + "---:|" * len(columns)]
    for g, truth in dict.fromkeys((cell.groups, cell.truth) for cell in results):
        found = (results.get(Cell(g, truth, rho, rows)) for rho, rows in columns)
        numbers = (math.nan if methods is None else next(iter(methods.values())) for methods in found)
        lines.append(f"| {g} | {truth} | {' | '.join(map(_percent, numbers))} |")
    return lines


def worst(results: Results) -> dict[int, tuple[float, Cell]]:
    """The lowest coverage of the library's own method by number of groups, as `measured_coverage` has it, and where."""
    lowest: dict[int, tuple[float, Cell]] = {}
    for cell, found in results.items():
        covered = next(iter(found.values()))
        if cell.groups not in lowest or covered < lowest[cell.groups][0]:
            lowest[cell.groups] = covered, cell
    return lowest


def main() -> None:
    """Run the studies asked for and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=2000, help="data sets a cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--groups", type=int, nargs="*", default=list(GROUPS), help="how many groups")
    parser.add_argument("--only", choices=STUDIES, nargs="*", default=list(STUDIES))
    options = parser.parse_args()
    error = 100 * math.sqrt(0.05 * 0.95 / options.replications)
    print(f"{options.replications} data sets a cell, seed {options.seed}; Monte Carlo error {error:.1f} points at 95 %")
    for kind in options.only:
        results = simulate(kind, options.replications, options.seed, options.groups, options.workers)
        print(f"\n## {kind}\n", *summary(results), "", *details(results), sep="\n")
        for g, (value, cell) in worst(results).items():
            where = f"{cell.truth}, {cell.rows} rows, correlation {cell.correlation:g}"
            print(f"\nlowest with {g} groups: {value:.3f} ({where})", flush=True)


if __name__ == "__main__":
    main()
