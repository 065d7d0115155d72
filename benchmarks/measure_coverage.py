"""How often `measure_interval` holds the truth: made-up test sets of systems, documents and segments.

Gold is like MQM: penalties in whole numbers, many of them none. A document's difficulty and how well a system suits it
are shared by its segments; the metric is gold with noise, of the document too. The truth is the mean of the measure
over many test sets of the same size: what another test set would give on average. Systems are the same throughout::

    python benchmarks/measure_coverage.py --replications 1000 --seed 0
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from metricsmith.meta_evaluation import MEASURES, measure_interval
from metricsmith.resampling import Interval

FloatArray = NDArray[np.float64]

SYSTEMS = 8
SEGMENTS = (1, 9)  # of a document: from, and below
DOCUMENTS = (10, 30, 100)
NAMES = ("spa", "acc-t", "system-accuracy", "system-pearson", "acc", "tau-b", "pearson", "tau-b-item")


def test_set(documents: int, random: np.random.Generator) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Metric and gold, shape (systems, segments), and the document of each segment."""
    labels = np.repeat(np.arange(documents), random.integers(*SEGMENTS, size=documents))
    shape = (SYSTEMS, labels.size)
    level = np.linspace(0, 1.2, SYSTEMS)[:, None]
    document = random.normal(0, 1, documents) + random.normal(0, 0.5, (SYSTEMS, documents))
    quality = level + document[:, labels] + random.normal(0, 1.5, shape)
    gold = -np.round(np.maximum(1.0 - 2 * quality, 0))
    lean = np.linspace(0.3, -0.3, SYSTEMS)[:, None] * np.array([1, -1] * (SYSTEMS // 2))[:, None]
    noise = lean + random.normal(0, 0.5, (SYSTEMS, documents))[:, labels] + random.normal(0, 1.2, shape)
    return quality + noise, gold, labels


def number(name: str) -> Callable[[FloatArray, FloatArray], float]:
    """A measure's numbers."""
    return lambda metric, gold: float(getattr(found := MEASURES[name](metric, gold), "value", found))


def intervals(name: str, documents: int, random: np.random.Generator) -> tuple[float, Interval, Interval]:
    """The measure of a new test set, its interval, and the one without Fisher's z scale."""
    metric, gold, labels = test_set(documents, random)
    bounded = measure_interval(MEASURES[name], metric, gold, labels, resamples=500)
    plain = measure_interval(MEASURES[name], metric, gold, labels, resamples=500, bounds=(-1e6, 1e6))  # a straight line
    return number(name)(metric, gold), bounded, plain


def main() -> int:
    """Print coverage in per cent, and in brackets how often the truth lay below and above the interval."""
    parser = argparse.ArgumentParser(description="Measure the coverage of measure_interval in simulations.")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
    options = parser.parse_args()
    print("| measure | " + " | ".join(f"{d} documents | without z" for d in DOCUMENTS) + " |")
    print("|---" + "|---:" * (2 * len(DOCUMENTS)) + "|")
    for name in options.only:
        cells = []
        for documents in DOCUMENTS:
            random = np.random.default_rng([options.seed, documents])
            found = [intervals(name, documents, random) for _ in range(options.replications)]
            values = [value for value, *_ in found if not math.isnan(value)]
            truth = float(np.mean(values))
            for which in (1, 2):
                ends = np.array([(one[which].low, one[which].high) for one in found])
                below, above = np.mean(truth < ends[:, 0]), np.mean(truth > ends[:, 1])
                held = np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
                cells.append(f"{100 * held:.1f} ({100 * below:.1f}, {100 * above:.1f})")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
