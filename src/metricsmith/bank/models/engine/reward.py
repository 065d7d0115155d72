"""Numbers that a decoder's head gives to a chat: at its last token, or at each token that ends a step.

The place of a token is known from the chat's own length, never looked for by the padding's id: that id may be the one
that ends every turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch
from metricsmith.bank.models.engine.batching import batched, finite, padded
from metricsmith.bank.models.engine.loader import Network, computing, network
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import NeedsError

__all__ = ["Chat", "read_chats", "rewards"]

Chat = Sequence[dict[str, str]]  # turns with role and content
DATE = "26 Jul 2024"  # stands where a template puts in today's: the default of Llama 3.1's own


def rewards(batch: TextBatch, outputs: Names) -> Reasoned:
    """The reward of each output as the assistant's answer to the input, read at the chat's last token.

    Undefined without an input or an output, and where the chat is longer than the network reads.
    """
    found = read_chats(batch.spec, [_turns(*row) for row in zip(batch.inputs, batch.outputs, strict=True)])
    values = np.array([math.nan if isinstance(one, str) else one[0, 0] for one in found])
    return Reasoned(dict.fromkeys(outputs, values), [one if isinstance(one, str) else "" for one in found])


def read_chats(spec: ModelSpec, chats: Sequence[Chat | str], mark: str = "") -> list[FloatArray | str]:
    """The numbers of each chat, by the checkpoint's own chat template.

    Parameters
    ----------
    spec : ModelSpec
    chats : sequence of Chat or str
        n chats; a text is the reason why there is none.
    mark : str
        The token at which numbers are read; empty stands for the last one.

    Returns
    -------
    list of array or str
        Of each chat the head's k numbers at m tokens, shape (m, k), or the reason why there are none.

    Raises
    ------
    NeedsError
        If the checkpoint has no chat template, or the mark is no token of it.
    """
    loaded = network(spec)
    place = _mark_id(spec, loaded, mark) if mark else None
    ids = [one if isinstance(one, str) else _token_ids(spec, loaded, one) for one in chats]
    whole = [one for one in ids if isinstance(one, tuple)]
    with computing():
        found = iter(batched(spec, whole, len, partial(_forward, loaded, mark=place)))
    return [one if isinstance(one, str) else next(found) for one in ids]


def _turns(question: str, answer: str) -> Chat | str:
    if not question.strip() or not answer.strip():
        return f"the {'output' if question.strip() else 'input'} is empty"
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def _token_ids(spec: ModelSpec, loaded: Network, chat: Chat) -> tuple[int, ...] | str:
    """The chat's token ids, or that they are too many; the template marks the beginning, once unless asked to twice."""
    from jinja2 import TemplateError

    if loaded.tokenizer.chat_template is None:
        raise NeedsError(
            f"{spec.name}: the checkpoint {spec.location()} has no chat template, so nothing says how the network was "
            "shown a question and its answer; take one whose tokenizer has a template"
        )
    try:
        text = loaded.tokenizer.apply_chat_template(chat, tokenize=False, date_string=DATE, strftime_now=lambda _: DATE)
    except TemplateError as problem:  # of a template that is wrong, refuses this chat, or reaches out of its sandbox
        raise ValueError(f"the chat template fails: {problem}") from problem
    twice = dict(spec.options).get("start_marks") == "two"
    ids = tuple(loaded.encoded(text, add_special_tokens=twice)["input_ids"])
    if len(ids) > loaded.max_tokens:
        return f"the chat has {len(ids)} tokens, the network reads {loaded.max_tokens}"
    return ids


def _mark_id(spec: ModelSpec, loaded: Network, mark: str) -> int:
    ids = loaded.encoded(mark, add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        raise NeedsError(f"{spec.name}: {mark} is {len(ids)} tokens of {spec.location()} and must be one")
    return int(ids[0])


def _forward(loaded: Network, batch: list[tuple[int, ...]], mark: int | None) -> list[FloatArray]:
    ids, mask = padded(batch, loaded.tokenizer.pad_token_id or 0, loaded.device)
    places: list[Any] = [[len(one) - 1] if mark is None else np.flatnonzero(np.equal(one, mark)) for one in batch]
    counts = [len(found) for found in places]
    rows = np.repeat(np.arange(len(batch)), counts)
    numbers = loaded.module(ids, mask, rows.tolist(), np.concatenate(places).tolist())
    return np.split(finite(numbers), np.cumsum(counts)[:-1])
