"""Jaro similarity: shared characters near the same place, less half the transpositions."""

from __future__ import annotations

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

CARD = MetricCard(
    name="Jaro similarity",
    kind="bank",
    summary=(
        "Similarity of two short strings by the characters they share within a sliding window, lowered when "
        "the shared characters come in a different order."
    ),
    formula=(
        "(m/|o| + m/|r| + (m - t)/m) / 3 with m characters matched at most max(|o|, |r|)/2 - 1 places apart "
        "and t half the number of matched characters that are out of order; 0 if m = 0"
    ),
    outputs=(Output("jaro_similarity", description="1 for equal texts, 0 if no character matches"),),
    needs=("references",),
    multi_reference="the highest similarity over the references; blank references are ignored",
    domains=("any language", "names and short strings"),
    tasks=("record linkage", "entity and name matching", "short answers"),
    best_for=("names, titles and other strings of a few words with typing errors",),
    not_for=("sentences and longer text", "anything where word choice matters more than spelling"),
    limits=(
        "the matching window grows with length, so texts of one language look alike: unrelated "
        "English sentences reach about .68",
        "insensitive to word order",
    ),
    failure_cases=("a sentence and its negation still score about .9",),
    related=("jaro_winkler_similarity", "levenshtein_ratio"),
    papers=("Jaro 1989, Advances in record-linkage methodology (JASA 84)",),
    backend="rapidfuzz",
    backend_license="MIT",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score all pairs in one call; the most similar reference counts."""
    from rapidfuzz.distance import Jaro

    pairs = pair_up(batch)
    return dict.fromkeys(outputs, pairs.best(pairs.compared(Jaro.similarity)))
