"""Math process reward: the chance that each step of a solution is right."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch
from metricsmith.bank.models.engine.reward import Chat, read_chats
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(name="math_prm", id="Qwen/Qwen2.5-Math-PRM-7B", head="reward_steps")
# The two texts that the model was trained with: the card of Qwen/Qwen2.5-Math-PRM-7B.
SYSTEM = r"Please reason step by step, and put your final answer within \boxed{}."
MARK = "<extra_0>"
SUMMARIES: dict[str, Callable[[FloatArray], float]] = {
    "math_prm_min": np.min,
    "math_prm_max": np.max,
    "math_prm_mean": np.mean,
}

CARD = MetricCard(
    name="Math Process Reward",
    kind="bank",
    summary=(
        "How likely each step of a mathematical solution is right, as a Qwen 2.5 of 7 billion parameters judges it "
        "that was trained on steps labelled right or wrong."
    ),
    formula=(
        "for each step softmax(W2 relu(W1 h + b1) + b2), second label, for the hidden state h at the mark <extra_0> "
        "that follows the step; steps are what blank lines separate; the chat is the system's request to reason step "
        "by step, the input and the marked output; then the lowest, highest or mean over steps"
    ),
    outputs=(
        Output("math_prm_min", description="the least likely step: one wrong step makes a solution wrong"),
        Output("math_prm_max", description="the most likely step"),
        Output("math_prm_mean", description="mean over steps"),
    ),
    needs=("input", "weights", "extra:models"),
    cost="local",
    domains=("mathematics", "step-by-step reasoning"),
    tasks=("math word problems", "reasoning", "solution checking"),
    best_for=("finding solutions with a wrong step", "choosing the best of several solutions, by the lowest step"),
    not_for=("text that is no reasoning in steps", "proofs in a formal language", "a final answer without its steps"),
    limits=(
        "an output without blank lines is one step, and its three numbers are equal",
        "a chat longer than the network reads has no number",
        "a text that contains the mark <extra_0> has no number: it would count as steps",
        "autometrics-ai 0.1.0 cuts steps by sentences and shortens the request, which the model was not trained for; "
        "it drops probabilities that underflow to 0",
    ),
    failure_cases=("a later step that builds on an error may still look right",),
    related=("grm_reward", "inform_reward", "ldl_reward"),
    papers=("Zhang et al. 2025, The lessons of developing process reward models in mathematical reasoning",),
    checkpoint=Checkpoint("Qwen/Qwen2.5-Math-PRM-7B", 15.3, 28.4, 4096, "the number is undefined"),
)


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """One pass for each distinct solution; the three outputs share it."""
    chats = [_solution(*row) for row in zip(batch.inputs, batch.outputs, strict=True)]
    found = [one if isinstance(one, str) else _right(one) for one in read_chats(batch.spec, chats, MARK)]
    scores = {
        name: np.array([np.nan if isinstance(one, str) else SUMMARIES[name](one) for one in found]) for name in outputs
    }
    return Reasoned(scores, [one if isinstance(one, str) else "" for one in found])


def _solution(question: str, answer: str) -> Chat | str:
    steps = [step for step in re.split(r"\n\s*\n", answer) if step.strip()]
    if not question.strip() or not steps:
        return "the output has no step" if question.strip() else "the input is empty"
    if MARK in question + answer:
        return f"a text contains {MARK}, the mark of a step"
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": question},
        {"role": "assistant", "content": "".join(step + MARK for step in steps)},
    ]


def _right(numbers: FloatArray) -> FloatArray:
    """The probability of the second of two labels: shape (m, 2) to (m,)."""
    return np.asarray(0.5 + 0.5 * np.tanh((numbers[:, 1] - numbers[:, 0]) / 2))
