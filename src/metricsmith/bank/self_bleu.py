"""SelfBLEU inside one output: how much its sentences repeat each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch
from metricsmith.bank.ngrams import symbols
from metricsmith.bank.text import sentences, words
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "self_bleu"]

ORDER = 3
EPSILON = 0.1

CARD = MetricCard(
    name="SelfBLEU",
    kind="bank",
    summary=(
        "Repetition inside one output: the mean BLEU of each of its sentences against all its other "
        "sentences. Needs no reference and no input."
    ),
    formula=(
        "mean over sentences s of BLEU-3(s, the other sentences), uniform weights, an order without a match "
        "counted as .1 of a match (Chen and Cherry's method 1); a sentence sharing no word scores 0"
    ),
    outputs=(
        Output("self_bleu", 0.0, 1.0, False, description="0 no shared words, near 1 sentences that repeat each other"),
    ),
    domains=("general text", "stories", "long-form answers"),
    tasks=("story generation", "summarisation", "dialogue", "long-form generation"),
    best_for=("detecting loops and template-like repetition in long outputs",),
    not_for=(
        "outputs of one sentence",
        "correctness, relevance or fluency",
        "lists in which parallelism is wanted",
    ),
    limits=(
        "undefined (no number) for an output of fewer than two sentences; autometrics-ai 0.1.0 returns 1, "
        "the worst value, for a single sentence",
        ("depends on how sentences and words are split: with NLTK's word tokens the values differ by up to .012"),
        "more sentences offer more chances to match, so long texts score higher",
        "looks inside one output, not across the outputs of a system as its paper does",
    ),
    failure_cases=(
        "a story that repeats its plot in new words looks perfectly diverse",
        "a deliberate refrain counts as a fault",
    ),
    related=("distinct_2", "bleu"),
    papers=(
        "Zhu et al. 2018, Texygen: a benchmarking platform for text generation models",
        "Chen and Cherry 2014, A systematic comparison of smoothing techniques for sentence-level BLEU",
    ),
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score each output by itself."""
    scores = np.array([self_bleu([words(text) for text in sentences(output)]) for output in batch.outputs])
    return dict.fromkeys(outputs, scores)


def self_bleu(tokens: Sequence[Sequence[str]]) -> float:
    """Mean BLEU-3 of each sentence against the others.

    Parameters
    ----------
    tokens : sequence of sequence of str
        k tokenised sentences, none empty.

    Returns
    -------
    float
        In [0, 1]; NaN for fewer than two sentences. Equals the mean of
        ``nltk.translate.bleu_score.sentence_bleu`` with three uniform weights and smoothing method 1.
    """
    if len(tokens) < 2:
        return math.nan
    by_order = _matches_with_others(symbols(*tokens))
    lengths = [len(sentence) for sentence in tokens]
    scores = []
    for index, length in enumerate(lengths):
        matches = [counted[index] for counted in by_order]
        if not matches[0]:
            scores.append(0.0)
            continue
        others = chain(lengths[:index], lengths[index + 1 :])
        closest = min(others, key=lambda other: (abs(other - length), other))
        logs = [math.log((matched or EPSILON) / max(1, length - order)) for order, matched in enumerate(matches)]
        scores.append(math.exp(min(0.0, 1.0 - closest / length) + math.fsum(logs) / ORDER))
    return min(1.0, math.fsum(scores) / len(scores))


def _matches_with_others(texts: Sequence[str]) -> list[list[int]]:
    """Returns for each order each sentence's n-grams, clipped at their largest count in any other sentence."""
    starts: list[Sequence[int]] = [range(len(text)) for text in texts]
    matches = []
    for order in range(1, ORDER + 1):
        counted = [
            Counter([text[start : start + order] for start in kept if start + order <= len(text)])
            for text, kept in zip(texts, starts, strict=True)
        ]
        largest = _two_largest(counted)
        clipped = [
            [count if count < largest[gram][0] else largest[gram][1] for gram, count in counts.items()]
            for counts in counted
        ]
        matches.append([sum(counts) for counts in clipped])
        # a longer n-gram is shared only where its beginning is
        starts = [
            [start for start in kept if largest.get(text[start : start + order], (0, 0))[1]]
            for text, kept in zip(texts, starts, strict=True)
        ]
    return matches


def _two_largest(counted: Sequence[Mapping[str, int]]) -> dict[str, tuple[int, int]]:
    """Returns the two largest counts of each n-gram: a sentence that holds the first is clipped at the second."""
    largest: dict[str, tuple[int, int]] = {}
    for counts in counted:
        for gram, count in counts.items():
            first, second = largest.get(gram, (0, 0))
            if count > first:
                largest[gram] = (count, first)
            elif count > second:
                largest[gram] = (first, count)
    return largest
