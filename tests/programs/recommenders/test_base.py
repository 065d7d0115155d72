from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import OptionError
from metricsmith.programs.recommenders.base import (
    Recommendation,
    Recommender,
    by_score,
    check_pool,
    query_text,
    unscored,
)
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.colbert import ColBERTRecommender
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.records import Scale, Task


@pytest.mark.parametrize("kind", [BM25Recommender, ColBERTRecommender, LMRecommender, PipelineRecommender])
def test_every_recommender_follows_the_protocol(kind):
    assert issubclass(kind, Recommender)


def test_the_query_names_the_target_beside_the_task():
    query = query_text(Task("Rewrite notices in plain words.", "simplicity", Scale(1, 5)))
    assert "Rewrite notices in plain words." in query
    assert "simplicity" in query
    assert query_text("plain words") == "plain words"


def test_best_scores_come_first_equal_ones_in_card_order_and_nan_last(card):
    cards = [card(name) for name in "abcde"]
    ranked = by_score(cards, np.array([1.0, math.nan, 2.0, 1.0, 2.0]), 5)
    assert ranked.names == ("c", "e", "a", "d", "b")
    assert ranked.scores[:4] == (2.0, 2.0, 1.0, 1.0)
    assert math.isnan(ranked.scores[4])


def test_equal_scores_keep_card_order_in_large_pools_too(card):
    cards = [card(f"c{index}") for index in range(60)]
    ranked = by_score(cards, np.arange(60) % 2, 60)
    assert ranked.names == tuple(f"c{index}" for index in [*range(1, 60, 2), *range(0, 60, 2)])


def test_k_larger_than_the_pool_gives_the_whole_pool(card):
    assert len(by_score([card("a"), card("b")], np.zeros(2), 30)) == 2


def test_a_recommendation_needs_one_score_per_name():
    with pytest.raises(ValueError, match="2 names"):
        Recommendation(("a", "b"), (1.0,))
    assert all(math.isnan(score) for score in Recommendation(("a",), unscored(("a",))).scores)


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(card, k):
    with pytest.raises(OptionError, match="at least 1"):
        check_pool([card("a")], k)


def test_an_empty_pool_and_repeated_names_are_refused(card):
    with pytest.raises(OptionError, match="empty"):
        check_pool([], 3)
    with pytest.raises(OptionError, match="'BLEU'"):
        check_pool([card("BLEU"), card("TER"), card("BLEU")], 3)
