"""Held-out tau-b of induced metrics on public ratings, as a table of means over splits.

    python benchmarks/public_data.py --data FOLDER [--splits 10]

FOLDER holds ``simpeval.csv`` (Maddela et al. 2023: 360 rated simplifications) and
``hanna_scores_dev.csv.gz`` (Chhun et al. 2022, 2024: 528 stories with automatic and LLM-judge scores).
Splits hold out 30 % of the sources or prompts; no language model is used.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from metricsmith import AutoMetrics, Table, induce, read_table

CRITERIA = {
    "Relevance": "RE", "Coherence": "CH", "Empathy": "EM", "Surprise": "SU", "Engagement": "EG", "Complexity": "CX",
}  # fmt: skip


def simpeval(folder: Path) -> Table:
    """Simplifications, rated 0 to 100."""
    return read_table(
        folder / "simpeval.csv", target="score", output="simple", inputs="original", reference="references",
        group="original",
    )  # fmt: skip


def hanna(folder: Path, criterion: str) -> Table:
    """Scores of 72 automatic metrics and 120 judge columns; 20 of these measure the criterion."""
    return read_table(
        folder / "hanna_scores_dev.csv.gz", target=criterion, where="system!=Human", group="prompt_index",
        metric_columns=("* Ξ*", "* ¤*", "* [RCES][EHMUGX] [1-4]"), prior_columns=f"* {CRITERIA[criterion]} [1-4]",
    )  # fmt: skip


def taus(tables: list[Table], splits: int) -> dict[str, list[float]]:
    """Held-out tau-b of the induced metric and of what stands beside it."""
    found: dict[str, list[float]] = defaultdict(list)
    for seed in range(splits):
        for table in tables:
            bank = "existing" if table.columns.output else "none"
            record = induce(table, AutoMetrics(bank=bank, seed=seed)).record
            for name, block in {"induced metric": record.test, **record.baselines}.items():
                found[name].append(block.kendall_tau_b)
    return found


def main() -> None:
    """Print one table per data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    sets = {
        "SimpEval": [simpeval(options.data)],
        "HANNA, six criteria": [hanna(options.data, criterion) for criterion in CRITERIA],
    }
    for name, tables in sets.items():
        print(f"{name}: mean held-out tau-b over {options.splits} splits (lowest, highest)")
        for label, values in taus(tables, options.splits).items():
            print(f"  {label:32} {np.mean(values):.3f}  ({min(values):.2f}, {max(values):.2f})")


if __name__ == "__main__":
    main()
