"""Generated judges and rankings that several inductions share, so that each is asked for once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

import dspy

from metricsmith.metric import content_hash
from metricsmith.model_calls.adapters import adapter_in_force
from metricsmith.model_calls.models import form_identity, identity
from metricsmith.optimizers.generation import Generated
from metricsmith.programs.recommenders.base import Recommendation
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.colbert import ColBERTRecommender
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.programs.state import module_fingerprint
from metricsmith.records import Usage
from metricsmith.threads import Memo

__all__ = ["asked_once", "candidates_kept", "model_key", "recommender_key"]

Made = TypeVar("Made", Generated, Recommendation)
_KEPT: ContextVar[Memo[Any] | None] = ContextVar("metricsmith_candidates", default=None)


@contextmanager
def candidates_kept() -> Iterator[None]:
    """Generate judges, and rank cards, once for inductions inside that would ask the same for them.

    Judges are those of the same training rows, task, counts, seed, strictness and model with its settings and
    repetition; a ranking is that of the same cards, task, k, recommender and model. The second time either costs
    nothing, also in threads that copy the context: of two at a time one asks, the other waits. Judges that could not be
    made stay lacking, so that inductions which differ in later steps choose from the same ones; a request that ended
    everything is asked again. Recommenders of the caller's own, whose state is not known, always are. All is forgotten
    at the end.
    """
    token = _KEPT.set(Memo())
    try:
        yield
    finally:
        _KEPT.reset(token)


def asked_once(make: Callable[[], Made], *parts: Any) -> Made:
    """What `make` makes, or what it made for equal parts inside `candidates_kept`, which has no usage then."""
    memo: Memo[Made] | None = _KEPT.get()
    if memo is None or None in parts:
        return make()
    asked: list[Made] = []

    def ask() -> Made:
        asked.append(make())
        return asked[0]

    found = memo.get(content_hash(*parts), ask, lambda _: True)
    return found if asked else replace(found, usage=Usage())


def model_key(lm: Any = None) -> list[Any]:
    """A model with its settings and repetition, by default the one in force, and the adapter in force, as data."""
    lm = lm or dspy.settings.lm
    settings = getattr(lm, "kwargs", None) or {}
    return [lm and identity(lm), str(settings.get("rollout_id")), form_identity(adapter_in_force())]


def recommender_key(recommender: Any) -> list[Any] | None:
    """What decides a recommender's order besides its arguments, as data; None for one that is not of this package."""
    kind, parts = type(recommender), list[Any]()
    if kind is PipelineRecommender:
        stages = [recommender.first, *([recommender.second] if recommender.second else [])]
        parts = [recommender_key(stage) for stage in stages]
    elif kind is LMRecommender:
        parts = [model_key(recommender.rank.lm)]
    elif kind is ColBERTRecommender:
        parts = [str(recommender.checkpoint.folder)]
    elif kind is not BM25Recommender:
        return None
    return None if None in parts else [module_fingerprint(recommender, kind.__name__), *parts]
