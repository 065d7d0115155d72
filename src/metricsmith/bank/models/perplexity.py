"""Perplexity: how little a language model expects the output."""

from __future__ import annotations

import math

import numpy as np

from metricsmith.bank.base import Names, Reasoned, TextBatch
from metricsmith.bank.models.engine.causal import windowed_log_likelihoods
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "STRIDE", "compute"]

STRIDE = 512  # as the documentation of transformers and the published 16.44 on WikiText-2 have it
MODEL = ModelSpec(
    name="perplexity",
    id="gpt2-large",
    head="causal",
    # Off by default, as the published number has it: GPT-2 met its mark between documents, seldom before a sentence.
    choices=(("bos", (False, True)),),
)

CARD = MetricCard(
    name="Perplexity",
    kind="bank",
    summary=(
        "How little a language model expects the output's words: low for ordinary, well-formed text. Needs neither "
        "input nor reference."
    ),
    formula=(
        "exp(-1/m sum of ln p(token | tokens before it)) over the m tokens after the first; with bos a mark for the "
        "beginning is put before the text and the first token counts as well; longer texts are read in windows of "
        "the network's length, each 512 tokens on, a token scored in the first window that has it"
    ),
    outputs=(
        Output("perplexity", 1.0, None, False, half=30.0, description="1 is certain of every word; 31 scores .5"),
    ),
    needs=("weights", "extra:models"),
    cost="local",
    domains=("general text", "stories", "news"),
    tasks=("story generation", "open generation", "simplification", "dialogue"),
    best_for=("broken grammar and word salad", "comparing systems on texts of one kind and length"),
    not_for=("correctness or relevance", "short texts", "texts other than English", "rare but right terms"),
    limits=(
        "undefined for an empty output and for one of a single token; autometrics-ai 0.1.0 returns infinity",
        "short texts have high numbers: the first words have little before them",
        "a network with fewer than 1,024 places moves on by half of them",
        "evaluate's measurement of this name puts a mark first and cuts at the network's length: other numbers",
        "autometrics-ai 0.1.0 hides the text's own <|endoftext|> from the network; here it is a token like any other",
    ),
    failure_cases=(
        "a text that repeats one sentence has a very low perplexity, and so the best score",
        "a fluent lie is as good as the truth",
    ),
    related=("fkgl", "self_bleu", "distinct_2"),
    papers=("Jelinek et al. 1977, Perplexity: a measure of the difficulty of speech recognition tasks",),
    checkpoint=Checkpoint("gpt2-large", 3.25, 4.0, 1024, "read in overlapping windows"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Score the outputs as they stand; blank ones have no number."""
    texts = [text if text.strip() else "" for text in batch.outputs]
    found = windowed_log_likelihoods(batch.spec, texts, STRIDE, begin=bool(batch.spec.option("bos")))
    values = [math.exp(-one.mean()) if one.size and text else math.nan for one, text in zip(found, texts, strict=True)]
    reasons = [
        "the output is a single token, before which nothing stands" if text else "the output is empty" for text in texts
    ]
    return Reasoned(dict.fromkeys(outputs, np.array(values)), reasons)
