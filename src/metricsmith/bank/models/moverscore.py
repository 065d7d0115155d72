"""MoverScore, version 2: the least work of moving the output's words onto the reference's, in contextual vectors."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, pair_up
from metricsmith.bank.models.bertscore import cosines, document_counts, rarity, why_undefined
from metricsmith.bank.models.engine.encoder import Encoded, embedded, special_ids
from metricsmith.bank.models.engine.loader import network
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "card_for", "compute", "statistics", "transport_cost"]

MODEL = ModelSpec(
    name="moverscore",
    id="distilbert-base-uncased",
    head="encoder",
    needs=("ot",),
    choices=(
        ("similarity", ("1/(1+cost)", "1-cost")),  # the newest code and the one published number have the first
        ("idf", (False, True)),  # off as in the code's sentence_score, which the published number rests on
    ),
)

CARD = MetricCard(
    name="MoverScore",
    kind="bank",
    summary=(
        "Similarity in meaning to a reference: the least work it takes to move the words of the output onto those of "
        "the reference, as points among contextual vectors. Each word has so much to give and may be split."
    ),
    formula=(
        "1 / (1 + c), c the least of sum f_ij d_ij over all ways f to move the output's weights onto the reference's; "
        "d_ij the distance of the vectors of the last layer, each of length 1; words weigh alike, 1 in sum (with idf "
        "log((N + 1) / (n + 1)) for n of N texts of its side that have the piece); later pieces of split words and "
        "single punctuation marks are left out, the marks at the ends are not. With similarity='1-cost': 1 - c"
    ),
    outputs=(Output("moverscore", 1 / 3, 1.0, description="1 for equal texts; with similarity='1-cost' from -1 to 1"),),
    needs=("references", "weights", "extra:models"),
    cost="local",
    multi_reference="the mean over the references, as in the authors' code; blank references are ignored",
    domains=("general text", "machine translation", "summaries", "image captioning"),
    tasks=("translation", "summarisation", "captioning", "data-to-text", "paraphrase"),
    best_for=("good wordings that share few words with the reference", "outputs that leave out part of the reference"),
    not_for=("factual correctness: a wrong number or name costs little", "very short texts"),
    limits=(
        "this is version 2; version 1, which the paper reports, has BERT tuned on MNLI, power means of its last five "
        "layers, phrases and idf, and other numbers",
        "two formulas are published as version 2: 1 / (1 + c) in the newest code, 1 - c in the package 1.0.3; with one "
        "reference they rank alike",
        "the marks at the ends carry as much weight as a word, so that short texts look alike",
        "with idf frequencies come from the outputs and from the references, each side its own, that the metric was "
        "fitted on, else from the rows scored together",
        "the package gives texts without any word that counts its best score; here they are skipped",
    ),
    failure_cases=("an output that lacks 'not' moves at hardly any cost",),
    related=("bertscore_f", "parascore", "meteor"),
    papers=(
        "Zhao et al. 2019, MoverScore: text generation evaluating with contextualized embeddings and earth mover "
        "distance",
    ),
    backend="POT (optimal transport)",
    backend_license="MIT",
    checkpoint=Checkpoint("distilbert-base-uncased", 0.27, 0.4, 512, "the end is cut off"),
)


def card_for(spec: ModelSpec) -> MetricCard:
    """The card under the formula in force: 1 - c reaches down to -1."""
    if spec.option("similarity") != "1-cost":
        return CARD
    return replace(CARD, outputs=(replace(CARD.outputs[0], low=-1.0),))


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Encode each distinct text once and solve one transport problem for every pair."""
    pairs, spec = pair_up(batch), batch.spec
    known: Mapping[str, Any] = {}
    if spec.option("idf"):
        known = batch.statistics or statistics(batch)
    left, right = embedded(spec, pairs.outputs), embedded(spec, pairs.references)
    dropped, special = _dropped(spec), special_ids(spec)
    costs = np.array([
        _cost(output, reference, dropped, special, known) for output, reference in zip(left, right, strict=True)
    ])  # fmt: skip
    values = 1 - costs if spec.option("similarity") == "1-cost" else 1 / (1 + costs)
    return Reasoned(dict.fromkeys(outputs, pairs.mean(values)), why_undefined(batch, "references"))


def statistics(batch: TextBatch) -> dict[str, Any]:
    """The `document_counts` of ``outputs`` and of ``references``."""
    references = [text for texts in batch.references for text in texts]
    return {
        "outputs": document_counts(batch.spec, batch.outputs),
        "references": document_counts(batch.spec, references),
    }


def transport_cost(supply: FloatArray, demand: FloatArray, distances: FloatArray) -> float:
    """The least cost of moving `supply`, shape (a,), onto `demand`, (b,), each 1 in sum, over `distances`, (a, b).

    Raises
    ------
    ArithmeticError
        If the solver does not end at an optimum.
    """
    from ot import emd2  # HiGHS, which scipy has, needs some 70 times as long (85 ms for 110 by 100 words)

    cost, log = emd2(supply, demand, distances, numItermax=10_000_000, log=True)
    if log["warning"]:
        raise ArithmeticError(f"the transport problem of {distances.shape} words was not solved: {log['warning']}")
    return float(cost)


def _dropped(spec: ModelSpec) -> frozenset[int]:
    """The ids of pieces that go on with a word, and of single punctuation marks."""
    pieces = network(spec).tokenizer.get_vocab()
    return frozenset(pieces[piece] for piece in pieces if "##" in piece or piece in set(string.punctuation))


def _cost(
    output: Encoded, reference: Encoded, dropped: frozenset[int], special: frozenset[int], known: Mapping[str, Any]
) -> float:
    """The cost of a pair; NaN where a text has nothing but the marks at its ends, or nothing that weighs anything."""
    weights = [
        _weights(text, dropped, special, known.get(side))
        for text, side in ((output, "outputs"), (reference, "references"))
    ]
    if not all(one.any() for one in weights):
        return math.nan
    kept = [np.flatnonzero(one) for one in weights]
    distances = np.sqrt(np.maximum(2 - 2 * cosines(output, reference)[np.ix_(*kept)], 0.0))
    supply, demand = (one[places] / one.sum() for one, places in zip(weights, kept, strict=True))
    return transport_cost(supply, demand, distances)


def _weights(
    text: Encoded, dropped: frozenset[int], special: frozenset[int], counts: Mapping[str, Any] | None
) -> FloatArray:
    ids = text.ids.tolist()
    if all(token in dropped or token in special for token in ids):
        return np.zeros(len(ids))
    weights = np.ones(len(ids)) if counts is None else np.log(rarity(text.ids, counts))
    return np.where([token in dropped for token in ids], 0.0, weights)
