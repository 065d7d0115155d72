"""One batcher for all networks: distinct items once, sorted by length, in batches of so many tokens."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from metricsmith.bank.base import FloatArray, IntArray
from metricsmith.bank.models.spec import ModelSpec

__all__ = ["batched", "finite", "in_batches", "padded", "token_budget"]

# Tokens in a batch, padding included. On one core a network of base size takes 1.6 times as long with 4,096 as with
# 512, whose intermediate results fit its caches; an accelerator wants many.
TOKENS_CPU, TOKENS_ACCELERATOR = 512, 16_384
Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")
_budget: ContextVar[int | None] = ContextVar("metricsmith_token_budget", default=None)


@contextmanager
def token_budget(tokens: int) -> Iterator[None]:
    """Let a batch have at most so many tokens inside, padding included; one item is always allowed."""
    token = _budget.set(tokens)
    try:
        yield
    finally:
        _budget.reset(token)


def batched(
    spec: ModelSpec,
    items: Sequence[Item],
    length: Callable[[Item], int],
    forward: Callable[[list[Item]], Sequence[Result]],
) -> list[Result]:
    """Put items through a network, each distinct one once.

    Below full precision each item goes alone: sums in half precision depend on the batch's shape.

    Parameters
    ----------
    spec : ModelSpec
    items : sequence of hashable
        n items, in any order, with repetitions.
    length : callable
        The count of tokens of an item.
    forward : callable
        From b items to b results; every result must depend on its own item alone.

    Returns
    -------
    list
        n results, in the order of `items`.

    Raises
    ------
    RuntimeError
        If one item alone is too much for the memory; batches are halved before that.
    """
    found: dict[Item, Result] = {}
    for batch in in_batches(spec, items, length):
        found.update(zip(batch, _halving(batch, forward), strict=True))
    return [found[item] for item in items]


def in_batches(spec: ModelSpec, items: Sequence[Item], length: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Distinct items in batches of at most so many tokens; the longest first: what is too much shows at once."""
    from torch import accelerator

    budget = _budget.get() or (TOKENS_ACCELERATOR if accelerator.is_available() else TOKENS_CPU)
    budget = budget if spec.dtype == "float32" else 1
    order = sorted(dict.fromkeys(items), key=length, reverse=True)
    return _cut(order, [length(item) for item in order], budget)


def _cut(items: Sequence[Item], lengths: Sequence[int], budget: int) -> Iterator[list[Item]]:
    """Batches of items in falling order of length; padded to its first item each has at most `budget` tokens."""
    start = 0
    while start < len(items):
        size = max(1, budget // max(lengths[start], 1))
        yield list(items[start : start + size])
        start += size


def _halving(batch: list[Item], forward: Callable[[list[Item]], Sequence[Result]]) -> list[Result]:
    from torch import OutOfMemoryError, cuda

    try:
        return list(forward(batch))
    except (OutOfMemoryError, MemoryError):
        if len(batch) == 1:
            raise
        cuda.empty_cache()
    middle = len(batch) // 2
    return _halving(batch[:middle], forward) + _halving(batch[middle:], forward)


def finite(tensor: Any) -> FloatArray:
    """A tensor as a float64 array; ArithmeticError if a number of it is not finite."""
    found = np.asarray(tensor.cpu().double().numpy())  # in this order: Apple's devices have no float64
    if not np.isfinite(found).all():
        raise ArithmeticError("the network gave a number that is not finite")
    return found


def padded(sequences: Sequence[Sequence[int]], pad: int, device: Any) -> tuple[Any, Any]:
    """Token ids and attention mask of b sequences, two tensors of shape (b, longest), padded on the right.

    Whatever side the tokenizer pads on: with a mask a causal network never sees padding that comes after, and the
    place of the last token is known from the mask and not looked for by the padding's id.
    """
    import torch

    longest = max(map(len, sequences))
    ids: IntArray = np.full((len(sequences), longest), pad, dtype=np.int64)
    mask = np.zeros((len(sequences), longest), dtype=np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
