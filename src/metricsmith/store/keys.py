"""Where a judgement is kept, and what is kept there."""

from __future__ import annotations

from dataclasses import dataclass

from metricsmith.records import Judgement

__all__ = ["Entry", "Key"]


@dataclass(frozen=True, slots=True)
class Key:
    """Where a judgement is kept: the row's key, the metric's number in the store, and the repetition from 0.

    The row's key is text that UTF-8 can hold, without lone surrogates.
    """

    row: str
    metric: int
    run: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A judgement to keep; `row_id` is the row's own name, for people."""

    key: Key
    row_id: str
    judgement: Judgement
