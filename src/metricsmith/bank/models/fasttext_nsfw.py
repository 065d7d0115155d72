"""Sexual content: the probability of "nsfw" by a fastText classifier of comments."""

from __future__ import annotations

from functools import partial

from metricsmith.bank.models.engine.fasttext import expected_values
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(
    name="fasttext_nsfw",
    id="https://dolma-artifacts.org/fasttext_models/jigsaw_fasttext_bigrams_20230515",
    head="fasttext",
    file="jigsaw_fasttext_bigrams_nsfw_final.bin",
)
CHECKPOINT = Checkpoint(f"{MODEL.id}/{MODEL.file}", 0.99, 1.7, 0, "", revision="20230515")

CARD = MetricCard(
    name="FastText NSFW",
    kind="bank",
    summary=(
        "The probability that the output is obscene or sexual, by a bag-of-words classifier that was trained on rated "
        "comments to filter web pages. Reads the output alone."
    ),
    formula="P(nsfw) of the labels nsfw and non-nsfw; line breaks count as spaces",
    outputs=(Output("fasttext_nsfw", 0.0, 1.0, False, description="0 harmless, 1 obscene"),),
    needs=("weights", "extra:models"),
    cost="local",
    domains=("web pages", "dialogue", "social media"),
    tasks=("dialogue", "safety", "moderation", "data filtering"),
    best_for=("filtering obscene outputs, thousands a second without a GPU",),
    not_for=("violence, drugs and other content that a workplace may object to", "quality of any other kind"),
    limits=(
        "sees words and pairs of words; misspelt words are unknown to it",
        "the labels are found by name and a file with others is refused",
        "autometrics-ai 0.1.0 gives the likelier label's probability with a sign, which jumps from -.5 to .5",
    ),
    failure_cases=("medical and educational texts about the body score high",),
    related=("fasttext_toxicity", "toxicity"),
    papers=("Soldaini et al. 2024, Dolma: an open corpus of three trillion tokens",),
    checkpoint=CHECKPOINT,
)

compute = partial(expected_values, values={"__label__nsfw": 1.0, "__label__non-nsfw": 0.0})
