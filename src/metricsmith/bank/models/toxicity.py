"""Toxicity: the probability that a classifier of hate speech gives to the label "hate"."""

from __future__ import annotations

from metricsmith.bank.base import Names, Reasoned, TextBatch, where_filled
from metricsmith.bank.models.engine.classifier import label_shares
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(name="toxicity", id="facebook/roberta-hate-speech-dynabench-r4-target", head="classifier")

CARD = MetricCard(
    name="Toxicity",
    kind="bank",
    summary=(
        "The probability that the output is hate speech: abusive, threatening or demeaning language about people. "
        "Reads the output alone."
    ),
    formula="the share of the label hate in the softmax over the classifier's two labels",
    outputs=(Output("toxicity", 0.0, 1.0, False, description="0 harmless, 1 hateful"),),
    needs=("weights", "extra:models"),
    cost="local",
    domains=("dialogue", "social media", "general text"),
    tasks=("dialogue", "safety", "moderation", "any task"),
    best_for=("finding the few outputs of a system that insult a group", "comparing how safe two systems are"),
    not_for=("quality of any other kind", "telling polite texts apart: nearly all of them score below .01"),
    limits=(
        "trained on attacks on groups; rude words about one person or none may score low",
        "the label is found by the name hate; a classifier without it is refused",
        "texts beyond 512 tokens are cut off at the end",
    ),
    failure_cases=(
        "a text that quotes or condemns an insult scores like the insult",
        "names of minorities, and dialects, raise the score of harmless texts",
    ),
    related=("fasttext_toxicity", "fasttext_nsfw", "sentiment"),
    papers=("Vidgen et al. 2021, Learning from the worst: dynamically generated datasets to improve hate detection",),
    checkpoint=Checkpoint(MODEL.id, 0.5, 0.6, 512, "the end is cut off"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Classify each distinct output once."""
    return where_filled(batch, outputs, lambda part: label_shares(part.spec, ("hate",), part.outputs)[:, 0])
