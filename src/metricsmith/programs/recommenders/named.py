"""Recommenders by name, as the paper combines them (AutoMetrics, appendix E.1)."""

from __future__ import annotations

from metricsmith.errors import NeedsError, OptionError, nearest
from metricsmith.programs.recommenders.base import Recommender
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.colbert import published_colbert
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender

__all__ = ["RETRIEVALS", "named_recommender"]

RETRIEVALS = ("bm25", "colbert", "model", "bm25 model", "colbert model")


def named_recommender(text: str, lm: bool) -> Recommender:
    """The way to rank cards of one of these names: one stage, or a first one that leaves 60 cards to a model.

    ``model`` alone sees all cards. The paper's Faiss is not among them: it needs embeddings of one more model, and came
    last in 14 of the 16 columns of the paper's tables 6 and 7.

    Parameters
    ----------
    text : str
        ``bm25``, ``colbert``, ``model``, ``bm25 model`` or ``colbert model``.
    lm : bool
        True if there is a language model to ask.

    Raises
    ------
    OptionError
        For another name.
    NeedsError
        If there is no model, ColBERT is not installed, or its published checkpoint is not in the hub's cache.
    StateError
        If that checkpoint cannot be used.
    """
    if text not in RETRIEVALS:
        raise OptionError(f"retrieval={text!r}{nearest(text, RETRIEVALS)} must be one of {', '.join(RETRIEVALS)}")
    stages = text.split()
    if "model" in stages and not lm:
        raise NeedsError(
            f"retrieval={text!r} has a language model rank metrics, and there is none: pass --lm MODEL "
            "(lm=dspy.LM(...)), or rank with 'bm25' or 'colbert'"
        )
    if text == "model":
        return LMRecommender()
    first = BM25Recommender() if stages[0] == "bm25" else published_colbert()
    return PipelineRecommender(first, LMRecommender()) if "model" in stages else first
