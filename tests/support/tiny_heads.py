"""The tiny checkpoints whose architecture no class of transformers has: own heads, saved by the published names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tiny_texts


def layers(prefix: str, shapes: list[tuple[int, int, int]]) -> dict[str, Any]:
    """Return the weights of linear layers as `PREFIX.NUMBER.weight` and `.bias`, for each (number, inputs, outputs)."""
    import torch

    weights = {}
    for number, inputs, outputs in shapes:
        weights[f"{prefix}.{number}.weight"] = torch.randn(outputs, inputs) * inputs**-0.5
        weights[f"{prefix}.{number}.bias"] = torch.randn(outputs) * 0.1
    return weights


def save(path: Path, backbone: Any, architecture: str, head: dict[str, Any]) -> None:
    """Save the backbone under `model.` and the head in one file; the config names remote code, as the hub's do."""
    from safetensors.torch import save_file

    backbone.config.architectures = [architecture]
    backbone.config.auto_map = {"AutoModel": f"modeling.{architecture}"}
    backbone.config.save_pretrained(path)
    weights = {f"model.{name}": weight for name, weight in backbone.state_dict().items()}
    save_file({**weights, **head}, path / "model.safetensors", metadata={"format": "pt"})


def save_ldl(path: Path, backbone: Any, *, width: int, objectives: int) -> None:
    """Save Gemma-2 with the distribution head: `objectives` numbers in tens, weighed by a gate of a tenth as many."""
    regression = layers("regression_layer.network", [(0, width, width), (2, width, width), (4, width, objectives)])
    gate = layers("gating_layer.network", [(0, width, width), (3, width, width), (6, width, objectives // 10)])
    save(path, backbone, "LDLRewardModel27B", {**regression, **gate})


def save_lens(path: Path, backbone: Any, width: int, features: int) -> None:
    """Save RoBERTa, the mix of its layers and the regression by the names of LENS's training state.

    One text alone makes LENS-SALSA's checkpoint, with the weights that only its training used.
    """
    import torch
    from safetensors.torch import save_file

    backbone.config.save_pretrained(path)
    weights = {f"encoder.model.{name}": weight for name, weight in backbone.state_dict().items()}
    mix = {f"layerwise_attention.scalar_parameters.{layer}": torch.randn(1) for layer in range(3)}
    mix |= {"layerwise_attention.gamma": torch.tensor([1.3]), "layerwise_attention.dropout_mask": torch.zeros(3)}
    head = layers("estimator.ff", [(0, features * width, width), (3, width, 1)])
    tags = {"hidden2tag.weight": torch.randn(2, width), "hidden2tag.bias": torch.randn(2)} if features == 1 else {}
    save_file({**weights, **mix, **head, **tags}, path / "model.safetensors", metadata={"format": "pt"})


def save_bleurt(path: Path, width: int, limit: int) -> None:
    """Save BLEURT-20's architecture and SentencePiece tokenizer by the classes of bleurt-pytorch 0.0.1."""
    import io

    import sentencepiece
    from bleurt_pytorch import BleurtConfig, BleurtForSequenceClassification
    from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(tiny_texts.corpus()), model_writer=model, vocab_size=450, pad_id=0, unk_id=1, bos_id=2,
        eos_id=3, pad_piece="[PAD]", unk_piece="[UNK]", bos_piece="[CLS]", eos_piece="[SEP]",
        user_defined_symbols=["[MASK]"], num_threads=1, minloglevel=2,
    )  # fmt: skip
    (path / "spm.model").write_bytes(model.getvalue())
    tokenizer = BleurtSPTokenizer(str(path / "spm.model"), model_max_length=limit)
    tokenizer.save_pretrained(path)
    config = BleurtConfig(
        vocab_size=len(tokenizer), embedding_size=width // 2, hidden_size=width, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=2 * width, max_position_embeddings=limit, initializer_range=0.3,
    )  # fmt: skip
    BleurtForSequenceClassification(config).save_pretrained(path)
