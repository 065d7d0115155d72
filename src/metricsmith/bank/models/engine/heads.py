"""The parts of networks that metrics use, by name: how each is loaded, and which weights it may go without."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metricsmith.bank.models.engine.bleurt import bleurt_network, bleurt_tokenizer
from metricsmith.bank.models.engine.lens import mixed_layers, regression_head
from metricsmith.bank.models.engine.own import (
    distribution_head,
    distribution_scores,
    own_network,
    plain_head,
    scores,
    two_layers,
)

__all__ = ["Head", "head_named"]

Report = Mapping[str, Any]  # missing_keys, unexpected_keys, mismatched_keys
Load = Callable[[Path, Any], tuple[Any, Report]]
Tokenizer = Callable[[Path], Any]

# Weights of published checkpoints that the part does not compute with, whatever the part.
_UNUSED = r"(^|\.)pooler\.|position_ids$|seq_relationship\.|attn\.(masked_)?bias$|rotary_emb\.inv_freq$"
_LENS_TRAINING = r"|^layerwise_attention\.dropout_|^hidden2tag\.|^wordloss\."
_OTHER_HEADS = r"|^(lm_head|cls|vocab_\w+|qa_outputs|classifier|pre_classifier|predictions|head|decoder)\."

# transformers builds an "encoder" of a decoder as well, and a "causal" network of BERT, whose numbers mean nothing.
_ENCODERS = ("bert", "roberta", "xlm-roberta", "distilbert", "electra", "deberta", "deberta-v2", "modernbert")


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


def auto(name: str, **options: Any) -> Load:
    """The loading of one of transformers' auto classes, with more options of its ``from_pretrained``."""

    def load(place: Path, dtype: Any) -> tuple[Any, Report]:
        import transformers

        module, report = getattr(transformers, name).from_pretrained(
            place, dtype=dtype, use_safetensors=True, local_files_only=True, trust_remote_code=False,
            output_loading_info=True, **options,
        )  # fmt: skip
        if getattr(module.config, "reference_compile", False) is None:  # ModernBERT would compile itself where it can
            module.config.reference_compile = False
        return module, report

    return load


def regressor(place: Path, dtype: Any) -> tuple[Any, Report]:
    """A classifier with one number in place of labels; its last layers are new where the checkpoint's do not fit."""
    from torch.random import fork_rng

    with fork_rng(devices=[]):  # new layers are filled with random numbers
        load = auto("AutoModelForSequenceClassification", num_labels=1, ignore_mismatched_sizes=True)
        module, report = load(place, dtype)
    others = [one if isinstance(one, str) else one[0] for one in report["mismatched_keys"]]  # by transformers' version
    return module, {**report, "missing_keys": [*report["missing_keys"], *others], "mismatched_keys": []}


HEADS: dict[str, Head] = {
    "encoder": Head("encoder", auto("AutoModel"), _ENCODERS, unused=_UNUSED + _OTHER_HEADS),
    "masked": Head("masked language model", auto("AutoModelForMaskedLM"), ("bert",)),
    "classifier": Head("classifier", auto("AutoModelForSequenceClassification"), _ENCODERS, "^$"),
    "regressor": Head(
        "encoder", regressor, _ENCODERS, r"^(pre_)?classifier\.|^head\.|(^|\.)pooler\.", _UNUSED + _OTHER_HEADS
    ),
    "qa": Head("question answerer", auto("AutoModelForQuestionAnswering"), _ENCODERS),
    "seq2seq": Head("encoder with decoder", auto("AutoModelForSeq2SeqLM"), ("bart", "t5"), "^$"),
    "causal": Head("causal language model", auto("AutoModelForCausalLM"), ("gpt2",), "^$"),
    "bleurt": Head("BLEURT", bleurt_network, architectures=("bleurt",), missing="^$", tokenizer=bleurt_tokenizer),
    "lens": Head("LENS", own_network(regression_head(7), mixed_layers), ("roberta",), "^$", _UNUSED + _LENS_TRAINING),
    "lens_salsa": Head(
        "LENS-SALSA", own_network(regression_head(1), mixed_layers), ("roberta",), "^$", _UNUSED + _LENS_TRAINING
    ),
    "reward": Head("reward model with one layer", own_network(plain_head, scores), ("llama",), "^$"),
    "reward_relu": Head("reward model with two layers", own_network(two_layers(1), scores), ("llama",), "^$"),
    "reward_steps": Head(
        "reward model of steps", own_network(two_layers(2), scores), ("qwen2",), "^$", _UNUSED + r"|^lm_head\."
    ),
    "reward_levels": Head(
        "reward model of distributions",
        # the other ways of transformers 4.57.6 to compute attention leave out Gemma 2's soft cap of its logits
        own_network(distribution_head, distribution_scores, attn_implementation="eager"),
        ("gemma2",),
        "^$",
    ),
}


def head_named(name: str) -> Head:
    """The head called `name`."""
    return HEADS[name]
