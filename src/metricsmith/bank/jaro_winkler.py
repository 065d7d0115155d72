"""Jaro-Winkler similarity: Jaro similarity with a bonus for a common beginning."""

from __future__ import annotations

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

CARD = MetricCard(
    name="Jaro-Winkler similarity",
    kind="bank",
    summary=(
        "Jaro similarity of two short strings, raised when they agree in their first four characters, where "
        "typing errors are rare."
    ),
    formula="J + .1 p (1 - J) for Jaro similarity J > .7 and p <= 4 equal leading characters; otherwise J",
    outputs=(Output("jaro_winkler_similarity", description="1 for equal texts, never below Jaro"),),
    needs=("references",),
    multi_reference="the highest similarity over the references; blank references are ignored",
    domains=("any language", "names and short strings"),
    tasks=("record linkage", "entity and name matching", "short answers"),
    best_for=("person and place names with variants in the ending",),
    not_for=("sentences and longer text", "strings whose distinguishing part comes last, such as file names"),
    limits=(
        "shares every limit of Jaro similarity on long text",
        "the bonus depends on four characters only and stops at J = .7, a jump in the scale",
    ),
    failure_cases=("'Martha Smith' and 'Martha Jones' score .83, 'Marta Smith' and 'Smith, Marta' .48",),
    related=("jaro_similarity", "levenshtein_ratio"),
    papers=("Winkler 1990, String comparator metrics and enhanced decision rules",),
    backend="rapidfuzz",
    backend_license="MIT",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score all pairs in one call; the most similar reference counts."""
    from rapidfuzz.distance import JaroWinkler

    pairs = pair_up(batch)
    return dict.fromkeys(outputs, pairs.best(pairs.compared(JaroWinkler.similarity)))
