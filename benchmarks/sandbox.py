"""Time and memory of code metrics in the sandbox.

::

    python benchmarks/sandbox.py [--rows 10000]

Short and long functions on short and long texts, one thread; then the same rows shared by two threads. Each row has a
session of its own. The last column is the most memory that this process gained (Linux).
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from metricsmith.sandbox.contract import Limits
from metricsmith.sandbox.monty import sandbox

LENGTH = "def score(output, input, references):\n    return len(output.split())\n"
WORDS = """
import re
from collections import Counter
JARGON = re.compile(r"\\b(pursuant|herein|aforementioned|commence)\\w*", re.I)
def score(output, input, references):
    words = re.findall(r"[a-z]+", output.lower())
    counts = Counter(words)
    sentences = [one for one in re.split(r"[.!?]+\\s*", output) if one]
    return len(words) / max(1, len(sentences)) - 10 * len(JARGON.findall(output)) + len(counts) / max(1, len(words))
"""
SENTENCE = "Pursuant to section 4 the council will close this road for works until further notice. "
LONG = WORDS + "".join(f"def unused_{number}(a):\n    return [a, {number}]\n" for number in range(450))
LIMITS = Limits(row_seconds=10, seconds=600)


def peak_megabytes() -> float:
    """The most memory that this process has held, NaN where /proc does not say."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1000


def timed(source: str, sentences: int, count: int, threads: int) -> float:
    """Seconds that the rows take, shared by so many threads."""
    rows = [
        {"output": f"{number}. " + SENTENCE * sentences, "input": SENTENCE, "references": [SENTENCE]}
        for number in range(count)
    ]
    parts = [rows[start::threads] for start in range(threads)]
    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        done = list(pool.map(lambda part: sandbox().run(source, "score", part, LIMITS), parts))
    seconds = time.perf_counter() - begin
    assert not [one.error for outcomes in done for one in outcomes if one.error]
    return seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    timed(LENGTH, 1, 100, 2)
    print(f"{sandbox().engine}, {options.rows:,} rows, {os.cpu_count()} cores\n")
    print("| function | words a text | threads | seconds | ms a row | MB gained |")
    print("|---|---|---|---|---|---|")
    for name, source in (("one line", LENGTH), ("ten lines", WORDS), (f"{len(LONG):,} bytes", LONG)):
        for sentences in (4, 40):
            for threads in (1, 2):
                before = peak_megabytes()
                seconds = timed(source, sentences, options.rows, threads)
                words = sentences * len(SENTENCE.split())
                gained = peak_megabytes() - before
                row = 1000 * seconds / options.rows
                print(f"| {name} | {words} | {threads} | {seconds:.1f} | {row:.2f} | {gained:.0f} |", flush=True)


if __name__ == "__main__":
    main()
