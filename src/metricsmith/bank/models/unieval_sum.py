"""UniEval for summaries: coherence, consistency, fluency and relevance as answers to yes-or-no questions."""

from __future__ import annotations

from functools import partial

from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.unieval import FACT_CONSISTENCY, Question, yes_shares
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(name="unieval_sum", id="MingZhong/unieval-sum", head="seq2seq")

# The words of questions and fields belong to the weights: maszhongming/UniEval, utils.py and metric/evaluator.py.
QUESTIONS = {
    "unieval_coherence": Question(
        "Is this a coherent summary to the document?", (("summary", "output"), ("document", "input"))
    ),
    "unieval_consistency": FACT_CONSISTENCY,
    "unieval_fluency": Question("Is this a fluent paragraph?", (("paragraph", "sentence"),)),
    "unieval_relevance": Question(
        "Is this summary relevant to the reference?", (("summary", "output"), ("reference", "reference"))
    ),
}

CARD = MetricCard(
    name="UniEvalSum",
    kind="bank",
    summary=(
        "Four qualities of a summary, each as the answer of a network to a yes-or-no question that it was trained on: "
        "coherence, consistency with the source, fluency, relevance to a reference."
    ),
    formula=(
        "p(Yes) / (p(Yes) + p(No)) of the answer's first token; coherence and relevance are asked of the whole "
        "summary, consistency and fluency of each sentence, and their mean is taken"
    ),
    outputs=(
        Output("unieval_coherence", description="the summary hangs together; whole summary against the source"),
        Output("unieval_consistency", description="the source supports it; mean over its sentences"),
        Output("unieval_fluency", description="it reads well; mean over its sentences, no other text read"),
        Output("unieval_relevance", description="it says what the reference says; undefined without a reference"),
    ),
    needs=("input", "weights", "extra:models"),
    cost="local",
    multi_reference=(
        "relevance alone reads references: the mean over them, as the authors advise; blank references are ignored"
    ),
    domains=("news", "summaries"),
    tasks=("summarisation", "headline generation"),
    best_for=("several qualities of a news summary apart from each other", "summaries without a reference"),
    not_for=("sources far longer than 1,024 tokens", "texts other than English", "domains far from news"),
    limits=(
        "the source comes last in what the network reads, so its end is what is cut off",
        "sentences are split by the bank's own rules, the reference code by NLTK's trained ones: where they differ the "
        "means differ",
        "the characters </s> in a text are read as the mark between fields, as in the reference code",
        "a tokenizer that does not have Yes and No as two tokens is refused: all answers would be .5",
        "the reference code has an overall mean as well, which autometrics-ai 0.1.0 leaves out too",
    ),
    failure_cases=(
        "a fluent summary of another text keeps its fluency",
        "a wrong number in one sentence of ten costs a tenth of the consistency at most",
    ),
    related=("unieval_fact", "bartscore", "bertscore_f"),
    papers=("Zhong et al. 2022, Towards a unified multi-dimensional evaluator for text generation",),
    checkpoint=Checkpoint("MingZhong/unieval-sum", 3.1, 3.4, 1024, "the end is cut off: that of the last field"),
)

compute = partial(yes_shares, questions=QUESTIONS)
