"""CIDEr-D: agreement with the references on the n-grams that are rare in the corpus."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Scores, TextBatch, pair_up
from metricsmith.bank.ngrams import IntArray, number_grams
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "document_frequencies"]

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
class Entries:
    """The tf-idf vectors of t texts for one n: one entry for each text and different n-gram in it.

    Entries are sorted by text, then by where the n-gram first stands, so that sums over a text never depend
    on the other texts. `keys` holds the text and n-gram of an entry; `starts` and `sizes`, shape (t,), the places
    of a text's entries; `norms`, shape (t,), are the vectors' Euclidean lengths, 0 without n-grams.
    """

    keys: IntArray
    weights: FloatArray
    starts: IntArray
    sizes: IntArray
    norms: FloatArray
    different: int

    def products(self, outputs: IntArray, references: IntArray) -> FloatArray:
        """Clipped products min(c, r) . r of m pairs of texts: shape (m,)."""
        sizes = self.sizes[outputs]
        pairs = np.repeat(np.arange(len(outputs)), sizes)
        ours = np.arange(len(pairs)) + np.repeat(self.starts[outputs] - (np.cumsum(sizes) - sizes), sizes)
        wanted = self.keys[ours] + (references - outputs)[pairs] * self.different  # the reference's, same n-gram
        order = np.argsort(self.keys)
        found = np.searchsorted(self.keys, wanted, sorter=order)
        theirs = order[np.minimum(found, len(order) - 1)]
        shared = self.keys[theirs] == wanted
        left, right = self.weights[ours[shared]], self.weights[theirs[shared]]
        products = np.minimum(left, right) * right
        return np.asarray(np.bincount(pairs[shared], products, minlength=len(outputs)), dtype=np.float64)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score by the batch's statistics, or by the batch's own references if it has none."""
    statistics = batch.statistics or document_frequencies(batch)
    pairs = pair_up(batch)
    texts = list(dict.fromkeys([*pairs.outputs, *pairs.references]))
    place = {text: index for index, text in enumerate(texts)}
    left = np.array([place[text] for text in pairs.outputs], dtype=np.int64)
    right = np.array([place[text] for text in pairs.references], dtype=np.int64)
    tokens = [words(text.lower()) for text in texts]
    cosines, lengths = np.zeros(len(left)), np.zeros(len(left))
    for entries in _vectors(tokens, statistics):
        norms = entries.norms[left] * entries.norms[right]
        cosines += entries.products(left, right) / np.where(norms > 0, norms, 1.0)
        lengths += (entries.norms[left] > 0) | (entries.norms[right] > 0)
    penalties = [
        math.exp(-((len(tokens[output]) - len(tokens[reference])) ** 2) / (2 * SIGMA**2))
        for output, reference in zip(left.tolist(), right.tolist(), strict=True)
    ]
    values = 10.0 * np.minimum(cosines / np.maximum(lengths, 1.0), 1.0) * penalties
    return dict.fromkeys(outputs, pairs.mean(values))


def _vectors(tokens: Sequence[Sequence[str]], statistics: Mapping[str, Any]) -> Iterator[Entries]:
    """The vectors of t tokenised texts, n = 1 to 4."""
    rare = math.log(max(statistics["documents"], 1) + 1)  # an empty corpus counts as one item
    frequencies = statistics["frequencies"]
    known = [gram.split(" ") for gram in frequencies]
    known_idf = np.array([rare - math.log(count) for count in frequencies.values()])
    known_order = np.array([len(gram) for gram in known], dtype=np.int64)
    for order, grams in enumerate(number_grams([*tokens, *known], ORDER), 1):
        idf = np.full(grams.different, rare)
        cut = int(np.searchsorted(grams.owners, len(tokens)))
        whole = known_order[grams.owners[cut:] - len(tokens)] == order
        idf[grams.numbers[cut:][whole]] = known_idf[grams.owners[cut:][whole] - len(tokens)]
        yield _entries(grams.owners[:cut], grams.numbers[:cut], idf, len(tokens))


def _entries(owners: IntArray, numbers: IntArray, idf: FloatArray, texts: int) -> Entries:
    keys, first, counts = np.unique(owners * len(idf) + numbers, return_index=True, return_counts=True)
    order = np.argsort(first)
    keys, owners = keys[order], owners[first[order]]
    weights = counts[order] * idf[numbers[first[order]]]
    sizes = np.bincount(owners, minlength=texts)
    norms = np.sqrt(np.bincount(owners, weights * weights, minlength=texts))
    return Entries(keys, weights, np.cumsum(sizes) - sizes, sizes, norms, len(idf))


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
            {
                gram
                for tokens in tokenised
                for order in range(1, ORDER + 1)
                for gram in map(" ".join, zip(*(tokens[start:] for start in range(order)), strict=False))
            }
        )
    frequencies = {gram: count for gram, count in sorted(counts.items()) if count > 1}
    return {"documents": len(documents), "frequencies": frequencies}


statistics = document_frequencies
