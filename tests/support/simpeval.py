"""SimpEval as the bank scores it, for comparisons with numbers that others computed."""

from __future__ import annotations

import ast
import csv
from functools import cache
from pathlib import Path

import numpy as np

from metricsmith.bank.catalogue import default_bank
from metricsmith.metric import make_row


@cache
def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def bank_scores(name: str, data: Path, count: int) -> np.ndarray:
    """Raw scores of the first `count` simplifications, NaN where undefined."""
    rows = [
        make_row(row["simple"], input=row["original"], references=ast.literal_eval(row["references"]))
        for row in read_rows(data / "simpeval.csv")[:count]
    ]
    metric = default_bank().get(name).fit(rows)
    return np.array([np.nan if judgement.raw is None else judgement.raw for judgement in metric.judge_batch(rows)])
