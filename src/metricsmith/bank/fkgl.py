"""Flesch-Kincaid grade level: the years of school that an English text asks for."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch
from metricsmith.bank.length import counted_words
from metricsmith.bank.text import sentences
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "flesch_kincaid_grade", "syllables"]

LOWEST = 0.39 + 11.8 - 15.59

CARD = MetricCard(
    name="FKGL",
    kind="bank",
    summary=(
        "Flesch-Kincaid grade level: readability of English from the length of sentences and words. Lower is "
        "simpler. Needs no reference and no input."
    ),
    formula=(
        ".39 words / sentences + 11.8 syllables / words - 15.59; syllables are those of an American English "
        "hyphenation dictionary"
    ),
    outputs=(
        Output("fkgl", LOWEST, None, False, half=12.0, description="grade of a US school; 8.6 maps to a score of .5"),
    ),
    domains=("plain language", "text simplification", "education", "public information", "health"),
    tasks=("simplification", "plain-language rewriting", "summarisation for lay readers"),
    best_for=(
        "checking that English text became simpler: shorter sentences, shorter words",
        "spotting jargon and bureaucratic style in longer passages",
    ),
    not_for=(
        "languages other than English",
        "single short sentences, where one long word moves the grade by years",
        "whether the text is correct, complete or coherent",
    ),
    limits=(
        "words of other languages and scripts get a syllable or two each, so grades for them mean nothing",
        "undefined for a text without words; the lowest value is -3.4, for sentences of one one-syllable word",
        "hyphenation finds fewer syllables than a pronouncing dictionary does in words such as 'idea'",
        "textstat 0.7.3, which autometrics-ai 0.1.0 calls, rounds both ratios to .1 before it weighs them: "
        "over 60 simplifications its grades lie .3 away in the median and .7 at most; so rounded, 54 of ours "
        "would be equal",
    ),
    failure_cases=(
        "cutting a sentence into fragments lowers the grade and the readability",
        "short rare words ('ewe', 'alb') look easy",
    ),
    related=("output_words", "sari", "length_ratio"),
    papers=("Kincaid et al. 1975, Derivation of new readability formulas for Navy enlisted personnel",),
    backend="metricsmith, hyphenation by pyphen 0.16",
    backend_license="MPL-1.1, LGPL-2.1 or GPL-2.0 at choice (pyphen)",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Grade each output by itself."""
    return dict.fromkeys(outputs, np.array([flesch_kincaid_grade(output) for output in batch.outputs], dtype=float))


def flesch_kincaid_grade(text: str) -> float:
    """Returns the grade of `text`, at least -3.4; NaN if it has no word.

    Examples
    --------
    >>> round(flesch_kincaid_grade("The cat sat. It ate."), 3)  # .39 * 5 / 2 + 11.8 * 5 / 5 - 15.59
    -2.815
    """
    spoken = [tokens for sentence in sentences(text) if (tokens := counted_words(sentence))]
    if not spoken:
        return math.nan
    counts = [syllables(word) for tokens in spoken for word in tokens]
    # the paper's formula with both ratios as their excess over 1: rounding cannot push it below -3.4
    return LOWEST + 0.39 * (len(counts) / len(spoken) - 1.0) + 11.8 * (sum(counts) / len(counts) - 1.0)


@lru_cache(maxsize=65536)
def syllables(word: str) -> int:
    """Returns the syllables in the parts of `word` by American English hyphenation, at least 1."""
    parts = _letters(word.lower().replace("'", "").replace("’", ""))
    return max(1, sum(len(_hyphenation().positions(part)) + 1 for part in parts))


_letters = re.compile(r"[^\W\d_]+").findall


@lru_cache(maxsize=1)
def _hyphenation() -> Any:
    from pyphen import Pyphen

    return Pyphen(lang="en_US")
