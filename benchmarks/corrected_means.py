"""Simulates how often corrected means hold the truth, and their width: remakes the tables of docs/corrected_means.md.

Each cell draws many labelled and unlabelled sets with a known truth::

    python benchmarks/corrected_means.py --draws 2000 --seed 0 --workers 2

Ratings and the judge's numbers are normal, or 1 below a threshold of normal numbers and 0 above. They correlate as
stated (phi for 0 and 1); ratings of a group correlate by .5. The unlabelled set has 1,200 rows in groups of the same
size. *Plain PPI++* tunes lambda on all labelled rows, takes rows as independent and normal quantiles.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtri

from metricsmith.errors import DataError
from metricsmith.rating_model.corrected import CorrectedMean, prediction_powered_mean, rogan_gladen
from metricsmith.rating_model.labelled_sample import LabelledSample

FloatArray = NDArray[np.float64]
UNLABELLED, ALIKE = 1200, 0.5
GAP = {True: 0.1, False: 0.3}  # between the two systems of `difference`, and of the rarer stratum from the others


@dataclass(frozen=True)
class Cell:
    """One kind of data; without a `prevalence` ratings are continuous.

    Designs: ``mean``; ``lenient`` (the judge calls half of the rows positive); ``words`` (the judge is a length in
    words, skewed, and falls as quality rises); ``within`` (the judge tells rows of a group apart, groups not at all);
    ``shared`` (half of the rows of each labelled group have no label); ``difference`` (half of the rows of each group
    are another system's); ``strata`` (a sixth of the rows, which are worse, has half of the labels); ``half`` (half
    of the labelled rows are positives by choice, for Rogan and Gladen).
    """

    design: str
    prevalence: float | None
    correlation: float
    labels: int
    rows: int

    @property
    def groups(self) -> int:
        """Labelled groups."""
        return self.labels // self.rows

    @property
    def about(self) -> str:
        """The first cells of its line in a table."""
        kind = "scores" if self.prevalence is None else f"{self.prevalence:g}"
        return f"| {self.design} | {kind} | {self.correlation:g} | {self.groups} of {self.rows} "


@dataclass(frozen=True)
class Result:
    """Shares of the draws that hold the truth, the ratio of mean widths to the classical one, and other shares."""

    classical: float
    plain: float
    corrected: float
    width: float
    fallback: float
    refused: float

    def __str__(self) -> str:
        coverage = f"{self.classical:.3f} | {self.plain:.3f} | {self.corrected:.3f}".replace("nan", "–")
        return f"{coverage} | {self.width:.2f} | {self.fallback:.3f} | {self.refused:.3f}"


def line(cell: Cell, draws: int, seed: int) -> tuple[Cell, Result]:
    """The result of one cell."""
    random = np.random.default_rng([seed, zlib.crc32(str(cell).encode())])
    found: list[CorrectedMean] = []
    held, refused, truth = 0, 0, true_mean(cell)
    for _ in range(draws):
        sample = drawn(cell, random)
        bounds = None if cell.prevalence is None else (0.0, 1.0)
        try:
            rogan = cell.design == "half"
            found.append(rogan_gladen(sample) if rogan else prediction_powered_mean(sample, bounds=bounds))
        except DataError:
            refused += 1
        low, high = plain_ppi(sample.ratings, sample.predictions, sample.unlabelled)[1:]
        held += low <= truth <= high
    one = sample.weights.size == 1
    return cell, Result(
        float(np.mean([each.classical_low <= truth <= each.classical_high for each in found])),
        held / draws if one else math.nan,
        float(np.mean([each.low <= truth <= each.high for each in found])),
        sum(each.high - each.low for each in found) / sum(each.classical_high - each.classical_low for each in found),
        float(np.mean([each.method == "classical" for each in found])),
        refused / draws,
    )


def plain_ppi(
    ratings: FloatArray, predictions: FloatArray, unlabelled: FloatArray, lam: float | None = None, level: float = 0.95
) -> tuple[float, float, float]:
    """PPI++ of the paper for independent rows: the estimate and the ends of its normal interval; PPI with lambda 1."""
    n, more = ratings.size, unlabelled.size
    if lam is None:
        pooled = float(np.r_[predictions, unlabelled].var(ddof=1))  # over cov without: the convention of ppi_py
        lam = float(np.cov(ratings, predictions, ddof=0)[0, 1]) / ((1 + n / more) * pooled) if pooled else 0.0
    terms = ratings - lam * predictions
    estimate = float(terms.mean() + lam * unlabelled.mean())
    error = math.sqrt(terms.var() / n + lam**2 * unlabelled.var() / more)
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    return estimate, estimate - half, estimate + half


def true_mean(cell: Cell) -> float:
    """The mean rating of the unlabelled population, or the difference of the two systems."""
    gap = GAP[cell.prevalence is not None]
    if cell.design == "difference":
        return -gap
    return (cell.prevalence or 0.0) + (gap / 6 if cell.design == "strata" else 0.0)


def drawn(cell: Cell, random: np.random.Generator) -> LabelledSample:
    """One data set."""
    if cell.design == "half":
        return halved(cell, random)
    g, rows = cell.groups, cell.rows
    wide = 2 * rows if cell.design == "shared" else rows
    y, f = normals(cell, g + UNLABELLED // rows, wide, random)
    place, label = np.broadcast_to(np.arange(wide), y.shape), np.broadcast_to(np.arange(len(y))[:, None], y.shape)
    second = np.zeros(y.shape, dtype=bool)
    if cell.design == "difference":
        second = place % 2 == 1
    elif cell.design == "strata":
        second = label % np.where(label < g, 2, 6) == 0
    y, f = observed(cell, y, f, second)
    chosen = (label < g) & (place < rows)
    parts = {"strata": second[chosen].tolist(), "unlabelled_strata": second[~chosen].tolist()}
    pair = (False, True) if cell.design == "difference" else None
    return LabelledSample.of(
        y[chosen], f[chosen], f[~chosen], groups=label[chosen].tolist(), unlabelled_groups=label[~chosen].tolist(),
        **(parts if second.any() else {}), difference=pair,
    )  # fmt: skip


def halved(cell: Cell, random: np.random.Generator) -> LabelledSample:
    """One data set whose labelled rows, of one row a group, are half positives."""
    nothing = np.zeros((UNLABELLED + 40 * cell.labels, 1), dtype=bool)
    y, f = (side[:, 0] for side in observed(cell, *normals(cell, nothing.size, 1, random), nothing))
    pool, each = y[UNLABELLED:], cell.labels // 2
    rows = UNLABELLED + np.r_[np.flatnonzero(pool == 1)[:each], np.flatnonzero(pool == 0)[:each]]
    return LabelledSample.of(y[rows], f[rows], f[:UNLABELLED])


def normals(cell: Cell, groups: int, rows: int, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The normal numbers behind ratings and judge, shape (groups, rows)."""
    r, alike = cell.correlation, ALIKE if rows > 1 else 0.0
    if cell.prevalence is not None:
        judged = 0.5 if cell.design == "lenient" else cell.prevalence
        r, alike = latent(r, cell.prevalence, judged), latent(alike, cell.prevalence, cell.prevalence)

    def pair(count: int, c: float) -> FloatArray:
        y, rest = random.normal(size=(2, groups, count))
        return np.array([y, c * y + math.sqrt(1 - c * c) * rest])

    between = 0.0 if cell.design == "within" else r
    y, f = math.sqrt(alike) * pair(1, between) + math.sqrt(1 - alike) * pair(rows, r)
    return y, f


def observed(cell: Cell, y: FloatArray, f: FloatArray, second: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Ratings and the judge's numbers; those of the `second` system or stratum lie higher by the gap."""
    if cell.prevalence is None:
        y, f = y + GAP[False] * second, f + second
        return y, np.round(np.exp(4 - 0.5 * f)) if cell.design == "words" else f
    rate = cell.prevalence + GAP[True] * second
    return (y < ndtri(rate)).astype(float), (f < ndtri(np.where(cell.design == "lenient", 0.5, rate))).astype(float)


@cache
def latent(phi: float, first: float, second: float) -> float:
    """The correlation of two normal numbers at which two events of these probabilities correlate by `phi`."""
    a, b = float(ndtri(first)), float(ndtri(second))

    def density(r: float) -> float:  # by which P(both) rises with r (Sheppard)
        return math.exp(-(a * a - 2 * r * a * b + b * b) / (2 * (1 - r * r))) / (2 * math.pi * math.sqrt(1 - r * r))

    spread = math.sqrt(first * (1 - first) * second * (1 - second))
    return 0.0 if phi == 0 else float(brentq(lambda r: quad(density, 0, r)[0] / spread - phi, 0, 0.99999))


SIZES = [(labels, rows) for rows in (1, 6) for labels in (30, 60, 120)]
TABLES = {
    "the targets": [
        Cell("mean", p, r, labels, rows) for p in (None, 0.3, 0.5) for r in (0.0, 0.3, 0.7) for labels, rows in SIZES
    ],
    "prevalence .05": [Cell("mean", 0.05, r, labels, rows) for r in (0.0, 0.3, 0.7) for labels, rows in SIZES],
    "other data": [
        Cell(design, p, r, labels, rows)
        for design, p, r in (
            ("mean", None, 0.9), ("mean", 0.3, 0.9), ("lenient", 0.3, 0.5), ("words", None, 0.7), ("within", None, 0.7),
            ("shared", None, 0.7), ("shared", 0.3, 0.7), ("difference", None, 0.7), ("difference", 0.3, 0.7),
            ("strata", None, 0.7), ("strata", 0.3, 0.7),
        )
        for labels, rows in ((60, 6), (120, 6), (120, 1))
        if not (rows == 1 and design in ("within", "difference"))
    ],
    "Rogan and Gladen": [
        Cell("half", p, r, labels, 1) for p in (0.3, 0.1) for r in (0.3, 0.7) for labels in (30, 60, 120)
    ],
}  # fmt: skip


def table(cells: Iterable[Cell], draws: int, seed: int, workers: int) -> list[str]:
    """Lines of a Markdown table."""
    with ProcessPoolExecutor(workers) as pool:
        results = list(pool.map(partial(line, draws=draws, seed=seed), cells))
    head = "| design | ratings | correlation | groups | classical | plain | corrected | width | fell back | refused |"
    return [head, "|---|---" + 8 * "|---:" + "|", *(f"{cell.about}| {found} |" for cell, found in results)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    for title, cells in TABLES.items():
        print(f"{title}\n", *table(cells, options.draws, options.seed, options.workers), "", sep="\n", flush=True)
