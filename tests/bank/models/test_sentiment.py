"""Sentiment: positive less negative, after the model's own preparation of a text."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tiny_hostile
import tiny_texts
from metricsmith.bank.base import TextBatch
from metricsmith.bank.models import sentiment
from metricsmith.errors import NeedsError
from model_cases import tiny_family

pytestmark = pytest.mark.extras


@pytest.fixture
def family(tiny, tiny_folder):
    return tiny_family("sentiment", tiny, tiny_folder)


def judged(family, *texts):
    batch = TextBatch(texts, [""] * len(texts), [[]] * len(texts), None, family.model)
    scores, reasons = sentiment.compute(batch, ["sentiment"])
    return scores["sentiment"].tolist(), list(reasons)


def test_a_row_is_positive_less_negative_of_transformers(family, tiny):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    texts = [text for text in tiny_texts.sentences(40) if len(text) < 90]
    tokenizer = AutoTokenizer.from_pretrained(tiny("roberta_sentiment"))
    model = AutoModelForSequenceClassification.from_pretrained(tiny("roberta_sentiment")).eval()
    expected = []
    for text in texts:
        with torch.inference_mode():
            tokens = tokenizer(text, return_tensors="pt", truncation=True, max_length=64)
            negative, _, positive = model(**tokens).logits.softmax(-1)[0].tolist()
        expected.append(positive - negative)
    assert np.ptp(expected) > 0.1
    assert judged(family, *texts)[0] == pytest.approx(expected, abs=1e-5)


def test_names_and_links_are_replaced_and_other_words_are_not(family):
    texts = ["@ann see http://a.example/b now", "@user see http now", "see @ or x@ann", "see @ or x@user"]
    (raw, plain, mark, other), _ = judged(family, *texts)
    assert raw == plain
    assert mark != other


def test_lines_are_no_words_of_their_own(family):
    # The card's preparation splits at spaces alone: a name after a line break stays.
    (broken, spaced), _ = judged(family, "now\n@ann", "now\n@user")
    assert broken != spaced


def test_a_binary_classifier_is_refused(family, tiny_folder):
    toxic = tiny_hostile.tiny_models.build("roberta_toxicity", tiny_folder)
    with pytest.raises(NeedsError, match="positive 0 times"):
        judged(replace(family, model=replace(family.model, path=str(toxic))), "a text")


def test_an_empty_output_has_a_reason_and_no_number(family):
    (empty, text), reasons = judged(family, " ", "fine")
    assert math.isnan(empty)
    assert -1 <= text <= 1
    assert reasons == ["the output is empty", ""]
