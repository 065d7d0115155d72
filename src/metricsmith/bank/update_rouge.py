"""UpdateROUGE: ROUGE on the sentences that a rewrite changed or added."""

from __future__ import annotations

from functools import cache

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.bank.rouge import plain_tokens, rouge
from metricsmith.bank.text import sentences
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "updates"]

_TYPES = {"update_rouge1": "rouge1_f", "update_rouge2": "rouge2_f", "update_rouge_lsum": "rouge_lsum_f"}

CARD = MetricCard(
    name="UpdateROUGE",
    kind="bank",
    summary=(
        "ROUGE for edited texts: compares only those sentences of output and reference that the input does not "
        "have, so that copying the unchanged rest earns nothing."
    ),
    formula=(
        "ROUGE-1, -2 and -Lsum F1 of the output's new sentences against the reference's new sentences, one per "
        "line; a sentence is new if its text does not stand in the input; words are lower-cased, without "
        "marks, not stemmed; 1 if neither text has a new sentence, 0 if only one has"
    ),
    outputs=(
        Output("update_rouge1", description="F1 of single words of new sentences"),
        Output("update_rouge2", description="F1 of word pairs of new sentences"),
        Output("update_rouge_lsum", description="F1 of the longest common subsequences of new sentences"),
    ),
    needs=("input", "references"),
    multi_reference="for each output the highest F1 over the references; blank references are ignored",
    domains=("encyclopaedias", "general text", "documents under revision"),
    tasks=("text editing", "document revision", "updating articles", "simplification", "style transfer"),
    best_for=(
        "long inputs of which a few sentences should change",
        "telling copied from edited text where plain ROUGE is high for both",
    ),
    not_for=(
        "single-sentence inputs, where it equals ROUGE as soon as one word changes",
        "tasks in which the input is a question",
    ),
    limits=(
        "one changed comma makes the whole sentence new",
        "sentences that should have been deleted are not counted",
        "depends on sentence splitting",
        "autometrics-ai 0.1.0 joins the sentences into one line, so that its Lsum is ROUGE-L: over 60 "
        "simplifications ours differs by 0 in the median, .19 at most, and the other two are equal; it "
        "splits at every full stop and reads the first reference only",
    ),
    failure_cases=(
        "an output that changes nothing scores 0 however good the input was",
        "a moved but unchanged sentence is not an update",
    ),
    related=("rouge1_f", "sari", "rouge_lsum_f"),
    papers=(
        "Logan IV et al. 2022, FRUIT: faithfully reflecting updated information in text",
        "Lin 2004, ROUGE: a package for automatic evaluation of summaries",
    ),
    backend="rouge-score 0.1.2 (definition), rapidfuzz",
    backend_license="Apache-2.0",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score the new sentences of each pair; the best reference counts for each output."""
    pairs = pair_up(batch)
    inputs = [batch.inputs[row] for row in np.repeat(np.arange(len(batch)), pairs.counts).tolist()]
    ours, theirs = (list(map(cache(updates), texts, inputs)) for texts in (pairs.outputs, pairs.references))
    both = [place for place, (left, right) in enumerate(zip(ours, theirs, strict=True)) if left and right]
    neither = [not left and not right for left, right in zip(ours, theirs, strict=True)]
    changed = TextBatch([ours[place] for place in both], [], [[theirs[place]] for place in both])
    found = rouge(changed, [_TYPES[name] for name in outputs], cache(plain_tokens))
    scores = {}
    for name in outputs:
        values = np.array(neither, dtype=np.float64)
        values[both] = found[_TYPES[name]]
        scores[name] = pairs.best(values)
    return scores


def updates(text: str, source: str) -> str:
    """The sentences of `text` that do not stand in `source`, one per line.

    Examples
    --------
    >>> updates("Ann left. Bob stayed.", "Ann left. Bob left too.")
    'Bob stayed.'
    """
    return "\n".join(sentence for sentence in sentences(text) if sentence not in source)
