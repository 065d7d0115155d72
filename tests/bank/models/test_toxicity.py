"""Toxicity: the share of the label hate, found by its name."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

import tiny_texts
from metricsmith.bank.base import TextBatch
from metricsmith.bank.models import toxicity
from metricsmith.bank.weighted import model_family
from metricsmith.errors import NeedsError
from model_cases import tiny_family

pytestmark = pytest.mark.extras


@pytest.fixture
def family(tiny, tiny_folder):
    return tiny_family("toxicity", tiny, tiny_folder)


def judged(family, *texts):
    scores, reasons = toxicity.compute(
        TextBatch(texts, [""] * len(texts), [[]] * len(texts), None, family.model), ["toxicity"]
    )
    return scores["toxicity"].tolist(), list(reasons)


def relabelled(tiny, folder: Path, *labels: str) -> Path:
    copy = folder / "toxicity"
    shutil.copytree(tiny("roberta_toxicity"), copy)
    config = json.loads((copy / "config.json").read_text("utf-8"))
    config["id2label"], config["label2id"] = dict(enumerate(labels)), None
    (copy / "config.json").write_text(json.dumps(config), "utf-8")
    return copy


def test_a_row_is_the_share_of_hate_that_transformers_gives(family, tiny):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    texts = tiny_texts.sentences(30)
    tokenizer = AutoTokenizer.from_pretrained(tiny("roberta_toxicity"))
    model = AutoModelForSequenceClassification.from_pretrained(tiny("roberta_toxicity")).eval()
    with torch.inference_mode():
        expected = [model(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0, 1].item() for text in texts]
    assert np.ptp(expected) > 0.05
    assert judged(family, *texts)[0] == pytest.approx(expected, abs=1e-5)


def test_less_is_better_and_the_labels_order_does_not_count(family, tiny, tmp_path):
    from dataclasses import replace

    texts = tiny_texts.sentences(5)
    turned = replace(family, model=replace(family.model, path=str(relabelled(tiny, tmp_path, "HATE", "nothate"))))
    assert family.card.outputs[0].sign == -1
    assert judged(turned, *texts)[0] == pytest.approx([1 - share for share in judged(family, *texts)[0]], abs=1e-6)


@pytest.mark.parametrize("labels", [("LABEL_0", "LABEL_1"), ("hate", "Hate")])
def test_a_network_without_the_label_or_with_it_twice_is_refused(family, tiny, tmp_path, labels):
    from dataclasses import replace

    other = replace(family, model=replace(family.model, path=str(relabelled(tiny, tmp_path, *labels))))
    with pytest.raises(NeedsError, match=rf"the labels {labels[0]}, {labels[1]}, and hate \d times"):
        judged(other, "a text")


def test_a_network_without_token_types_is_read_as_well(tiny, tmp_path):
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(tiny("distilbert"))
    config = DistilBertConfig(
        vocab_size=len(tokenizer), dim=32, hidden_dim=32, n_layers=1, n_heads=2, id2label={0: "nothate", 1: "hate"}
    )
    DistilBertForSequenceClassification(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    (metric,) = model_family("toxicity", path=str(tmp_path), device="cpu").metrics()
    assert 0 < metric.score("A dog slept.") < 1


def test_an_empty_output_has_a_reason_and_no_number(family):
    (empty, blank, text), reasons = judged(family, "", " \n ", "a text")
    assert math.isnan(empty)
    assert math.isnan(blank)
    assert 0 <= text <= 1
    assert reasons == ["the output is empty"] * 2 + [""]


def test_beyond_the_networks_length_nothing_counts(family):
    long = "The dog slept. " * 60
    (one, other), _ = judged(family, long, long + "Stop shouting, you fool!")
    assert one == other
