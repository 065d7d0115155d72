"""NIST: BLEU's precision with n-grams weighted by how informative they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from metricsmith.bank.base import Family, FloatArray, TextBatch
from metricsmith.records import MetricCard, Output

__all__ = ["FAMILY", "sentence_nist"]

ORDER = 5
_BREVITY = math.log(0.5) / math.log(1.5) ** 2

CARD = MetricCard(
    name="NIST",
    kind="bank",
    summary=(
        "N-gram precision in which a shared n-gram counts by its information: continuations that are hard to "
        "predict from the references weigh more than frequent ones. Mild length penalty."
    ),
    formula=(
        "penalty x sum over n = 1..5 of [sum of info(g) over shared n-grams / n-grams of the output]; "
        "info(g) = log2(count of g without its last word / count of g) in the row's references; penalty = .5 "
        "at two thirds of the reference length; white-space tokens, case kept, n at most the output's length"
    ),
    outputs=(
        Output("nist", 0.0, None, half=3.0, description="0 no word shared; grows with reference length"),
    ),
    needs=("references",),
    multi_reference=(
        "information weights from all references together; for each n the reference with the highest "
        "precision counts; blank references are ignored"
    ),
    domains=("machine translation", "general text"),
    tasks=("translation", "data-to-text", "summarisation"),
    best_for=("rewarding rare content words over function words where several references exist",),
    not_for=("comparing rows of very different length", "text without spaces between words"),
    limits=(
        "no upper end: an exact match scores about log2 of the number of reference words",
        (
            "with one reference nearly every longer n-gram has information 0, so it is close to unigram "
            "precision"
        ),
        "weights come from the row itself, not from a corpus, so that a row's number never depends on others",
    ),
    failure_cases=("an exact match of one word scores 0, because that word carries no information",),
    related=("bleu", "rouge1_p", "cider"),
    papers=("Doddington 2002, Automatic evaluation of machine translation quality using n-gram statistics",),
    backend="metricsmith (equal to nltk.translate.nist_score on the same tokens)",
)


def compute(batch: TextBatch, outputs: Sequence[str]) -> Mapping[str, FloatArray]:
    """Score every row against its references."""
    scores = np.array(
        [
            sentence_nist(output.split(), [text.split() for text in texts if text.strip()])
            for output, texts in zip(batch.outputs, batch.references, strict=True)
        ],
        dtype=float,
    )
    return dict.fromkeys(outputs, scores)


def sentence_nist(candidate: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """NIST of one tokenised text.

    Parameters
    ----------
    candidate : sequence of str
        May be empty: 0.
    references : sequence of sequence of str
        None of them empty; no reference at all gives NaN.

    Returns
    -------
    float
        At least 0. Equals ``nltk.translate.nist_score.sentence_nist`` with n = min(5, length).
    """
    if not references:
        return math.nan
    if not candidate:
        return 0.0
    shorter: Counter[Any] = Counter({(): sum(map(len, references))})
    precision, reference_words = 0.0, 0
    order = min(ORDER, len(candidate))
    for length in range(1, order + 1):
        own = _grams(candidate, length)
        theirs = [_grams(reference, length) for reference in references]
        pooled = theirs[0] if len(theirs) == 1 else sum(theirs, Counter())
        total = len(candidate) - length + 1
        best, best_length = max(
            (_information(own, grams, pooled, shorter), len(reference))
            for grams, reference in zip(theirs, references, strict=True)
        )
        precision += best / total
        reference_words += best_length
        shorter = pooled
    return precision * _penalty(order * len(candidate) / reference_words)


def _grams(tokens: Sequence[str], length: int) -> Counter[tuple[str, ...]]:
    grams: Iterable[tuple[str, ...]] = zip(*(tokens[start:] for start in range(length)), strict=False)
    return Counter(grams)


def _information(
    own: Counter[Any], reference: Counter[Any], pooled: Counter[Any], shorter: Counter[Any]
) -> float:
    """Information of the n-grams that the two texts share, in bits."""
    return sum(
        min(own[gram], reference[gram]) * math.log2(shorter[gram[:-1]] / pooled[gram])
        for gram in own
        if gram in reference
    )


def _penalty(ratio: float) -> float:
    return math.exp(_BREVITY * math.log(ratio) ** 2) if ratio < 1.0 else 1.0


FAMILY = Family(CARD, compute)
