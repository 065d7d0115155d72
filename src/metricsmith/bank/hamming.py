"""Hamming distance, padded: how many character positions differ."""

from __future__ import annotations

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

CARD = MetricCard(
    name="Hamming distance",
    kind="bank",
    summary=(
        "Compares output and reference position by position and counts the characters that differ; what one "
        "text has beyond the end of the other counts as different."
    ),
    formula="number of positions i with o[i] != r[i], the shorter text padded with a symbol equal to none",
    outputs=(Output("hamming_distance", 0.0, None, False, half=100.0, description="differing positions"),),
    needs=("references",),
    multi_reference="the smallest distance over the references; blank references are ignored",
    domains=("any language", "fixed-width text"),
    tasks=("codes, identifiers and fixed formats", "length-matched rewriting", "labels in sequence"),
    best_for=(
        "outputs of a fixed layout in which position carries meaning",
        "as a rough signal of how soon an output leaves the reference and how long it is",
    ),
    not_for=("free text whose wording may vary",),
    limits=(
        "after one inserted character everything that follows counts as different",
        "for free text the number is close to the length of the longer text, so it mostly measures length",
    ),
    failure_cases=("a single leading space makes an otherwise equal text maximally distant",),
    related=("levenshtein_distance", "jaro_similarity", "output_characters"),
    papers=("Hamming 1950, Error detecting and error correcting codes",),
    backend="rapidfuzz",
    backend_license="MIT",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score all pairs in one call; the closest reference counts."""
    from rapidfuzz.distance import Hamming

    pairs = pair_up(batch)
    return dict.fromkeys(outputs, pairs.best(pairs.compared(Hamming.distance), highest=False))
