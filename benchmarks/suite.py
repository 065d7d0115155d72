"""Times a shared task of WMT's size: three language pairs, SPA and acc-t in each, and the average.

Scores are made up: gold like MQM (penalties, about half of them none), metrics of graded quality, each as good in all
language pairs, in turn continuous and in 17 steps, as language models give them::

    python benchmarks/suite.py
    python benchmarks/suite.py --metrics 10 --segments 300

Numbers are kept in a file, from which the second run takes them; both must give the same table. Seconds are on the
clock: the first line says how busy the machine was. Memory is the process's peak, its libraries included.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from metricsmith.meta_evaluation.suites import MetricScores, PairRules, PairScores, Suite, SuiteTask
from metricsmith.report.suite.record import SuiteEvaluation
from metricsmith.studies.kept_file import KeptFile
from metricsmith.studies.suite import evaluate_suite

PAIRS = ("en-de", "en-es", "ja-zh")
STEPS = 17
DOCUMENT = 12  # segments
SUITE = Suite(
    "wmt24",
    "simulated",
    {pair: PairRules() for pair in PAIRS},
    tuple(SuiteTask(measure, (pair,)) for pair in PAIRS for measure in ("spa", "acc-t")),
)


def simulated(pair: str, systems: int, segments: int, metrics: int, seed: int) -> PairScores:
    """One language pair: noise in cells, and a lean for or against each system, both greater in worse metrics."""
    random = np.random.default_rng([seed, PAIRS.index(pair)])
    level = random.normal(0.0, 0.7, (systems, 1)) + random.normal(0.0, 1.5, segments)
    gold = -np.round(np.clip(random.exponential(3.0, (systems, segments)) - 2 + level, 0, 25))
    found = {}
    for place in range(metrics):
        grade = place / max(metrics - 1, 1)
        lean = random.normal(0.0, 0.2 + 0.6 * grade, (systems, 1))
        scores = gold + lean + random.normal(0.0, 2.5 + 4 * grade, gold.shape)
        name = f"metric-{place:02d}"
        scores = np.clip(np.round(scores), 1 - STEPS, 0) if place % 2 else scores
        found[name] = MetricScores(name, name, False, scores, None)
    names = tuple(f"system-{number}" for number in range(systems))
    documents = tuple(f"document-{segment // DOCUMENT}" for segment in range(segments))
    return PairScores(pair, "mqm", names, documents, gold, None, found, (), {})


class Clock:
    """Tests of each task, and the seconds from the start to the last of them."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.seen: dict[str, tuple[int, float]] = {}

    def __call__(self, task: str, done: int, _: int) -> None:
        """Note a test."""
        if task not in self.seen:
            print(f"{task}: first test after {time.perf_counter() - self.start:.0f} s", flush=True)
        self.seen[task] = done, time.perf_counter() - self.start


def timed(options: argparse.Namespace, pairs: list[PairScores], path: Path) -> tuple[SuiteEvaluation, Clock, float]:
    """A run, and its seconds."""
    clock = Clock()
    with KeptFile(path) as kept:
        found = evaluate_suite(
            SUITE, pairs, resamples=options.resamples, seed=options.seed, kept=kept, tested=clock,
            workers=options.workers,
        )  # fmt: skip
    return found, clock, time.perf_counter() - clock.start


def main(given: list[str] | None = None) -> int:
    """Print the tables; 1 if the second run's table is another."""
    parser = argparse.ArgumentParser(description="Time a whole shared task.")
    for name, value in (("systems", 17), ("segments", 2037), ("metrics", 50), ("resamples", 1000), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(given)
    print(
        f"{len(PAIRS)} pairs x 2 tasks, {options.systems} systems x {options.segments:,} segments, {options.metrics} "
        f"metrics, {options.workers} threads, seed {options.seed}, load {os.getloadavg()[0]:.1f}"
    )
    sizes = options.systems, options.segments, options.metrics, options.seed
    pairs = [simulated(pair, *sizes) for pair in PAIRS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "suite_kept.jsonl"
        processor = time.process_time()
        found, clock, seconds = timed(options, pairs, path)
        processor = time.process_time() - processor
        again, _, resumed = timed(options, pairs, path)
        size = path.stat().st_size / 1e6
    print("\n| task | tests | clusters | done after s |\n|---|---:|---:|---:|")
    ranks = {column.name: [one.rank or 0 for one in column.result.metrics] for column in found.columns}
    for name, places in {**ranks, "average": [one.rank for one in found.averages]}.items():
        done, after = clock.seen[name]
        print(f"| {name} | {done} | {max(places)} | {after:.0f} |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\n{seconds:.0f} s on the clock, {processor:.0f} s of the processors, from the file {resumed:.0f} s; peak "
        f"{peak:.0f} MB, file {size:.1f} MB; load {os.getloadavg()[0]:.1f}"
    )
    return int(again != found and repr(again) != repr(found))


if __name__ == "__main__":
    raise SystemExit(main())
