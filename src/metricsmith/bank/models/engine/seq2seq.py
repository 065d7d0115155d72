"""Encoders with decoders: the likelihood of a text given another, and the first token of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray
from metricsmith.bank.models.engine.batching import batched, finite, padded
from metricsmith.bank.models.engine.causal import picked_log_likelihoods
from metricsmith.bank.models.engine.loader import Network, computing, network
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import NeedsError

__all__ = ["first_token_share", "mean_log_likelihoods"]

_Ids = tuple[int, ...]


def mean_log_likelihoods(spec: ModelSpec, sources: Sequence[str], targets: Sequence[str]) -> FloatArray:
    """The mean natural log-likelihood of a target's tokens, its marks included, given a source, for n pairs: (n,).

    The decoder is fed the target's tokens moved on by one place, once: its start token, then all but the last. Sources
    that a batch has several times are encoded once. Beyond the network's places the end of a text is cut off.

    Raises
    ------
    ArithmeticError
        If a number of the network is not finite.
    """
    loaded = network(spec)
    ids = _token_ids(loaded, [*sources, *targets], loaded.max_tokens)

    def forward(batch: list[tuple[_Ids, _Ids]]) -> list[float]:
        labels, mask = padded([target for _, target in batch], loaded.tokenizer.pad_token_id, loaded.device)
        logits = _decoded(loaded, [source for source, _ in batch], labels[:, :-1])
        found = finite(picked_log_likelihoods(logits, labels) * mask)
        return list(found.sum(1) / mask.sum(1).cpu().numpy())

    with computing():
        pairs = list(zip(ids[: len(sources)], ids[len(sources) :], strict=True))
        return np.array(batched(spec, pairs, lambda pair: max(map(len, pair)), forward), dtype=np.float64)


def first_token_share(spec: ModelSpec, texts: Sequence[str], words: tuple[str, str], longest: int) -> FloatArray:
    """The probability of the first of two words as the answer's first token, out of that of both, for n texts: (n,).

    Beyond `longest` tokens, the mark at the end included, the end of a text is cut off.

    Raises
    ------
    NeedsError
        If the words are not two tokens of the tokenizer.
    ArithmeticError
        If a number of the network is not finite.
    """
    loaded = network(spec)
    found = [loaded.encoded(word, add_special_tokens=False)["input_ids"] for word in words]
    if any(len(ids) != 1 for ids in found) or found[0] == found[1]:
        raise NeedsError(
            f"{spec.name}: {' and '.join(map(repr, words))} are the tokens {' and '.join(map(str, found))} of the "
            f"checkpoint {spec.location()}: each must be one token of its own, else the answers cannot be told apart"
        )
    wanted = [ids[0] for ids in found]

    def forward(batch: list[_Ids]) -> list[float]:
        logits = _decoded(loaded, batch, None)[:, 0, wanted].cpu().double()
        return list(finite((logits[:, 0] - logits[:, 1]).sigmoid()))

    with computing():
        return np.array(batched(spec, _token_ids(loaded, texts, longest), len, forward), dtype=np.float64)


def _token_ids(loaded: Network, texts: Sequence[str], longest: int) -> list[_Ids]:
    encoded = loaded.encoded(list(texts), truncation=True, max_length=longest)["input_ids"] if texts else []
    return [tuple(ids) for ids in encoded]


def _decoded(loaded: Network, sources: list[_Ids], follows: Any) -> Any:
    """Logits after the start token and after each token that follows it: (b, 1 + t, vocabulary)."""
    import torch

    distinct = {source: place for place, source in enumerate(dict.fromkeys(sources))}
    ids, mask = padded(list(distinct), loaded.tokenizer.pad_token_id, loaded.device)
    start = torch.full((len(sources), 1), loaded.module.config.decoder_start_token_id, device=loaded.device)
    given: dict[str, Any] = {
        "decoder_input_ids": start if follows is None else torch.cat([start, follows], dim=1), "use_cache": False,
    }  # fmt: skip
    if len(distinct) == len(sources):
        return loaded.module(input_ids=ids, attention_mask=mask, **given).logits
    places = torch.tensor([distinct[source] for source in sources], device=loaded.device)
    hidden = loaded.module.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    return loaded.module(encoder_outputs=(hidden[places],), attention_mask=mask[places], **given).logits
