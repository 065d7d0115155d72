"""Held-out tau-b of induced metrics on public ratings, on pairs of training and test files that stay as they are.

    python benchmarks/public_data.py --data FOLDER --pairs PAIRS [--splits 5] [--out taus.json] [--before taus.json]

FOLDER holds ``simpeval.csv`` (Maddela et al. 2023: 360 rated simplifications) and ``hanna_scores_dev.csv.gz``
(Chhun et al. 2022, 2024: 528 stories with automatic and LLM-judge scores). The first run writes each split, 30 % of
the sources or prompts held out, as two files into PAIRS; later runs, also those of another version of this package,
read the same files. No language model is used. ``--before`` takes the taus that an earlier run wrote with ``--out``
and adds the paired differences.

    python benchmarks/public_data.py --data FOLDER --pairs PAIRS --splits 20 --sizes 5,8,12,20 [--rows 80]

prints what a small metric loses against the full model on the same test rows, by number of components; with ``--rows``
it is fitted on that many training rows alone, whole groups.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from metricsmith import AutoMetrics, Table, induce, read_table
from metricsmith.optimizers.fitting import FULL, FitOptions, fit
from metricsmith.optimizers.induce import configure, run_pass
from metricsmith.optimizers.splits import RatedRows
from metricsmith.stats.correlation import kendall_tau_b

CRITERIA = {
    "Relevance": "RE", "Coherence": "CH", "Empathy": "EM", "Surprise": "SU", "Engagement": "EG", "Complexity": "CX",
}  # fmt: skip
HELD_OUT = 0.3
SIMPEVAL, HANNA = "SimpEval", "HANNA, mean of six"
Taus = dict[str, dict[str, list[float]]]


def simpeval(file: Path) -> Table:
    """Simplifications, rated 0 to 100."""
    return read_table(
        file, target="score", output="simple", inputs="original", reference="references", group="original",
    )  # fmt: skip


def hanna(file: Path, criterion: str) -> Table:
    """Scores of 72 automatic metrics and 120 judge columns; 20 of these measure the criterion."""
    return read_table(
        file, target=criterion, where="system!=Human", group="prompt_index",
        metric_columns=("* Ξ*", "* ¤*", "SUPERT-Golden ΞΔ", "BLANC-Golden ΞΔ", "* [RCES][EHMUGX] [1-4]"),
        prior_columns=f"* {CRITERIA[criterion]} [1-4]",
    )  # fmt: skip


def write_pairs(data: Path, pairs: Path, splits: int) -> None:
    """Write what is not there yet; the groups of one split are a seeded draw."""
    pairs.mkdir(parents=True, exist_ok=True)
    for name, file, group in (
        ("simpeval", "simpeval.csv", "original"),
        ("hanna", "hanna_scores_dev.csv.gz", "prompt_index"),
    ):
        rows = pd.read_csv(data / file, dtype=str, keep_default_na=False)
        groups = np.array(sorted(rows[group].unique()))
        for seed in range(splits):
            held = np.random.default_rng(seed).permutation(groups)[: round(HELD_OUT * len(groups))]
            tested = rows[group].isin(held)
            for side, part in (("train", rows[~tested]), ("test", rows[tested])):
                path = pairs / f"{name}-{seed}-{side}.csv"
                if not path.exists():
                    part.to_csv(path, index=False)


def tables(pairs: Path, seed: int) -> Iterator[tuple[str, Table, Table]]:
    """Data set, training rows and test rows of one split: SimpEval, then each criterion of HANNA."""
    yield SIMPEVAL, *(simpeval(pairs / f"simpeval-{seed}-{side}.csv") for side in ("train", "test"))
    for criterion in CRITERIA:
        yield (
            f"HANNA {criterion}",
            *(hanna(pairs / f"hanna-{seed}-{side}.csv", criterion) for side in ("train", "test")),
        )


def optimizer(table: Table, seed: int, **options: Any) -> AutoMetrics:
    """The bank where there are texts, else the columns."""
    return AutoMetrics(bank="existing" if table.columns.output else "none", seed=seed, **options)


def measure(pairs: Path, splits: int) -> Taus:
    """Held-out tau-b by data set and predictor, one value a split."""
    found: Taus = {}
    for seed in range(splits):
        for name, train, test in tables(pairs, seed):
            record = induce(train, optimizer(train, seed), test=test).record
            row = {label: block.kendall_tau_b for label, block in record.baselines.items()}
            row = {"induced metric": record.test.kendall_tau_b, **row, "components": len(record.components)}
            for label, value in row.items():
                found.setdefault(name, {}).setdefault(label, []).append(value)
    sets = [rows for name, rows in found.items() if name != SIMPEVAL]
    found[HANNA] = {label: np.mean([rows[label] for rows in sets], axis=0).tolist() for label in sets[0]}
    return found


def losses(pairs: Path, splits: int, sizes: list[int], rows: int) -> Taus:
    """Held-out tau-b of the full model minus that of a small one, by data set and size, one value a split."""
    found: Taus = {}
    options = {**{f"{size} components": FitOptions(n=size) for size in sizes}, "fidelity .97": FitOptions()}
    for seed in range(splits):
        for name, train, test in tables(pairs, seed):
            part, held = (RatedRows.of(table.rows, table.columns.target or "") for table in (train, test))
            groups = dict.fromkeys(np.random.default_rng(seed).permutation(part.groups).tolist())
            kept = list(groups)[: round(len(groups) * min(1, rows / len(part)))] if rows else list(groups)
            part = part.take([place for place, group in enumerate(part.groups) if group in kept])
            for declared in ("", ", judges not declared")[: 1 + bool(train.prior)]:
                chosen, task = configure(train, optimizer(train, seed))
                if declared:
                    chosen = replace(chosen, prior_columns=())
                done = run_pass(part, held.rows, task, chosen)
                best = tau(done.fitted.rivals[FULL].predict(done.other_values), held)
                for label, size in options.items():
                    small = fit(
                        done.train_values, part.ratings, done.table.names, declared=done.candidates.declared,
                        judged=(), options=size, rivals=False,
                    ).small  # fmt: skip
                    loss = best - tau(small.predict(done.other_values[:, list(small.indices)]), held)
                    key = SIMPEVAL if name == SIMPEVAL else HANNA + declared
                    found.setdefault(key, {}).setdefault(label, []).append(loss)
    return {name: {label: by_split(values, splits) for label, values in cells.items()} for name, cells in found.items()}


def tau(predicted: np.ndarray, held: RatedRows) -> float:
    """Tau-b with the ratings."""
    return kendall_tau_b(predicted, held.ratings)


def by_split(values: list[float], splits: int) -> list[float]:
    """Means over the criteria of each split."""
    return np.reshape(values, (splits, -1)).mean(axis=1).tolist()


def stated(values: list[float]) -> str:
    """Mean and standard error over splits."""
    return f"{np.mean(values):7.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


def show(found: Taus, before: Mapping[str, Mapping[str, list[float]]]) -> None:
    """Print one table per data set, with the paired difference to an earlier run where there is one."""
    for name, rows in found.items():
        print(f"{name}: mean held-out tau-b over splits, with its standard error")
        for label, values in rows.items():
            line = f"  {label:32} {stated(values)}"
            if label in before.get(name, {}):
                old = before[name][label]
                line += f"   before {stated(old)}   difference {stated(list(np.subtract(values, old)))}"
            print(line)


def main() -> None:
    """Measure on the pairs, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")])
    parser.add_argument("--rows", type=int, default=0)
    options = parser.parse_args()
    write_pairs(options.data, options.pairs, options.splits)
    if options.sizes:
        for name, cells in losses(options.pairs, options.splits, options.sizes, options.rows).items():
            print(f"{name}: tau-b lost against the full model")
            for label, values in cells.items():
                worse = sum(value > 0 for value in values)
                print(f"  {label:32} {stated(values)}   in {worse} of {len(values)} splits")
        return
    found = measure(options.pairs, options.splits)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    show(found, json.loads(options.before.read_text(encoding="utf-8")) if options.before else {})


if __name__ == "__main__":
    main()
