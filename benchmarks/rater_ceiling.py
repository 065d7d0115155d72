"""The error of `metricsmith.stats.rater_ceiling` on simulated raters: remakes its table in docs/coverage.md.

    python benchmarks/rater_ceiling.py [--replications 50] [--seed 0]

Outputs come three to a group, with an intraclass correlation of .3. The true ceiling is that of 200,000 outputs of
the same kind. *Closed form* is the formula for continuous ratings, ``2/pi asin(sqrt(k r / (1 + (k - 1) r)))`` with
``r = sin(pi/2 tau)``, on the same agreement. All cells take about 25 minutes on one core.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from metricsmith.stats.ceiling import average_ratings, rater_ceiling
from metricsmith.stats.correlation import kendall_tau_b

FloatArray = NDArray[np.float64]
SCALES: Mapping[str, FloatArray | None] = {
    "stars": ndtri([0.1, 0.25, 0.5, 0.8]), "thumbs 50/50": ndtri([0.5]), "thumbs 20/80": ndtri([0.2]),
    "continuous": None,
}  # fmt: skip
TRUTH = 200_000
ALIKE = 0.3  # how alike the outputs of a group are


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of data: `correlation` is that of two raters' normal numbers."""

    scale: str
    raters: int = 2
    outputs: int = 60
    model: str = "normal"
    correlation: float = 0.6

    def draw(self, outputs: int, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """The common part of each output and its ratings, NaN where a rater gave none."""
        groups = random.standard_normal(-(-outputs // 3)).repeat(3)[:outputs]
        common = math.sqrt(ALIKE) * groups + math.sqrt(1 - ALIKE) * random.standard_normal(outputs)
        rest = random.standard_normal((outputs, self.raters))
        if self.model == "heavy tails":  # Student's t with 3 degrees of freedom, of variance 1
            common = common / np.sqrt(random.chisquare(3, outputs))
            rest = rest / np.sqrt(random.chisquare(3, rest.shape))
        shares = np.full(self.raters, self.correlation)
        if self.model == "unequal raters":
            shares = np.linspace(0.3, 0.9, self.raters)
        numbers = np.sqrt(shares) * common[:, None] + np.sqrt(1 - shares) * rest
        if self.model == "lenient and strict":
            numbers += np.linspace(-0.8, 0.8, self.raters)
        cuts = SCALES[self.scale]
        ratings = numbers if cuts is None else np.searchsorted(cuts, numbers).astype(float)
        if self.model == "3 of 20":
            order = np.argsort(random.random(ratings.shape), axis=1)
            ratings = np.where(order < 3, ratings, math.nan)
        if self.model == "1 to 3":
            ratings = np.where(np.arange(3) < random.integers(1, 4, outputs)[:, None], ratings, math.nan)
        return common, ratings


CELLS = [
    *(Cell(scale, 2) for scale in SCALES),
    Cell("stars", 5), Cell("thumbs 20/80", 3), Cell("thumbs 20/80", 5),
    Cell("stars", 2, 30), Cell("stars", 2, 150), Cell("thumbs 20/80", 2, 150),
    *(Cell("stars", 3, 60, model) for model in ("heavy tails", "lenient and strict", "unequal raters", "1 to 3")),
    Cell("thumbs 20/80", 3, 60, "heavy tails"), Cell("stars", 20, 60, "3 of 20"),
    Cell("stars", 3, 60, "weaker", 0.3), Cell("stars", 3, 60, "chance", 0.0),
]  # fmt: skip


def ceiling(common: FloatArray, ratings: FloatArray) -> float:
    """Tau-b of the common part with the mean rating."""
    means = np.full(len(ratings), math.nan)
    sizes = (~np.isnan(ratings)).sum(axis=1)
    for size in np.unique(sizes):
        rows = ratings[sizes == size]
        means[sizes == size] = average_ratings(rows[~np.isnan(rows)].reshape(-1, size), "mean")
    return kendall_tau_b(common, means)


def closed(agreement: float, raters: int) -> float:
    """The ceiling for continuous ratings."""
    r = math.sin(math.pi / 2 * max(agreement, 0.0))
    return 2 / math.pi * math.asin(math.sqrt(raters * r / (1 + (raters - 1) * r)))


def measure(cell: Cell, replications: int, seed: int) -> str:
    """One line of the table."""
    random = np.random.default_rng([seed, zlib.crc32(repr(cell).encode())])
    truth = ceiling(*cell.draw(TRUTH, random))
    found = []
    for _ in range(replications):
        _, ratings = cell.draw(cell.outputs, random)
        given = [{f"rater {j}": float(value) for j, value in enumerate(row) if value == value} for row in ratings]
        found.append(rater_ceiling(given, np.arange(cell.outputs) // 3))
    agreed = np.array([one.agreement for one in found])
    shown = [one for one in found if not one.withheld]
    some = f"| {cell.scale} | {cell.model} | {cell.raters} | {cell.outputs} | {np.nanmean(agreed):.3f} | {truth:.3f} |"
    if not shown:
        return f"{some} – | – | – | – | – | 0 | {np.mean(agreed > 0):.2f} |"
    values = np.array([one.ceiling for one in shown])
    covered = np.mean([one.low <= truth <= one.high for one in shown])
    width = np.mean([one.high - one.low for one in shown])
    formula = np.array([closed(one.agreement, 3 if cell.model == "3 of 20" else cell.raters) for one in shown])
    return (
        f"{some} {values.mean() - truth:+.3f} | {values.std():.3f} | {formula.mean() - truth:+.3f} | {covered:.2f} | "
        f"{width:.2f} | {len(shown) / len(found):.2f} | {np.mean(agreed > 0):.2f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    head = "scale raters number outputs agreement ceiling bias spread closed covered width given above_0"
    print("|", head.replace(" ", " | "), "|")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for cell in CELLS:
        print(measure(cell, options.replications, options.seed), flush=True)


if __name__ == "__main__":
    main()
