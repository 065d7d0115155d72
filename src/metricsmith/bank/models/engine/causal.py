"""Causal language models: log-likelihoods of tokens in sliding windows, and last hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray
from metricsmith.bank.models.engine.batching import batched, finite, padded
from metricsmith.bank.models.engine.loader import computing, network
from metricsmith.bank.models.spec import ModelSpec

__all__ = ["last_states", "picked_log_likelihoods", "windowed_log_likelihoods"]


def windowed_log_likelihoods(
    spec: ModelSpec, texts: Sequence[str], stride: int, *, begin: bool = False
) -> list[FloatArray]:
    """The natural log-likelihood of each token of each text, given the tokens before it.

    A text longer than the network's places is read in overlapping windows: each is as long as the network allows and
    starts `stride` tokens after the one before; a token is scored once, in the first window that has it.

    Parameters
    ----------
    spec : ModelSpec
    texts : sequence of str
        n texts, read as they stand.
    stride : int
        At least 1; in a network with fewer than ``2 * stride`` places half of them, so that no token is left out.
    begin : bool
        Put the tokenizer's mark for a beginning before each text; the first token is then scored as well.

    Returns
    -------
    list of float array
        n arrays of shape (t - 1,), for texts of t tokens, the mark included.

    Raises
    ------
    ArithmeticError
        If a number of the network is not finite.
    """
    loaded = network(spec)
    places = loaded.max_tokens
    step = min(stride, max(places // 2, 1))
    mark = [loaded.tokenizer.bos_token_id] if begin else []
    encoded = loaded.encoded(list(texts), add_special_tokens=False, verbose=False)["input_ids"] if texts else []
    windows: list[tuple[tuple[int, ...], int]] = []  # token ids, and how many at the end are scored
    owners: list[int] = []
    for owner, ids in enumerate([*mark, *one] for one in encoded):
        scored = 1
        for start in range(0, len(ids), step):
            if scored >= len(ids):
                break
            window = tuple(ids[start : start + places])
            windows.append((window, start + len(window) - scored))
            owners.append(owner)
            scored = start + len(window)

    def forward(batch: list[tuple[tuple[int, ...], int]]) -> list[FloatArray]:
        ids, mask = padded([window for window, _ in batch], 0, loaded.device)
        logits = loaded.module(input_ids=ids, attention_mask=mask, use_cache=False).logits
        found = finite(picked_log_likelihoods(logits[:, :-1], ids[:, 1:]))
        return [row[len(window) - 1 - new : len(window) - 1] for row, (window, new) in zip(found, batch, strict=True)]

    with computing():
        found = batched(spec, windows, lambda window: len(window[0]), forward)
    parts: list[list[FloatArray]] = [[np.empty(0)] for _ in texts]
    for owner, part in zip(owners, found, strict=True):
        parts[owner].append(part)
    return [np.concatenate(part) for part in parts]


def last_states(spec: ModelSpec, texts: Sequence[str]) -> FloatArray:
    """The last hidden layer's vector of each text's last token, after the final norm: (n, d).

    `texts` are n texts of at least one token each; beyond the network's places the end is cut off. Errors as in
    `windowed_log_likelihoods`.
    """
    loaded = network(spec)
    encoded = loaded.encoded(list(texts), truncation=True, max_length=loaded.max_tokens)["input_ids"]

    def forward(batch: list[tuple[int, ...]]) -> list[FloatArray]:
        ids, mask = padded(batch, 0, loaded.device)
        hidden = loaded.module.base_model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        ends = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, hidden.shape[2])
        return list(finite(hidden.gather(1, ends)[:, 0]))

    with computing():
        return np.stack(batched(spec, [tuple(ids) for ids in encoded], len, forward))


def picked_log_likelihoods(logits: Any, ids: Any) -> Any:
    """Natural logs of the probabilities of `ids`, a tensor (b, t), under `logits`, (b, t, vocabulary): (b, t).

    Row by row, since a copy of the logits of a batch would be the largest thing in memory.
    """
    import torch

    picked = logits.gather(2, ids[..., None])[..., 0].float()
    return picked - torch.stack([row.float().logsumexp(1) for row in logits])
