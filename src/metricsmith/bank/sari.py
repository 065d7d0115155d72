"""SARI: which n-grams a rewrite keeps, adds and deletes, judged by the references and by the input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from metricsmith.bank.base import Family, FloatArray, TextBatch
from metricsmith.bank.ngrams import symbols
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["FAMILY", "sari"]

ORDER = 4

CARD = MetricCard(
    name="SARI",
    kind="bank",
    summary=(
        "Judges a rewrite by its edits: does it keep what the references keep, add what they add, and delete "
        "what they delete? Copying the input is not rewarded, unlike with BLEU."
    ),
    formula=(
        "100 (F1 keep + F1 add + precision delete) / 3, each the mean over n-grams of 1 to 4 lower-cased "
        "tokens; an n-gram occurs or not; keep and delete weigh it by the share of references that have it; "
        "0 of 0 counts as 1, so that reproducing a single reference scores 100"
    ),
    outputs=(
        Output("sari", 0.0, 100.0, description="mean of the three parts"),
        Output("sari_keep", 0.0, 100.0, description="F1 of input n-grams kept as the references keep them"),
        Output("sari_add", 0.0, 100.0, description="F1 of new n-grams that a reference has too"),
        Output("sari_delete", 0.0, 100.0, description="precision of deletions that the references make too"),
    ),
    needs=("input", "references"),
    multi_reference=(
        "all at once: an added n-gram may come from any reference, a kept or deleted one counts by the share "
        "of references that keep or delete it; blank references are ignored"
    ),
    domains=("text simplification", "rewriting", "plain language"),
    tasks=("simplification", "sentence compression", "style transfer", "text editing", "paraphrasing"),
    best_for=(
        "sentence simplification with several references",
        "telling copying, over-deletion and missing additions apart through its three parts",
    ),
    not_for=(
        "tasks whose output shares few words with the input",
        "meaning preservation: a dropped fact that the references drop too is rewarded",
        "languages written without spaces other than Chinese and Japanese",
    ),
    limits=(
        "F1 is taken for each n-gram length and then averaged, as the authors' published program and later "
        "toolkits do; the paper's text averages precision and recall first: over 360 simplifications that moves "
        "a value by .2 in the median, 4 at most",
        "deletions are scored by precision only, so deleting too little costs nothing in that part",
        "synonyms count as wrong additions; values of single sentences are noisy",
        "SARI_P of autometrics-ai 0.1.0, times 100, lies .9 away in the median and 18 at most over 60 rows: it "
        "counts 0 of 0 as 0, so that even an output equal to the reference stays below 100, counts repeated "
        "n-grams and holds additions to a stricter rule",
    ),
    failure_cases=(
        "an output that drops the main clause can beat a faithful one if the references are short",
        "with one reference, any other good wording loses all its additions",
    ),
    related=("bleu", "ibleu", "update_rouge1", "fkgl", "length_ratio"),
    papers=("Xu et al. 2016, Optimizing statistical machine translation for text simplification",),
)


def compute(batch: TextBatch, outputs: Sequence[str]) -> Mapping[str, FloatArray]:
    """Score row by row; rows without a reference that is not blank are NaN."""
    parts = np.full((len(batch), 3), np.nan)
    rows = zip(batch.inputs, batch.outputs, batch.references, strict=True)
    for index, (source, output, references) in enumerate(rows):
        kept = [words(text.lower()) for text in references if text.strip()]
        if kept:
            parts[index] = sari(words(source.lower()), words(output.lower()), kept)
    keep, add, delete = parts.T
    scores = {"sari": (keep + add + delete) / 3, "sari_keep": keep, "sari_add": add, "sari_delete": delete}
    return {name: scores[name] for name in outputs}


def sari(
    source: Sequence[str], output: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[float, float, float]:
    """F1 of keeping, F1 of adding and precision of deleting, each in [0, 100].

    Parameters
    ----------
    source, output : sequence of str
        Tokens of I and O in the paper.
    references : sequence of sequence of str
        Tokens of one or more references, R.
    """
    texts = symbols(source, output, *references)
    totals = [0.0, 0.0, 0.0]
    for order in range(1, ORDER + 1):
        before, after, *targets = (
            {text[start : start + order] for start in range(len(text) - order + 1)} for text in texts
        )
        for part, value in enumerate(_edits(before, after, targets)):
            totals[part] += value
    keep, add, delete = (100.0 * total / ORDER for total in totals)
    return keep, add, delete


def _edits(before: set[str], after: set[str], targets: Sequence[set[str]]) -> tuple[float, float, float]:
    """Keep F1, add F1 and delete precision of one n-gram length."""
    wanted = Counter(chain.from_iterable(target & before for target in targets))  # r times R' in the paper
    count = len(targets)
    kept, deleted = before & after, before - after
    shared = sum([wanted[gram] for gram in kept])
    keep = _f1(_share(shared, count * len(kept)), _share(shared, wanted.total()))
    lost = sum([count - wanted[gram] for gram in deleted])
    added, wanted_new = after - before, set().union(*targets) - before
    hits = len(added & wanted_new)
    add = _f1(_share(hits, len(added)), _share(hits, len(wanted_new)))
    return keep, add, _share(lost, count * len(deleted))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _f1(precision: float, recall: float) -> float:
    total = precision + recall
    return 2.0 * precision * recall / total if total else 0.0


FAMILY = Family(CARD, compute)
