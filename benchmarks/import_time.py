"""The cost of starting beside importing dspy, in alternation, as a ratio: imports, and a first command on ten rows.

python benchmarks/import_time.py [--rounds 11]
"""

from __future__ import annotations

import argparse
import compileall
import csv
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import metricsmith
from metricsmith.datasets import plain_notices

IMPORTS = {
    "import dspy": "import dspy",
    "import metricsmith": "import metricsmith",
    "the names most used": (
        "from metricsmith import AutoMetrics, CriterionJudge, InducedMetric, default_bank, induce, load, make_row, "
        "read_table, score"
    ),
}
SCORE = (
    "import sys; from metricsmith.cli import main; sys.argv = ['metricsmith', 'score', {metric!r}, {data!r}]; main()"
)


def prepare(folder: Path) -> str:
    """Write a metric of ROUGE alone and a table of ten rows; return the program that scores it."""
    table = metricsmith.read_table(plain_notices.path(), target="rating")
    rouge = tuple(family for family in metricsmith.default_bank().families if family.card.name.startswith("ROUGE"))
    done = metricsmith.induce(table, metricsmith.AutoMetrics(bank="existing", metrics=metricsmith.MetricBank(rouge)))
    done.write(folder)
    with plain_notices.path().open(encoding="utf-8", newline="") as source, (folder / "ten.csv").open("w") as target:
        csv.writer(target).writerows(row for _, row in zip(range(11), csv.reader(source), strict=False))
    return SCORE.format(metric=str(folder / "metric.json"), data=str(folder / "ten.csv"))


def spent(program: str) -> tuple[float, float]:
    """Seconds on the clock and of the processor that a fresh interpreter takes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    compileall.compile_dir(Path(metricsmith.__file__).parent, quiet=1)  # as an installed package is
    with tempfile.TemporaryDirectory() as folder:
        programs = {**IMPORTS, "metricsmith score, 10 rows": prepare(Path(folder))}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
        for _ in range(rounds + 1):
            for name, program in programs.items():
                times[name].append(spent(program))
    medians = {
        name: [statistics.median(part) for part in zip(*values[1:], strict=True)] for name, values in times.items()
    }
    for name, (clock, processor) in medians.items():
        ratios = (clock / medians["import dspy"][0], processor / medians["import dspy"][1])
        print(
            f"{name:27} {clock:6.2f} s, {ratios[0]:5.2f} x dspy; processor {processor:6.2f} s, {ratios[1]:5.2f} x dspy"
        )


if __name__ == "__main__":
    main()
