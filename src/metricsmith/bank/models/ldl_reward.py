"""LDL: distributions of ratings that a Gemma 2 expects for an answer, weighed into one reward."""

from __future__ import annotations

from metricsmith.bank.models.engine.reward import rewards
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(
    name="ldl_reward",
    id="ShikaiChen/LDL-Reward-Gemma-2-27B-v0.1",
    head="reward_levels",
    dtype="bfloat16",
    pickles=(("regression_layer.pt", "regression_layer."), ("gating_layer.pt", "gating_layer.")),
)

CARD = MetricCard(
    name="LDL Reward",
    kind="bank",
    summary=(
        "How much people would prefer this answer to the input: a Gemma 2 of 27 billion parameters predicts how "
        "ratings of 22 qualities (helpful, correct, coherent and so on) are spread, and weighs their means."
    ),
    formula=(
        "sum over qualities q of w_q sum over levels k of p_qk k / 9, k = 0 to 9: p_q the softmax of ten numbers, w "
        "from a gate (its softmax only where the config says so, so weights may be negative); both from three linear "
        "layers with leaky ReLU on the last hidden state of the chat"
    ),
    # autometrics-ai's card saw numbers from about -3.5 to 7: half 3.5 gives the lowest .25.
    outputs=(Output("ldl_reward", None, None, half=3.5, description="compare it between answers to one input only"),),
    needs=("input", "weights", "extra:models"),
    cost="local",
    domains=("chat", "instructions", "general text"),
    tasks=("dialogue", "instruction following", "question answering", "reasoning"),
    best_for=("ranking several answers to one input, where a large GPU is at hand",),
    not_for=("comparing numbers across inputs", "checking facts", "reading the 22 qualities one by one"),
    limits=(
        "numbers of different inputs are not on one scale",
        "computed in bfloat16 (setting dtype), chat by chat, since its sums depend on the batch's shape; the heads in "
        "float32",
        "a chat longer than the network reads has no number; servers of the model cut it at 4,096 tokens or before",
        "attention is computed with Gemma 2's soft cap, which fast kernels of transformers 4.57 leave out",
        "the published code takes the token before the first padding id as the last, and Gemma's tokenizer pads on "
        "the left: in a batch it reads padding",
    ),
    failure_cases=("a fluent answer to another question may still get a high reward",),
    related=("grm_reward", "inform_reward"),
    papers=("Chen et al. 2025, LDL-Reward-Gemma-2-27B-v0.1 (model card)",),
    checkpoint=Checkpoint(
        "ShikaiChen/LDL-Reward-Gemma-2-27B-v0.1", 54.8, 54.8, 8192, "the number is undefined", dtype="bfloat16"
    ),
)

compute = rewards
