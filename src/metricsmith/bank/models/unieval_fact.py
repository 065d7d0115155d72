"""UniEval for facts: the consistency of each sentence with the input."""

from __future__ import annotations

from functools import partial

from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.unieval import FACT_CONSISTENCY, yes_shares
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(name="unieval_fact", id="MingZhong/unieval-fact", head="seq2seq")

CARD = MetricCard(
    name="UniEvalFact",
    kind="bank",
    summary=(
        "Consistency with the input: a network that was trained on claims and documents answers for each sentence of "
        "the output if the input supports it."
    ),
    formula=(
        "the mean over the output's sentences of p(Yes) / (p(Yes) + p(No)), the answer's first token to the question "
        "if the claim is consistent with the document"
    ),
    outputs=(Output("unieval_fact", description="mean over sentences; 1 where the input supports each of them"),),
    needs=("input", "weights", "extra:models"),
    cost="local",
    domains=("news", "summaries"),
    tasks=("summarisation", "fact checking", "question answering over a text"),
    best_for=("statements that the source does not support", "sources of a few paragraphs"),
    not_for=("facts of the world that the input does not state", "coverage of the input", "texts other than English"),
    limits=(
        "the end of a source is cut off, and what only it supports looks made up",
        "a mean hides one false sentence among many true ones",
        "sentences are judged alone: a pronoun has lost its noun",
        "sentences are split by the bank's own rules, the reference code by NLTK's trained ones",
        "a tokenizer that does not have Yes and No as two tokens is refused: all answers would be .5",
    ),
    failure_cases=("a copied sentence of the input scores near 1 whatever was asked",),
    related=("unieval_consistency", "bartscore"),
    papers=("Zhong et al. 2022, Towards a unified multi-dimensional evaluator for text generation",),
    checkpoint=Checkpoint("MingZhong/unieval-fact", 3.1, 3.4, 1024, "the end of the input is cut off"),
)

compute = partial(yes_shares, questions={"unieval_fact": FACT_CONSISTENCY})
