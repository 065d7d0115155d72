"""Simulates how often `measure_interval` holds the truth: made-up test sets of systems, documents and segments.

Gold is like MQM: penalties in whole numbers, many of them none. A document's difficulty and how well a system suits it
are shared by its segments; the metric is gold with noise, of the document too. The truth is the mean of the measure
over many test sets of the same size: what another test set would give on average. Systems are the same throughout::

    python benchmarks/measure_coverage.py --replications 1000 --seed 0
    python benchmarks/measure_coverage.py --replications 400 --spans

The second line is on `character_f1_interval`, beside the percentile bootstrap over documents: both sides see some of
the errors of a document, whose length and difficulty its segments share. The truth is F1 over 100,000 documents.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from metricsmith.meta_evaluation import MEASURES, character_f1_interval, measure_interval
from metricsmith.stats.resampling import Interval
from metricsmith.stats.resampling.intervals import percentile_interval

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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


def marked(documents: int, most: int, clean: float, random: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Credit, predicted and gold characters of segments, shape (n, 3), and the document of each."""
    labels = np.repeat(np.arange(documents), random.integers(1, most + 1, size=documents))
    hard, skill = random.normal(0, 0.7, documents)[labels], random.normal(0, 0.7, documents)[labels]
    errors = (random.random(labels.size) > clean) * np.ceil(random.gamma(0.8, 12 * np.exp(hard)))
    seen = random.random((2, labels.size)) < 0.8
    own = (random.random((2, labels.size)) < 0.15) * np.ceil(random.gamma(0.8, 8, (2, labels.size)))
    share = 1 / (1 + np.exp(-(skill + random.normal(0.5, 1, labels.size))))
    both = np.floor(errors * share * seen.all(axis=0))
    credit = both - 0.5 * random.binomial(both.astype(np.int64), 0.3)
    return np.column_stack([credit, *(np.maximum(np.ceil(errors * share), both) * seen + own)]), labels


def f1(terms: FloatArray) -> FloatArray:
    """Character F1 from sums of terms along the last axis; NaN without a character."""
    whole = (terms[..., 1] + terms[..., 2]) / 2
    return np.where(whole > 0, terms[..., 0] / np.where(whole > 0, whole, 1), math.nan)


def spans(replications: int, seed: int) -> Iterator[str]:
    """A line for each kind of data: coverage, misses below and above, and mean width, of both intervals."""
    for most, clean, documents in itertools.product((1, 8), (0.3, 0.7), (5, 10, 30, 100)):
        random = np.random.default_rng([seed, most, documents])
        truth = float(f1(marked(100_000, most, clean, np.random.default_rng(seed + 1))[0].sum(axis=0)))
        ends = []
        for _ in range(replications):
            terms, labels = marked(documents, most, clean, random)
            left = character_f1_interval(terms, labels)
            sums = np.stack([np.bincount(labels, column) for column in terms.T], axis=1)
            times = random.multinomial(documents, np.full(documents, 1 / documents), size=1000)
            drawn = percentile_interval(f1(times @ sums), 0.95)
            ends.append([(left.low, left.high), (drawn.low, drawn.high)])
        found = np.array(ends)
        cells = []
        for low, high in found.transpose(1, 2, 0):
            held, below, above = (
                np.mean(which) for which in ((low <= truth) & (truth <= high), truth < low, truth > high)
            )
            width = np.nanmean(high - low)
            cells.append(f"{100 * held:.1f} ({100 * below:.1f}, {100 * above:.1f}) | {width:.3f}")
        yield f"| {documents} | {'1' if most == 1 else f'1-{most}'} | {truth:.3f} | {' | '.join(cells)} |"


def main() -> int:
    """Print coverage in per cent, and in brackets how often the truth lay below and above the interval."""
    parser = argparse.ArgumentParser(description="Measure the coverage of measure_interval in simulations.")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
    parser.add_argument("--spans", action="store_true", help="character F1 instead of the measures")
    options = parser.parse_args()
    if options.spans:
        print("| documents | segments of each | F1 | leaving out documents | width | percentile bootstrap | width |")
        print("|---:|---:|---:|---:|---:|---:|---:|")
        for line in spans(options.replications, options.seed):
            print(line, flush=True)
        return 0
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
