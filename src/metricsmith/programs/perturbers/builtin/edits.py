"""Replacements in a text: found first, then drawn, then made, so that all perturbers change texts in one way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from metricsmith.programs.perturbers.base import Strength

__all__ = ["Edit", "applied", "appended", "chosen", "drawn", "fitted", "one_or_all"]

T = TypeVar("T")
_ENDINGS = ".!?…:;。！？｡)]}\"'”’»*`>"


class Edit(NamedTuple):
    """Put `new` in place of ``text[start:end]``."""

    start: int
    end: int
    new: str


def applied(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; of two that overlap the earlier one counts."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        if edit.start >= at:
            parts += [text[at : edit.start], edit.new]
            at = edit.end
    return "".join([*parts, text[at:]])


def chosen(items: Sequence[T], random: np.random.Generator) -> T:
    """One of the items, all alike likely; there must be one."""
    return items[int(random.integers(len(items)))]


def drawn(items: Sequence[T], count: int, random: np.random.Generator) -> list[T]:
    """`count` of the items (all, if there are fewer), without repetition, in their order."""
    places = random.permutation(len(items))[:count]
    return [items[int(place)] for place in sorted(places)]


def share(items: Sequence[T], part: float, random: np.random.Generator) -> list[T]:
    """A part of the items, from 0 to 1 and at least one of them, in their order."""
    return drawn(items, max(1, math.floor(part * len(items))), random)


def one_or_all(items: Sequence[T], strength: Strength, random: np.random.Generator) -> list[T]:
    """One item if the change shall be subtle, otherwise all of them."""
    return drawn(items, 1, random) if strength == "subtle" else list(items)


def fitted(addition: str, text: str) -> str:
    """The addition in small letters if the text has no others, so that letter case does not give it away."""
    return addition.lower() if text == text.lower() != text.upper() else addition


def appended(text: str, addition: str) -> str:
    """The text and then the addition: on the same line after a sentence, below anything else."""
    if not text.strip():
        return addition
    body = text.rstrip()
    inline = "\n" not in body and body[-1] in _ENDINGS
    return body + (" " if inline else "\n\n") + addition + text[len(body) :]


def sampler(items: Sequence[T], random: np.random.Generator) -> Callable[[], T]:
    """A function that gives the items in a drawn order, each once before any comes again."""
    order = [items[int(place)] for place in random.permutation(len(items))]
    turn = iter(range(10**9))
    return lambda: order[next(turn) % len(order)]
