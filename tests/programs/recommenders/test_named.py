"""Recommenders by name, and the reasons why one is not here."""

from __future__ import annotations

import pytest

from metricsmith.errors import NeedsError, OptionError
from metricsmith.programs.recommenders import named
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.programs.recommenders.named import RETRIEVALS, named_recommender


@pytest.mark.parametrize("text", RETRIEVALS)
def test_each_name_is_its_stages_in_order(text, monkeypatch):
    colbert = BM25Recommender()
    monkeypatch.setattr(named, "published_colbert", lambda: colbert)
    found = named_recommender(text, lm=True)
    stages = [found.first, found.second] if isinstance(found, PipelineRecommender) else [found]
    spelled = [
        "colbert" if one is colbert else {BM25Recommender: "bm25", LMRecommender: "model"}[type(one)] for one in stages
    ]
    assert " ".join(spelled) == text


@pytest.mark.parametrize("text", ["model", "bm25 model", "colbert model"])
def test_without_a_model_what_asks_one_is_refused_with_the_way_out(text):
    with pytest.raises(NeedsError, match="pass --lm MODEL"):
        named_recommender(text, lm=False)


def test_without_colbert_the_reason_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(NeedsError, match=r"metricsmith\[colbert\]|hf download colbert-ir/colbertv2.0"):
        named_recommender("colbert", lm=False)


@pytest.mark.parametrize(("text", "meant"), [("bm52", "bm25"), ("colbert,model", "colbert model")])
def test_another_name_is_refused_with_the_nearest(text, meant):
    with pytest.raises(OptionError, match=f"did you mean '{meant}'.*must be one of bm25, colbert, model"):
        named_recommender(text, lm=True)
