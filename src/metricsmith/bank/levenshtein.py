"""Levenshtein distance and the two similarity ratios that are built on edit distances."""

from __future__ import annotations

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

CARD = MetricCard(
    name="Levenshtein",
    kind="bank",
    summary=(
        "Character edit distance: how many single-character insertions, deletions and substitutions turn the "
        "output into the reference, as a count and as two length-normalised similarities."
    ),
    formula=(
        "levenshtein_distance = minimal number of character edits d; levenshtein_ratio = "
        "1 - d / max(|o|, |r|); indel_ratio = 1 - d' / (|o| + |r|), where d' allows insertions and deletions "
        "only. Case, spaces and punctuation count."
    ),
    outputs=(
        Output("levenshtein_distance", 0.0, None, False, half=100.0, description="edits, in characters"),
        Output("levenshtein_ratio", description="1 for equal texts, 0 if nothing can be kept"),
        Output("indel_ratio", description="share of characters kept by insertions and deletions alone"),
    ),
    needs=("references",),
    multi_reference="each number is that of the closest reference; blank references are ignored",
    domains=("any language", "short texts", "codes and names"),
    tasks=("post-editing effort", "grammatical error correction", "data extraction", "OCR", "transcription"),
    best_for=(
        "outputs that should be almost letter-identical to a reference",
        "estimating how many keystrokes a correction takes",
        "the raw distance also carries length: long rewrites of short references are far away",
    ),
    not_for=("paraphrase, summarisation or dialogue: good answers may share few letters with the reference",),
    limits=(
        "no notion of words, synonyms or meaning",
        "the distance grows with text length, so compare it only among texts of similar length",
        "moving a phrase costs as much as rewriting it",
    ),
    failure_cases=(
        "'not' dropped from a sentence costs four edits although it reverses the meaning",
        "a correct paraphrase is as far away as unrelated text",
    ),
    related=("hamming_distance", "jaro_similarity", "ter", "charcut"),
    papers=("Levenshtein 1966, Binary codes capable of correcting deletions, insertions and reversals",),
    backend="rapidfuzz",
    backend_license="MIT",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score all pairs in one call for each kind of edit asked for; the closest reference counts."""
    from rapidfuzz.distance import Indel, Levenshtein

    pairs = pair_up(batch)
    scores = {}
    if "indel_ratio" in outputs:
        scores["indel_ratio"] = pairs.best(pairs.compared(Indel.normalized_similarity))
    if "levenshtein_distance" in outputs or "levenshtein_ratio" in outputs:
        distances = pairs.compared(Levenshtein.distance)
        scores["levenshtein_distance"] = pairs.best(distances, highest=False)
    if "levenshtein_ratio" in outputs:
        longer = np.array([max(map(len, pair)) for pair in zip(pairs.outputs, pairs.references, strict=True)])
        scores["levenshtein_ratio"] = pairs.best(1.0 - distances / np.maximum(longer, 1))
    return scores
