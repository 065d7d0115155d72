"""Shares of simulated roots in which a suite tells two equally good metrics apart, and finds the best one.

The figures of docs/wmt.md: 3 language pairs, 8 systems and 40 segments a root (tests/support/suite_roots.py)::

    python benchmarks/suite_simulation.py
    python benchmarks/suite_simulation.py --roots 20

200 roots take about seven minutes of a processor.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from metricsmith.datasets.suite_roots import read_suite
from metricsmith.formats import percent
from metricsmith.report.suite.record import SuiteEvaluation
from metricsmith.studies.suite import evaluate_suite
from suite_roots import write_root

MEASURES = ("spa", "acc-t")
EQUAL = {"Aster": 1.0, "Briar-2": 1.0}  # standard deviations of their noise
PLANTED = {"Aster": 1.0, "Briar-2": 1.3, "Clover_q": 1.6}


def evaluations(noises: Mapping[str, float], seeds: Sequence[int], **settings: Any) -> Iterator[SuiteEvaluation]:
    """Yields the table of a new root for each seed."""
    for seed in seeds:
        with TemporaryDirectory() as folder:
            planted = write_root(Path(folder), seed=seed, noises=noises, systems=8, segments=40, gaps=0.0)
            pairs = read_suite(planted.root, planted.suite)
        yield evaluate_suite(planted.suite, pairs, seed=seed, workers=1, **settings)


def shares_separated(seeds: Sequence[int], swap: str) -> dict[str, float]:
    """By measure, and of the average: the share of clusters that part two equally good metrics."""
    found: dict[str, list[bool]] = {name: [] for name in (*MEASURES, "average")}
    for record in evaluations(EQUAL, seeds, swap=swap):
        for column in record.columns:
            found[column.measure].append(max(one.rank or 0 for one in column.result.metrics) > 1)
        found["average"].append(max(one.rank for one in record.averages) > 1)
    return {name: float(np.mean(values)) for name, values in found.items()}


def share_best_first(seeds: Sequence[int]) -> float:
    """The share of roots in which the planted best metric has the highest average."""
    return float(np.mean([record.averages[0].name == "Aster" for record in evaluations(PLANTED, seeds)]))


def main(given: list[str] | None = None) -> int:
    """Print the tables of docs/wmt.md."""
    parser = argparse.ArgumentParser(description="Simulate how far a suite's clusters can be trusted.")
    parser.add_argument("--roots", type=int, default=200)
    seeds = range(parser.parse_args(given).roots)
    print("| acc-t exchanges | in a task of SPA | in a task of acc-t | on average |\n| --- | ---: | ---: | ---: |")
    for swap in ("pairs", "scores"):
        found = shares_separated(seeds, swap)
        print(f"| `{swap}` | {' | '.join(percent(found[name]) for name in (*MEASURES, 'average'))} |", flush=True)
    print(f"\nthe planted best first in {percent(share_best_first(seeds))} of {len(seeds)} roots")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
