"""iBLEU: BLEU against the references, less a share of BLEU against the source."""

from __future__ import annotations

from metricsmith.bank.base import Names, Scores, TextBatch
from metricsmith.bank.bleu import bleu_scores
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

ALPHA = 0.9

CARD = MetricCard(
    name="iBLEU",
    kind="bank",
    summary=(
        "BLEU against the references minus a penalty for copying the input, so that an output that only "
        "repeats its source no longer wins."
    ),
    formula=(
        ".9 BLEU(output, references) - .1 BLEU(output, input), both sentence BLEU 0-100 with the settings of "
        "the BLEU card"
    ),
    outputs=(Output("ibleu", -10.0, 90.0, description="-10 the input, unlike the references; 90 the reverse"),),
    needs=("input", "references"),
    multi_reference="all references at once, as in BLEU; order does not matter, blank references are ignored",
    domains=("general text",),
    tasks=("paraphrase generation", "simplification", "style transfer", "rewriting"),
    best_for=("rewriting tasks in which the input itself is a strong but useless answer",),
    not_for=(
        ("tasks whose output need not resemble the input (translation between languages: the penalty is near 0)"),
        "extractive tasks in which copying is right",
    ),
    limits=(
        "the weight .9 is a convention; with it copying costs at most 10 points",
        "inherits BLEU's blindness to synonyms and its noise on single sentences",
    ),
    failure_cases=(
        "where the reference is a near copy of the input, the penalty punishes the right answer",
        "a fluent rewrite in new words scores as low as gibberish",
    ),
    related=("bleu", "sari", "update_rouge1", "self_bleu"),
    papers=("Sun and Zhou 2012, Joint learning of a dual SMT system for paraphrase generation",),
    backend="metricsmith (equal to sacrebleu 2)",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score every row against its references and its input."""
    to_references = bleu_scores(batch.outputs, batch.references)
    to_input = bleu_scores(batch.outputs, [[text] for text in batch.inputs])
    return dict.fromkeys(outputs, ALPHA * to_references - (1.0 - ALPHA) * to_input)
