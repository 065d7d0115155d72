"""How far intervals of a cross-validated tau-b keep what they promise: remake the table of docs/coverage.md.

Grouped K-fold cross-validation with the package's own fit inside: predictions of different folds come from different
fits, the statistic is the mean of tau-b within folds, and the truth is what it is on average over many data sets of
the cell (0 where ratings are unrelated to every candidate)::

    python benchmarks/splits.py simulate --runs 400 --seed 0 --keep FOLDER
    python benchmarks/splits.py simulate --runs 2000 --seed 1 --keep FOLDER2 --cells 3 17
    python benchmarks/splits.py table --keep FOLDER

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
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from metricsmith.correlation import kendall_tau_b
from metricsmith.datasets.splits import folds
from metricsmith.optimizers.fitting import FitOptions, fit

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


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulate"])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--truth-runs", type=int, default=800)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--cells", type=int, nargs="*", default=list(range(len(CELLS))))
    options = parser.parse_args()
    simulate(options.cells, options.runs, options.truth_runs, options.seed, options.keep)


if __name__ == "__main__":
    main()
