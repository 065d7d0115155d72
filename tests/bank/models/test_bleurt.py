"""BLEURT: its network under transformers' names, its tokenizer, and one number for each pair."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tiny_hostile
import tiny_texts
from metricsmith.bank.base import TextBatch
from metricsmith.bank.models import bleurt
from metricsmith.errors import NeedsError
from model_cases import tiny_family

pytestmark = pytest.mark.extras
bleurt_pytorch = pytest.importorskip("bleurt_pytorch", reason="bleurt-pytorch builds the tiny checkpoint")


@pytest.fixture
def family(tiny, tiny_folder):
    return tiny_family("bleurt", tiny, tiny_folder)


def judged(family, *rows):
    outputs, references = zip(*rows, strict=True)
    batch = TextBatch(outputs, [""] * len(rows), references, None, family.model)
    scores, reasons = bleurt.compute(batch, ["bleurt"])
    return scores["bleurt"].tolist(), list(reasons)


def test_a_row_is_what_its_port_gives_also_beyond_the_limit(family, tiny):
    import torch
    from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer

    model = bleurt_pytorch.BleurtForSequenceClassification.from_pretrained(tiny("bleurt")).eval()
    tokenizer = BleurtSPTokenizer.from_pretrained(tiny("bleurt"))
    pairs = [*tiny_texts.pairs_of_texts(30), ("It is late. " * 30, "A dog slept."), ("It is late.", "A dog. " * 60)]
    expected = []
    for output, reference in pairs:
        tokens = tokenizer(reference, output, return_tensors="pt", truncation="longest_first", max_length=128)
        with torch.inference_mode():
            expected.append(model(**tokens).logits.item())
    assert np.ptp(expected) > 0.5
    assert judged(family, *((output, [text]) for output, text in pairs))[0] == pytest.approx(expected, abs=1e-5)


def test_the_best_reference_counts_and_blank_ones_do_not(family):
    texts = ["A small dog slept.", "The bill was high.", "Birds fly south."]
    single = judged(family, *(("The dog sleeps.", [text]) for text in texts))[0]
    assert len(set(single)) == 3
    assert judged(family, ("The dog sleeps.", [" ", *texts]))[0] == pytest.approx([max(single)], abs=1e-6)


def test_blank_texts_have_a_reason_and_no_number(family):
    numbers, reasons = judged(family, ("", ["a text"]), ("a text", [" ", ""]), ("a text", ["a text"]))
    assert [math.isnan(number) for number in numbers] == [True, True, False]
    assert reasons == ["the output is empty", "every reference is empty", ""]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("missing_head", "lacks 2 weights, such as classifier.bias; it is no BLEURT"),
        ("extra_keys", "has beyond its head 1 weights, such as unknown_head.weight"),
        ("wrong_architecture", "is a gpt2, and bleurt takes bleurt"),
        ("truncated", "cannot be read"),
        ("pickle_weights", "as a pickle"),
    ],
)
def test_a_broken_checkpoint_is_refused(family, tiny_folder, fault, words):
    broken = tiny_hostile.hostile("bleurt", tiny_folder, fault)
    with pytest.raises(NeedsError, match=words):
        judged(replace(family, model=replace(family.model, path=str(broken))), ("a text", ["a text"]))
