"""chrF and chrF++ as sacrebleu defines them, counted for all rows at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Scores, TextBatch, pair_up
from metricsmith.bank.ngrams import IntArray, ngram_totals, shared_ngrams, symbols
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

CHARACTER_ORDER = 6
WORD_ORDER = 2
BETA = 2.0
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

CARD = MetricCard(
    name="chrF",
    kind="bank",
    summary=(
        "F-score of character n-grams against a reference, recall weighted twice as much as precision; "
        "chrF++ adds word unigrams and bigrams. Needs no tokeniser and forgives inflection."
    ),
    formula=(
        "100 x 5PR / (4P + R), P and R the mean precision and recall over character n-grams of 1 to 6 "
        "(spaces removed), for chrf_pp also over word n-grams of 1 and 2 (a mark at either end of a word "
        "split off); lengths that one of the texts does not reach are left out; case kept"
    ),
    outputs=(
        Output("chrf", 0.0, 100.0, description="characters only (word order 0)"),
        Output("chrf_pp", 0.0, 100.0, description="chrF++: characters and words (word order 2)"),
    ),
    needs=("references",),
    multi_reference="the reference with the highest F-score; blank references are ignored",
    domains=("machine translation", "any language", "morphologically rich languages"),
    tasks=("translation", "low-resource text generation", "transliteration", "simplification"),
    best_for=(
        "languages with rich inflection or without spaces between words, Chinese and Japanese included",
        "single sentences, where BLEU is too coarse",
        "recall of reference content",
    ),
    not_for=("meaning-preserving paraphrase in other words", "factual correctness", "fluency at text level"),
    limits=(
        "recall counts more, so padding costs less than omission",
        ("unrelated texts of one language still share letters and short n-grams: 14 to 28 is a floor, not merit"),
    ),
    failure_cases=(
        "a 16-word reference without its 'not' still scores 93",
        "the words of the reference in random order still score above 50",
    ),
    related=("bleu", "rouge1_r", "charcut", "ter"),
    papers=(
        "Popović 2015, chrF: character n-gram F-score for automatic MT evaluation",
        "Popović 2017, chrF++: words helping character n-grams",
    ),
    backend="sacrebleu 2 (definition; counts by metricsmith)",
    backend_license="Apache-2.0",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Count all pairs at once; the best reference counts."""
    pairs = pair_up(batch)
    known = {text: "".join(text.split()) for text in {*pairs.outputs, *pairs.references}}
    candidates = [known[text] for text in pairs.outputs]
    targets = [known[text] for text in pairs.references]
    counted = _statistics(candidates, targets, CHARACTER_ORDER)
    scores = {}
    if "chrf" in outputs:
        scores["chrf"] = pairs.best(_f_score(*counted))
    if "chrf_pp" in outputs:
        split = {text: _words(text) for text in known}
        rows = [
            symbols(split[output], split[reference])
            for output, reference in zip(pairs.outputs, pairs.references, strict=True)
        ]
        of_words = _statistics([row[0] for row in rows], [row[1] for row in rows], WORD_ORDER)
        both = (np.hstack(columns) for columns in zip(counted, of_words, strict=True))
        scores["chrf_pp"] = pairs.best(_f_score(*both))
    return scores


def _statistics(candidates: Sequence[str], targets: Sequence[str], order: int) -> tuple[IntArray, IntArray, IntArray]:
    """Returns shared n-grams, n-grams of the candidate and of the target: each (m, order)."""
    return (
        shared_ngrams(list(zip(candidates, targets, strict=True)), order),
        ngram_totals([len(text) for text in candidates], order),
        ngram_totals([len(text) for text in targets], order),
    )


def _f_score(shared: IntArray, candidate: IntArray, target: IntArray) -> FloatArray:
    """Returns F-beta of the mean precision and recall over the orders that both texts reach: (m, orders) to (m,)."""
    reached = (candidate > 0) & (target > 0)
    orders = np.maximum(reached.sum(axis=1), 1)
    precision, recall = (
        _row_sums(np.where(reached, shared / np.maximum(size, 1), 0.0)) / orders for size in (candidate, target)
    )
    below = BETA**2 * precision + recall
    return np.asarray(100.0 * (1.0 + BETA**2) * precision * recall / np.where(below > 0.0, below, 1.0))


def _row_sums(values: FloatArray) -> FloatArray:
    """Returns sums over columns, added from left to right: a row's sum is the same alone and in a batch."""
    total = np.zeros(len(values))
    for column in values.T:
        total += column
    return total


def _words(text: str) -> list[str]:
    """Returns white-space words; one punctuation mark at a word's end, or else at its start, stands alone."""
    split: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            split += (word[:-1], word[-1])
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            split += (word[0], word[1:])
        else:
            split.append(word)
    return split
