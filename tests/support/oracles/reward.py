"""Oracles of the reward models, one row at a time and without padding, and of the fastText classifiers.

Sources: LlamaForSequenceClassification of transformers for GRM; allenai/reward-bench, rewardbench/models/inform.py and
ldlreward.py; the model card of Qwen2.5-Math-PRM-7B; fasttext-predict 0.9.2.4, and the cards of the three models.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from metricsmith.metric import RowText
from oracles.common import Settings, limit, network, safe_tensors, tokenizer

__all__ = [
    "fasttext_educational", "fasttext_nsfw", "fasttext_toxicity", "grm_reward", "inform_reward", "ldl_reward",
    "math_prm",
]  # fmt: skip

SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."


def _dialogue(path: Path, row: RowText) -> str:
    turns = [{"role": "user", "content": row.input}, {"role": "assistant", "content": row.output}]
    return str(tokenizer(path).apply_chat_template(turns, tokenize=False, date_string="26 Jul 2024"))


def _ids(path: Path, text: str, special: bool) -> list[int]:
    return list(tokenizer(path)(text, add_special_tokens=special)["input_ids"])


def _states(path: Path, ids: list[int]) -> Any:
    """The last hidden states of the backbone, whose weights are saved under `model.`: (tokens, width)."""
    import torch

    with torch.inference_mode():
        return _backbone(path)(torch.tensor([ids])).last_hidden_state[0]


@lru_cache(maxsize=4)
def _backbone(path: Path) -> Any:
    from transformers import AutoConfig, AutoModel

    # In transformers 4.57.6 the soft cap of Gemma 2 is computed in eager attention alone.
    config = AutoConfig.from_pretrained(path, local_files_only=True)
    model = AutoModel.from_config(config, attn_implementation="eager").eval()
    own = {name.removeprefix("model."): part for name, part in safe_tensors(path).items() if name.startswith("model.")}
    model.load_state_dict(own, strict=True)
    return model


def _linear(path: Path, name: str, states: Any) -> Any:
    weights = safe_tensors(path)
    return states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def grm_reward(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """The stock head; the template brings the one mark for the beginning. The card's recipe puts a second before it."""
    import torch

    ids = _ids(path, _dialogue(path, row), special=settings.get("start_marks") == "two")
    with torch.inference_mode():
        # Without padding the last token counts. transformers looks for the pad token, which ends each turn here.
        model = network(path, "LlamaForSequenceClassification")
        return {"grm_reward": float(model.score(model.model(torch.tensor([ids])).last_hidden_state[0, -1]))}


def inform_reward(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Two linear layers with a ReLU between, on the last token."""
    last = _states(path, _ids(path, _dialogue(path, row), special=False))[-1]
    return {"inform_reward": float(_linear(path, "score.2", _linear(path, "score.0", last).clamp(min=0)))}


def ldl_reward(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """A distribution over ten values for each objective, weighed by a gate, and its mean."""
    import torch
    from torch.nn.functional import leaky_relu

    last = _states(path, _ids(path, _dialogue(path, row), special=False))[-1]
    config = _backbone(path).config

    def network_of(name: str, numbers: tuple[int, int, int]) -> Any:
        first, second, third = (f"{name}.network.{number}" for number in numbers)
        hidden = leaky_relu(_linear(path, second, leaky_relu(_linear(path, first, last))))
        return _linear(path, third, hidden)

    shares = torch.softmax(network_of("regression_layer", (0, 2, 4)).view(-1, 10), -1)
    gate = network_of("gating_layer", (0, 3, 6))
    if config.softmax:
        gate = torch.softmax(gate / config.temperature, -1)
    return {"ldl_reward": float(gate @ shares @ torch.linspace(0, 1, 10))}


def math_prm(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """The probability that a step is right, at the mark after each step."""
    import torch

    steps = [step.strip() for step in row.output.split("\n\n") if step.strip()]
    turns = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": row.input},
        {"role": "assistant", "content": "<extra_0>".join(steps) + "<extra_0>"},
    ]
    text = tokenizer(path).apply_chat_template(turns, tokenize=False, add_generation_prompt=False)
    ids = tokenizer(path).encode(text)
    mark = tokenizer(path).encode("<extra_0>")[0]
    places = [place for place, number in enumerate(ids[: limit(path)]) if number == mark]
    states = _states(path, ids)[places]
    logits = _linear(path, "score.2", _linear(path, "score.0", states).clamp(min=0))
    right = torch.softmax(logits.double(), -1)[:, 1]
    return {
        "math_prm_min": float(right.min()), "math_prm_max": float(right.max()), "math_prm_mean": float(right.mean()),
    }  # fmt: skip


@lru_cache(maxsize=4)
def _fasttext(path: Path) -> Any:
    import fasttext

    return fasttext.load_model(str(path))


def _shares(path: Path, text: str) -> dict[str, float]:
    labels, shares = _fasttext(path).predict(text, k=-1)
    return dict(zip(labels, shares, strict=True))


def fasttext_educational(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """The expected class: Low 0, Mid 1, High 2."""
    shares = _shares(path, re.sub("\n+", " ", row.output))
    return {"fasttext_educational_value": shares["__label__Mid"] + 2 * shares["__label__High"]}


def fasttext_nsfw(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Probability of nsfw."""
    return {"fasttext_nsfw": _shares(path, row.output.replace("\n", " ").strip())["__label__nsfw"]}


def fasttext_toxicity(path: Path, row: RowText, settings: Settings) -> dict[str, float]:
    """Probability of toxic."""
    return {"fasttext_toxicity": _shares(path, row.output.replace("\n", " ").strip())["__label__toxic"]}
