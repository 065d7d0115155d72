"""Length of the output: the trivial baseline that every other metric has to beat."""

from __future__ import annotations

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Scores, TextBatch
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "counted_words"]

_NEGATIONS = frozenset({"n't", "n’t"})

CARD = MetricCard(
    name="Output length",
    kind="bank",
    summary=(
        "How long the output is, in characters and in words. Says nothing about quality by itself; raters "
        "often favour one end, so it is the baseline beside every induced metric."
    ),
    formula=(
        "characters: Unicode code points, white space included; words: tokens that begin with a letter or "
        "digit, English clitics (n't, 's) not counted, each Han or Kana character as one"
    ),
    outputs=(
        Output("output_characters", 0.0, None, False, half=500.0, description="characters of the output"),
        Output("output_words", 0.0, None, False, half=100.0, description="words of the output"),
    ),
    domains=("general text", "any domain"),
    tasks=("any task", "summarisation", "simplification", "dialogue", "long-form answers"),
    best_for=(
        "a baseline: a metric that does no better than length has learnt little",
        "detecting padding, verbosity and raters' preference for long or short outputs",
    ),
    not_for=("judging content of any kind",),
    limits=(
        "neither end is good in general; lower counts as better by convention, and a fitted metric takes the "
        "direction from the ratings",
        "counts of different scripts do not compare",
    ),
    failure_cases=("an output padded with repetitions reads as informative where raters like length",),
    related=("length_ratio", "fkgl", "distinct_1"),
    papers=("Dubois et al. 2024, Length-controlled AlpacaEval: a simple way to debias automatic evaluators",),
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Count only what `outputs` names."""
    scores: dict[str, FloatArray] = {}
    if "output_characters" in outputs:
        scores["output_characters"] = np.array([len(text) for text in batch.outputs], dtype=np.float64)
    if "output_words" in outputs:
        scores["output_words"] = np.array([len(counted_words(text)) for text in batch.outputs], dtype=np.float64)
    return scores


def counted_words(text: str) -> list[str]:
    """The tokens of `text` that a person would count as words: no marks, no English clitics (``'s``, ``n't``).

    Examples
    --------
    >>> counted_words("Well... it isn't 5%!")
    ['Well', 'it', 'is', '5']
    """
    tokens = [token for token in words(text) if token[0].isalnum()]
    if "'" not in text and "’" not in text:
        return tokens
    return [token for token in tokens if token.lower() not in _NEGATIONS]
