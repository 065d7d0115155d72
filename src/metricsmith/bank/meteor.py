"""METEOR without a thesaurus: words aligned by equal form, then by equal stem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.bank.porter import stem
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "meteor"]

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5

CARD = MetricCard(
    name="METEOR (exact and stem)",
    kind="bank",
    summary=(
        "Aligns the words of output and reference by form and by stem, then takes a recall-weighted F-score "
        "and lowers it when the matched words come in many separate pieces."
    ),
    formula=(
        "F (1 - .5 (chunks / matches)^3) with F = P R / (.9 P + .1 R); a chunk is a run of matches adjacent "
        "in both texts; lower-cased; no penalty when every word of both texts matches in one chunk"
    ),
    outputs=(Output("meteor", description="0 no word or stem shared, 1 equal up to case and stems"),),
    needs=("references",),
    multi_reference="the highest value over the references; blank references are ignored",
    domains=("machine translation", "general text", "English"),
    tasks=("translation", "captioning", "data-to-text", "question answering"),
    best_for=("sentence-level scoring in which recall of content words and word order both matter",),
    not_for=("languages other than English for the stem stage", "long documents", "factual correctness"),
    limits=(
        "no WordNet stage, because it would need a download: synonyms do not match, so values lie below "
        "those of the full metric",
        "the Porter stemmer knows English only; other languages match by exact form",
        "the alignment is greedy from the end of the text, not the one with fewest crossings",
        "marks are tokens of their own ('cat.' matches 'cat'); autometrics-ai 0.1.0 splits at white space "
        "only: on 60 text simplifications the values differ by .052 on average and .197 at most",
        "texts that match entirely and in order score 1; nltk leaves a penalty of .5 / words^3",
    ),
    failure_cases=(
        "'unhappy' and 'sad' do not match, 'general' and 'generate' share a stem and do",
        "a removed 'not' costs one unmatched word",
    ),
    related=("rouge1_r", "chrf", "gleu", "ter"),
    papers=(
        "Banerjee and Lavie 2005, METEOR: an automatic metric for MT evaluation",
        "Lavie and Agarwal 2007, METEOR: high levels of correlation with human judgments",
    ),
    backend="metricsmith, Porter stemmer of nltk 3",
    backend_license="Apache-2.0",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Tokenise and stem each text once; the best reference counts."""
    pairs = pair_up(batch)
    tokens = {text: words(text.lower()) for text in {*pairs.outputs, *pairs.references}}
    values = [
        meteor(tokens[output], tokens[reference])
        for output, reference in zip(pairs.outputs, pairs.references, strict=True)
    ]
    return dict.fromkeys(outputs, pairs.best(np.array(values, dtype=float)))


def meteor(candidate: Sequence[str], reference: Sequence[str]) -> float:
    """METEOR of two lower-cased token lists.

    Returns
    -------
    float
        In [0, 1]; 0 if no word matches. Equals ``nltk.translate.meteor_score`` with an empty thesaurus,
        except that two texts that match entirely and in order score 1, as in the authors' own program from
        version 1.3 on (nltk keeps a penalty of .5 / words^3).
    """
    aligned = align(candidate, reference)
    matches = len(aligned)
    if not matches:
        return 0.0
    precision, recall = matches / len(candidate), matches / len(reference)
    f_mean = precision * recall / (ALPHA * precision + (1.0 - ALPHA) * recall)
    chunks = 1 + sum(later != (here[0] + 1, here[1] + 1) for here, later in pairwise(aligned))
    if chunks == 1 and precision == recall == 1.0:
        return 1.0
    return f_mean * (1.0 - GAMMA * float((chunks / matches) ** BETA))


def align(candidate: Sequence[str], reference: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs (place in candidate, place in reference), by place in the candidate.

    Equal words first, then equal stems among the rest; from the last word backwards, each takes the last
    place that is still free.
    """
    exact, candidate_rest, reference_rest = _match(list(enumerate(candidate)), list(enumerate(reference)))
    stemmed, _, _ = _match(
        [(place, stem(word)) for place, word in candidate_rest],
        [(place, stem(word)) for place, word in reference_rest],
    )
    return sorted(exact + stemmed)


_Placed = list[tuple[int, str]]


def _match(candidate: _Placed, reference: _Placed) -> tuple[list[tuple[int, int]], _Placed, _Placed]:
    free: dict[str, list[int]] = defaultdict(list)
    for place, word in reference:
        free[word].append(place)
    pairs, unmatched = [], []
    for place, word in reversed(candidate):
        places = free.get(word)
        if places:
            pairs.append((place, places.pop()))
        else:
            unmatched.append((place, word))
    left = sorted((place, word) for word, places in free.items() for place in places)
    return pairs, unmatched[::-1], left
