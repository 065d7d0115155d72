"""Educational value: the expected grade of a text as teaching material, by a fastText classifier of web pages."""

from __future__ import annotations

from functools import partial

from metricsmith.bank.models.engine.fasttext import expected_values
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(
    name="fasttext_educational",
    id="kenhktsui/llm-data-textbook-quality-fasttext-classifier-v2",
    head="fasttext",
    file="model_quantized.bin",  # as autometrics-ai 0.1.0 runs it; the numbers on the model's card are model.bin's
)

CARD = MetricCard(
    name="FastText educational value",
    kind="bank",
    summary=(
        "How much the output reads like teaching material: a bag-of-words classifier that was trained to sort web "
        "pages into low, middle and high educational value. Reads the output alone."
    ),
    formula="P(Mid) + 2 P(High) of the labels Low, Mid and High; line breaks count as spaces",
    outputs=(Output("fasttext_educational_value", 0.0, 2.0, description="0 low, 1 middle, 2 high"),),
    needs=("weights", "extra:models"),
    cost="local",
    domains=("web pages", "education", "general text"),
    tasks=("explanation", "long-form answers", "data filtering"),
    best_for=("telling explanations from chatter and advertising", "thousands of texts a second without a GPU"),
    not_for=("correctness: it sees words and pairs of words, no statements", "short answers, stories and dialogue"),
    limits=(
        "order beyond neighbouring words does not count",
        "the labels are found by name and a file with others is refused",
        "the published quantised file gives other numbers than the full one",
        "the size on disk is an estimate: autometrics-ai 0.1.0 measured 3.8 GB of memory",
    ),
    failure_cases=("an encyclopaedia's tone with false content scores near 2",),
    related=("fkgl", "fasttext_nsfw", "fasttext_toxicity"),
    papers=("Gunasekar et al. 2023, Textbooks are all you need",),
    checkpoint=Checkpoint(MODEL.id, 3.8, 4.0, 0, ""),
)

compute = partial(expected_values, values={"__label__Low": 0.0, "__label__Mid": 1.0, "__label__High": 2.0})
