"""Broken copies of the tiny checkpoints: each must be refused with its reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tiny_models

HEADS = {
    "bert_masked": "cls.",
    "bert_qa": "qa_outputs.",
    "bert_factcc": "classifier.",
    "mbert": "encoder.layer.1.",
    "distilbert": "transformer.layer.1.",
    "modernbert": "model.layers.4.",
    "roberta": "encoder.layer.1.",
    "roberta_sentiment": "classifier.",
    "roberta_toxicity": "classifier.",
    "lens": "estimator.",
    "lens_salsa": "layerwise_attention.",
    "bart": "model.decoder.layers.1.",
    "t5_unieval": "decoder.block.1.",
    "gpt2": "transformer.h.1.",
    "llama_reward": "score.",
    "llama_inform": "score.",
    "gemma2_ldl": "gating_layer.",
    "qwen2_prm": "score.",
    "bleurt": "classifier.",
}
"""The beginning of the names of the weights that `missing_head` drops: the head, or the last layer where the head is
tied to the embeddings or the model has none."""


def hostile(name: str, folder: Path, fault: str) -> Path:
    """Build the checkpoint `name`, derive a copy with one of `FAULTS`, and return the copy's path.

    The copy lies in `folder / FAULT / NAME`, the sound one in `folder / NAME`.
    """
    copy = folder / fault / name
    if not copy.exists():
        source = tiny_models.build(_other(name) if fault == "wrong_architecture" else name, folder)
        shutil.copytree(source, copy)
        FAULTS[fault](copy, name)
    return copy


def _other(name: str) -> str:
    return "bert_masked" if name == "gpt2" else "gpt2"


def _weights(copy: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(copy / "model.safetensors")


def _write(copy: Path, weights: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})


def _missing_head(copy: Path, name: str) -> None:
    weights = _weights(copy)
    kept = {key: weight for key, weight in weights.items() if not key.startswith(HEADS[name])}
    if len(kept) == len(weights):
        raise ValueError(f"{name} has no weights whose names begin with {HEADS[name]!r}")
    _write(copy, kept)


def _extra_keys(copy: Path, name: str) -> None:
    import torch

    _write(copy, {**_weights(copy), "unknown_head.weight": torch.ones(2, tiny_models.WIDTH)})


def _yes_is_no(copy: Path, name: str) -> None:
    """Rename each piece that begins with Y or N: "Yes" and "No" then begin with the same bare space piece."""
    if name != "t5_unieval":
        raise ValueError(f"yes_is_no is a fault of t5_unieval, not of {name}")
    file = copy / "tokenizer.json"
    tokenizer = json.loads(file.read_text("utf-8"))
    for number, entry in enumerate(tokenizer["model"]["vocab"]):
        if entry[0].startswith(("▁Y", "▁N")):
            entry[0] = f"\ue000{number}"
    file.write_text(json.dumps(tokenizer, ensure_ascii=False), "utf-8")


def _pickle_weights(copy: Path, name: str) -> None:
    import torch

    torch.save(_weights(copy), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()


def _wrong_architecture(copy: Path, name: str) -> None:
    """Leave the copy as it is: a sound checkpoint of another architecture."""


def _truncated(copy: Path, name: str) -> None:
    file = copy / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])


FAULTS: dict[str, Callable[[Path, str], None]] = {
    "missing_head": _missing_head,
    "extra_keys": _extra_keys,
    "yes_is_no": _yes_is_no,
    "pickle_weights": _pickle_weights,
    "wrong_architecture": _wrong_architecture,
    "truncated": _truncated,
}
