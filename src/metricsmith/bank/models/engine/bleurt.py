"""BLEURT's network: a BERT whose embeddings are narrower than its layers, and one number from its first token.

Source of the structure and of the weights' names: modeling_bleurt.py, configuration_bleurt.py and
tokenization_bleurt_sp.py of the wheel bleurt_pytorch 0.0.1. ELECTRA's encoder in transformers is built alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["bleurt_network", "bleurt_tokenizer"]

_SIZES = (
    "vocab_size", "embedding_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "hidden_act", "max_position_embeddings", "type_vocab_size", "layer_norm_eps", "pad_token_id",
)  # fmt: skip
# From the published names to those of the module below.
_NAMES = ((r"^bleurt\.pooler\.", "pooler."), (r"^bleurt\.encoder\.embedding_projection\.", "body.embeddings_project."),
          (r"^bleurt\.", "body."))  # fmt: skip


def bleurt_network(place: Path, dtype: Any) -> tuple[Any, Mapping[str, Any]]:
    """The network of a folder, and the report on its weights; its result has ``logits``, shape (b, 1)."""
    import torch
    from safetensors.torch import load_file
    from transformers import ElectraConfig, ElectraModel
    from transformers.modeling_outputs import SequenceClassifierOutput

    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            super().__init__()
            self.config = config
            self.body = ElectraModel(config)
            self.pooler = torch.nn.ModuleDict({"dense": torch.nn.Linear(config.hidden_size, config.hidden_size)})
            self.classifier = torch.nn.Linear(config.hidden_size, 1)

        def forward(self, **tokens: Any) -> SequenceClassifierOutput:
            first = self.body(**tokens).last_hidden_state[:, 0]
            return SequenceClassifierOutput(logits=self.classifier(torch.tanh(self.pooler["dense"](first))))

    said = json.loads((place / "config.json").read_text("utf-8"))
    sizes = {name: said[name] for name in _SIZES if said.get(name) is not None}
    module = Network(ElectraConfig(**{"embedding_size": said["hidden_size"], **sizes}))
    weights: dict[str, Any] = {}
    for file in sorted(place.glob("*.safetensors")):
        weights |= {_renamed(name): weight for name, weight in load_file(file).items()}
    report = module.load_state_dict(weights, strict=False)
    return module.to(dtype), {"missing_keys": report.missing_keys, "unexpected_keys": report.unexpected_keys}


def bleurt_tokenizer(place: Path) -> Any:
    """The tokenizer of a folder: the pieces of its ``spm.model``, read by sentencepiece; ``[CLS] a [SEP] b [SEP]``."""
    from transformers import DebertaV2Tokenizer

    return DebertaV2Tokenizer(str(place / "spm.model"))


def _renamed(name: str) -> str:
    for pattern, other in _NAMES:
        if re.match(pattern, name):
            return re.sub(pattern, other, name)
    return name
