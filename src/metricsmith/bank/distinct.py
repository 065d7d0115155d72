"""Distinct-n: the share of n-grams that are not repetitions."""

from __future__ import annotations

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch
from metricsmith.bank.ngrams import symbols
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

ORDERS = (1, 2, 3, 4)

CARD = MetricCard(
    name="Distinct-n",
    kind="bank",
    summary=(
        "Lexical diversity of one output: how many of its words, word pairs, triples or quadruples are "
        "different from each other. Needs no reference and no input."
    ),
    formula="different n-grams / all n-grams of the lower-cased tokens of one output",
    outputs=tuple(
        Output(f"distinct_{order}", description=f"share of different {unit}; 1 nothing is repeated")
        for order, unit in zip(ORDERS, ("tokens", "token pairs", "token triples", "token quadruples"), strict=True)
    ),
    domains=("general text", "dialogue", "stories"),
    tasks=("dialogue", "story generation", "long-form generation", "captioning", "simplification"),
    best_for=(
        "spotting loops, stuttering and stock phrases",
        "comparing outputs of similar length",
    ),
    not_for=(
        "outputs of different length: longer texts repeat more function words",
        "correctness, relevance or fluency",
        "texts that must repeat terms, such as legal or technical ones",
    ),
    limits=(
        "undefined for an output with fewer than n tokens; autometrics-ai 0.1.0 returns 0",
        "the paper pools all responses of a system and divides by tokens; for one output we divide by its "
        "n-grams, as most toolkits do, because 1 would otherwise be out of reach for n above 1",
        "autometrics-ai 0.1.0 keeps case and uses NLTK's tokens: over 60 lower-cased simplifications the "
        "median difference is 0, the largest .03 for single tokens and .003 for longer n-grams",
        "punctuation marks are tokens, and repeated commas lower distinct_1",
    ),
    failure_cases=(
        "a string of random words scores 1",
        "short outputs score near 1 whatever they say",
    ),
    related=("self_bleu", "output_words"),
    papers=("Li et al. 2016, A diversity-promoting objective function for neural conversation models",),
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Tokenise each output once; NaN where it has no n-gram."""
    texts = [symbols(words(output.lower()))[0] for output in batch.outputs]
    return {name: np.array([_share(text, int(name[-1])) for text in texts], dtype=float) for name in outputs}


def _share(text: str, order: int) -> float:
    grams = [text[start : start + order] for start in range(len(text) - order + 1)]
    return len(set(grams)) / len(grams) if grams else float("nan")
