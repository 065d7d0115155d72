"""ParaScore without references: closeness in meaning to the input, and a bonus for other words than its own."""

from __future__ import annotations

from dataclasses import replace

from metricsmith.bank.base import Names, Reasoned, TextBatch
from metricsmith.bank.models import parascore
from metricsmith.bank.models.bertscore import why_undefined
from metricsmith.bank.models.parascore import paraphrase_scores
from metricsmith.records import Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = replace(parascore.MODEL, name="parascore_free")

CARD = replace(
    parascore.CARD,
    name="ParaScoreFree",
    summary=(
        "Quality of a paraphrase without a reference: it means the same as the input, by contextual vectors, and is "
        "not the input's own words, by edit distance."
    ),
    formula=(
        "the BERTScore F of the output with the input, plus .05 D; D = .35 from a distance d = .35 on, below it "
        "-1 + (1.35 / .35) d; d = character edits from the input to the output, divided by the length of the longer "
        "one; case kept"
    ),
    outputs=(Output("parascore_free", -0.05, 1.0175, description="with the published weights about .4 to 1.02"),),
    needs=("input", "weights", "extra:models"),
    multi_reference="references are not used",
    best_for=("paraphrases without references", "finding outputs that left the input's meaning"),
    not_for=("summaries, answers and translations: they should not mean what the input means",),
    limits=(
        "close to the input in meaning is close in words as well: light edits of the input score highest",
        "the bonus spans .07 of the range: the meaning decides nearly everything",
        "free_score of parascore 1.0.5 takes precision for F and gives rows of a batch each other's bonus, and "
        "autometrics-ai 0.1.0 averages what it returns; here every row has its own F and bonus",
    ),
    failure_cases=("a dropped negation costs little", "the input with a few letters changed scores about 1"),
    related=("parascore", "bertscore_f", "yisi2"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Score against the input alone."""
    scores = paraphrase_scores(batch, [(source,) for source in batch.inputs])
    return Reasoned(dict.fromkeys(outputs, scores), why_undefined(batch, "input"))
