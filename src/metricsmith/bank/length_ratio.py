"""Length of the output relative to its input: how much a rewrite shortens or pads."""

from __future__ import annotations

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch
from metricsmith.bank.length import counted_words
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute"]

CARD = MetricCard(
    name="Length ratio",
    kind="bank",
    summary=(
        "Words of the output per word of the input: below 1 the output compresses, above 1 it expands. A "
        "baseline for rewriting tasks, not a judgement."
    ),
    formula="words of the output / words of the input; words are tokens that begin with a letter or digit",
    outputs=(Output("length_ratio", 0.0, None, False, half=1.0, description="1 equal length"),),
    needs=("input",),
    domains=("general text", "text simplification", "plain language"),
    tasks=("summarisation", "simplification", "sentence compression", "rewriting", "translation"),
    best_for=("telling summaries that compress from those that copy or pad",),
    not_for=("question answering and dialogue, where output and input lengths are unrelated",),
    limits=(
        "undefined for an input without words",
        "neither end is good in general; lower counts as better by convention",
        "across languages the ratio says more about the languages than about the output",
    ),
    failure_cases=("an unrelated text of the right length looks perfect",),
    related=("output_words", "sari", "fkgl"),
    papers=("Napoles et al. 2011, Evaluating sentence compression: pitfalls and suggested remedies",),
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Count each distinct input once."""
    sizes = {text: len(counted_words(text)) for text in set(batch.inputs)}
    ratios = [
        len(counted_words(output)) / sizes[source] if sizes[source] else float("nan")
        for output, source in zip(batch.outputs, batch.inputs, strict=True)
    ]
    return dict.fromkeys(outputs, np.array(ratios, dtype=float))
