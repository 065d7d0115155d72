"""Ground of the oracles: a network of transformers read by its path, one text at a time, without padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from metricsmith.metric import RowText

__all__ = ["Oracle", "Settings", "limit", "network", "safe_tensors", "tokenizer", "vectors"]

Settings = Mapping[str, Any]
"""Every setting in force: layer, tokenizer, the metric's own options; `corpus` holds the rows that idf is from."""
Oracle = Callable[[Path, RowText, Settings], dict[str, float]]


@lru_cache(maxsize=8)
def network(path: Path, model: str = "AutoModel") -> Any:
    """Return the checkpoint as a class of transformers reads it, in eager attention."""
    import transformers

    return getattr(transformers, model).from_pretrained(path, local_files_only=True).eval()


@lru_cache(maxsize=8)
def tokenizer(path: Path, fast: bool = True) -> Any:
    """Return the checkpoint's tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(path, local_files_only=True, use_fast=fast)


@lru_cache(maxsize=4)
def safe_tensors(path: Path) -> dict[str, Any]:
    """Return all weights by their names as they stand in the file."""
    from safetensors.torch import load_file

    return load_file(path / "model.safetensors")


def limit(path: Path) -> int:
    """Return how many tokens a text may have, the special ones counted."""
    return int(tokenizer(path).model_max_length)


def vectors(path: Path, ids: list[int], layer: int = -1) -> Any:
    """Return the hidden states of one text, (tokens, width), in float64."""
    import torch

    with torch.inference_mode():
        found = network(path)(torch.tensor([ids]), output_hidden_states=True)
    return found.hidden_states[layer][0].double()
