"""BERTScore: every token's best match in the other text, by the cosine of contextual vectors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, IntArray, Names, Pairs, Reasoned, TextBatch, blank_texts, pair_up
from metricsmith.bank.models.engine.encoder import Encoded, embedded, special_ids, token_ids
from metricsmith.bank.models.engine.loader import network
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import OptionError
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = [
    "CARD", "MODEL", "card_for", "compared", "compute", "cosines", "document_counts", "matched", "rarity", "statistics",
    "weighted_mean", "why_undefined",
]  # fmt: skip

MODEL = ModelSpec(
    name="bertscore",
    id="roberta-large",
    head="encoder",
    layer=17,  # the layer that bert-score takes for this network, chosen there by agreement with raters on WMT16
    tokenizer="slow",  # the published numbers; the fast one has no space before the first word, and other numbers
    choices=(("idf", (False, True)), ("rescale", (False, True))),  # both off, as bert-score calls it without options
)
# Mean P, R and F of random English sentence pairs, by the kind, width and layer of the network (roberta-large):
# bert-score 0.3.13, rescale_baseline.
BASELINES = {("roberta", 1024, 17): (0.83150584, 0.8314941, 0.83122575)}

CARD = MetricCard(
    name="BERTScore",
    kind="bank",
    summary=(
        "Similarity in meaning to a reference: each token is matched with the most similar one of the other text by "
        "contextual vectors, so that other words for the same thing count."
    ),
    formula=(
        "precision: the mean over the output's tokens of the highest cosine with a token of the reference; recall the "
        "other way round; F their harmonic mean; the marks at both ends can be matched and are not counted; with idf "
        "the means are weighted by log((N + 1) / (n + 1)) for n of N references that have the token; with rescale "
        "(x - b) / (1 - b) for the mean b of random pairs"
    ),
    outputs=(
        Output("bertscore_p", -1.0, 1.0, description="precision; with the published weights about .8 to 1"),
        Output("bertscore_r", -1.0, 1.0, description="recall"),
        Output("bertscore_f", -1.0, 1.0, description="their harmonic mean; undefined unless both are above 0"),
    ),
    needs=("references", "weights", "extra:models"),
    cost="local",
    multi_reference="the highest of each number over the references; blank references are ignored",
    domains=("general text", "machine translation", "image captioning", "summaries"),
    tasks=("translation", "summarisation", "captioning", "paraphrase", "simplification"),
    best_for=("good wordings that share few words with the reference", "ranking systems against one reference"),
    not_for=("factual correctness: a wrong number or name costs little", "a missing or added negation"),
    limits=(
        "numbers lie in a narrow band near the top unless they are rescaled",
        "texts beyond the network's length are cut off",
        "layer 17, a space before the first word (tokenizer slow), no idf and no rescaling are as in the published "
        "numbers; other settings or networks give numbers that cannot be compared",
        "autometrics-ai 0.1.0 lower-cases all texts for a network that keeps case",
        "rescaled numbers go far below -1; the mean of random pairs is known for roberta-large at layer 17 alone",
        "bert-score compares with padding in a batch, where all true cosines are below 0",
    ),
    failure_cases=("a fluent output about the wrong person scores above .9",),
    related=("moverscore", "parascore", "bleurt", "rouge_l_f"),
    papers=("Zhang et al. 2020, BERTScore: evaluating text generation with BERT",),
    checkpoint=Checkpoint("roberta-large", 1.43, 1.6, 512, "the end is cut off"),
)


def card_for(spec: ModelSpec) -> MetricCard:
    """The card under the options in force: rescaled numbers are open below, and 0, that of random pairs, scores .5."""
    outputs = tuple(replace(one, low=None, half=1.0) for one in CARD.outputs)
    return replace(CARD, outputs=outputs) if spec.option("rescale") else CARD


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Encode each distinct text once and match every output with each of its references."""
    pairs = pair_up(batch)
    known = (batch.statistics or statistics(batch)) if batch.spec.option("idf") else None
    found = compared(batch.spec, pairs, known)
    if batch.spec.option("rescale"):
        baseline = np.array(_baseline(batch.spec))
        found = (found - baseline) / (1 - baseline)
    columns = dict(zip(("bertscore_p", "bertscore_r", "bertscore_f"), found.T, strict=True))
    return Reasoned({name: pairs.best(columns[name]) for name in outputs}, why_undefined(batch, "references"))


def statistics(batch: TextBatch) -> dict[str, Any]:
    """The `document_counts` of the references, each of a row's a document of its own."""
    return document_counts(batch.spec, [text for references in batch.references for text in references])


def compared(spec: ModelSpec, pairs: Pairs, statistics: Mapping[str, Any] | None = None) -> FloatArray:
    """Precision, recall and F of m pairs, as `matched` gives them: shape (m, 3)."""
    left, right = embedded(spec, pairs.outputs), embedded(spec, pairs.references)
    special = special_ids(spec)
    found = [matched(one, other, special, statistics) for one, other in zip(left, right, strict=True)]
    return np.array(found, dtype=float).reshape(-1, 3)


def matched(
    output: Encoded, reference: Encoded, special: frozenset[int], statistics: Mapping[str, Any] | None = None
) -> tuple[float, float, float]:
    """Precision, recall and F of two texts; NaN where one has no tokens, or none that weighs anything.

    Ids in `special` can be matched but are not counted; without `statistics`, those of `document_counts`, all others
    count alike. F is NaN unless both are above 0: beyond that a harmonic mean has no bounds.
    """
    similar = cosines(output, reference)
    precision = weighted_mean(similar.max(axis=1), _weights(output, special, statistics))
    recall = weighted_mean(similar.max(axis=0), _weights(reference, special, statistics))
    if math.isnan(
        precision + recall
    ):  # a mark at the end of the empty text would be matched: a number for one of the two
        return math.nan, math.nan, math.nan
    return precision, recall, 2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else math.nan


def cosines(one: Encoded, other: Encoded) -> FloatArray:
    """The cosine of each token of one text with each of the other: shape (tokens, tokens)."""
    return np.asarray(_unit(one.vectors) @ _unit(other.vectors).T)


def document_counts(spec: ModelSpec, texts: Sequence[str]) -> dict[str, Any]:
    """The count of texts that are not blank (``documents``), and of those that have a token (``frequencies``).

    Tokens are named by their ids, as texts.
    """
    texts = [text for text in texts if text.strip()]
    counts = Counter(token for ids in token_ids(spec, texts) for token in set(ids))
    return {"documents": len(texts), "frequencies": {str(token): counts[token] for token in sorted(counts)}}


def rarity(ids: IntArray, counts: Mapping[str, Any] | None) -> FloatArray:
    """(N + 1) / (n + 1) of each token, for n of N documents that have it; 1 without counts."""
    if counts is None:
        return np.ones(len(ids))
    whole, known = counts["documents"] + 1, counts["frequencies"]
    return np.array([whole / (known.get(str(token), 0) + 1) for token in ids.tolist()])


def weighted_mean(values: FloatArray, weights: FloatArray) -> float:
    """The mean of `values`; NaN where nothing weighs anything."""
    total = weights.sum()
    return float(values @ weights / total) if total else math.nan


def why_undefined(batch: TextBatch, *others: str) -> list[str]:
    """The reason of each row whose number is NaN, where the tokens of two texts are compared."""
    tokens = "no token of the output, or of the texts that it is compared with, has any weight or likeness"
    return [reason or tokens for reason in blank_texts(batch, "output", *others)]


def _baseline(spec: ModelSpec) -> tuple[float, float, float]:
    config = network(spec).module.config
    found = BASELINES.get((config.model_type, config.hidden_size, spec.layer or 0))
    if found is None:
        raise OptionError(
            f"{spec.name}: rescale=True for layer {spec.layer} of a {config.model_type} of width {config.hidden_size}; "
            "the mean of random pairs is known for layer 17 of roberta-large alone: leave rescale off"
        )
    return found


def _unit(vectors: Any) -> FloatArray:
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


def _weights(text: Encoded, special: frozenset[int], statistics: Mapping[str, Any] | None) -> FloatArray:
    weights = np.ones(len(text.ids)) if statistics is None else np.log(rarity(text.ids, statistics))
    return np.where(np.isin(text.ids, list(special)), 0.0, weights)
