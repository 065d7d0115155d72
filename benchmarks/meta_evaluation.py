"""Times meta-evaluation at the size of a WMT test set, beside the public definitions written down plainly.

Scores are made up: gold like MQM (penalties, about half of them none), metrics as gold with noise, once continuous and
once in 17 steps, as language models give them. The baseline is ours: it follows the definitions of acc-t and PERM-BOTH
with numpy, one segment and one resample at a time, and sweeps the candidate thresholds in ascending order. Both sides
must give the same numbers::

    python benchmarks/meta_evaluation.py

PERM-BOTH of the baseline runs a few resamples, on the draws that the library makes too, and is scaled up. Seconds are
of the processor; with ``OPENBLAS_NUM_THREADS=1`` they are those on the clock of an idle machine.

Two more parts run instead of the races: the p-values of PERM-BOTH on SPA and tau-b beside those of their
approximations, and whole rank tables of many metrics with intervals, chance floors and significance::

    python benchmarks/meta_evaluation.py --side-by-side 12
    python benchmarks/meta_evaluation.py --metrics 50
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.meta_evaluation import (
    MEASURES,
    SegmentAccuracy,
    evaluate_task,
    measure_interval,
    pairwise_accuracy,
    perm_both,
)
from metricsmith.threads import one_thread

FloatArray = NDArray[np.float64]

STEPS = 17
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Row:
    """Processor seconds of both for one task, and the peak memory of the library beyond the scores."""

    task: str
    scores: str
    plain: float
    ours: float
    megabytes: float

    def __str__(self) -> str:
        ratio = f"{self.plain / self.ours:6.0f}"
        return f"| {self.task} | {self.scores} | {self.plain:.3g} | {self.ours:.3g} | {ratio} | {self.megabytes:.0f} |"


def scores(systems: int, segments: int, seed: int) -> tuple[FloatArray, dict[str, tuple[FloatArray, FloatArray]]]:
    """Gold, and two metrics of either kind; shape (systems, segments)."""
    random = np.random.default_rng(seed)
    level = random.normal(0.0, 0.7, (systems, 1)) + random.normal(0.0, 1.5, segments)
    gold = -np.round(np.clip(random.exponential(3.0, (systems, segments)) - 2 + level, 0, 25))
    noisy = [gold + random.normal(0.0, spread, gold.shape) for spread in (3.0, 3.2)]
    coarse = [np.clip(np.round(metric), 1 - STEPS, 0) for metric in noisy]
    return gold, {"continuous": (noisy[0], noisy[1]), f"{STEPS} steps": (coarse[0], coarse[1])}


def many(count: int, gold: FloatArray, seed: int) -> dict[str, FloatArray]:
    """Metrics from good to bad, of both kinds in turn: noise in cells, and a lean for or against each system."""
    random = np.random.default_rng([seed, count])
    found = {}
    for place in range(count):
        spread, lean = 2.5 + 4 * place / max(count - 1, 1), random.normal(0.0, 0.5, (len(gold), 1))
        noisy = gold + lean + random.normal(0.0, spread, gold.shape)
        found[f"metric {place}"] = np.clip(np.round(noisy), 1 - STEPS, 0) if place % 2 else noisy
    return found


def plain_accuracy(metric: FloatArray, gold: FloatArray, epsilon: float) -> float:
    """Pairwise accuracy at a threshold: the mean over segments of the share of right pairs of systems."""
    pairs = np.triu_indices(len(gold), 1)
    accuracies = []
    for x, y in zip(metric.T, gold.T, strict=True):
        apart, gold_apart = np.subtract.outer(x, x)[pairs], np.subtract.outer(y, y)[pairs]
        order = np.where(np.abs(apart) <= epsilon, 0.0, np.sign(apart))
        accuracies.append(np.mean(order == np.sign(gold_apart)))
    return float(np.mean(accuracies))


def plain_calibration(metric: FloatArray, gold: FloatArray, *, running: bool = True) -> tuple[float, float]:
    """acc-t and its threshold: one candidate after the other, in ascending order.

    The mean accuracy over segments is a running sum, or is taken anew at every candidate, as the definition reads.
    """
    pairs = np.triu_indices(len(gold), 1)
    accuracies, distances, changes = [], [], []
    for x, y in zip(metric.T, gold.T, strict=True):
        apart, gold_apart = np.subtract.outer(x, x)[pairs], np.subtract.outer(y, y)[pairs]
        untied = np.sign(apart) == np.sign(gold_apart)  # right with a threshold below the distance
        distance, tied = np.abs(apart), gold_apart == 0  # right from there on
        accuracies.append(float(np.mean(np.where(distance == 0, tied, untied))))
        changes.append(np.where(distance == 0, 0.0, tied.astype(float) - untied) / distance.size)
        distances.append(distance)
    by_segment, steps, thresholds = np.array(accuracies), np.concatenate(changes), np.concatenate(distances)
    order = np.argsort(thresholds)
    segments = (order // distances[0].size).tolist()
    mean = float(by_segment.mean())
    best, epsilon, candidate = mean, 0.0, 0.0
    for threshold, step, segment in zip(thresholds[order].tolist(), steps[order].tolist(), segments, strict=True):
        if threshold != candidate:  # all pairs at the candidate before this one are counted
            mean = mean if running else float(by_segment.mean())
            if mean > best + TOLERANCE:
                best, epsilon = mean, candidate
            candidate = threshold
        if running:
            mean += step / len(distances)
        else:
            by_segment[segment] += step
    mean = mean if running else float(by_segment.mean())
    return (mean, candidate) if mean > best + TOLERANCE else (best, epsilon)


def plain_differences(
    measure: Callable[[FloatArray, FloatArray], float],
    metrics: tuple[FloatArray, FloatArray],
    gold: FloatArray,
    resamples: int,
    seed: int,
) -> FloatArray:
    """PERM-BOTH one resample at a time; the first number is the observed difference."""
    first, second = ((metric - metric.mean()) / metric.std() for metric in metrics)
    random = np.random.default_rng(seed)
    found = [measure(first, gold) - measure(second, gold)]
    for _ in range(resamples):
        swap = random.random(gold.shape) < 0.5
        mixed, other = np.where(swap, second, first), np.where(swap, first, second)
        found.append(measure(mixed, gold) - measure(other, gold))
    return np.array(found)


def timed(task: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least processor seconds of several runs, which other programs disturb little, and the last result."""
    least, result = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        result = task()
        least = min(least, time.process_time() - start)
    return least, result


def peak(task: Callable[[], Any]) -> float:
    """Megabytes at the peak, in a run of its own."""
    tracemalloc.start()
    task()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def calibrations(kind: str, metric: FloatArray, gold: FloatArray, repeats: int) -> list[Row]:
    """acc-t of one metric, beside both sweeps."""
    ours, found = timed(lambda: pairwise_accuracy(metric, gold), 4 * repeats)
    memory = peak(lambda: pairwise_accuracy(metric, gold))
    rows = []
    for name, running in (("running sum", True), ("mean at every candidate", False)):
        task = functools.partial(plain_calibration, metric, gold, running=running)
        plain, (value, epsilon) = timed(task, repeats if running else 1)
        if abs(found.value - value) > TOLERANCE or found.epsilon != epsilon:
            raise SystemExit(f"acc-t differs: {found.value!r} at {found.epsilon!r}, plainly {value!r} at {epsilon!r}")
        rows.append(Row(f"acc-t, {name}", kind, plain, ours, memory))
    return rows


def permutation(
    kind: str, metrics: tuple[FloatArray, FloatArray], gold: FloatArray, fixed: bool, options: argparse.Namespace
) -> Row:
    """PERM-BOTH of two metrics, with the metric's own ties or a threshold for every resample."""
    few, many, seed = options.baseline_resamples, options.resamples, options.seed
    measure = SegmentAccuracy(epsilon=0.0 if fixed else None)
    plainly = (lambda x, y: plain_accuracy(x, y, 0.0)) if fixed else (lambda x, y: plain_calibration(x, y)[0])
    plain, differences = timed(lambda: plain_differences(plainly, metrics, gold, few, seed), 1)
    same = perm_both(measure, *metrics, gold, resamples=few, seed=seed)
    standard = [(metric - metric.mean()) / metric.std() for metric in metrics]
    swaps = np.random.default_rng(seed).random((few, gold.size)) < 0.5
    drawn = measure.exchanged(standard[0], standard[1], gold)(swaps)
    apart = float(np.abs(np.append(same.observed, drawn) - differences).max())
    p_value = (1 + np.count_nonzero(differences[1:] >= differences[0] - TOLERANCE)) / (few + 1)
    if apart > TOLERANCE or same.p_value != p_value:
        raise SystemExit(f"PERM-BOTH differs: by {apart:.2g}; p {same.p_value} for {p_value}")
    ours, _ = timed(lambda: perm_both(measure, *metrics, gold, resamples=many, seed=seed), 3 if fixed else 1)
    memory = peak(lambda: perm_both(measure, *metrics, gold, resamples=few, seed=seed))
    name = "PERM-BOTH, threshold 0" if fixed else "PERM-BOTH, calibrated anew"
    return Row(f"{name}, {many:,} resamples", kind, plain * many / (few + 1), ours, memory)


def races(options: argparse.Namespace) -> list[Row]:
    """All tasks on both kinds of scores; exits where numbers differ."""
    gold, kinds = scores(options.systems, options.segments, options.seed)
    rows = []
    for kind, metrics in kinds.items():
        rows += calibrations(kind, metrics[0], gold, options.repeats)
        rows += [permutation(kind, metrics, gold, fixed, options) for fixed in (True, False)]
    return rows


def measured(options: argparse.Namespace) -> list[str]:
    """Seconds of every measure, and of its interval over single segments."""
    gold, kinds = scores(options.systems, options.segments, options.seed)
    metric = kinds["continuous"][0]
    lines = []
    for name, measure in MEASURES.items():
        value = timed(lambda measure=measure: measure(metric, gold), options.repeats)[0]  # type: ignore[misc]
        interval = timed(lambda measure=measure: measure_interval(measure, metric, gold), 1)[0]  # type: ignore[misc]
        lines.append(f"| {name} | {value * 1000:.1f} | {interval:.3g} |")
    return lines


def side_by_side(options: argparse.Namespace) -> Iterator[str]:
    """P-values of all draws and of the approximation, for neighbours in the order of a measure, and both seconds."""
    gold = scores(options.systems, options.segments, options.seed)[0]
    metrics = dict(itertools.islice(many(50, gold, options.seed).items(), options.side_by_side))
    for name in options.of:
        measure: Any = MEASURES[name]
        order = sorted(metrics, key=lambda one, measure=measure: -measure(metrics[one], gold).value)  # type: ignore[misc]
        for one, other in itertools.pairwise(order):
            test = functools.partial(
                perm_both, measure, metrics[one], metrics[other], gold, resamples=options.resamples, seed=options.seed
            )
            exact, drawn = timed(test, 1)
            quick, limit = timed(functools.partial(test, approximately=True), 1)
            apart = abs(drawn.p_value - limit.p_value)
            yield (
                f"| {name} | {one}, {other} | {drawn.p_value:.3f} | {limit.p_value:.3f} | {apart:.3f} | "
                f"{exact:.2f} | {quick:.2f} |"
            )


def tables(options: argparse.Namespace) -> Iterator[str]:
    """Seconds of a rank table of many metrics in each measure, side by side as `metricsmith meta-eval` makes them."""
    gold = scores(options.systems, options.segments, options.seed)[0]
    metrics = many(options.metrics, gold, options.seed)

    def table(name: str) -> str:
        start, begun = time.thread_time(), time.perf_counter()
        found = evaluate_task(name, MEASURES[name], metrics, gold, resamples=options.resamples, seed=options.seed)
        spent, passed = time.thread_time() - start, time.perf_counter() - begun
        tests = int(np.count_nonzero(~np.isnan(np.array(found.p_values))))
        clusters = max(one.rank or 0 for one in found.metrics)
        return f"| {name} | {tests} | {clusters} | {spent:.1f} | {passed:.1f} |"

    start, begun = time.process_time(), time.perf_counter()
    with one_thread(), ThreadPoolExecutor(options.workers) as pool:
        yield from pool.map(table, MEASURES)
    yield f"| together | | | {time.process_time() - start:.1f} | {time.perf_counter() - begun:.1f} |"


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Time meta-evaluation beside its definitions written down plainly.")
    parser.add_argument("--systems", type=int, default=17)
    parser.add_argument("--segments", type=int, default=2037)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--baseline-resamples", type=int, default=20, help="resamples that the baseline runs")
    parser.add_argument("--repeats", type=int, default=5, help="runs of which the fastest counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--side-by-side", type=int, default=0, help="metrics whose p-values are found in two ways")
    parser.add_argument("--of", nargs="+", default=["spa", "tau-b"], choices=["spa", "tau-b"])
    parser.add_argument("--metrics", type=int, default=0, help="metrics of whole rank tables in all measures")
    parser.add_argument("--workers", type=int, default=2, help="rank tables that are made side by side")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Print both tables; 1 if a number differs."""
    options = arguments(given)
    print(f"{options.systems} systems x {options.segments:,} segments, seed {options.seed}, numpy {np.__version__}")
    if options.side_by_side or options.metrics:
        if options.side_by_side:
            print("\n| measure | metrics | p, draws | p, approximation | apart | s, draws | s |")
            print("|---|---|---:|---:|---:|---:|---:|")
            for line in side_by_side(options):
                print(line, flush=True)
        if options.metrics:
            print("\n| measure | tests | clusters | processor s | s on the clock |\n|---|---:|---:|---:|---:|")
            for line in tables(options):
                print(line, flush=True)
        return 0
    print("the baseline's PERM-BOTH ran", options.baseline_resamples, "resamples and is scaled\n")
    print("| task | scores | plainly s | here s | ratio | peak MB here |\n|---|---|---:|---:|---:|---:|")
    for row in races(options):
        print(row, flush=True)
    print("\n| measure | ms | s with its interval |\n|---|---:|---:|")
    print("\n".join(measured(options)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
