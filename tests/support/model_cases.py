"""Every metric with weights, the tiny checkpoint that its tests use, and its settings there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metricsmith.bank.base import Family
from metricsmith.bank.catalogue import model_family

__all__ = ["CASES", "Case", "tiny_family"]


@dataclass(frozen=True)
class Case:
    """`checkpoint` is a name of `tiny_models.BUILDERS`, or a function from a folder to a path."""

    checkpoint: str | Callable[[Path], Path]
    settings: Mapping[str, Any] = field(default_factory=dict)


CASES: dict[str, Case] = {
    "bertscore": Case("roberta", {"layer": 2}),
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
    return model_family(name, path=str(path), device="cpu", settings={**case.settings, **settings})
