"""BARTScore: the likelihood of one text given the other under a network trained to summarise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, pair_up, where_filled
from metricsmith.bank.models.engine.seq2seq import mean_log_likelihoods
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "card_for", "compute"]

MODEL = ModelSpec(
    name="bartscore",
    id="facebook/bart-large-cnn",
    head="seq2seq",
    # The first is the default: the paper gives F to overlap in meaning with a reference, and it alone charges both
    # what the output adds and what it leaves out. src->hyp reads the input and no reference.
    choices=(("direction", ("f", "ref->hyp", "hyp->ref", "src->hyp")),),
)

CARD = MetricCard(
    name="BARTScore",
    kind="bank",
    summary=(
        "The likelihood of the output given a reference, and of the reference given the output, token by token, under "
        "a network that was trained to summarise news."
    ),
    formula=(
        "s(a -> b) is the mean over the tokens of b, the marks at both ends included, of ln p(token | tokens of b "
        "before it, a); ref->hyp is s(reference -> output), hyp->ref s(output -> reference), src->hyp "
        "s(input -> output); f, the default, is the mean of ref->hyp and hyp->ref"
    ),
    outputs=(
        Output("bartscore", None, 0.0, half=3.0, description="a mean log-likelihood; near 0 is certain, -3 scores .5"),
    ),
    needs=("references", "weights", "extra:models"),
    cost="local",
    multi_reference=(
        "the mean over the references, as the authors' code has it by default; blank references are ignored"
    ),
    domains=("general text", "news", "summaries", "machine translation"),
    tasks=("summarisation", "translation", "data-to-text", "paraphrase"),
    best_for=(
        "good wordings that share few words with the reference",
        "faithfulness of a summary to its source, with direction src->hyp",
    ),
    not_for=("numbers to be compared across tasks, languages or lengths", "texts other than English"),
    limits=(
        "a log-likelihood has no fixed scale: only differences under equal settings mean something",
        "texts beyond the network's length are cut off",
        "probable wording is rewarded: a dull output may beat a precise one",
        "numbers of different directions cannot be compared",
        "autometrics-ai 0.1.0 scores input -> reference and never reads the output; it also moves the labels twice, "
        "which can turn the order of two rows round",
        "the F of the authors' script that is called harm_f lacks the factor 2, and their scorer ends the process "
        "when memory runs out",
    ),
    failure_cases=(
        "a wrong name that is more frequent than the right one costs little",
        "a copy of the reference is not certain: it scores below 0, and another text may score higher",
    ),
    related=("bertscore_f", "unieval_relevance", "rouge_l_f"),
    papers=("Yuan et al. 2021, BARTScore: evaluating generated text as text generation",),
    checkpoint=Checkpoint("facebook/bart-large-cnn", 1.63, 2.5, 1024, "the end is cut off"),
)


def card_for(spec: ModelSpec) -> MetricCard:
    """The card under the direction in force: src->hyp needs the input, and no reference."""
    if spec.option("direction") != "src->hyp":
        return CARD
    return replace(CARD, needs=("input", "weights", "extra:models"), multi_reference="")


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Take the direction's likelihoods for every pair of texts, and their mean over the references."""
    direction = batch.spec.option("direction")
    reads_input = direction == "src->hyp"

    def mean(part: TextBatch) -> FloatArray:
        pairs = pair_up(replace(part, references=[(text,) for text in part.inputs]) if reads_input else part)
        found = []
        if direction != "hyp->ref":
            found.append(mean_log_likelihoods(part.spec, pairs.references, pairs.outputs))
        if direction in ("f", "hyp->ref"):
            found.append(mean_log_likelihoods(part.spec, pairs.outputs, pairs.references))
        return pairs.mean(np.mean(found, axis=0))

    return where_filled(batch, outputs, mean, "input" if reads_input else "references")
