"""Savings and costs of outlier rules and early stopping on real ratings: remakes the tables of docs/aggregation.md.

    python benchmarks/aggregation.py --data FOLDER [--seed 0]

FOLDER holds ``hanna_scores_dev.csv.gz`` (Chhun et al. 2022, 2024) and ``wmt23_sxs_ende.jsonl.gz`` (English-German
MQM, side by side). No language model is used: runs are drawn, in an order that the seed decides, from ratings that
were made.

HANNA has twenty ratings of each story and criterion by language models, four prompts to each of five models; ten of
them, drawn without replacement, stand for ten runs of one judge. Twenty raters differ more than runs of one do, so
that savings here are cautious. Ratings below the scale of 1 to 5 hold an unread answer and count as failed runs. The
people are the human raters' mean.

Of a translation with MQM there are three raters. Ten draws with replacement from the scores of the first two stand
for runs, and the third stands for the people. Two values are few: this is a judge that is of two minds.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.column import ColumnMetric
from metricsmith.datasets.wmt_mqm import TARGET, read_wmt_mqm
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.stats.aggregation import AGGREGATES, TWO_SIGMA, OutlierRule, rrwa
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling import resampled_rows

FloatArray = NDArray[np.float64]
RUNS = 10
CRITERIA = {
    "Relevance": "RE", "Coherence": "CH", "Empathy": "EM", "Surprise": "SU", "Engagement": "EG", "Complexity": "CX",
}  # fmt: skip
MODELS = ("Beluga-13B", "OrcaPlatypus", "Mistral-7B", "Llama-13B", "ChatGPT")
LOWEST = 1.0  # of HANNA's scale
RULES: Mapping[str, OutlierRule | None] = {
    "two-sided": TWO_SIGMA, "low side": OutlierRule(sided="low"), "none": None,
}  # fmt: skip
FEWEST = (3, 5)
SAME_FOR_ALL = (3, 5, 7)  # what early stopping is to be compared with
SAMPLES: Mapping[str, Sequence[float]] = {
    "a lone clean run": [0.0] + [-6.0] * 9,
    "a lone bad run": [-60.0] + [-6.0] * 9,
    "two equal outliers": [-50.0] * 2 + [-6.0] * 8,
    "one outlier of five": [-60.0] + [-6.0] * 4,
    "one outlier of six": [-60.0] + [-6.0] * 5,
}


@dataclass(frozen=True, slots=True)
class Ratings:
    """Drawn runs and what people say of the same rows.

    Parameters
    ----------
    name, unit : str
    runs : float array, shape (n, 10)
        Higher is better; NaN for a failed run.
    people : float array, shape (n,)
    groups : list
        Rows of one group are drawn together for intervals.
    parts : int array, shape (n,)
        Agreement is computed for each part, a criterion, and averaged.
    bounds : tuple of float
        Half-widths at which to stop, in the unit of the runs.
    """

    name: str
    unit: str
    runs: FloatArray
    people: FloatArray
    groups: Sequence[Any]
    parts: NDArray[np.intp]
    bounds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """Requests and results of one way of combining runs, row by row."""

    label: str
    asked: NDArray[np.intp]
    numbers: FloatArray = field(repr=False)


def hanna(folder: Path, seed: int) -> Ratings:
    """Stories by models, six criteria one below the other."""
    with gzip.open(folder / "hanna_scores_dev.csv.gz", "rt", encoding="utf-8", newline="") as file:
        stories = [story for story in csv.DictReader(file) if story["system"] != "Human"]
    names = [[f"{model} {short} {prompt}" for model in MODELS for prompt in range(1, 5)] for short in CRITERIA.values()]
    ratings = np.array([[float(story[name]) for name in columns] for columns in names for story in stories])
    drawn = np.random.default_rng(seed).permuted(ratings, axis=1)[:, :RUNS]
    return Ratings(
        name=f"HANNA: {len(stories)} stories x {len(CRITERIA)} criteria, ten of twenty ratings by language models",
        unit="points of 1 to 5",
        runs=np.where(drawn < LOWEST, np.nan, drawn),
        people=np.array([float(story[criterion]) for criterion in CRITERIA for story in stories]),
        groups=[story["prompt_index"] for _ in CRITERIA for story in stories],
        parts=np.repeat(np.arange(len(CRITERIA)), len(stories)),
        bounds=(0.5, 0.35, 0.2),
    )


def mqm(folder: Path, seed: int) -> Ratings:
    """Translations with three raters: two to draw from, the third for the people."""
    raters: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in read_wmt_mqm(folder / "wmt23_sxs_ende.jsonl.gz").rows:
        raters[row.group, row.system].append(float(row[TARGET]))
    rated = {key: scores for key, scores in raters.items() if len(scores) == 3}
    scores = np.array(list(rated.values()))
    picks = np.random.default_rng(seed).integers(2, size=(len(scores), RUNS))
    return Ratings(
        name=f"MQM: {len(scores)} translations, ten draws from two raters' scores, the third for the people",
        unit="MQM points",
        runs=np.take_along_axis(scores, picks, axis=1),
        people=scores[:, 2],
        groups=[item for item, _ in rated],
        parts=np.zeros(len(scores), dtype=np.intp),
        bounds=(2.0, 1.0, 0.5),
    )


def lines(ratings: Ratings, aggregate: str) -> Iterator[Line]:
    """All runs under each rule, first the paper's; then, under the paper's rule, fewer runs."""
    judge = ColumnMetric("runs")
    known = np.ones(ratings.runs.shape, dtype=bool)
    for name, rule in RULES.items():
        repeated = Repeated(judge, RUNS, aggregate, outliers=rule, min_runs=2)
        yield Line(f"all ten, {name}", known.sum(axis=1), repeated.combined(ratings.runs))
    for fewest in FEWEST:
        for bound in ratings.bounds:
            repeated = Repeated(judge, RUNS, aggregate, min_runs=fewest, stop_when=bound)
            asked = repeated.wanted(ratings.runs, known).sum(axis=1)
            yield Line(f"stop at {bound:g}, at least {fewest}", asked, repeated.combined(ratings.runs))
    for count in SAME_FOR_ALL:
        first = np.where(np.arange(RUNS) < count, ratings.runs, np.nan)
        yield Line(
            f"the first {count} of every row", np.full(len(first), count), np.asarray(AGGREGATES[aggregate](first))
        )


def agreement(numbers: FloatArray, ratings: Ratings, rows: NDArray[np.intp]) -> float:
    """Mean tau-b over the parts."""
    parts = ratings.parts[rows]
    chosen = [rows[parts == part] for part in np.unique(ratings.parts)]
    return float(np.mean([kendall_tau_b(numbers[part], ratings.people[part]) for part in chosen]))


def table(ratings: Ratings, aggregate: str, draws: int, seed: int) -> str:
    """A Markdown table; intervals are of the difference to the first line, by bootstrap of whole groups."""
    everything = list(lines(ratings, aggregate))
    paper, all_rows = everything[0], np.arange(len(ratings.runs))
    samples = [np.asarray(rows) for rows in resampled_rows(ratings.groups, draws, seed)]
    before = np.array([agreement(paper.numbers, ratings, rows) for rows in samples])
    written = [
        f"{ratings.name}, {aggregate}\n",
        f"| | runs a row | saved | mean difference, {ratings.unit} | largest 5 % from | tau-b | change of tau-b |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for line in everything:
        apart = np.abs(line.numbers - paper.numbers)
        apart = apart[np.isfinite(apart)]
        asked = float(line.asked.mean())
        after = np.array([agreement(line.numbers, ratings, rows) for rows in samples])
        written.append(
            f"| {line.label} | {asked:.2f} | {1 - asked / RUNS:.0%} | {apart.mean():.3f} | "
            f"{np.quantile(apart, 0.95):.2f} | {agreement(line.numbers, ratings, all_rows):.3f} | "
            f"{'' if line is paper else _interval(after - before)} |"
        )
    return "\n".join(written)


def _interval(changes: FloatArray) -> str:
    low, high = np.quantile(changes, [0.025, 0.975])
    return f"{low:+.3f} to {high:+.3f}"


def samples() -> str:
    """Results of each rule on runs written out by hand."""
    written = ["| runs | two-sided | low side | none |", "|---|---:|---:|---:|"]
    for name, runs in SAMPLES.items():
        numbers = " | ".join(f"{rrwa(runs, outliers=rule):.2f}" for rule in RULES.values())
        written.append(f"| {name} | {numbers} |")
    return "\n".join(written)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=200, help="bootstrap samples for the change of tau-b")
    options = parser.parse_args()
    print(samples(), flush=True)
    for read in (hanna, mqm):
        ratings = read(options.data, options.seed)
        for aggregate in ("rrwa", "mean"):
            print(f"\n{table(ratings, aggregate, options.draws, options.seed)}", flush=True)


if __name__ == "__main__":
    main()
