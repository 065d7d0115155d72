"""Requests estimated beside requests sent, for inductions on a loopback server.

    python benchmarks/estimates.py [NAME ...]

Each row is an induction from a made table with the default pool of judges, unless its name says otherwise. The names
of the second half were written down after the estimates were done.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from faults import draw
from loopback import Answer, own_axes, scripted, serve
from metricsmith import CriterionJudge, score
from metricsmith.datasets.table import read_table
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce
from panels import panelled
from planted import WORDS


def frame(
    prompts: int, versions: int, *, raters: Sequence[str] = (), twins: float = 0.0, unrated: float = 0.0, seed: int = 0
) -> pd.DataFrame:
    """Rows of `versions` outputs to a prompt; `twins` of all repeat the one before them, `unrated` have no rating."""
    random, rows = np.random.default_rng(seed), list[dict[str, Any]]()
    for prompt in range(prompts):
        words, last = [*random.permutation(WORDS)[:18], f"source{prompt}"], ("", 0.0)
        for version in range(versions):
            lost, padding = int(random.integers(0, 10)), int(random.integers(0, 8))
            text = " ".join([*words[lost:], *["indeed"] * padding])
            quality = 5 - 0.25 * lost - 0.2 * padding + random.normal(0, 0.4)
            if version and random.random() < twins * versions / (versions - 1):
                text, quality = last
            last = text, quality
            for rater in raters or ["all"]:
                rating = np.clip(round(quality + (random.normal(0, 0.7) if raters else 0)), 1, 5)
                rating = np.nan if random.random() < unrated else float(rating)
                rows.append({"prompt": " ".join(words[::-1]), "answer": text, "rater": rater, "rating": rating})
    return pd.DataFrame(rows).drop(columns=[] if raters else ["rater"])


def alike(prompt: str) -> dict[str, Any]:
    """Answers as `own_axes`, but judges see most of the planted quality, and differ little."""
    found = own_axes(prompt)
    if "score" in found:
        output = prompt.rsplit("[[ ## output ## ]]", 1)[-1].split("«end")[0]
        padding, words = output.split().count("indeed"), len(output.split())
        noise = 1.2 * (draw(output, 0, 1) - 0.5) + 0.8 * (draw(prompt, 0, 99) - 0.5)
        found["score"] = str(min(5, max(1, round(0.3 + 0.22 * (words - padding) - 0.2 * padding + noise))))
    return found


def own(count: int) -> list[Any]:
    """Judges of the caller's."""
    names = [f"Own {number}" for number in range(count)]
    return [CriterionJudge(criterion=name, meaning="The output keeps all facts.", task="Rewrite.") for name in names]


@dataclass(frozen=True)
class Setup:
    """A table, options of `AutoMetrics` and of `induce`, a server, and the share of own judgements in the store."""

    data: pd.DataFrame
    options: Mapping[str, Any] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=lambda: {"split": "holdout"})
    answer: Answer = own_axes
    known: float = 0.0


CV: Mapping[str, Any] = {"split": "cv"}
FEW = {"generators": {"criterion": 6, "rubric": 3, "tuned": 1}}
PAIRS = {"generators": {"criterion": 8, "rubric": 2, "examples": 2, "tuned": 2}}
SETUPS = {
    "60 rows": Setup(frame(20, 3)),
    "60 rows, two raters": Setup(frame(20, 3, raters="ab")),
    "60 rows, three own judges, half in the store": Setup(frame(20, 3), {"metrics": own(3)}, known=0.5),
    "60 rows, a third repeated": Setup(frame(20, 3, twins=1 / 3)),
    "60 rows, cross-validation": Setup(frame(20, 3), how=CV),
    "60 rows, an own judge": Setup(frame(20, 3), {"metrics": own(1)}),
    "60 rows of 10 prompts, auto": Setup(frame(10, 6), how={}),
    "120 rows, panel": Setup(frame(20, 6), {"panel": True}, answer=panelled),
    "30 rows, generated judges": Setup(frame(10, 3), {"bank": "generated"}),
    "240 rows, generated judges": Setup(frame(40, 6), {"bank": "generated"}),
    "new: 100 rows, three raters, nine judges and a tuned one, 4 folds": Setup(
        frame(25, 4, raters="abc", seed=21), FEW, {"cv": 4}
    ),
    "new: 75 rows, 30 % unrated": Setup(frame(15, 5, unrated=0.3, seed=33)),
    "new: 54 rows, panel, two own judges, a third in the store": Setup(
        frame(27, 2, seed=41), {"panel": True, "metrics": own(2)}, answer=panelled, known=1 / 3
    ),
    "new: 45 rows, judges alike, cross-validation": Setup(frame(15, 3, seed=52), how=CV, answer=alike),
    "new: 64 rows, half repeated, two tuned judges": Setup(frame(16, 4, twins=0.5, seed=61), PAIRS, answer=scripted),
    "new: 96 rows, judges alike, with the bank": Setup(frame(32, 3, seed=77), {"bank": "all"}, answer=alike),
}


def main(*names: str) -> None:
    """Print a table row for each set-up."""
    print("| | estimated | sent | ratio |\n|---|---|---|---|")
    for name, setup in SETUPS.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder, serve(setup.answer) as server:
            table, options = read_table(setup.data, target="rating"), dict(setup.options)
            if setup.known:
                options["store"] = Path(folder) / "store.sqlite"
                known = table.rows[:: round(1 / setup.known)]
                score(options["metrics"], known, lm=server.lm(), store=options["store"])
            before = server.requests
            record = induce(table, AutoMetrics(lm=server.lm(), **options), **setup.how).record
            sent, estimated = server.requests - before, record.usage["estimated"]["requests"]
        print(f"| {name} | {estimated:,} | {sent:,} | {estimated / sent:.2f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
