"""Score matrices with numbers that mt-metrics-eval computed, and slow counts to hold others against."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np

BY = {"none": "none", "item": "item", "system": "sys"}  # our names of groupings, and theirs
SYNTHETIC = json.loads((Path(__file__).parents[1] / "golden" / "meta_evaluation_synthetic.json").read_text("utf-8"))[
    "cases"
]


def synthetic(case: str) -> tuple[np.ndarray, np.ndarray, dict]:
    """Metric, gold and what is expected; matrices of our own."""
    found = SYNTHETIC[case]
    return np.array(found["metric"], dtype=float), np.array(found["gold"], dtype=float), found["expected"]


def en_de(golden: Path) -> dict[str, tuple[np.ndarray, np.ndarray, dict]]:
    """Metric, gold and what is expected on the WMT23 side-by-side ratings, slots of raters as metrics."""
    expected = json.loads((golden / "mt_ende.json").read_text("utf-8"))["results"]
    with np.load(golden / "mt_ende.npz") as file:
        arrays = {name: file[name] for name in file}
    slots, seed = arrays["ende__wmt__slots"], arrays["ende__seed25_5_1__slots"]
    masked = np.where(arrays["ende__mask"], math.nan, slots[0])
    pairs = {
        "ende/wmt/gold0_metric1": (slots[1], slots[0]),
        "ende/wmt/gold0_metric2": (slots[2], slots[0]),
        "ende/wmt/gold1_metric2": (slots[2], slots[1]),
        "ende/seed/gold0_metric1": (seed[1], seed[0]),
        "ende/wmt/gold0_syn2": (arrays["ende__syn_sd2"], slots[0]),
        "ende/wmt/gold0_syn4": (arrays["ende__syn_sd4"], slots[0]),
        "ende/wmt/gold0masked_syn2": (arrays["ende__syn_sd2"], masked),
    }
    tests = {name: (np.empty(0), np.empty(0), values) for name, values in expected.items() if "perm_both" in name}
    return {name: (*pair, expected[name]) for name, pair in pairs.items()} | tests


def groups_slowly(metric, gold, by):
    """Lists of (metric, gold) of the present cells of each group."""
    k, n = np.shape(metric)
    cells = {
        "none": [[(i, j) for i in range(k) for j in range(n)]],
        "item": [[(i, j) for i in range(k)] for j in range(n)],
        "system": [[(i, j) for j in range(n)] for i in range(k)],
    }[by]
    return [
        [(metric[i][j], gold[i][j]) for i, j in group if not math.isnan(metric[i][j] + gold[i][j])] for group in cells
    ]


def accuracy_slowly(metric, gold, by, epsilon):
    """Pair by pair; NaN without pairs."""
    values = []
    for group in groups_slowly(metric, gold, by):
        right = []
        for (m1, g1), (m2, g2) in itertools.combinations(group, 2):
            tied = abs(m1 - m2) <= epsilon
            right.append(g1 == g2 if tied else (g1 != g2 and (m1 > m2) == (g1 > g2)))
        if right:
            values.append(sum(right) / len(right))
    return math.fsum(values) / len(values) if values else math.nan
