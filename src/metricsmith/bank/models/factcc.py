"""FactCC: the probability that the input supports the output."""

from __future__ import annotations

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, where_filled
from metricsmith.bank.models.engine.classifier import label_shares
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(name="factcc", id="manueldeprada/FactCC", head="classifier")

CARD = MetricCard(
    name="FactCC",
    kind="bank",
    summary=(
        "The probability that a claim is consistent with its source, by a classifier that was trained on news "
        "sentences with swapped names, numbers, pronouns and negations."
    ),
    formula="the share of the label CORRECT in the softmax over the classifier's labels, for the pair input, output",
    outputs=(Output("factcc", 0.0, 1.0, description="0 contradicts the input, 1 consistent with it"),),
    needs=("input", "weights", "extra:models"),
    cost="local",
    domains=("news", "summaries"),
    tasks=("summarisation", "fact checking", "headline generation"),
    best_for=("swapped names and numbers in one-sentence summaries of news",),
    not_for=(
        "summaries of several sentences: trained on single claims",
        "free rewordings, which the training data hardly had",
        "sources of other kinds than news",
    ),
    limits=(
        "pairs beyond 512 tokens lose the end of the longer text, which is nearly always the source, so that a "
        "claim about its end cannot be checked",
        "the label is found by the name CORRECT and a checkpoint without it is refused; autometrics-ai 0.1.0 falls "
        "back to label 1, which is INCORRECT in the published weights, and scores .5 where the network fails",
    ),
    failure_cases=("an output copied from the source scores high, relevant or not", "a true fact that the input lacks"),
    related=("unieval_fact", "unieval_consistency", "summaqa_f"),
    papers=("Kryscinski et al. 2020, Evaluating the factual consistency of abstractive text summarization",),
    checkpoint=Checkpoint(MODEL.id, 0.44, 0.6, 512, "the end of the longer text, input or output, is cut off"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Classify each distinct pair of input and output once."""

    def supported(part: TextBatch) -> FloatArray:
        return label_shares(part.spec, ("CORRECT",), part.inputs, part.outputs)[:, 0]

    return where_filled(batch, outputs, supported, "input")
