"""LENS: quality of a simplification, learned from raters, with the complex text and references to compare with."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, pair_up, where_filled
from metricsmith.bank.models.engine.batching import batched, finite, padded
from metricsmith.bank.models.engine.loader import computing, network
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "card_for", "compute"]

MODEL = ModelSpec(
    name="lens",
    id="davidheineman/lens",
    head="lens",
    base="roberta-large",
    pickles=(("checkpoints/model.ckpt", ""),),
    # The model's card rescales. Layers were normed in training; lens-metric 0.2.0 does so or not by another setting.
    choices=(("rescale", (True, False)), ("layer_norm", (True, False))),
)

CARD = MetricCard(
    name="LENS",
    kind="bank",
    summary=(
        "Quality of a simplified text as raters see it: a RoBERTa regression on the complex text, the output and a "
        "reference, trained on ratings of simplifications by people and by models."
    ),
    formula=(
        "z = W2 tanh(W1 [s, o, r, o*r, |o-r|, o*s, |o-s|] + b1) + b2 for the mean vectors of complex text s, output o "
        "and reference r, lower-cased, over a learned mix of RoBERTa's layers, each of mean 0 and variance 1 over the "
        "text unless layer_norm is off; 100 x the normal distribution function of z, or 100 z without rescale"
    ),
    outputs=(Output("lens", 0.0, 100.0, description="50 is the mean of the ratings that it was trained on"),),
    needs=("input", "references", "weights", "extra:models"),
    cost="local",
    multi_reference="the highest over the references; blank references are ignored",
    domains=("simplified English", "encyclopedias", "news"),
    tasks=("simplification",),
    best_for=("ranking simplifications, splitting and paraphrase included", "a few good and different references"),
    not_for=("other tasks than simplification", "other languages than English", "case: all is lower-cased"),
    limits=(
        "without rescale numbers are open to both sides, and below 0 for half of the ratings",
        "each text is cut at 510 tokens, its two marks included",
    ),
    failure_cases=("a short fluent output that drops a main fact may score well beside a short reference",),
    related=("lens_salsa", "sari", "bertscore_f"),
    papers=("Maddela et al. 2023, LENS: a learnable evaluation metric for text simplification",),
    checkpoint=Checkpoint("davidheineman/lens", 1.43, 1.6, 510, "the end is cut off"),
)


def card_for(spec: ModelSpec) -> MetricCard:
    """The card under the options in force: without rescale numbers have no ends, and a deviation above 0 scores .75."""
    if spec.option("rescale"):
        return CARD
    return replace(CARD, outputs=(replace(CARD.outputs[0], low=None, high=None, half=100.0),))


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Encode each distinct text once and compare every output with each of its references."""

    def best(part: TextBatch) -> FloatArray:
        pairs = pair_up(part)
        inputs = np.repeat(np.array(part.inputs, dtype=object), pairs.counts).tolist()
        return 100 * pairs.best(_compared(part.spec, inputs, pairs.outputs, pairs.references))

    return where_filled(batch, outputs, best, "input", "references")


def _compared(spec: ModelSpec, *texts: Any) -> FloatArray:
    """The regression's numbers for m complex texts, outputs and references: shape (m,)."""
    import torch

    loaded, normed = network(spec), bool(spec.option("layer_norm"))

    def forward(part: list[tuple[int, ...]]) -> list[Any]:
        ids, mask = padded(part, loaded.tokenizer.pad_token_id or 0, loaded.device)
        seen = mask[:, :, None].float()
        return list((loaded.module(ids, mask, normed) * seen).sum(1) / seen.sum(1))

    lowered = [text.lower() for column in texts for text in column]
    ids = loaded.encoded(lowered, truncation=True, max_length=loaded.max_tokens - 2)["input_ids"]
    with computing():
        vectors = torch.stack(batched(spec, [tuple(one) for one in ids], len, forward))
        source, output, reference = vectors.view(3, len(texts[0]), -1)
        features = [source, output, reference, output * reference, (output - reference).abs()]
        features += [output * source, (output - source).abs()]
        numbers = finite(loaded.module.estimator["ff"](torch.cat(features, 1))[:, 0])
    if spec.option("rescale"):
        numbers = np.array([0.5 * (math.erf(z / math.sqrt(2)) + 1) for z in numbers.tolist()])
    return np.asarray(numbers)
