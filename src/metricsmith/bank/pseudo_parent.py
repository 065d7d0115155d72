"""PseudoPARENT: PARENT with the words of the input in place of a table."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.bank.ngrams import Grams, IntArray, number_grams
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "pseudo_parent"]

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
        "the input's words are taken as facts whatever their role: a swapped number from the input is 'supported'",
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


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Count all pairs at once; the best reference counts."""
    pairs = pair_up(batch)
    tables = {text: frozenset(words(text.lower())) for text in set(batch.inputs)}
    rows = np.repeat(np.arange(len(batch)), pairs.counts).tolist()
    triples = [
        (words(output.lower()), words(reference.lower()), tables[batch.inputs[row]])
        for output, reference, row in zip(pairs.outputs, pairs.references, rows, strict=True)
    ]
    return dict.fromkeys(outputs, pairs.best(np.array(pseudo_parent(triples), dtype=float)))


def pseudo_parent(triples: Sequence[tuple[Sequence[str], Sequence[str], Collection[str]]]) -> list[float]:
    """Returns PARENT's F1 in [0, 1] of m outputs.

    Parameters
    ----------
    triples : sequence of tuple
        The tokens of the output; those of the reference, at least one; and the input's different tokens, of
        which each stands for a record of the paper's table. NaN without any.
    """
    precisions, recalls = _shares(triples)
    return [
        _f1(precision, recall, len({*output} & {*table}) / len(table)) if table else math.nan
        for (output, _, table), precision, recall in zip(triples, precisions, recalls, strict=True)
    ]


def _f1(precisions: Sequence[float], recalls: Sequence[float], covered: float) -> float:
    if not precisions or not precisions[0]:
        return 0.0
    precision = _geometric_mean(precisions)
    recall = math.pow(_geometric_mean(recalls), 1.0 - TABLE_WEIGHT) * math.pow(max(covered, FLOOR), TABLE_WEIGHT)
    return 2.0 * precision * recall / (precision + recall)


def _geometric_mean(shares: Sequence[float]) -> float:
    return math.exp(sum([math.log(max(share, FLOOR)) for share in shares]) / len(shares))


def _shares(
    triples: Sequence[tuple[Sequence[str], Sequence[str], Collection[str]]],
) -> tuple[list[list[float]], list[list[float]]]:
    """Returns for each triple entailed precision and weighted recall by n, without n that the text is too short for."""
    precisions: list[list[float]] = [[] for _ in triples]
    recalls: list[list[float]] = [[] for _ in triples]
    texts = [text for output, reference, _ in triples for text in (output, reference)]
    tables = [table for *_, table in triples for _ in range(2)]
    known = [token in table for text, table in zip(texts, tables, strict=True) for token in text]
    before = np.concatenate(([0], np.cumsum(known, dtype=np.int64)))
    for order, grams in enumerate(number_grams(texts, ORDER), 1):
        supported = before[grams.places + order] - before[grams.places]  # n w(g) in the paper
        sizes, weights = (
            np.bincount(grams.owners, values, minlength=len(texts)).reshape(-1, 2).tolist()
            for values in (np.ones(len(supported)), supported)
        )
        counted = zip(sizes, weights, *_matches(grams, supported, len(triples)), strict=True)
        for pair, ((ours, theirs), (entailed, wanted), matches, supported_matches) in enumerate(counted):
            if ours:
                precisions[pair].append((matches + (entailed - supported_matches) / order) / ours)
            if theirs:
                recalls[pair].append(supported_matches / wanted if wanted else 1.0)
    return precisions, recalls


def _matches(grams: Grams, supported: IntArray, pairs: int) -> tuple[list[float], list[float]]:
    """Returns by pair the n-grams that output and reference share, and the tokens of those that the table has."""
    keys = grams.owners // 2 * grams.different + grams.numbers
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    ours = np.bincount(group, grams.owners % 2 == 0, minlength=len(first))
    theirs = np.bincount(group, grams.owners % 2 == 1, minlength=len(first))
    shared = np.minimum(ours, theirs)
    owners = grams.owners[first] // 2
    matches = np.bincount(owners, shared, minlength=pairs)
    return matches.tolist(), np.bincount(owners, shared * supported[first], minlength=pairs).tolist()
