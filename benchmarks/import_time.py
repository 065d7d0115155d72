"""What importing metricsmith costs beside importing dspy, in alternation, as a ratio.

python benchmarks/import_time.py [--rounds 11]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

STATEMENTS = {
    "import dspy": "import dspy",
    "import metricsmith": "import metricsmith",
    "the names most used": (
        "from metricsmith import AutoMetrics, CriterionJudge, InducedMetric, default_bank, induce, load, make_row, "
        "read_table, score"
    ),
}
TIMED = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def seconds(statement: str) -> float:
    """Time a statement in a fresh interpreter."""
    command = [sys.executable, "-c", TIMED.format(statement)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(rounds + 1):
        for name, statement in STATEMENTS.items():
            times[name].append(seconds(statement))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    for name, median in medians.items():
        print(f"{name:22} {median:6.3f} s   {median / medians['import dspy']:5.2f} x dspy")


if __name__ == "__main__":
    main()
