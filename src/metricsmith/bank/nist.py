"""NIST: BLEU's precision with n-grams weighted by their information."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch
from metricsmith.bank.ngrams import symbols
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "sentence_nist"]

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
    outputs=(Output("nist", 0.0, None, half=3.0, description="0 no word shared; grows with reference length"),),
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
        ("with one reference nearly every longer n-gram has information 0, so it is close to unigram precision"),
        "weights come from the row itself, not from a corpus, so that a row's number never depends on others",
    ),
    failure_cases=("an exact match of one word scores 0, because that word carries no information",),
    related=("bleu", "rouge1_p", "cider"),
    papers=("Doddington 2002, Automatic evaluation of machine translation quality using n-gram statistics",),
    backend="metricsmith (equal to nltk.translate.nist_score on the same tokens)",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
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
    own, *others = symbols(candidate, *references)
    own_starts: Sequence[int] = range(len(own))
    starts: list[Sequence[int]] = [range(len(text)) for text in others]
    shorter: Mapping[str, int] = {"": sum(map(len, others))}
    precision, reference_words = 0.0, 0
    order = min(ORDER, len(own))
    for length in range(1, order + 1):
        # a longer n-gram is shared only where its beginning is: each length looks at what the last one left
        grams = [own[start : start + length] for start in own_starts if start + length <= len(own)]
        counts = Counter(grams)
        starts = [
            [start for start in kept if text[start : start + length] in counts]
            for text, kept in zip(others, starts, strict=True)
        ]
        shared = [
            Counter([text[start : start + length] for start in kept]) for text, kept in zip(others, starts, strict=True)
        ]
        pooled = shared[0] if len(shared) == 1 else sum(shared, Counter())
        best, best_length = max(
            (_information(counts, found, pooled, shorter), len(text))
            for found, text in zip(shared, others, strict=True)
        )
        precision += best / (len(own) - length + 1)
        reference_words += best_length
        own_starts = [start for start, gram in zip(own_starts, grams, strict=False) if gram in pooled]
        shorter = pooled
    ratio = order * len(own) / reference_words
    return precision * (math.exp(_BREVITY * math.log(ratio) ** 2) if ratio < 1.0 else 1.0)


def _information(
    counts: Mapping[str, int], shared: Mapping[str, int], pooled: Mapping[str, int], shorter: Mapping[str, int]
) -> float:
    """Returns the bits of the n-grams that candidate and reference share, clipped at the smaller count.

    Added up in the candidate's order and with nltk's logarithm, so that references tie where they tie there.
    """
    bits = 0.0
    for gram, count in counts.items():
        if gram in shared:
            before, times = shorter[gram[:-1]], pooled[gram]
            if before != times:
                bits += min(count, shared[gram]) * math.log(before / times, 2)
    return bits
