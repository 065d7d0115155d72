"""Google-BLEU: n-gram overlap over the larger of the two n-gram totals, symmetrical."""

from __future__ import annotations

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.bank.ngrams import ngram_totals, shared_ngrams, symbols
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

ORDER = 4

CARD = MetricCard(
    name="GLEU",
    kind="bank",
    summary=(
        "Sentence-level relative of BLEU: the smaller of n-gram precision and n-gram recall, all lengths "
        "from one to four words pooled. Lower-cased, without a length penalty."
    ),
    formula="shared n-grams of 1 to 4 tokens / max(n-grams of the output, n-grams of the reference)",
    outputs=(Output("gleu", description="0 no word shared, 1 equal up to case and spaces"),),
    needs=("references",),
    multi_reference="the highest value over the references; blank references are ignored",
    domains=("machine translation", "general text"),
    tasks=("translation", "simplification", "data-to-text", "rewards for single outputs"),
    best_for=("scoring one output at a time: bounded, symmetrical and never all-or-nothing",),
    not_for=("free-form answers and stories", "factual correctness"),
    limits=(
        "synonyms and paraphrases count as errors",
        "our tokeniser splits the full stop off every sentence, NLTK's off the last one only: on 60 text "
        "simplifications our values differ from those with NLTK's tokens by .0024 on average, .028 at most",
    ),
    failure_cases=("a 16-word reference without its 'not' still scores .84",),
    related=("bleu", "chrf", "rouge2_f", "meteor"),
    papers=("Wu et al. 2016, Google's neural machine translation system (section 4.3)",),
    backend="metricsmith (equal to nltk.translate.gleu_score on the same tokens)",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Tokenise each text once, count all pairs at once; the best reference counts."""
    pairs = pair_up(batch)
    tokens = {text: words(text.lower()) for text in {*pairs.outputs, *pairs.references}}
    candidates = [tokens[text] for text in pairs.outputs]
    targets = [tokens[text] for text in pairs.references]
    shared = shared_ngrams([symbols(*pair) for pair in zip(candidates, targets, strict=True)], ORDER)
    totals = [ngram_totals([len(text) for text in texts], ORDER).sum(axis=1) for texts in (candidates, targets)]
    return dict.fromkeys(outputs, pairs.best(shared.sum(axis=1) / np.maximum(*totals)))
