"""UniEval for dialogue: five qualities of a response as answers to yes-or-no questions."""

from __future__ import annotations

from functools import partial

from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.unieval import Question, yes_shares
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(name="unieval_dialogue", id="MingZhong/unieval-dialog", head="seq2seq")

_RESPONSE, _HISTORY, _FACT = ("response", "output"), ("dialogue history", "input"), ("fact", "fact")
# The words of questions and fields belong to the weights: maszhongming/UniEval, utils.py and metric/evaluator.py.
QUESTIONS = {
    "dialogue_naturalness": Question("Is this a natural response in the dialogue?", (_RESPONSE,)),
    "dialogue_coherence": Question(
        "Is this a coherent response given the dialogue history?", (_RESPONSE, _HISTORY)
    ),
    "dialogue_engagingness": Question(
        "Is this an engaging and informative response according to the dialogue history and fact?",
        (("response", "sentence"), _HISTORY, _FACT),
        summed=True,
    ),
    "dialogue_groundedness": Question("Is this response consistent with knowledge in the fact?", (_RESPONSE, _FACT)),
    "dialogue_understandability": Question("Is this an understandable response in the dialogue?", (_RESPONSE,)),
}  # fmt: skip

CARD = MetricCard(
    name="UniEvalDialogue",
    kind="bank",
    summary=(
        "Five qualities of a response in a dialogue, each as the answer of a network to a yes-or-no question that it "
        "was trained on: naturalness, coherence with what was said, engagingness, groundedness in a given fact, "
        "understandability."
    ),
    formula=(
        "p(Yes) / (p(Yes) + p(No)) of the answer's first token, asked of the whole response; engagingness is asked of "
        "each sentence and is the sum of the answers"
    ),
    outputs=(
        Output("dialogue_naturalness", description="it sounds like a person; reads the response alone"),
        Output("dialogue_coherence", description="it follows from the dialogue so far"),
        Output(
            "dialogue_engagingness", 0.0, None, half=1.0,
            description="a sum over sentences, from 0 to their number; undefined without a fact; 1 scores .5",
        ),
        Output("dialogue_groundedness", description="it agrees with the fact; undefined without one"),
        Output("dialogue_understandability", description="one can tell what is meant; reads the response alone"),
    ),
    needs=("input", "weights", "extra:models"),
    cost="local",
    multi_reference=(
        "the first reference that is not blank is read as the fact that the response should rest on; others are ignored"
    ),
    domains=("open dialogue", "dialogue about given knowledge"),
    tasks=("dialogue", "response generation"),
    best_for=("responses to small talk with a given piece of knowledge", "several qualities apart from each other"),
    not_for=(
        "references that are other good responses: they are no facts",
        "task-oriented dialogue",
        "texts other than English",
    ),
    limits=(
        "engagingness grows with the number of sentences; autometrics-ai 0.1.0 states its range as 0 to 1",
        "the published numbers have turns on lines of their own, an empty line after the dialogue, and a line break "
        "after the fact",
        "sentences are split by the bank's own rules, the reference code by NLTK's trained ones",
        "beyond 1,024 tokens the end of the last text is cut off: the fact where there is one, else the dialogue, "
        "whose latest turn is then lost",
        "a tokenizer that does not have Yes and No as two tokens is refused: all answers would be .5",
    ),
    failure_cases=(
        "three dull sentences outdo one that is engaging",
        "a response that copies the fact is grounded, and answers nothing",
    ),
    related=("unieval_coherence", "distinct_2", "perplexity"),
    papers=("Zhong et al. 2022, Towards a unified multi-dimensional evaluator for text generation",),
    checkpoint=Checkpoint("MingZhong/unieval-dialog", 3.1, 3.4, 1024, "the end is cut off: that of the last field"),
)  # fmt: skip

compute = partial(yes_shares, questions=QUESTIONS)
