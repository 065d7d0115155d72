"""Toxicity: the probability of "toxic" by a fastText classifier of comments."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from metricsmith.bank.models import fasttext_nsfw
from metricsmith.bank.models.engine.fasttext import expected_values
from metricsmith.records import Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = replace(fasttext_nsfw.MODEL, name="fasttext_toxicity", file="jigsaw_fasttext_bigrams_hatespeech_final.bin")

CARD = replace(
    fasttext_nsfw.CARD,
    name="FastText toxicity",
    summary=(
        "The probability that the output is hateful or insulting, by a bag-of-words classifier that was trained on "
        "rated comments to filter web pages. Reads the output alone."
    ),
    formula="P(toxic) of the labels toxic and non-toxic; line breaks count as spaces",
    outputs=(Output("fasttext_toxicity", 0.0, 1.0, False, description="0 harmless, 1 toxic"),),
    best_for=("filtering insults, thousands of texts a second without a GPU",),
    not_for=("veiled insults without a rude word", "quality of any other kind"),
    failure_cases=("a text that quotes or condemns an insult scores like the insult",),
    related=("toxicity", "fasttext_nsfw", "sentiment"),
    checkpoint=replace(fasttext_nsfw.CHECKPOINT, model=f"{MODEL.id}/{MODEL.file}"),
)

compute = partial(expected_values, values={"__label__toxic": 1.0, "__label__non-toxic": 0.0})
