"""Sentence BLEU as sacrebleu defines it, counted for all rows at once."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Scores, TextBatch
from metricsmith.bank.ngrams import ngram_totals, shared_ngrams, symbols
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "bleu_scores", "compute", "words_13a"]

CARD = MetricCard(
    name="BLEU",
    kind="bank",
    summary=(
        "N-gram precision against one or more references: which share of the output's words and two- to "
        "four-word phrases occurs in a reference, with a penalty for outputs that are too short."
    ),
    formula=(
        "100 x BP x exp(mean over n = 1..4 of log p_n); p_n is the clipped n-gram precision, BP = "
        "exp(min(0, 1 - r/c)) for output length c and closest reference length r; p_n = 1 / (2^k x count) "
        "for the k-th order without a match; n stops at the output's length; tokeniser 13a, case kept"
    ),
    outputs=(Output("bleu", 0.0, 100.0, description="0 no word shared, 100 equal to a reference"),),
    needs=("references",),
    multi_reference=(
        "an n-gram counts up to its largest count in any one reference; the length penalty takes the "
        "reference closest in length (the shorter of two equally close); order does not matter, blank "
        "references are ignored"
    ),
    domains=("machine translation", "general text"),
    tasks=("translation", "data-to-text", "code and template generation", "simplification"),
    best_for=(
        "comparing systems that should reproduce reference wording, averaged over many rows",
        "constrained generation with several references per source",
    ),
    not_for=(
        "judging a single free-form answer, dialogue or story",
        "adequacy or factual correctness",
        "Chinese, Japanese or Thai: tokeniser 13a leaves such a sentence whole, prefer chrf",
    ),
    limits=(
        "on one short sentence mostly noise: a single missing four-gram moves it by many points",
        "synonyms and paraphrases count as errors",
        "rewards staying close to the source where source and reference overlap, as in simplification",
        "outputs of fewer than four tokens are scored on the orders they have, so that an exact match gets "
        "100; corpus BLEU would give them 0",
    ),
    failure_cases=(
        "a fluent, correct paraphrase below 10",
        "a 16-word reference without its 'not' at 83",
    ),
    related=("ibleu", "self_bleu", "chrf", "gleu", "nist"),
    papers=(
        "Papineni et al. 2002, BLEU: a method for automatic evaluation of machine translation",
        "Post 2018, A call for clarity in reporting BLEU scores",
    ),
    backend="metricsmith (equal to sacrebleu 2)",
)

ORDER = 4


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score every row against all its references."""
    return dict.fromkeys(outputs, bleu_scores(batch.outputs, batch.references))


def bleu_scores(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> FloatArray:
    """Sentence BLEU with effective order and exponential smoothing.

    Parameters
    ----------
    outputs : sequence of str
        n texts; an empty one scores 0.
    references : sequence of sequence of str
        The references of each; blank ones are ignored.

    Returns
    -------
    float array (n,)
        In [0, 100]; NaN for a row whose references are all blank. Equals sacrebleu's
        ``BLEU(effective_order=True)``, and for outputs of four tokens or more its plain ``BLEU()``.
    """
    tokens = [
        [words_13a(output), *(words_13a(text) for text in texts if text.strip())]
        for output, texts in zip(outputs, references, strict=True)
    ]
    scored = [index for index, row in enumerate(tokens) if len(row) > 1]
    matches = shared_ngrams([symbols(*tokens[index]) for index in scored], ORDER).tolist()
    totals = ngram_totals([len(tokens[index][0]) for index in scored], ORDER).tolist()
    scores = np.full(len(tokens), np.nan)
    for index, matched, total in zip(scored, matches, totals, strict=True):
        candidate, *others = map(len, tokens[index])
        closest = min(others, key=lambda length: (abs(length - candidate), length))
        scores[index] = _bleu(matched, total, candidate, closest)
    return scores


def _bleu(matches: Sequence[int], totals: Sequence[int], length: int, reference_length: int) -> float:
    if not matches[0]:
        return 0.0
    logs, halving = [], 1.0
    for matched, total in zip(matches, totals, strict=True):
        if total == 0:
            break
        if matched == 0:
            halving *= 2.0
        logs.append(math.log(100.0 * (matched or 1.0 / halving) / total))
    brevity = math.exp(min(0.0, 1.0 - reference_length / length))
    # a product of four logs may end a rounding error above 100
    return min(100.0, brevity * math.exp(sum(logs) / len(logs)))


def words_13a(text: str) -> list[str]:
    """Tokens as mteval-v13a, the scorer of the WMT campaigns, makes them; equal to sacrebleu's ``13a``."""
    return list(_words_13a(text))


# BLEU and iBLEU read the same texts.
@lru_cache(maxsize=2048)
def _words_13a(text: str) -> tuple[str, ...]:
    line = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in line:
        for entity, mark in _ENTITIES.items():
            line = line.replace(entity, mark)
    tokens: list[str] = []
    for piece in _part_marks(r" \1 ", line).split():
        tokens += [piece] if piece.isalnum() else _part_stops(piece)
    return tuple(tokens)


@lru_cache(maxsize=65536)
def _part_stops(piece: str) -> tuple[str, ...]:
    """Part full stops and commas unless they stand between digits, and a hyphen after a digit.

    No rule looks beyond white space, so that pieces between white space can be treated, and remembered, alone.
    """
    line = f" {piece} "
    for pattern, replacement in _STOP_RULES:
        line = pattern.sub(replacement, line)
    return tuple(line.split())


_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_part_marks = re.compile(r"([!-&(-+:-@/\[-`{-~])").sub  # all ASCII marks but apostrophe . , -
_STOP_RULES = (
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
