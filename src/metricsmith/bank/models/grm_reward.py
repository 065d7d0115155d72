"""GRM: the reward that a small Llama gives to an answer."""

from __future__ import annotations

from metricsmith.bank.models.engine.reward import rewards
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(
    name="grm_reward",
    id="Ray2333/GRM-Llama3.2-3B-rewardmodel-ft",
    head="reward",
    # One is what the template writes, and what Llama was trained with. No published number tells which is right.
    choices=(("start_marks", ("one", "two")),),
)

CARD = MetricCard(
    name="GRM Reward",
    kind="bank",
    summary=(
        "How much people would prefer this answer to the input, as a Llama 3.2 of 3 billion parameters judges that was "
        "trained on pairs of answers of which one was preferred."
    ),
    formula=(
        "w . h for the last hidden state h of the chat (input as the user's turn, output as the assistant's, written "
        "by the checkpoint's own template with one start mark and a fixed date); no activation"
    ),
    # The training loss reads a difference of 5 as 99 % of people preferring one of two answers.
    outputs=(
        Output("grm_reward", None, None, half=5.0, description="a logit; compare it between answers to one input only"),
    ),
    needs=("input", "weights", "extra:models"),
    cost="local",
    domains=("chat", "instructions", "general text"),
    tasks=("dialogue", "instruction following", "question answering", "safety"),
    best_for=("ranking several answers to one input", "refusals and harmless answers", "a small GPU"),
    not_for=("comparing numbers across inputs", "checking facts", "texts that answer nothing, such as translations"),
    limits=(
        "numbers of different inputs are not on one scale: training only compared answers to the same input",
        "a chat longer than the network reads has no number",
        "the model's card tokenises the written chat once more and so begins it with two start marks; here it has the "
        "one of the template, as in autometrics-ai 0.1.0, since a second occurs in no chat; start_marks='two' follows "
        "the card, and no published number tells them apart",
        "Llama 3.2's template writes in the day of the run; here the date is always 26 Jul 2024",
        "implementations that look for the padding's id to find the end go wrong where that id also ends a turn",
    ),
    failure_cases=("a long, polite and wrong answer may get more than a short right one",),
    related=("inform_reward", "ldl_reward"),
    papers=("Yang et al. 2024, Regularizing hidden states enables learning generalizable reward model for LLMs",),
    checkpoint=Checkpoint(MODEL.id, 6.43, 12.9, 131072, "the number is undefined"),
)

compute = rewards
