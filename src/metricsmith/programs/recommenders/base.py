"""What every recommender has in common: the protocol, what it returns, and the query it starts from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import OptionError
from metricsmith.records import MetricCard, Task, Usage

__all__ = ["Recommendation", "Recommender", "by_score", "check_pool", "query_text", "unscored"]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which cards of a pool to use, most promising first.

    Parameters
    ----------
    names : tuple of str
        Names of cards in the pool, without repeats.
    scores : tuple of float
        One per name, larger is better, on the recommender's own scale; NaN where the place in the order is
        all there is (a language model's ranking).
    unknown : tuple of str
        Names that a model gave and that no card carries, as it wrote them.
    notes : tuple of str
        What a reader of the report should know about this choice.
    usage : Usage
        What the choice cost; nothing for recommenders without a language model.
    """

    names: tuple[str, ...]
    scores: tuple[float, ...]
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        if len(self.names) != len(self.scores):
            raise ValueError(f"{len(self.names)} names need as many scores, got {len(self.scores)}")

    def __len__(self) -> int:
        return len(self.names)


@runtime_checkable
class Recommender(Protocol):
    """Anything that puts the cards of a pool in order for a task."""

    def recommend(self, task: Task | str, cards: Sequence[MetricCard], k: int = 30) -> Recommendation:
        """Name the `k` most promising cards, or all of them if the pool is smaller.

        Parameters
        ----------
        task : Task or str
            The task with its target, or plain words to look for.
        cards : sequence of MetricCard
            The pool; names must differ. Its order breaks ties.
        k : int
            How many cards to name, at least 1.

        Raises
        ------
        OptionError
            If the pool is empty, two cards share a name, or `k` is below 1.
        """


def query_text(task: Task | str) -> str:
    """The words to look for: the task's description and the name of its target.

    Examples
    --------
    >>> query_text("readable summaries")
    'readable summaries'
    """
    return task if isinstance(task, str) else f"{task.description}\n{task.target}"


def check_pool(cards: Sequence[MetricCard], k: int) -> None:
    """Refuse an empty pool, repeated names and a `k` below 1 with an `OptionError`."""
    if k < 1:
        raise OptionError(f"k = {k} asks for no metric: k must be at least 1 (30 is the default)")
    if not cards:
        raise OptionError("the pool of metric cards is empty: give at least one card to recommend from")
    repeated = [name for name, count in Counter(card.name for card in cards).items() if count > 1]
    if repeated:
        raise OptionError(
            f"several metric cards are named {repeated[0]!r}: names must differ; rename all but one of them"
        )


def by_score(
    cards: Sequence[MetricCard], scores: NDArray[np.floating], k: int, notes: tuple[str, ...] = ()
) -> Recommendation:
    """Take the `k` best scored cards; equal scores keep the order of the cards, NaN goes last.

    Parameters
    ----------
    cards : sequence of MetricCard
        n cards.
    scores : ndarray, shape (n,)
        Larger is better.
    """
    best = np.argsort(-np.asarray(scores, dtype=float), kind="stable")[:k].tolist()
    return Recommendation(
        names=tuple(cards[index].name for index in best),
        scores=tuple(float(scores[index]) for index in best),
        notes=notes,
    )


def unscored(names: Sequence[str]) -> tuple[float, ...]:
    """One NaN per name: the order is all that is known."""
    return (math.nan,) * len(names)
