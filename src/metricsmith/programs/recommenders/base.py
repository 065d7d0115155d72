"""The common ground of recommenders: the protocol, what it returns, the query, and the module around a first stage."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import OptionError
from metricsmith.records import MetricCard, Task, Usage

__all__ = ["FirstStage", "Recommendation", "Recommender", "brief", "by_score", "check_pool", "query_text", "unscored"]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended cards of a pool, most promising first.

    Parameters
    ----------
    names : tuple of str
        Names of cards in the pool, without repeats.
    scores : tuple of float
        One per name, larger is better, on the recommender's own scale; NaN where only the order is known (a
        language model's ranking).
    unknown : tuple of str
        Names that a model gave and that no card carries, as it wrote them.
    notes : tuple of str
        Remarks on this choice for the readers of a report.
    usage : Usage
        The cost of the choice; nothing for recommenders without a language model.
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
            The task with its target, or a plain text as the query.
        cards : sequence of MetricCard
            The pool; names must differ. Its order breaks ties.
        k : int
            How many cards to name, at least 1.

        Raises
        ------
        OptionError
            If the pool is empty, two cards share a name, or `k` is below 1.
        """


class FirstStage(dspy.Module):  # type: ignore[misc]
    """A recommender that asks no language model, as a module; subclasses give `recommend`."""

    def forward(self, *, task: str, target: str, cards: Sequence[MetricCard], k: int = 30) -> dspy.Prediction:
        """Return a Prediction with ``names``, at most `k`, their ``scores``, and ``unknown``, which is empty.

        Parameters
        ----------
        task, target : str
            The purpose of the outputs; the rating to follow.
        cards : sequence of MetricCard
            The pool; names must differ.
        k : int
            At least 1.

        Raises
        ------
        OptionError
            If the pool or `k` cannot be used.
        """
        found = self.recommend(f"{task}\n{target}", cards, k)
        return dspy.Prediction(names=list(found.names), scores=list(found.scores), unknown=[])

    async def aforward(self, *, task: str, target: str, cards: Sequence[MetricCard], k: int = 30) -> dspy.Prediction:
        """Recommend in a thread, without blocking the event loop; arguments and result are those of `forward`."""
        # By the class, for DSPy warns of calls of `self.forward`.
        return await asyncio.to_thread(FirstStage.forward, self, task=task, target=target, cards=cards, k=k)

    def recommend(self, task: Task | str, cards: Sequence[MetricCard], k: int = 30) -> Recommendation:
        """Name the `k` most promising cards; see `Recommender.recommend`."""
        raise NotImplementedError


def query_text(task: Task | str) -> str:
    """The query: the task's description and the name of its target.

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


def brief(card: MetricCard) -> MetricCard:
    """A card with name and summary alone."""
    return MetricCard(card.name, card.kind, card.summary, "", ())


def unscored(names: Sequence[str]) -> tuple[float, ...]:
    """One NaN per name: the order is all that is known."""
    return (math.nan,) * len(names)
