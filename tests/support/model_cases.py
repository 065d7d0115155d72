"""Every metric with weights, the tiny checkpoint that its tests use, and its settings there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tiny_fasttext
from metricsmith.bank.base import Family
from metricsmith.bank.weighted import model_family

__all__ = ["CASES", "Case", "tiny_family"]


@dataclass(frozen=True)
class Case:
    """`checkpoint` is a name of `tiny_models.BUILDERS`, or a function from a folder to a path."""

    checkpoint: str | Callable[[Path], Path]
    settings: Mapping[str, Any] = field(default_factory=dict)
    entities: Callable[[str], list[tuple[int, int]]] | None = None


def fasttext(*labels: str) -> Callable[[Path], Path]:
    """A builder of a fastText file that tells `labels`."""
    prefixed = [f"__label__{label}" for label in labels]
    return lambda folder: tiny_fasttext.fasttext_bin(folder / "-".join(labels), prefixed)


def capitals_and_numbers(text: str) -> list[tuple[int, int]]:
    """The places of capitalised words and of numbers: entities to a rule that needs no model."""
    return [found.span() for found in re.finditer(r"[A-Z]\w+|\d[\d.,:]*\d|\d", text)]


CASES: dict[str, Case] = {
    "bertscore": Case("roberta", {"layer": 2}),
    "infolm": Case("bert_masked"),
    "moverscore": Case("distilbert"),
    "parascore": Case("bert_masked", {"layer": 1}),
    "parascore_free": Case("bert_masked", {"layer": 1}),
    "yisi2": Case("mbert"),
    "bleurt": Case("bleurt"),
    "factcc": Case("bert_factcc"),
    "toxicity": Case("roberta_toxicity"),
    "sentiment": Case("roberta_sentiment"),
    "summaqa": Case("bert_qa", entities=capitals_and_numbers),
    "fasttext_educational": Case(fasttext("Low", "Mid", "High")),
    "fasttext_nsfw": Case(fasttext("nsfw", "non-nsfw")),
    "fasttext_toxicity": Case(fasttext("non-toxic", "toxic")),
    "bartscore": Case("bart"),
    "unieval_sum": Case("t5_unieval"),
    "unieval_dialogue": Case("t5_unieval"),
    "unieval_fact": Case("t5_unieval"),
    "perplexity": Case("gpt2"),
    "lens": Case("lens"),
    "lens_salsa": Case("lens_salsa"),
    "grm_reward": Case("llama_reward"),
    "inform_reward": Case("llama_inform", {"dtype": "float32"}),
    "ldl_reward": Case("gemma2_ldl", {"dtype": "float32"}),
    "math_prm": Case("qwen2_prm"),
}


def tiny_family(name: str, tiny: Callable[[str], Path], folder: Path, **settings: Any) -> Family:
    """The family on its tiny checkpoint, on the CPU; `tiny` and `folder` are the fixtures of tests/bank/models."""
    case = CASES[name]
    path = tiny(case.checkpoint) if isinstance(case.checkpoint, str) else case.checkpoint(folder)
    chosen = {**case.settings, **settings}
    return model_family(name, path=str(path), device="cpu", settings=chosen, entities=case.entities)
