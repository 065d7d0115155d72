"""YiSi-2: the words of input and output matched across languages, by the cosine of contextual vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from metricsmith.bank.base import Names, Reasoned, TextBatch
from metricsmith.bank.models.bertscore import cosines, document_counts, rarity, weighted_mean, why_undefined
from metricsmith.bank.models.engine.encoder import Encoded, embedded, special_ids
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute", "statistics"]

ALPHA = 0.8  # of recall in F; the author's configuration of YiSi-2
MODEL = ModelSpec(
    name="yisi2",
    id="bert-base-multilingual-cased",
    head="encoder",
    choices=(("idf", (True, False)),),  # the paper weighs by it
)

CARD = MetricCard(
    name="YiSi-2",
    kind="bank",
    summary=(
        "Adequacy of a translation without a reference: each word piece of the output is matched with the most "
        "similar one of the input, and the other way round, by the vectors of a multilingual network."
    ),
    formula=(
        "P R / (.8 P + .2 R): precision P is the weighted mean over the output's pieces of the highest cosine with a "
        "piece of the input, recall R the other way round; cosines below 0 count as 0; a piece weighs "
        "log2(1 + (N + 1) / (n + 1)) for n of N texts of its side that have it, 1 each with idf=False; marks at the "
        "ends are left out"
    ),
    outputs=(Output("yisi2", description="0 nothing similar, 1 every piece found on the other side"),),
    needs=("input", "weights", "extra:models"),
    cost="local",
    multi_reference="references are not used: YiSi-2 compares with the input",
    domains=("machine translation", "general text", "any of the network's 104 languages"),
    tasks=("translation", "paraphrase", "cross-lingual summaries"),
    best_for=("translations without a reference", "missing content: recall weighs four times as much as precision"),
    not_for=("fluency: the order of words plays no part", "tasks whose output should not mean what the input means"),
    limits=(
        "depends on a corpus: frequencies of pieces come from the outputs and from the inputs, each side its own, that "
        "the metric was fitted on, else from the rows scored together",
        "the author's program has static bilingual vectors of words and matches three words at a time; vectors of the "
        "last layer and single pieces are as in the only other version with this network, meta-metrics' and "
        "autometrics-ai's, and no source settles the layer",
        "semantic roles, an option of the paper, are left out",
        "autometrics-ai 0.1.0 compares with the first reference and not with the input, learns idf from the batch, of "
        "lower-cased pieces though the network keeps case, and lets padding be matched, so that a row's number "
        "depends on its neighbours",
        "vectors of two languages are less alike than those of one: numbers of different pairs do not compare",
    ),
    failure_cases=("an output that repeats the input untranslated scores 1",),
    related=("bertscore_f", "parascore_free", "moverscore"),
    papers=("Lo 2019, YiSi: a unified semantic MT quality evaluation and estimation metric",),
    checkpoint=Checkpoint(
        "bert-base-multilingual-cased", 0.71, 0.9, 512, "the end is cut off", languages="104 languages"
    ),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Encode each distinct text once and match every output with its input."""
    known: Mapping[str, Any] = {}
    if batch.spec.option("idf"):
        known = batch.statistics or statistics(batch)
    special = list(special_ids(batch.spec))
    left, right = embedded(batch.spec, batch.outputs), embedded(batch.spec, batch.inputs)
    scores = [
        _f_score(_pieces(output, special), _pieces(source, special), known)
        for output, source in zip(left, right, strict=True)
    ]
    return Reasoned(dict.fromkeys(outputs, np.array(scores)), why_undefined(batch, "input"))


def statistics(batch: TextBatch) -> dict[str, Any]:
    """The `document_counts` of ``outputs`` and of ``inputs``."""
    return {
        "outputs": document_counts(batch.spec, batch.outputs),
        "inputs": document_counts(batch.spec, batch.inputs),
    }


def _pieces(text: Encoded, special: list[int]) -> Encoded:
    kept = ~np.isin(text.ids, special)
    return Encoded(text.ids[kept], text.vectors[kept])


def _f_score(output: Encoded, source: Encoded, known: Mapping[str, Any]) -> float:
    if not len(output.ids) or not len(source.ids):
        return math.nan
    similar = np.maximum(cosines(output, source), 0.0)
    precision = weighted_mean(similar.max(axis=1), np.log2(1 + rarity(output.ids, known.get("outputs"))))
    recall = weighted_mean(similar.max(axis=0), np.log2(1 + rarity(source.ids, known.get("inputs"))))
    below = ALPHA * precision + (1 - ALPHA) * recall
    return precision * recall / below if below else 0.0
