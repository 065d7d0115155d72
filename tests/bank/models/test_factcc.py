"""FactCC: the share of CORRECT for the pair of input and output."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tiny_models
import tiny_texts
from metricsmith.bank.base import TextBatch
from metricsmith.bank.models import factcc
from metricsmith.errors import NeedsError
from model_cases import tiny_family

pytestmark = pytest.mark.extras


@pytest.fixture
def family(tiny, tiny_folder):
    return tiny_family("factcc", tiny, tiny_folder)


def judged(family, *pairs):
    inputs, outputs = zip(*pairs, strict=True)
    batch = TextBatch(outputs, inputs, [[]] * len(pairs), None, family.model)
    scores, reasons = factcc.compute(batch, ["factcc"])
    return scores["factcc"].tolist(), list(reasons)


def test_a_row_is_the_share_of_correct_that_transformers_gives(family, tiny):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    pairs = tiny_texts.pairs_of_texts(30)
    tokenizer = AutoTokenizer.from_pretrained(tiny("bert_factcc"))
    model = AutoModelForSequenceClassification.from_pretrained(tiny("bert_factcc")).eval()
    expected = []
    for source, claim in pairs:
        with torch.inference_mode():
            tokens = tokenizer(source, claim, return_tensors="pt", truncation=True, max_length=64)
            expected.append(model(**tokens).logits.softmax(-1)[0, 0].item())
    assert np.ptp(expected) > 0.1
    assert judged(family, *pairs)[0] == pytest.approx(expected, abs=1e-5)


def test_the_input_comes_first(family):
    (one, other), _ = judged(family, ("The bill was high.", "A dog slept."), ("A dog slept.", "The bill was high."))
    assert one != other


def test_of_a_long_input_the_end_is_cut_and_the_claim_stays(family):
    long = "The train leaves at 17:45. " * 20
    (one, other, claim), _ = judged(
        family, (long, "It is late."), (long + "Nobody came.", "It is late."), (long, "It is early.")
    )
    assert one == other
    assert one != claim


def test_a_network_without_the_label_is_refused(family, tiny_folder):
    other = tiny_models.build("roberta_sentiment", tiny_folder)
    with pytest.raises(NeedsError, match="negative, neutral, positive, and CORRECT 0 times"):
        judged(replace(family, model=replace(family.model, path=str(other))), ("a text", "a text"))


def test_blank_texts_have_a_reason_and_no_number(family):
    numbers, reasons = judged(family, (" ", "a claim"), ("a source", ""), ("a source", "a claim"))
    assert [math.isnan(number) for number in numbers] == [True, True, False]
    assert reasons == ["the input is empty", "the output is empty", ""]
