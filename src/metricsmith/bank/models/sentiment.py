"""Sentiment: how much more likely positive than negative a classifier of short posts finds the output."""

from __future__ import annotations

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, where_filled
from metricsmith.bank.models.engine.classifier import label_shares
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(name="sentiment", id="cardiffnlp/twitter-roberta-base-sentiment-latest", head="classifier")

CARD = MetricCard(
    name="Sentiment",
    kind="bank",
    summary=(
        "The feeling that the output expresses, from negative over neutral to positive, as a classifier of short "
        "posts reads it. Reads the output alone."
    ),
    formula=(
        "P(positive) - P(negative), of the softmax over negative, neutral and positive; before that, as the model's "
        "card asks, words that begin with @ become @user and words that begin with http become http"
    ),
    outputs=(Output("sentiment", -1.0, 1.0, description="-1 negative, 0 neutral or mixed, 1 positive"),),
    needs=("weights", "extra:models"),
    cost="local",
    domains=("dialogue", "social media", "reviews", "customer support"),
    tasks=("dialogue", "style transfer", "customer support", "reviews"),
    best_for=("warmth or harshness of replies", "detecting that raters reward friendly answers"),
    not_for=("correctness or relevance", "texts of several opinions: they come out near 0"),
    limits=(
        "neither end is good in general; higher counts as better by convention, and a fitted metric takes the "
        "direction from the ratings",
        "trained on English posts of up to 280 characters; long formal texts are mostly neutral to it",
        "labels are found by name; a classifier that calls them LABEL_0 to LABEL_2 is refused",
        "texts beyond 512 tokens are cut off at the end",
        "autometrics-ai 0.1.0 halves the number (-.5 to .5) and merges white space before classifying",
    ),
    failure_cases=("irony reads as praise", "a kind text about a sad event scores below 0"),
    related=("toxicity", "fasttext_toxicity"),
    papers=("Loureiro et al. 2022, TimeLMs: diachronic language models from Twitter",),
    checkpoint=Checkpoint(MODEL.id, 0.5, 0.6, 512, "the end is cut off"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Classify each distinct output once, names and links replaced."""

    def balance(part: TextBatch) -> FloatArray:
        shares = label_shares(part.spec, ("positive", "negative"), list(map(_plain_post, part.outputs)))
        return shares[:, 0] - shares[:, 1]

    return where_filled(batch, outputs, balance)


def _plain_post(text: str) -> str:
    return " ".join(
        "@user" if word.startswith("@") and len(word) > 1 else "http" if word.startswith("http") else word
        for word in text.split(" ")
    )
