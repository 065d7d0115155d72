"""Jaccard distance between the word sets of output and reference."""

from __future__ import annotations

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

CARD = MetricCard(
    name="Jaccard distance",
    kind="bank",
    summary=(
        "Share of the distinct words of output and reference together that only one of them uses: 0 for the "
        "same vocabulary, 1 for no common word."
    ),
    formula="1 - |O and R| / |O or R| over the sets of white-space separated words; case and marks count",
    outputs=(Output("jaccard_distance", 0.0, 1.0, False, description="0 same word set, 1 disjoint"),),
    needs=("references",),
    multi_reference="the smallest distance over the references; blank references are ignored",
    domains=("general text", "languages that separate words by spaces"),
    tasks=("keyword and tag lists", "near-duplicate detection", "simplification", "paraphrase"),
    best_for=("unordered content such as lists, tags and slots", "how much vocabulary a rewrite replaced"),
    not_for=("fluency or word order", "Chinese, Japanese, Thai and other text without spaces"),
    limits=(
        "'cat' and 'cat.' are different words",
        "neither order nor repetition counts",
        "common function words make unrelated texts look related",
    ),
    failure_cases=("a shuffled, ungrammatical copy of the reference gets a perfect 0",),
    related=("rouge1_f", "levenshtein_ratio", "sari"),
    papers=("Jaccard 1912, The distribution of the flora in the alpine zone",),
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Build each text's word set once, then compare pairs; the closest reference counts."""
    pairs = pair_up(batch)
    sets = {text: frozenset(text.split()) for text in {*pairs.outputs, *pairs.references}}
    values = np.empty(len(pairs.outputs))
    for index, (output, reference) in enumerate(zip(pairs.outputs, pairs.references, strict=True)):
        left, right = sets[output], sets[reference]
        shared = len(left & right)
        union = len(left) + len(right) - shared
        # the number of unshared words over the union, not 1 minus a ratio: exact at both ends
        values[index] = (union - shared) / union
    return dict.fromkeys(outputs, pairs.best(values, highest=False))
