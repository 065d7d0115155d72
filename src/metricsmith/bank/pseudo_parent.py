"""PseudoPARENT: PARENT with the words of the input in place of a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

import numpy as np

from metricsmith.bank.base import Family, FloatArray, TextBatch
from metricsmith.bank.ngrams import symbols
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["FAMILY", "pseudo_parent"]

ORDER = 4
TABLE_WEIGHT = 0.5
FLOOR = 1e-5

CARD = MetricCard(
    name="PseudoPARENT",
    kind="bank",
    summary=(
        "N-gram F-score against the reference and the input together: words that the input supports are no "
        "error even if the reference lacks them, and leaving out the input's words costs recall."
    ),
    formula=(
        "F1 of P and R; P: geometric mean over n = 1 to 4 of the output's n-grams found in the reference, the "
        "others counting by the share w of their tokens that the input has; R: sqrt(Rr Ri) with Rr the same "
        "mean of the reference's n-grams found in the output, weighted by w, and Ri the share of the input's "
        "different tokens that the output has; lower-cased; zero precision of pairs and longer, and zero "
        "recall, count as 1e-5"
    ),
    outputs=(Output("pseudo_parent", description="0 no supported word, 1 reference and input both covered"),),
    needs=("input", "references"),
    multi_reference="the highest F1 over the references; blank references are ignored",
    domains=("data-to-text", "reports", "general text"),
    tasks=("data-to-text", "table-to-text", "grounded generation", "summarisation", "simplification"),
    best_for=(
        "outputs that should say what a compact input says, with references that omit or add some of it",
        "penalising words that neither the input nor the reference supports",
    ),
    not_for=(
        "question answering and dialogue, where repeating the input is no virtue",
        "long inputs, of which a good output keeps little",
        "inputs in another language or notation",
    ),
    limits=(
        "the input's words are taken as facts whatever their role: a swapped number from the input is "
        "'supported'",
        "a reference scores below 1 unless it uses every word of the input",
        "n-gram lengths that a text is too short for are left out",
        "follows the paper's formulas with lambda fixed at .5; autometrics-ai 0.1.0 weighs only the numerator "
        "of recall and splits at spaces: over 60 simplifications its values lie .11 lower in the median, .46 at "
        "most",
    ),
    failure_cases=(
        "copying the input scores high when reference and input overlap",
        "negating a sentence changes one token",
    ),
    related=("bleu", "rouge2_f", "sari"),
    papers=("Dhingra et al. 2019, Handling divergent reference texts when evaluating table-to-text generation",),
)


def compute(batch: TextBatch, outputs: Sequence[str]) -> Mapping[str, FloatArray]:
    """Score row by row; the best reference counts."""
    scores = []
    for source, output, references in zip(batch.inputs, batch.outputs, batch.references, strict=True):
        table, tokens = set(words(source.lower())), words(output.lower())
        values = [
            pseudo_parent(tokens, words(text.lower()), table) for text in references if text.strip() and table
        ]
        scores.append(max(values, default=math.nan))
    return dict.fromkeys(outputs, np.array(scores, dtype=float))


def pseudo_parent(output: Sequence[str], reference: Sequence[str], table: Collection[str]) -> float:
    """PARENT's F1 in [0, 1].

    Parameters
    ----------
    output, reference : sequence of str
        Tokens; the reference has at least one.
    table : collection of str
        The input's different tokens, at least one; each stands for a record of the paper's table.
    """
    if not output:
        return 0.0
    table_text, ours, theirs = symbols(list(table), output, reference)
    known = set(table_text)
    ours_supported, theirs_supported = _supported(ours, known), _supported(theirs, known)
    precisions, recalls = [], []
    matches, supported_matches = len(ours), 0
    for order in range(1, ORDER + 1):
        if matches:  # without a common pair there is no common triple
            matches, supported_matches = _matches(ours, theirs, known, order)
        if (total := len(ours) - order + 1) > 0:
            supported = ours_supported[order - 1] - supported_matches
            precisions.append((matches + supported / order) / total)
        if order <= len(theirs):
            supported = theirs_supported[order - 1]
            recalls.append(supported_matches / supported if supported else 1.0)
    precision = _geometric_mean(precisions) if precisions[0] else 0.0
    covered = max(len(known.intersection(ours)) / len(known), FLOOR)
    recall = math.pow(_geometric_mean(recalls), 1.0 - TABLE_WEIGHT) * math.pow(covered, TABLE_WEIGHT)
    return 2.0 * precision * recall / (precision + recall)


def _matches(ours: str, theirs: str, known: Collection[str], order: int) -> tuple[int, int]:
    """How many n-grams both texts have, and how many tokens of those the table has."""
    left, right = (
        Counter([text[start : start + order] for start in range(len(text) - order + 1)])
        for text in (ours, theirs)
    )
    matches = supported = 0
    for gram in left.keys() & right.keys():
        count = min(left[gram], right[gram])
        matches += count
        supported += count * len([token for token in gram if token in known])
    return matches, supported


def _supported(text: str, known: Collection[str]) -> list[int]:
    """For n = 1 to 4, how many tokens of all n-grams of `text` together the table has."""
    before = [0, *accumulate([token in known for token in text])]
    return [sum(before[order:]) - sum(before[:-order]) for order in range(1, ORDER + 1)]


def _geometric_mean(shares: Sequence[float]) -> float:
    return math.exp(sum([math.log(max(share, FLOOR)) for share in shares]) / len(shares))


FAMILY = Family(CARD, compute)
