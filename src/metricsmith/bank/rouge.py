"""ROUGE-1, -2, -L and -Lsum as rouge-score computes them, with letters of every script."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Pairs, Scores, TextBatch, pair_up
from metricsmith.bank.ngrams import shared_ngrams, symbols
from metricsmith.bank.porter import stem
from metricsmith.bank.text import finder
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "plain_tokens", "rouge", "rouge_tokens"]

_TYPES = {
    "rouge1": "unigrams",
    "rouge2": "bigrams",
    "rouge_l": "longest common subsequence of the texts",
    "rouge_lsum": "union of the longest common subsequences of their lines",
}
_PARTS = {"p": "precision", "r": "recall", "f": "F1"}

# Runs of ASCII letters and digits, as rouge-score has them; letters of scripts other than Latin, which
# rouge-score would drop, follow as runs, Han and Kana as single characters.
_TOKEN = r"""
    [a-z0-9]+
  | [\p{Han}\p{Hiragana}\p{Katakana}\u30FC]
  | [\p{L}--[\p{Latin}\p{Common}\p{Inherited}\p{Han}\p{Hiragana}\p{Katakana}]]
    [[\p{L}\p{M}\p{Nd}]--[\p{Latin}0-9\p{Han}\p{Hiragana}\p{Katakana}]]*
"""

CARD = MetricCard(
    name="ROUGE",
    kind="bank",
    summary=(
        "Word overlap with a reference, as precision, recall and F1: single words (ROUGE-1), word pairs "
        "(ROUGE-2), the longest common word sequence of the whole text (ROUGE-L) or line by line "
        "(ROUGE-Lsum)."
    ),
    formula=(
        "shared n-grams (or the length of the longest common subsequence) / n-grams of the output = p; the "
        "same / n-grams of the reference = r; f = 2pr / (p + r); lower-cased, marks dropped, Porter stems of "
        "words longer than 3 letters; Lsum splits at line breaks"
    ),
    outputs=tuple(
        Output(f"{kind}_{part}", description=f"{meaning} of {unit}")
        for kind, unit in _TYPES.items()
        for part, meaning in _PARTS.items()
    ),
    needs=("references",),
    multi_reference=(
        "for each type the reference with the highest F1, the first of equals; p, r and f come from that one "
        "reference; blank references are ignored"
    ),
    domains=("summarisation", "general text", "news"),
    tasks=("summarisation", "headline generation", "data-to-text", "simplification", "long-form answers"),
    best_for=(
        "coverage: recall shows how much of the reference's content is there",
        "precision shows padding and invented material when the reference is complete",
        "ROUGE-2 and ROUGE-L for wording and order, ROUGE-1 for content words",
    ),
    not_for=(
        "abstractive outputs that use other words",
        "factual consistency, coherence or fluency",
        "dialogue and creative writing",
    ),
    limits=(
        "accented Latin letters separate words, as in rouge-score ('café' counts as 'caf')",
        "stemming is for English",
        "recall grows with output length, precision falls: read them together",
        "rouge_lsum equals rouge_l unless the texts have line breaks",
        "for text without any Latin letter rouge-score returns 0; here letters of other scripts count",
    ),
    failure_cases=(
        "swapping subject and object leaves ROUGE-1 at 1",
        "a list of the source's key words beats a fluent summary on ROUGE-1 recall",
    ),
    related=("bleu", "update_rouge1", "meteor", "chrf"),
    papers=("Lin 2004, ROUGE: a package for automatic evaluation of summaries",),
    backend="rouge-score 0.1.2 (definition), rapidfuzz, Porter stemmer of nltk 3",
    backend_license="Apache-2.0",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """ROUGE with stemming; only the types that `outputs` names."""
    return rouge(batch, outputs, rouge_tokens)


def rouge(batch: TextBatch, outputs: Sequence[str], tokenise: Callable[[str], list[str]]) -> Mapping[str, FloatArray]:
    """The outputs of this card that `outputs` names, for texts as `tokenise` splits them, each text once."""
    pairs = pair_up(batch)
    kinds = list(dict.fromkeys(name.rsplit("_", 1)[0] for name in outputs))
    tokens = {text: tokenise(text) for text in {*pairs.outputs, *pairs.references}}
    rows = [
        symbols(tokens[output], tokens[reference])
        for output, reference in zip(pairs.outputs, pairs.references, strict=True)
    ]
    sizes = np.array([(len(left), len(right)) for left, right in rows], dtype=float).reshape(-1, 2)
    scores: dict[str, FloatArray] = {}
    for kind in kinds:
        if kind == "rouge_l":
            scores |= _parts(kind, pairs, _subsequences(rows), sizes)
        elif kind == "rouge_lsum":
            shared = _subsequences(rows)
            for index, texts in enumerate(zip(pairs.outputs, pairs.references, strict=True)):
                if any("\n" in text for text in texts):  # without line breaks it is rouge_l
                    shared[index] = _union_matches(*([tokenise(line) for line in text.split("\n")] for text in texts))
            scores |= _parts(kind, pairs, shared, sizes)
        else:
            order = int(kind[-1])
            shared = shared_ngrams(rows, order)[:, -1].astype(float)
            scores |= _parts(kind, pairs, shared, np.maximum(sizes - (order - 1), 0.0))
    return {name: scores[name] for name in outputs}


def _parts(kind: str, pairs: Pairs, shared: FloatArray, sizes: FloatArray) -> dict[str, FloatArray]:
    """Returns precision, recall and F1 of each row, from the pair with the highest F1."""
    precision, recall = (shared / np.maximum(size, 1) for size in sizes.T)
    total = precision + recall
    f1 = 2 * precision * recall / np.where(total > 0, total, 1)
    best = pairs.best_index(f1)
    return {
        f"{kind}_{part}": np.array([column[index] if index >= 0 else np.nan for index in best])
        for part, column in (("p", precision), ("r", recall), ("f", f1))
    }


_find_ascii_tokens = re.compile("[a-z0-9]+").findall


def rouge_tokens(text: str) -> list[str]:
    """Returns lower-cased words without marks, those longer than three characters stemmed.

    Equal to rouge-score's default tokeniser with stemming, except that letters of scripts other than Latin
    are kept.
    """
    return [stem(token) if len(token) > 3 else token for token in plain_tokens(text)]


def plain_tokens(text: str) -> list[str]:
    """Returns the words of `rouge_tokens` without stemming."""
    lowered = text.lower()
    return _find_ascii_tokens(lowered) if lowered.isascii() else finder(_TOKEN)(lowered)


def _subsequences(rows: Sequence[tuple[str, ...]]) -> FloatArray:
    """Returns the length of the longest common subsequence of each pair: shape (m,)."""
    from rapidfuzz.distance import LCSseq
    from rapidfuzz.process import cpdist

    left, right = [row[0] for row in rows], [row[1] for row in rows]
    return np.asarray(cpdist(left, right, scorer=LCSseq.similarity, dtype=np.int64), dtype=float)


def _union_matches(candidate: Sequence[Sequence[str]], reference: Sequence[Sequence[str]]) -> int:
    """Reference words in the union of its lines' subsequences with each candidate line (Lin 2004, 3.2).

    No word counts more often than it occurs in either text, as in ROUGE 1.5.5.
    """
    left = Counter(word for line in candidate for word in line)
    matches = 0
    for line in reference:
        covered = {place for other in candidate for place in common_places(line, other)}
        for word in (line[place] for place in sorted(covered)):
            if left[word] > 0:
                left[word] -= 1
                matches += 1
    return matches


def common_places(line: Sequence[str], other: Sequence[str]) -> list[int]:
    """Returns the places in `line` of one longest common subsequence with `other`, the one rouge-score reads out.

    Rows of the length table are bit vectors over `line`, one for each start of `other`: a zero bit is a
    place where the length grows (Hyyrö 2004, Bit-parallel LCS-length computation revisited).
    """
    where: dict[str, int] = defaultdict(int)
    for place, word in enumerate(line):
        where[word] |= 1 << place
    full = (1 << len(line)) - 1
    table = [full]
    for word in other:
        row = table[-1]
        shared = row & where.get(word, 0)
        table.append(((row + shared) | (row - shared)) & full)
    places = []
    place, start = len(line), len(other)
    while place and start:
        if line[place - 1] == other[start - 1]:
            place, start = place - 1, start - 1
            places.append(place)
        elif table[start] >> (place - 1) & 1:  # this word of `line` adds nothing
            place -= 1
        else:
            start -= 1
    return places[::-1]
