"""The parts of networks that metrics use, by name: how each is loaded, and which weights it may go without."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metricsmith.bank.models.engine.bleurt import bleurt_network, bleurt_tokenizer

__all__ = ["Head", "head_named"]

Report = Mapping[str, Any]  # missing_keys, unexpected_keys, mismatched_keys
Load = Callable[[Path, Any], tuple[Any, Report]]
Tokenizer = Callable[[Path], Any]

# Weights of published checkpoints that the part does not compute with, whatever the part.
_UNUSED = r"(^|\.)pooler\.|position_ids$|seq_relationship\.|attn\.(masked_)?bias$|rotary_emb\.inv_freq$"
_OTHER_HEADS = r"|^(lm_head|cls|vocab_\w+|qa_outputs|classifier|pre_classifier|predictions)\."


@dataclass(frozen=True)
class Head:
    """One way to read a checkpoint.

    Parameters
    ----------
    words : str
        In an error: "it is no ...".
    load : callable
        From the folder and torch's dtype to the module and the report on its weights.
    architectures : tuple of str
        The ``model_type`` that a checkpoint must have; empty takes any.
    missing, unused : str
        Patterns for weights that may be missing, and that may be there, since nothing is computed with them.
    tokenizer : callable, optional
        From the folder to its tokenizer, where transformers' auto class cannot tell.
    """

    words: str
    load: Load
    architectures: tuple[str, ...] = ()
    missing: str = r"(^|\.)pooler\."
    unused: str = _UNUSED
    tokenizer: Tokenizer | None = None

    def may_miss(self, name: str) -> bool:
        """True of a weight that the part does not compute with."""
        return re.search(self.missing, name) is not None

    def may_ignore(self, name: str) -> bool:
        """True of a weight of a published checkpoint that belongs to another part."""
        return re.search(self.unused, name) is not None


def auto(name: str) -> Load:
    """The loading of one of transformers' auto classes."""

    def load(place: Path, dtype: Any) -> tuple[Any, Report]:
        import transformers

        module, report = getattr(transformers, name).from_pretrained(
            place, dtype=dtype, use_safetensors=True, local_files_only=True, trust_remote_code=False,
            output_loading_info=True,
        )  # fmt: skip
        return module, report

    return load


HEADS: dict[str, Head] = {
    "encoder": Head("encoder", auto("AutoModel"), unused=_UNUSED + _OTHER_HEADS),
    "masked": Head("masked language model", auto("AutoModelForMaskedLM"), ("bert",)),
    "classifier": Head("classifier", auto("AutoModelForSequenceClassification"), missing="^$"),
    "qa": Head("question answerer", auto("AutoModelForQuestionAnswering")),
    "seq2seq": Head("encoder with decoder", auto("AutoModelForSeq2SeqLM"), missing="^$"),
    "causal": Head("causal language model", auto("AutoModelForCausalLM"), missing="^$"),
    "bleurt": Head("BLEURT", bleurt_network, architectures=("bleurt",), missing="^$", tokenizer=bleurt_tokenizer),
}


def head_named(name: str) -> Head:
    """The head called `name`."""
    return HEADS[name]
