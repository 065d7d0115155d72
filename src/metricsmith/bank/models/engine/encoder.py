"""Contextual vectors of tokens, from the hidden layer that a spec names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.base import IntArray
from metricsmith.bank.models.engine.batching import batched, padded
from metricsmith.bank.models.engine.loader import Network, computing, network
from metricsmith.bank.models.spec import ModelSpec

__all__ = ["Encoded", "embedded", "encodings_kept", "special_ids", "token_ids"]

KEPT_BYTES = 1 << 29  # of vectors that one run keeps for its metrics


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text of t tokens, the marks at both ends included: `ids`, shape (t,), `vectors`, float32 (t, d)."""

    ids: IntArray
    vectors: NDArray[np.float32]


class _Kept:
    """Encodings by network and tokens, the least recently used forgotten above `KEPT_BYTES`."""

    def __init__(self) -> None:
        self.found: OrderedDict[tuple[Any, ...], Encoded] = OrderedDict()
        self.size = 0

    def get(self, key: tuple[Any, ...]) -> Encoded | None:
        if key in self.found:
            self.found.move_to_end(key)
        return self.found.get(key)

    def put(self, key: tuple[Any, ...], value: Encoded) -> None:
        if key not in self.found:
            self.found[key] = value
            self.size += value.vectors.nbytes
        while self.size > KEPT_BYTES:
            self.size -= self.found.popitem(last=False)[1].vectors.nbytes


_kept: ContextVar[_Kept | None] = ContextVar("metricsmith_encodings", default=None)


@contextmanager
def encodings_kept() -> Iterator[None]:
    """Encode each text once for all metrics of one network inside, as far as `KEPT_BYTES` goes."""
    token = _kept.set(_kept.get() or _Kept())
    try:
        yield
    finally:
        _kept.reset(token)


def token_ids(spec: ModelSpec, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """The token ids of each text, with the network's marks, cut at the longest text that it reads.

    White space at the ends does not count. The slow tokenizers of RoBERTa's kind, which published numbers rest on, see
    a space before the first word; here the fast one is given it.
    """
    loaded = network(spec)
    space = " " if spec.tokenizer == "slow" and loaded.module.config.model_type == "roberta" else ""
    stripped = [text.strip() for text in texts]
    spaced = [f"{space}{text}" if text else "" for text in stripped]
    ids = loaded.encoded(spaced, truncation=True, max_length=loaded.max_tokens)["input_ids"] if texts else []
    return [tuple(one) for one in ids]


def special_ids(spec: ModelSpec) -> frozenset[int]:
    """The ids of the marks that the tokenizer puts at the ends of a text."""
    tokenizer = network(spec).tokenizer
    return frozenset(tokenizer.build_inputs_with_special_tokens([]))


def embedded(spec: ModelSpec, texts: Sequence[str]) -> list[Encoded]:
    """The vectors of the tokens of n texts, as `token_ids` gives them; equal texts are encoded once."""
    loaded, kept = network(spec), _kept.get() or _Kept()
    tokens = token_ids(spec, texts)
    known = {ids: one for ids in dict.fromkeys(tokens) if (one := kept.get((loaded.key, ids))) is not None}
    new = [ids for ids in dict.fromkeys(tokens) if ids not in known]
    with computing():
        for ids, vectors in zip(new, batched(spec, new, len, lambda batch: _forward(loaded, batch)), strict=True):
            known[ids] = Encoded(np.array(ids, dtype=np.int64), vectors)
            kept.put((loaded.key, ids), known[ids])
    return [known[ids] for ids in tokens]


def _forward(loaded: Network, batch: list[tuple[int, ...]]) -> list[NDArray[np.float32]]:
    ids, mask = padded(batch, loaded.tokenizer.pad_token_id or 0, loaded.device)
    hidden = loaded.module(input_ids=ids, attention_mask=mask).last_hidden_state.float().cpu().numpy()
    return [hidden[row, : len(one)].copy() for row, one in enumerate(batch)]
