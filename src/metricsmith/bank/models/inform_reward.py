"""INFORM: the reward that a large Llama gives to an answer."""

from __future__ import annotations

from metricsmith.bank.models.engine.reward import rewards
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(name="inform_reward", id="infly/INF-ORM-Llama3.1-70B", head="reward_relu", dtype="bfloat16")

CARD = MetricCard(
    name="INFORM Reward",
    kind="bank",
    summary=(
        "How much people would prefer this answer to the input, as a Llama 3.1 of 70 billion parameters judges that "
        "was trained on preferred and rejected answers, with more weight on clear preferences."
    ),
    formula=(
        "W2 relu(W1 h + b1) + b2 for the last hidden state h of the chat (input as the user's turn, output as the "
        "assistant's, written by the checkpoint's own template); no activation at the end"
    ),
    # autometrics-ai's card saw numbers from about -33 to 3: -33 still scores above .1 with half 10.
    outputs=(
        Output(
            "inform_reward", None, None, half=10.0, description="a logit; compare it between answers to one input only"
        ),
    ),
    needs=("input", "weights", "extra:models"),
    cost="local",
    domains=("chat", "instructions", "general text"),
    tasks=("dialogue", "instruction following", "question answering", "reasoning"),
    best_for=("ranking several answers to one input, where two large GPUs are at hand",),
    not_for=("comparing numbers across inputs", "checking facts", "large numbers of rows"),
    limits=(
        "numbers of different inputs are not on one scale",
        "computed in bfloat16 (setting dtype), chat by chat, since its sums depend on the batch's shape; the head in "
        "float32; float32 throughout needs twice the memory",
        "a chat longer than the network reads has no number",
        "the published code takes the token before the first padding id as the last: wrong where that id ends a turn, "
        "and with padding on the left",
    ),
    failure_cases=("a fluent answer to another question may still get a high reward",),
    related=("grm_reward", "ldl_reward"),
    papers=("Yang 2024, INF-ORM-Llama3.1-70B (model card)",),
    checkpoint=Checkpoint(
        "infly/INF-ORM-Llama3.1-70B", 141.2, 141.2, 131072, "the number is undefined", dtype="bfloat16"
    ),
)

compute = rewards
