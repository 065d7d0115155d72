"""The coverage, width and power of intervals of a cross-validated tau-b: remakes the table of docs/coverage.md.

Grouped K-fold cross-validation with the package's own fit inside: predictions of different folds come from different
fits, the statistic is the mean of tau-b within folds, and the truth is what it is on average over many data sets of
the cell (0 where ratings are unrelated to every candidate)::

    python benchmarks/splits.py simulate --keep runs
    python benchmarks/splits.py simulate --runs 2000 --truth-runs 0 --seed 1 --keep again --cells 8 14 22
    python benchmarks/splits.py count --keep runs again
    python benchmarks/splits.py table

The cells were stated before the first run (`DESIGN`): each line twice, with and without signal, 60 in all. Rows of a
group share .3 of the variance of every column, of the quality and of the rating's own noise. Eight candidates, three
of which follow the quality (r = .55, one in five steps); with signal the rating follows it too (r = .85). Ratings go
from 1 to 5 (10, 15, 25, 30 and 20 %), or are thumbs, half of them up or four in five.

The rule, stated before the first run: a cell fails where the 99 % binomial interval of its 400 runs lies wholly below
.93 coverage or wholly above .06 rejection (without signal); where only the point estimate misses, 2,000 runs with
other seeds decide in the same way. The method is the narrowest that fails in no cell of its kind of rating and number
of groups.
"""

from __future__ import annotations

import argparse
import csv
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from metricsmith.datasets.splits import folds
from metricsmith.optimizers.fitting import FitOptions, fit
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b, kendall_tau_b_influence
from metricsmith.stats.resampling import mean_interval, mean_test

FloatArray = NDArray[np.float64]

LIKENESS = 0.3  # intraclass correlation
FOLLOWS = (0.55, 0.55, 0.55, 0, 0, 0, 0, 0)
QUALITY = 0.85
KINDS = {"levels": (0.1, 0.25, 0.5, 0.8), "thumbs 50/50": (0.5,), "thumbs 80/20": (0.2,)}

# Kind of rating, folds, rows, groups, rows of a group ("1-12": uneven).
DESIGN: tuple[tuple[str, int, int, int, str], ...] = (
    ("levels", 3, 30, 5, "6"),
    ("levels", 3, 30, 10, "3"),
    ("levels", 3, 60, 5, "12"),
    ("levels", 3, 60, 10, "6"),
    ("levels", 3, 60, 10, "1-12"),
    ("levels", 3, 60, 20, "3"),
    ("levels", 3, 120, 20, "6"),
    ("levels", 3, 240, 60, "4"),
    ("levels", 5, 30, 10, "3"),
    ("levels", 5, 60, 10, "6"),
    ("levels", 5, 60, 20, "3"),
    ("levels", 5, 120, 20, "1-12"),
    ("levels", 10, 60, 60, "1"),
    ("levels", 10, 120, 20, "6"),
    ("thumbs 50/50", 3, 30, 10, "3"),
    ("thumbs 50/50", 3, 60, 5, "12"),
    ("thumbs 50/50", 3, 60, 10, "1-12"),
    ("thumbs 50/50", 3, 60, 20, "3"),
    ("thumbs 50/50", 3, 120, 20, "6"),
    ("thumbs 50/50", 5, 60, 10, "6"),
    ("thumbs 50/50", 5, 120, 20, "6"),
    ("thumbs 50/50", 5, 60, 60, "1"),
    ("thumbs 80/20", 3, 60, 10, "6"),
    ("thumbs 80/20", 3, 60, 20, "3"),
    ("thumbs 80/20", 3, 120, 10, "12"),
    ("thumbs 80/20", 3, 120, 20, "6"),
    ("thumbs 80/20", 3, 240, 40, "1-12"),
    ("thumbs 80/20", 5, 120, 20, "6"),
    ("thumbs 80/20", 5, 240, 60, "4"),
    ("thumbs 80/20", 10, 240, 60, "4"),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of data set, and in how many folds it is cut."""

    kind: str
    k: int
    rows: int
    groups: int
    sizes: str
    signal: bool

    @property
    def name(self) -> str:
        """The cell in one line."""
        what = "signal" if self.signal else "null"
        return f"{self.kind}, k = {self.k}, {self.rows} rows, {self.groups} groups of {self.sizes}, {what}"

    def random(self, seed: int) -> np.random.Generator:
        """Random numbers of this cell alone."""
        return np.random.default_rng([seed, zlib.crc32(self.name.encode())])

    def codes(self, random: np.random.Generator) -> NDArray[np.intp]:
        """The group of each row; uneven sizes are drawn until they make up the rows."""
        if self.sizes != "1-12":
            return np.repeat(np.arange(self.groups), int(self.sizes))
        while True:
            sizes = random.integers(1, 13, size=self.groups)
            if sizes.sum() == self.rows:
                return np.repeat(np.arange(self.groups), sizes)

    def data(self, random: np.random.Generator) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
        """Candidate scores, ratings and groups of one data set."""
        codes = self.codes(random)

        def normal() -> FloatArray:
            own, level = random.normal(size=self.rows), random.normal(size=self.groups)
            return np.sqrt(LIKENESS) * level[codes] + np.sqrt(1 - LIKENESS) * own

        quality = normal()
        scores = np.stack([r * quality + np.sqrt(1 - r * r) * normal() for r in FOLLOWS], axis=1)
        scores[:, [2, 7]] = np.round(np.clip(scores[:, [2, 7]], -2, 2))  # two that rate in five steps
        share = QUALITY if self.signal else 0.0
        rating = np.searchsorted(ndtri(KINDS[self.kind]), share * quality + np.sqrt(1 - share**2) * normal())
        return scores, rating.astype(float), codes


CELLS = tuple(Cell(*line, signal) for line in DESIGN for signal in (False, True))


def run(cell: Cell, random: np.random.Generator, number: int) -> FloatArray:
    """One cross-validation: held-out prediction, rating, group and fold of each row, shape (4, rows)."""
    while True:
        scores, ratings, codes = cell.data(random)
        splits = folds([str(code) for code in codes], cell.k, number, ratings=ratings)
        if all(np.ptp(ratings[split.train]) > 0 for split in splits):
            break  # a fit of constant ratings is an error, and the user is told
    predicted, fold = np.full(cell.rows, np.nan), np.zeros(cell.rows)
    names = [f"c{place}" for place in range(scores.shape[1])]
    for place, split in enumerate(splits):
        fitted = fit(
            scores[split.train], ratings[split.train], names,
            declared=(), judged=(), options=FitOptions(), rivals=False,
        )  # fmt: skip
        predicted[split.test] = fitted.small.predict(scores[split.test][:, fitted.positions])
        fold[split.test] = place
    return np.stack([predicted, ratings, codes.astype(float), fold])


def statistic(one: FloatArray) -> float:
    """The mean of tau-b over the folds in which it is defined."""
    predicted, ratings, _, fold = one
    taus = [kendall_tau_b(predicted[fold == place], ratings[fold == place]) for place in np.unique(fold)]
    return float(np.nanmean(taus)) if np.isfinite(taus).any() else np.nan


def simulate(cells: Sequence[int], runs: int, truth_runs: int, seed: int, keep: Path) -> None:
    """Write one file a cell: all runs, and the truth."""
    keep.mkdir(parents=True, exist_ok=True)
    for number in cells:
        cell, path = CELLS[number], keep / f"{number:02d}.npz"
        if path.exists():
            continue
        started, random = time.perf_counter(), CELLS[number].random(seed)
        found = np.stack([run(cell, random, place) for place in range(runs)])
        other = cell.random(seed + 1_000_003)
        more = [statistic(run(cell, other, place)) for place in range(truth_runs if cell.signal else 0)]
        np.savez_compressed(path, runs=found, truth=np.array(more))
        print(f"{number}: {cell.name}: {time.perf_counter() - started:.0f} s", flush=True)


# What is compared. "as it is" takes fits as given; "doubled" adds what they learned from each other's ratings.
METHODS = (
    "t over folds",
    "groups left out",
    "groups left out by fold and doubled",
    "influence as it is",
    "influence doubled",
    "influence doubled and cautious",
)


def intervals(one: FloatArray, k: int) -> dict[str, tuple[float, float, float]]:
    """Low end, high end and p-value by method; NaN where a method has none."""
    fold = one[3]
    parts = [part for place in np.unique(fold) if (part := _fold(*(line[fold == place] for line in one[:3])))]
    if not parts:
        return {}
    taus, sizes = np.array([tau for tau, _, _ in parts]), [pull.size for _, pull, _ in parts]
    mean, m, groups = float(taus.mean()), len(parts), sum(sizes)
    means = [np.append(np.delete(taus, f), x[~np.isnan(x)]).mean() for f in range(m) for x in parts[f][2][:, None]]
    by_fold = np.split(np.array(means), np.cumsum(sizes)[:-1])
    stratified = sum((x.size - 1) / x.size * float(((x - x.mean()) ** 2).sum()) for x in by_fold)
    squares = [(pull.size, float(pull @ pull)) for _, pull, _ in parts]
    some = min(sizes) > 1
    plain, cautious = (
        sum((g / (g - 1)) ** power * u for g, u in squares) / m**2 if some else np.nan for power in (1, 2)
    )
    t = mean_interval(taus, test_to_train=1 / (k - 1))
    found = {
        "groups left out": ((groups - 1) * float(np.var(means)), groups - 1),
        "groups left out by fold and doubled": (2 * stratified, groups - m),
        "influence as it is": (plain, groups - m),
        "influence doubled": (2 * plain, groups - m),
        "influence doubled and cautious": (2 * cautious, groups - m),
    }
    ends = {"t over folds": (max(t.low, -1.0), min(t.high, 1.0), mean_test(taus, test_to_train=1 / (k - 1)))}
    return ends | {name: _on_z(mean, *pair) for name, pair in found.items()}


def _fold(x: FloatArray, y: FloatArray, codes: FloatArray) -> tuple[float, FloatArray, FloatArray] | None:
    """Tau-b of a fold, the influence of its groups, and tau-b without each of them."""
    tau = kendall_tau_b(x, y)
    if np.isnan(tau):
        return None
    names, places = np.unique(codes, return_inverse=True)
    left = np.where(codes == names[:, None], np.nan, x)
    return tau, np.bincount(places, kendall_tau_b_influence(x, y)), batch_kendall_tau_b(left, y)


def _on_z(mean: float, variance: float, freedom: int) -> tuple[float, float, float]:
    if not (variance >= 0 and freedom > 0):
        return np.nan, np.nan, np.nan
    if abs(mean) >= 1 or variance == 0:
        return mean, mean, float(mean == 0)
    z, error = np.arctanh(mean), np.sqrt(variance) / (1 - mean**2)
    half = stdtrit(freedom, 0.975) * error
    return np.tanh(z - half), np.tanh(z + half), 2 * stdtr(freedom, -abs(z) / error)


def count(folders: Sequence[Path], out: Path) -> None:
    """Write what was counted in each file of each folder, method by method; the truth comes from the first folder."""
    lines = ["cell,kind,k,rows,groups,sizes,signal,truth,runs,again,method,covered,rejected,undefined,width"]
    for again, folder in enumerate(folders):
        for path in sorted(folder.glob("*.npz")):
            number = int(path.stem)
            cell, runs = CELLS[number], np.load(path)["runs"]
            truth = float(np.nanmean(np.load(folders[0] / path.name)["truth"])) if cell.signal else 0.0
            found = [intervals(one, cell.k) for one in runs]
            for method in METHODS:
                low, high, p = np.array([one.get(method, (np.nan,) * 3) for one in found]).T
                width = np.nanmean(high - low) if np.isfinite(low).any() else np.nan
                counts = (np.sum((low <= truth) & (truth <= high)), np.sum(p <= 0.05), np.sum(np.isnan(low)))
                about = (number, *(getattr(cell, name) for name in ("kind", "k", "rows", "groups", "sizes", "signal")))
                lines.append(",".join(map(str, (*about, f"{truth:.4f}", len(runs), again, method, *counts))))
                lines[-1] += f",{width:.4f}"
    out.write_text("\n".join(lines) + "\n", "utf-8")


def table(counted: Path) -> list[str]:
    """The lines of docs/coverage.md: coverage, mean width and rejections by cell and method, failures in bold."""
    with counted.open(encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    head = ("ratings", "folds", "rows", "groups of", "truth", *METHODS)
    lines = ["| " + " | ".join(head) + " |", "|---|---:|---:|---:|---:" + "|---" * len(METHODS) + "|"]
    for number in range(len(CELLS)):
        cell, texts = CELLS[number], []
        for method in METHODS:
            own = [one for one in records if int(one["cell"]) == number and one["method"] == method]
            texts.append(_figures(own[-1], cell))
        name = f"{cell.groups} of {cell.sizes}"
        lines.append(
            f"| {cell.kind} | {cell.k} | {cell.rows} | {name} | {_share(float(own[0]['truth']))} | "
            f"{' | '.join(texts)} |"
        )
    return lines


def _figures(one: dict[str, str], cell: Cell) -> str:
    """Coverage, width, rejections; a star where 2,000 other seeds decided, bold where the cell fails."""
    runs, again = int(one["runs"]), "*" if one["again"] != "0" else ""
    if int(one["undefined"]) > 0.99 * runs:
        return "none"
    covered, rejected = int(one["covered"]) / runs, int(one["rejected"]) / runs
    fails = _end(covered, runs, 1) < 0.93 or (not cell.signal and _end(rejected, runs, -1) > 0.06)
    text = f"{_share(covered)} {_share(float(one['width']), 2)} {_share(rejected)}{again}"
    return f"**{text}**" if fails else text


def _end(share: float, runs: int, side: int) -> float:
    """An end of the 99 % binomial interval."""
    return share + side * 2.576 * float(np.sqrt(share * (1 - share) / runs))


def _share(value: float, places: int = 3) -> str:
    return f"{value:.{places}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{places}f}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulate", "count", "table"])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--truth-runs", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, nargs="+", default=[Path("splits-runs")], help="where runs are kept")
    parser.add_argument("--counted", type=Path, default=Path(__file__).with_suffix(".csv"))
    parser.add_argument("--cells", type=int, nargs="*", default=list(range(len(CELLS))))
    options = parser.parse_args()
    if options.what == "simulate":
        simulate(options.cells, options.runs, options.truth_runs, options.seed, options.keep[0])
    elif options.what == "count":
        count(options.keep, options.counted)
    else:
        print(*table(options.counted), sep="\n")


if __name__ == "__main__":
    main()
