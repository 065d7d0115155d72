"""BERTScore: every token's best match in the other text, by the cosine of contextual vectors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, pair_up
from metricsmith.bank.models.engine.encoder import Encoded, embedded, special_ids, token_ids
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute", "token_frequencies", "matched"]

MODEL = ModelSpec(
    name="bertscore",
    id="roberta-large",
    head="encoder",
    layer=17,  # the layer that bert-score takes for this network, chosen there by agreement with raters on WMT16
    tokenizer="slow",  # the published numbers; the fast one has no space before the first word, and other numbers
    choices=(("idf", (False, True)), ("rescale", (False, True))),  # both off, as bert-score calls it without options
)
# Mean P, R and F of random English sentence pairs with roberta-large, layer 17: bert-score 0.3.13, rescale_baseline.
BASELINE = (0.83150584, 0.8314941, 0.83122575)

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
        Output("bertscore_f", -1.0, 1.0, description="their harmonic mean"),
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
        "other layers, tokenizers or networks give numbers that cannot be compared",
        "bert-score compares with padding in a batch, where all true cosines are below 0",
    ),
    failure_cases=("a fluent output about the wrong person scores above .9",),
    related=("moverscore", "parascore", "bleurt", "rouge_l_f"),
    papers=("Zhang et al. 2020, BERTScore: evaluating text generation with BERT",),
    checkpoint=Checkpoint("roberta-large", 1.43, 1.6, 510, "the end is cut off"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Encode each distinct text once and match every output with each of its references."""
    pairs = pair_up(batch)
    left, right = embedded(batch.spec, pairs.outputs), embedded(batch.spec, pairs.references)
    special = special_ids(batch.spec)
    weights = batch.statistics if batch.spec.option("idf") else None
    if weights is None and batch.spec.option("idf"):
        weights = token_frequencies(batch)
    found = np.array([matched(one, other, special, weights) for one, other in zip(left, right, strict=True)])
    found = found.reshape(-1, 3)
    if batch.spec.option("rescale"):
        found = (found - BASELINE) / (1 - np.array(BASELINE))
    columns = dict(zip(("bertscore_p", "bertscore_r", "bertscore_f"), found.T, strict=True))
    reasons = ["" if text.strip() else "the output is empty" for text in batch.outputs]
    return Reasoned({name: pairs.best(columns[name]) for name in outputs}, reasons)


def matched(
    output: Encoded, reference: Encoded, special: frozenset[int], statistics: Mapping[str, Any] | None = None
) -> tuple[float, float, float]:
    """Precision, recall and F of two texts; NaN where one has no tokens, or none that weighs anything.

    Parameters
    ----------
    output, reference : Encoded
    special : frozenset of int
        Ids that can be matched but are not counted.
    statistics : mapping, optional
        As `token_frequencies` gives it; None weighs all tokens alike.
    """
    cosines = _unit(output.vectors) @ _unit(reference.vectors).T
    precision = _mean(cosines.max(axis=1), _weights(output, special, statistics))
    recall = _mean(cosines.max(axis=0), _weights(reference, special, statistics))
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


def token_frequencies(batch: TextBatch) -> dict[str, Any]:
    """The count of references (``documents``), and for each token id, as a text, how many have it (``frequencies``)."""
    texts = [text for references in batch.references for text in references if text.strip()]
    counts = Counter(token for ids in token_ids(batch.spec, texts) for token in set(ids))
    return {"documents": len(texts), "frequencies": {str(token): counts[token] for token in sorted(counts)}}


statistics = token_frequencies


def _unit(vectors: Any) -> FloatArray:
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


def _weights(text: Encoded, special: frozenset[int], statistics: Mapping[str, Any] | None) -> FloatArray:
    ids = text.ids.tolist()
    if statistics is None:
        return np.array([float(token not in special) for token in ids])
    whole, known = statistics["documents"] + 1, statistics["frequencies"]
    return np.array([0.0 if token in special else math.log(whole / (known.get(str(token), 0) + 1)) for token in ids])


def _mean(values: FloatArray, weights: FloatArray) -> float:
    total = weights.sum()
    return float(values @ weights / total) if total else math.nan
