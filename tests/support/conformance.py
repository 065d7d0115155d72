"""Rows, hard texts and stated figures to which every metric with weights is held on its tiny checkpoint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from metricsmith.bank.base import BankMetric, Family, judge_family
from metricsmith.bank.weighted import model_family
from model_cases import CASES
from parity import example, parity_rows

__all__ = ["BFLOAT16", "HARD_TEXTS", "bound", "example", "hard_rows", "numbers", "on", "other_side", "rows_of"]

_FAST_TEXT = "fastText counts in float32 whatever the setting"
_SATURATED = "a T5 of two layers and scaled random weights turns rounding into another answer: up to half the range"
BFLOAT16: dict[str, float | str] = {
    "bertscore": 0.06, "infolm": 0.03, "moverscore": 0.03, "parascore": 0.03, "parascore_free": 0.03, "yisi2": 0.04,
    "bleurt": 0.05, "factcc": 0.05, "toxicity": 0.08, "sentiment": 0.08, "summaqa": 0.05,
    "bartscore": 0.03, "perplexity": 0.03,
    "unieval_sum": _SATURATED, "unieval_dialogue": _SATURATED, "unieval_fact": _SATURATED,
    "grm_reward": 0.05, "inform_reward": 0.05, "ldl_reward": 0.05, "math_prm": 0.05, "lens": 0.05, "lens_salsa": 0.05,
    "fasttext_educational": _FAST_TEXT, "fasttext_nsfw": _FAST_TEXT, "fasttext_toxicity": _FAST_TEXT,
}  # fmt: skip
"""The largest distance of bfloat16 from float32 on a tiny checkpoint, in units of the range of the float32 numbers, or
the reason why there is none."""

HARD_TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "one token": "a",
    "one mark": ".",
    "beyond the limit": "The harbour was quiet, and only two boats came back before dawn. " * 120,
    "one word beyond the limit": "x" * 3000,
    "Chinese": "今天下午北京有小雨。我昨天买了三本书。",
    "emoji": "🙂🙂 👩‍👩‍👧 🇩🇪",
    "lone surrogate": "broken \ud83d end",
    "null character": "a\x00b",
    "right to left": "مرحبا بالعالم",
    "special tokens": "[CLS] [SEP] [PAD] <s> </s> <pad> <|endoftext|> <|eot_id|> <extra_0> <bos> <eos>",
}


def rows_of(name: str, count: int = 12) -> list[dspy.Example]:
    """Return rows of unequal lengths, some with two references."""
    rows = parity_rows(name)
    return rows[:: max(1, len(rows) // count)][:count]


def bound(family: Family, rows: Sequence[dspy.Example]) -> list[BankMetric]:
    """Return the family's metrics with the statistics of `rows`: the same numbers alone and in a batch."""
    return [metric.fit(rows) for metric in family.metrics()]


def numbers(metrics: Sequence[BankMetric], rows: Sequence[dspy.Example]) -> Any:
    """Return the raw numbers, (outputs, rows); NaN where a row has none."""
    found = judge_family(metrics, rows)
    return np.array([[np.nan if one.raw is None else one.raw for one in column] for column in found])


def on(name: str, path: Path, **settings: Any) -> Family:
    """Return the family on the checkpoint at `path`."""
    chosen = {**CASES[name].settings, **settings}
    return model_family(name, path=str(path), device="cpu", settings=chosen, entities=CASES[name].entities)


def other_side(path: Path, folder: Path) -> Path:
    """Return a copy of a checkpoint whose tokenizer pads on the other side."""
    copy = folder / "other_side" / path.name
    if not copy.exists():
        shutil.copytree(path, copy)
        file = copy / "tokenizer_config.json"
        config = json.loads(file.read_text("utf-8"))
        config["padding_side"] = "right" if config.get("padding_side") == "left" else "left"
        file.write_text(json.dumps(config), "utf-8")
    return copy


def hard_rows(text: str, plain: str = "The dog slept under the table.") -> dict[str, dspy.Example]:
    """Return rows in which the output, the input, the reference or all of them are a hard text."""
    return {
        "output": example(text, plain, [plain]),
        "input": example(plain, text, [plain]),
        "reference": example(plain, plain, [text]),
        "all": example(text, text, [text]),
    }
