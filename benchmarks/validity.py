"""Sensitivity, stability and attacks on public ratings, without a model: tables and picture of docs/validity.md.

    python benchmarks/validity.py --data FOLDER [--seed 0] [--out docs/figures/validity.svg]

FOLDER holds simpeval.csv (columns original, simple, references, id, score).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import metricsmith
from metricsmith.report.probe.document import ProbeDocument
from metricsmith.report.render import markdown_lines, standalone


def main() -> None:
    """Induce a metric from SimpEval, probe it with the built-in perturbers, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table = metricsmith.read_table(
        options.data / "simpeval.csv", target="score", inputs="original", output="simple", reference="references",
        group="id",
    )  # fmt: skip
    metric = metricsmith.induce(table, metricsmith.AutoMetrics(seed=options.seed)).metric
    bank = metricsmith.default_bank()
    prober = metricsmith.probing.Prober(n=60, seed=options.seed, against=[bank.get("sari"), bank.get("bleu")])
    record = prober.probe(metric, table)
    document = ProbeDocument(record)
    print("\n".join(markdown_lines(document.text_findings())))
    print(record.signature)
    if options.out:
        options.out.write_text(standalone(document.plot()), "utf-8")


if __name__ == "__main__":
    main()
