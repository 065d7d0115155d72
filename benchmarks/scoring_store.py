"""The cost of a store: reading 100,000 rows x 10 metrics back, writing, and memory at 10^4 to 10^6 judgements.

::

    python benchmarks/scoring_store.py [--rows 100000]    (memory is read from /proc, so on Linux)

"Plain" reads the same judgements with `sqlite3` and `json.loads` and nothing else. `score` hashes each row,
looks it up, and fills its arrays. Each memory figure is the peak of a process of its own, less that of one
that holds the same rows without scoring them.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import dspy

from metricsmith.metric import content_key, make_row
from metricsmith.records import Judgement, MetricCard, Output, Usage
from metricsmith.reward import Reward
from metricsmith.scoring import score
from metricsmith.scoring.plan import scoring_plan
from metricsmith.scoring.results import store_key as row_key
from metricsmith.store import Entry, Key, Store

METRICS = 10
INPUT = "The council will close this road for works until further notice. " * 3
OUTPUT = "The road is shut. Use the other one until we say that it is open again, on {}."
FEEDBACK = "The output keeps the date and the duty, and says plainly who has to act. It drops the reason. " * 2


class Judge:
    """Stands for a judge whose judgements are all stored; asking it is an error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.output = Output(name, 1, 5)
        self.card = MetricCard(name, "criterion_judge", "", "", (self.output,), cost="model")

    def fingerprint(self) -> str:
        """The name."""
        return self.name

    def to_state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def as_metric(self, *, success_at: float = 0.5) -> Reward:
        """For the protocol."""
        return Reward(self, success_at=success_at)

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Everything is in the store."""
        raise AssertionError("asked for what is stored")


JUDGES = [Judge(f"judge_{number}") for number in range(METRICS)]


def make_rows(count: int) -> list[dspy.Example]:
    """Rows of some 70 words."""
    return [make_row(OUTPUT.format(number), input=INPUT, id=str(number)) for number in range(count)]


def fill(path: Path, rows: Sequence[dspy.Example]) -> float:
    """Write every judgement, 1,000 rows to a transaction; the seconds that took."""
    started = time.perf_counter()
    with Store(path) as store:
        numbers = [store.metric(slot.fingerprint, slot.metric.name) for slot in scoring_plan(JUDGES).metric_runs]
        for start in range(0, len(rows), 1000):
            entries = []
            for place, row in enumerate(rows[start : start + 1000], start):
                key = row_key(row, content_key(row))
                for number, judge in zip(numbers, JUDGES, strict=True):
                    raw = float(1 + (place + number) % 5)
                    usage = Usage(1, 412, 97, 0.00012, 0.8)
                    judgement = Judgement(judge.name, raw, (raw - 1) / 4, FEEDBACK, usage=usage)
                    entries.append(Entry(Key(key, number, 0), row.id, judgement))
            store.exchange(entries)
    return time.perf_counter() - started


def read_plainly(path: Path) -> float:
    """Seconds to read and parse every judgement without this package."""
    started = time.perf_counter()
    with closing(sqlite3.connect(path)) as connection:
        total = sum(len(json.loads(value)) for (value,) in connection.execute("SELECT value FROM judgements"))
    assert total
    return time.perf_counter() - started


def read_by_score(path: Path, rows: Sequence[dspy.Example]) -> float:
    """Seconds to score rows that are all stored."""
    started = time.perf_counter()
    table = score(JUDGES, rows, store=path, progress=False)
    assert table.values.shape == (len(rows), METRICS, 1)
    elapsed = time.perf_counter() - started
    assert table.counts()["ok"] == len(rows) * METRICS
    return elapsed


def peak(path: str, rows: int, scoring: str) -> None:
    """In a process of its own: the peak resident set in MB."""
    held = make_rows(rows)
    if scoring == "score":
        read_by_score(Path(path), held)
    status = Path("/proc/self/status").read_text("utf-8")  # getrusage would count the parent's memory too
    print(int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) / 1024)


def memory(path: Path, rows: int) -> tuple[float, float]:
    """Peak MB with and without scoring."""
    peaks = []
    for scoring in ("score", "hold"):
        command = [sys.executable, __file__, "--peak", str(path), str(rows), scoring]
        peaks.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return peaks[0], peaks[1]


def main() -> None:
    """Fill a store, read it in both ways, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        peak(options.peak[0], int(options.peak[1]), options.peak[2])
        return
    with tempfile.TemporaryDirectory() as folder:
        path, rows = Path(folder) / "store.db", make_rows(options.rows)
        written, count = fill(path, rows), options.rows * METRICS
        rounds = [(read_plainly(path), read_by_score(path, rows)) for _ in range(options.rounds)]
        plain, ours = (median(times) for times in zip(*rounds, strict=True))
        ratio = median(first / second for first, second in rounds)
        print(f"{options.rows} rows x {METRICS} metrics, {os.path.getsize(path) / 2**20:.0f} MiB\n")
        print("| | s | judgements/s | speed beside plain reading |\n|---|---|---|---|")
        print(f"| sqlite3 and json.loads | {plain:.1f} | {count / plain:,.0f} | 1.00 |")
        print(f"| `score`, everything stored | {ours:.1f} | {count / ours:,.0f} | {ratio:.2f} |")
        print(f"| writing, 10,000 to a transaction | {written:.1f} | {count / written:,.0f} | |")
        print(
            "\n| judgements | peak MB, rows alone | peak MB, rows scored | bytes more a judgement |\n|---|---|---|---|"
        )
        for size in (options.rows // 100, options.rows // 10, options.rows):
            scored, held = memory(path, size)
            more = (scored - held) * 2**20 / (size * METRICS)
            print(f"| {size * METRICS:,} | {held:.0f} | {scored:.0f} | {more:.0f} |")


if __name__ == "__main__":
    main()
