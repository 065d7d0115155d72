"""Toxicity: the probability of "toxic" by a fastText classifier of comments."""

from __future__ import annotations

from functools import partial

from metricsmith.bank.models.engine.fasttext import expected_values
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(
    name="fasttext_toxicity",
    id="https://dolma-artifacts.org/fasttext_models/jigsaw_fasttext_bigrams_20230515",
    head="fasttext",
    file="jigsaw_fasttext_bigrams_hatespeech_final.bin",
)

CARD = MetricCard(
    name="FastText toxicity",
    kind="bank",
    summary=(
        "The probability that the output is hateful or insulting, by a bag-of-words classifier that was trained on "
        "rated comments to filter web pages. Reads the output alone."
    ),
    formula="P(toxic) of the labels toxic and non-toxic; line breaks count as spaces",
    outputs=(Output("fasttext_toxicity", 0.0, 1.0, False, description="0 harmless, 1 toxic"),),
    needs=("weights", "extra:models"),
    cost="local",
    domains=("web pages", "dialogue", "social media"),
    tasks=("dialogue", "safety", "moderation", "data filtering"),
    best_for=("filtering insults, thousands of texts a second without a GPU",),
    not_for=("veiled insults without a rude word", "quality of any other kind"),
    limits=(
        "sees words and pairs of words; misspelt words are unknown to it",
        "the labels are found by name and a file with others is refused",
        "autometrics-ai 0.1.0 gives the likelier label's probability with a sign, which jumps from -.5 to .5",
    ),
    failure_cases=("a text that quotes or condemns an insult scores like the insult",),
    related=("toxicity", "fasttext_nsfw", "sentiment"),
    papers=("Soldaini et al. 2024, Dolma: an open corpus of three trillion tokens",),
    checkpoint=Checkpoint(f"{MODEL.id}/{MODEL.file}", 0.99, 1.7, 0, "", revision="20230515"),
)

compute = partial(expected_values, values={"__label__toxic": 1.0, "__label__non-toxic": 0.0})
