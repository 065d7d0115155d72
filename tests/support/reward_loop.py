"""Reward models run one chat at a time by transformers alone: no padding, the head written out as matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metricsmith.bank.base import Family, judge_family
from metricsmith.metric import make_row
from metricsmith.records import Judgement

PAIRS = [
    ("It is twelve.", "How much is 7 + 5?"),
    ("No.", "Is the museum open on Mondays? The guide book of 1998 says so, and so does the man at the desk."),
    ("First, wash the rice.\n\nThen boil it for 11 minutes.\n\nServe it.", "How is rice cooked?"),
    ("The turn ends here <|eot_id|> and <pad> goes on <end_of_turn> <|endoftext|>.", "Where does the turn end?"),
]
"""Unequal lengths in both orders; the last output holds the id that pads, inside the text."""


def judged(family: Family, pairs: list[tuple[str, str]]) -> list[list[Judgement]]:
    """The judgements of each output of the family on pairs of output and input."""
    return judge_family(family.metrics(), [make_row(output, input=question) for output, question in pairs])


def last_states(path: Path, messages: list[dict[str, str]], **options: Any) -> tuple[list[int], Any]:
    """The token ids of a chat, and the backbone's hidden states over it, shape (t, d)."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    ids = tokenizer.apply_chat_template(messages, tokenize=True)
    with torch.inference_mode():
        states = AutoModel.from_pretrained(path, **options).eval()(torch.tensor([ids])).last_hidden_state[0]
    return ids, states


def weights(path: Path) -> dict[str, Any]:
    """The tensors of a tiny checkpoint."""
    from safetensors.torch import load_file

    return load_file(path / "model.safetensors")


def linear(tensors: dict[str, Any], name: str, values: Any) -> Any:
    """One linear layer by its name."""
    return values @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def question_and_answer(output: str, question: str) -> list[dict[str, str]]:
    """The chat of the reward models: the input asks, the output answers."""
    return [{"role": "user", "content": question}, {"role": "assistant", "content": output}]
