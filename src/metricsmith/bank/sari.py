"""SARI: the n-grams that a rewrite keeps, adds and deletes, judged by the references and by the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Scores, TextBatch
from metricsmith.bank.ngrams import Grams, IntArray, number_grams
from metricsmith.bank.text import words
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "sari"]

ORDER = 4
_REFERENCE = 2  # place of the first reference in a row, after input and output

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


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score all rows at once; rows without a reference that is not blank are NaN."""
    rows = [
        [source, output, *(text for text in references if text.strip())]
        for source, output, references in zip(batch.inputs, batch.outputs, batch.references, strict=True)
    ]
    scored = [index for index, row in enumerate(rows) if len(row) > 2]
    parts = np.full((len(rows), 3), np.nan)
    parts[scored] = sari([[words(text.lower()) for text in rows[index]] for index in scored])
    keep, add, delete = parts.T
    scores = {"sari": (keep + add + delete) / 3, "sari_keep": keep, "sari_add": add, "sari_delete": delete}
    return {name: scores[name] for name in outputs}


def sari(rows: Sequence[Sequence[Sequence[str]]]) -> FloatArray:
    """F1 of keeping, F1 of adding and precision of deleting, each in [0, 100]: shape (n, 3).

    Parameters
    ----------
    rows : sequence of sequence of sequence of str
        n rows; each holds the tokens of the input, of the output and of one or more references (I, O and R
        in the paper).
    """
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    texts = _Texts(
        rows=np.repeat(np.arange(len(rows)), sizes),
        places=np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes),
        references=sizes - _REFERENCE,
    )
    totals = np.zeros((len(rows), 3))
    for grams in number_grams([tokens for row in rows for tokens in row], ORDER):
        totals += _edits(grams, texts)
    return 100.0 * totals / ORDER


@dataclass(frozen=True, slots=True)
class _Texts:
    """The row of each text and its place there, and the number of references of each row."""

    rows: IntArray
    places: IntArray
    references: IntArray


def _edits(grams: Grams, texts: _Texts) -> FloatArray:
    """Keep F1, add F1 and delete precision of one n-gram length: shape (n, 3)."""
    width = int(texts.places.max(initial=0)) + 1
    keys = np.sort((texts.rows[grams.owners] * grams.different + grams.numbers) * width + texts.places[grams.owners])
    present = keys[np.diff(keys, prepend=-1) > 0]  # an n-gram occurs in a text or not, however often
    found = present // width
    entries = np.flatnonzero(np.diff(found, prepend=-1))  # where the next n-gram of a row begins
    row = found[entries] // max(grams.different, 1)
    roles = np.minimum(present % width, _REFERENCE)
    before, after, wanted = (
        np.add.reduceat(roles == role, entries, dtype=np.int64) if len(entries) else entries for role in range(3)
    )
    count = texts.references[row]

    def total(values: IntArray) -> FloatArray:
        return np.asarray(np.bincount(row, values, minlength=len(texts.references)), dtype=np.float64)

    kept, added, deleted = before * after, after * (1 - before), before * (1 - after)
    wanted_new = np.minimum(wanted, 1) * (1 - before)
    kept_rightly, added_rightly = total(kept * wanted), total(added * wanted_new)
    keep = _f1(_share(kept_rightly, total(kept * count)), _share(kept_rightly, total(before * wanted)))
    add = _f1(_share(added_rightly, total(added)), _share(added_rightly, total(wanted_new)))
    delete = _share(total(deleted * (count - wanted)), total(deleted * count))
    return np.column_stack([keep, add, delete])


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 1.0)


def _f1(precision: FloatArray, recall: FloatArray) -> FloatArray:
    total = precision + recall
    return 2.0 * precision * recall / np.where(total > 0, total, 1.0)
