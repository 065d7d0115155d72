"""ParaScore: closeness in meaning to the input or a reference, and a bonus for other words than the input's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, pair_up
from metricsmith.bank.models.bertscore import compared, why_undefined
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute", "paraphrase_scores"]

ENOUGH = 0.35  # share of characters changed from which the bonus stays at its most
BONUS = 0.05
MODEL = ModelSpec(
    name="parascore",
    id="bert-base-uncased",  # as the package and autometrics-ai run it; the published number rests on it
    head="encoder",
    layer=9,  # parascore 1.0.5 takes it for this network
)

CARD = MetricCard(
    name="ParaScore",
    kind="bank",
    summary=(
        "Quality of a paraphrase: it means the same as the input or as a reference, by contextual vectors, and it is "
        "not the input's own words, by edit distance."
    ),
    formula=(
        "the highest BERTScore F of the output with the input or a reference, plus .05 D; D = .35 from a distance "
        "d = .35 on, below it -1 + (1.35 / .35) d; d = character edits from the input to the output, divided by the "
        "length of the longer one; case kept"
    ),
    outputs=(Output("parascore", -0.05, 1.0175, description="with the published weights about .4 to 1.02"),),
    needs=("input", "references", "weights", "extra:models"),
    cost="local",
    multi_reference="the closest reference counts, or the input where it is closer; blank references are ignored",
    domains=("general text", "questions", "social media"),
    tasks=("paraphrase", "simplification", "style transfer", "data augmentation"),
    best_for=("telling paraphrases from copies", "paraphrases that are right and unlike the reference"),
    not_for=("tasks in which a copy of the input may be the best answer", "output in another language than the input"),
    limits=(
        "the bonus spans .07 of the range: the meaning decides nearly everything",
        "a copy of the input scores .95, above many true paraphrases",
        "edit distance rewards a change of case or of order like one of words",
        "the paper's table of metrics names roberta-large; its code and the published number use bert-base-uncased, as "
        "here; parascore 1.0.5 has no figures to rescale by",
        "the first code tuned the weight .05 on labelled data",
        "texts beyond the network's length are cut off, but not for the edit distance",
    ),
    failure_cases=(
        "a dropped negation costs little",
        "both texts empty divide by zero in parascore 1.0.5; here an empty text is skipped",
    ),
    related=("parascore_free", "bertscore_f", "ibleu", "sari"),
    papers=("Shen et al. 2022, On the evaluation metrics for paraphrase generation",),
    checkpoint=Checkpoint("bert-base-uncased", 0.44, 0.6, 512, "the end is cut off"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Score against the input and the references together."""
    texts = [(source, *references) for source, references in zip(batch.inputs, batch.references, strict=True)]
    scores = np.where(pair_up(batch).counts > 0, paraphrase_scores(batch, texts), np.nan)
    return Reasoned(dict.fromkeys(outputs, scores), why_undefined(batch, "input", "references"))


def paraphrase_scores(batch: TextBatch, texts: Sequence[Sequence[str]]) -> FloatArray:
    """The closeness of each output to the closest of its `texts`, and the bonus for its distance from the input: (n,).

    Blank texts are ignored. NaN where the output, the input or all texts are blank.
    """
    from rapidfuzz.distance import Levenshtein

    sources = pair_up(replace(batch, references=[(source,) for source in batch.inputs]))
    distances = sources.best(sources.compared(Levenshtein.normalized_distance))
    bonus = np.where(distances >= ENOUGH, ENOUGH, (1 + ENOUGH) / ENOUGH * distances - 1)
    pairs = pair_up(replace(batch, references=texts))
    return pairs.best(compared(batch.spec, pairs)[:, 2]) + BONUS * bonus
