"""Numbers that a network's head gives for a text or a pair of texts, and the answers of a question answerer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray
from metricsmith.bank.models.engine.batching import batched, finite, padded
from metricsmith.bank.models.engine.loader import Network, computing, network
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import NeedsError

__all__ = ["AnswerSpan", "answers", "label_shares", "logits"]

Tokens = tuple[tuple[int, ...], tuple[int, ...]]  # ids, and for each 0 in the first text and 1 in the second


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """The likeliest span of a context: its characters, and the probability of its start times that of its end.

    NaN and empty for a context without tokens.
    """

    text: str
    probability: float


def logits(spec: ModelSpec, texts: Sequence[str], seconds: Sequence[str] | None = None) -> FloatArray:
    """The numbers of a head for classification or regression, for n texts or pairs: shape (n, labels).

    Where a text or pair is beyond the network's length, tokens are cut from the end of the longer of the two.

    Raises
    ------
    ArithmeticError
        If a number is not finite.
    """
    loaded = network(spec)
    tokens = _tokens(_encoded(loaded, texts, seconds)) if texts else []

    def forward(batch: list[Tokens]) -> Sequence[FloatArray]:
        return list(finite(_forward(loaded, batch).logits))

    with computing():
        return np.array(batched(spec, tokens, lambda item: len(item[0]), forward)).reshape(len(texts), -1)


def label_shares(
    spec: ModelSpec, labels: Sequence[str], texts: Sequence[str], seconds: Sequence[str] | None = None
) -> FloatArray:
    """The probabilities of k labels, found by their names, for n texts or pairs: shape (n, k).

    Raises
    ------
    NeedsError
        If the network has not exactly one label of each name; case does not count.
    """
    known = network(spec).module.config.id2label
    places = []
    for label in labels:
        found = [place for place, name in known.items() if name.casefold() == label.casefold()]
        if len(found) != 1:
            raise NeedsError(
                f"{spec.name}: the network has the labels {', '.join(known.values())}, and {label} {len(found)} times: "
                f"take a checkpoint that names it once, as {spec.id} does"
            )
        places += found
    return _softmax(logits(spec, texts, seconds))[:, places]


def answers(spec: ModelSpec, questions: Sequence[str], contexts: Sequence[str]) -> list[AnswerSpan]:
    """The likeliest answers to n questions, each in its context.

    Start and end are chosen together, the start not after the end, both in the context. Their probabilities are shares
    among all tokens of question and context. Where both are too long for the network, the longer is cut.
    """
    if not questions:
        return []
    loaded = network(spec)
    encoded = _encoded(loaded, questions, contexts, return_offsets_mapping=True)
    tokens = _tokens(encoded)

    def forward(batch: list[Tokens]) -> Sequence[FloatArray]:
        found = _forward(loaded, batch)
        both = np.stack([finite(found.start_logits), finite(found.end_logits)], axis=1)
        return [row[:, : len(ids)] for row, (ids, _) in zip(both, batch, strict=True)]

    with computing():
        scores = batched(spec, tokens, lambda item: len(item[0]), forward)
    result = []
    for row, (both, context) in enumerate(zip(scores, contexts, strict=True)):
        places = [place for place, part in enumerate(encoded.sequence_ids(row)) if part == 1]
        if not places:
            result.append(AnswerSpan("", np.nan))
            continue
        start, end, probability = _best_span(_softmax(both)[:, places])
        offsets = encoded["offset_mapping"][row]
        result.append(AnswerSpan(context[offsets[places[start]][0] : offsets[places[end]][1]], probability))
    return result


def _best_span(shares: FloatArray) -> tuple[int, int, float]:
    """Start, end and product of the best span of t tokens, from their shares (2, t); of ties the first end."""
    starts = np.maximum.accumulate(shares[0])  # the best start up to each end
    end = int(np.argmax(starts * shares[1]))
    return int(np.argmax(shares[0, : end + 1])), end, float(starts[end] * shares[1, end])


def _encoded(loaded: Network, texts: Sequence[str], seconds: Sequence[str] | None, **options: Any) -> Any:
    pairs = None if seconds is None else list(seconds)
    return loaded.encoded(
        list(texts), pairs, truncation="longest_first", max_length=loaded.max_tokens, return_token_type_ids=True,
        **options,
    )  # fmt: skip


def _tokens(encoded: Any) -> list[Tokens]:
    return [
        (tuple(ids), tuple(parts)) for ids, parts in zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)
    ]


def _forward(loaded: Network, batch: list[Tokens]) -> Any:
    ids, mask = padded([item[0] for item in batch], loaded.tokenizer.pad_token_id or 0, loaded.device)
    parts, _ = padded([item[1] for item in batch], 0, loaded.device)
    more = {"token_type_ids": parts} if getattr(loaded.module.config, "type_vocab_size", 0) > 1 else {}
    return loaded.module(input_ids=ids, attention_mask=mask, **more)


def _softmax(numbers: FloatArray) -> FloatArray:
    powers = np.exp(numbers - numbers.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
