"""CIDEr-D: agreement with the references on the n-grams that are rare in the corpus."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricsmith.bank.base import Family, FloatArray, TextBatch
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["FAMILY", "Corpus", "Vectors", "cider", "document_frequencies"]

ORDER = 4
SIGMA = 6.0

CARD = MetricCard(
    name="CIDEr",
    kind="bank",
    summary=(
        "Consensus with the references on words and phrases of up to four words, each weighted by how rare it "
        "is in the corpus, so that matching what is particular to an item counts most. The CIDEr-D variant."
    ),
    formula=(
        "10 x mean over n = 1 to 4 of the clipped cosine of tf-idf vectors, min(c, r) . r / (|c| |r|), times "
        "exp(-(difference in tokens)^2 / 72); idf of an n-gram is log((N + 1) / max(1, items whose references "
        "have it)) for N items; lower-cased, not stemmed; lengths that neither text has are left out"
    ),
    outputs=(Output("cider", 0.0, 10.0, description="0 no shared n-gram, 10 equal to every reference"),),
    needs=("references",),
    multi_reference="the mean over the references, as in the paper; blank references are ignored",
    domains=("image captioning", "general text", "short descriptions"),
    tasks=("captioning", "data-to-text", "short answers", "headline generation"),
    best_for=(
        "items with several references",
        "telling specific descriptions from generic ones that fit many items",
    ),
    not_for=(
        "long texts: a few words more or less than the reference cost most of the score",
        "a single reference with many good wordings",
        "factual correctness",
    ),
    limits=(
        "depends on a corpus: document frequencies come from the rows that the metric was fitted on, else from "
        "the rows scored together; items are rows with different references",
        "one is added to N, which the paper does not do: n-grams that all items share keep a little weight, "
        "and one item alone still gives its perfect match 10 (all n-grams then weigh the same)",
        "the Gaussian length penalty (sigma 6) brings an output 10 tokens too long below a quarter of its value",
        "averages only the n-gram lengths that the output or the reference has, so that a perfect match "
        "of two words also gives 10; the public caption evaluation code gives it 5",
        "autometrics-ai 0.1.0 takes each row as its own corpus, where every weight is log 1 = 0, and returns 0 "
        "for any output with one reference",
    ),
    failure_cases=(
        "one rare name that is right outweighs several wrong common words",
        "a fluent paraphrase without the references' rare words scores near 0",
    ),
    related=("bleu", "meteor", "rouge_l_f", "nist"),
    papers=("Vedantam et al. 2015, CIDEr: consensus-based image description evaluation",),
)


@dataclass(frozen=True, slots=True)
class Vectors:
    """One text's tf-idf vectors: for each n, the weight of each n-gram, and the Euclidean length.

    `tokens` is the length of the text; n-gram lengths that it is too short for are not there.
    """

    tokens: int
    weights: tuple[Mapping[str, float], ...]
    norms: tuple[float, ...]


class Corpus:
    """Turns texts into vectors by the document frequencies of one corpus.

    Tokens are numbered as they come, and a text is a string with one character per token, so that its
    n-grams are slices.

    Parameters
    ----------
    statistics : mapping
        What `document_frequencies` returned.
    """

    def __init__(self, statistics: Mapping[str, Any]) -> None:
        self._numbers: dict[str, str] = {}
        self._rare = math.log(max(statistics["documents"], 1) + 1)  # an empty corpus counts as one item
        self._known = {
            self._symbols(gram.split(" ")): self._rare - math.log(count)
            for gram, count in statistics["frequencies"].items()
        }

    def vectors(self, tokens: Sequence[str]) -> Vectors:
        """The vectors of a text, n = 1 to 4."""
        text = self._symbols(tokens)
        idf, rare = self._known.get, self._rare
        weights, norms = [], []
        for order in range(1, min(ORDER, len(text)) + 1):
            counts = Counter([text[start : start + order] for start in range(len(text) - order + 1)])
            weighted = {gram: count * idf(gram, rare) for gram, count in counts.items()}
            weights.append(weighted)
            norms.append(math.sqrt(sum([weight * weight for weight in weighted.values()])))
        return Vectors(len(text), tuple(weights), tuple(norms))

    def _symbols(self, tokens: Sequence[str]) -> str:
        numbers = self._numbers
        return "".join([numbers.setdefault(token, chr(len(numbers))) for token in tokens])


def compute(batch: TextBatch, outputs: Sequence[str]) -> Mapping[str, FloatArray]:
    """Score by the batch's statistics, or by the batch's own references if it has none."""
    corpus = Corpus(batch.statistics or document_frequencies(batch))
    texts = {text for references in batch.references for text in references if text.strip()}
    known = {text: corpus.vectors(words(text.lower())) for text in texts}
    scores = []
    for output, references in zip(batch.outputs, batch.references, strict=True):
        vectors = corpus.vectors(words(output.lower()))
        scores.append(cider(vectors, [known[text] for text in references if text in known]))
    return dict.fromkeys(outputs, np.array(scores, dtype=float))


def cider(output: Vectors, references: Sequence[Vectors]) -> float:
    """CIDEr-D in [0, 10], the mean over references; NaN without references."""
    if not references:
        return math.nan
    return 10.0 * math.fsum(_similarity(output, reference) for reference in references) / len(references)


def _similarity(output: Vectors, reference: Vectors) -> float:
    cosines = []
    for order in range(min(len(output.norms), len(reference.norms))):
        ours, theirs = output.weights[order], reference.weights[order]
        shared = ours.keys() & theirs.keys()
        product = math.fsum([min(ours[gram], theirs[gram]) * theirs[gram] for gram in shared])
        cosines.append(product / (output.norms[order] * reference.norms[order]))
    orders = max(len(output.norms), len(reference.norms))
    penalty = math.exp(-((output.tokens - reference.tokens) ** 2) / (2 * SIGMA**2))
    return min(1.0, math.fsum(cosines) / orders) * penalty


def document_frequencies(batch: TextBatch) -> dict[str, Any]:
    """In how many items each n-gram of the references occurs.

    Rows with the same references (outputs of several systems for one input) are one item. N-grams of one
    item only are left out: they weigh as much as n-grams that no item has.

    Returns
    -------
    dict
        ``documents``, the number of items, and ``frequencies``, from n-grams (tokens joined by spaces) to
        the number of items that have them, at least 2.
    """
    documents = {frozenset(text for text in references if text.strip()) for references in batch.references}
    documents.discard(frozenset())
    counts: Counter[str] = Counter()
    for document in documents:
        tokenised = [words(text.lower()) for text in document]
        counts.update(
            {gram for tokens in tokenised for order in range(1, ORDER + 1) for gram in _grams(tokens, order)}
        )
    frequencies = {gram: count for gram, count in sorted(counts.items()) if count > 1}
    return {"documents": len(documents), "frequencies": frequencies}


def _grams(tokens: Sequence[str], order: int) -> list[str]:
    if order == 1:
        return list(tokens)
    return list(map(" ".join, zip(*(tokens[start:] for start in range(order)), strict=False)))


FAMILY = Family(CARD, compute, document_frequencies)
