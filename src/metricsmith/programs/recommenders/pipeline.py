"""Both stages in a row: a cheap one narrows the pool, a language model ranks what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import dspy

from metricsmith.errors import OptionError
from metricsmith.programs.recommenders.base import Recommendation, Recommender, check_pool
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.language_model import LMRecommender
from metricsmith.programs.state import Settings
from metricsmith.records import MetricCard, Task

__all__ = ["PipelineRecommender"]


class PipelineRecommender(dspy.Module):  # type: ignore[misc]
    """Retrieval of AutoMetrics, section 3.2: one stage keeps `first_k` cards, a model ranks `k` of them.

    Without a second stage the first one's order stands. A failing model call raises; the caller decides.

    Parameters
    ----------
    first : Recommender, optional
        BM25 by default.
    second : LMRecommender, optional
        Sees the first stage's cards, best first, and fills up from that order.
    first_k : int
        Number of cards that the second stage sees (60 in the paper), never fewer than `k`.

    Raises
    ------
    OptionError
        If `first_k` is below 1.
    """

    def __init__(
        self, first: Recommender | None = None, second: LMRecommender | None = None, *, first_k: int = 60
    ) -> None:
        super().__init__()
        if first_k < 1:
            raise OptionError(f"first_k = {first_k} leaves nothing to rank: at least 1 (60 is the default)")
        self.first: Recommender = first if first is not None else BM25Recommender()
        self.second = second
        self.settings = Settings(first_k=first_k)

    def forward(self, *, task: str, target: str, cards: Sequence[MetricCard], k: int = 30) -> dspy.Prediction:
        """Return a Prediction with ``names`` and ``unknown``; see `LMRecommender.forward`."""
        kept, retrieved = self._narrow(f"{task}\n{target}", cards, k)
        if self.second is None:
            return dspy.Prediction(names=list(retrieved.names[:k]), unknown=[])
        return self.second(task=task, target=target, cards=kept, k=k)

    async def aforward(self, *, task: str, target: str, cards: Sequence[MetricCard], k: int = 30) -> dspy.Prediction:
        """Recommend asynchronously, the first stage in a thread that sees the caller's DSPy context."""
        kept, retrieved = await asyncio.to_thread(self._narrow, f"{task}\n{target}", cards, k)
        if self.second is None:
            return dspy.Prediction(names=list(retrieved.names[:k]), unknown=[])
        return await self.second.acall(task=task, target=target, cards=kept, k=k)

    def recommend(self, task: Task | str, cards: Sequence[MetricCard], k: int = 30) -> Recommendation:
        """Name `k` cards; see `Recommender.recommend`.

        Notes describe the work of each stage. `scores` are the first stage's where it alone decided, otherwise NaN.

        Raises
        ------
        OptionError
            If the pool or `k` cannot be used.
        NeedsError, JudgementFailed, ModelFailure
            The errors of `LMRecommender.recommend`.
        """
        kept, retrieved = self._narrow(task, cards, k)
        if self.second is None:
            return replace(retrieved, names=retrieved.names[:k], scores=retrieved.scores[:k])
        ranked = self.second.recommend(task, kept, k)
        dropped = len(cards) - len(kept)
        narrowed = (f"the first stage left out {dropped} of {len(cards)} cards",) if dropped else ()
        return replace(
            ranked,
            notes=(*retrieved.notes, *narrowed, *ranked.notes),
            usage=retrieved.usage + ranked.usage,
        )

    def _narrow(self, task: Task | str, cards: Sequence[MetricCard], k: int) -> tuple[list[MetricCard], Recommendation]:
        check_pool(cards, k)
        retrieved = self.first.recommend(task, cards, max(self.settings.first_k, k))
        by_name = {card.name: card for card in cards}
        return [by_name[name] for name in retrieved.names], retrieved
