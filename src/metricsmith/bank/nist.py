"""NIST: BLEU's precision with n-grams weighted by how informative they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np

from metricsmith.bank.base import Family, FloatArray, TextBatch
from metricsmith.bank.ngrams import symbols
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
    own, *others = symbols(candidate, *references)
    starts: list[Sequence[int]] = [range(len(text)) for text in (own, *others)]
    shorter: Mapping[str, int] = {"": sum(map(len, others))}
    precision, reference_words = 0.0, 0
    order = min(ORDER, len(own))
    for length in range(1, order + 1):
        # a longer n-gram is shared only where its beginning is: each length looks at what the last one left
        counts = _count(own, starts[0], length)
        shared = [_count(text, kept, length, counts) for text, kept in zip(others, starts[1:], strict=True)]
        pooled = shared[0] if len(shared) == 1 else sum(shared, Counter())
        bits = {gram: math.log2(shorter[gram[:-1]] / count) for gram, count in pooled.items()}
        best, best_length = max(
            (sum(min(counts[gram], count) * bits[gram] for gram, count in grams.items()), len(text))
            for grams, text in zip(shared, others, strict=True)
        )
        precision += best / (len(own) - length + 1)
        reference_words += best_length
        starts = [
            [start for start in kept if text[start : start + length] in pooled]
            for text, kept in zip((own, *others), starts, strict=True)
        ]
        shorter = pooled
    return precision * _penalty(order * len(own) / reference_words)


def _count(text: str, starts: Iterable[int], length: int, known: Container[str] | None = None) -> Counter[str]:
    """How often each n-gram of `length` symbols occurs at `starts`; only those in `known` if given."""
    grams = [text[start : start + length] for start in starts if start + length <= len(text)]
    return Counter(grams if known is None else [gram for gram in grams if gram in known])


def _penalty(ratio: float) -> float:
    return math.exp(_BREVITY * math.log(ratio) ** 2) if ratio < 1.0 else 1.0


FAMILY = Family(CARD, compute)
