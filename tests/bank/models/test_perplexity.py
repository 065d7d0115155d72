"""Perplexity against a plain loop over windows, one text at a time."""

from __future__ import annotations

import math

import pytest

import tiny_texts
from metricsmith.bank.models.engine.batching import token_budget
from metricsmith.bank.models.engine.causal import windowed_log_likelihoods
from metricsmith.metric import make_row
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
PLACES = 64
TEXTS = [*tiny_texts.sentences(9), " ".join(tiny_texts.sentences(14)), " ".join(tiny_texts.sentences(6))]


@pytest.fixture
def metric(tiny, tiny_folder):
    """A function from settings to the metric."""
    return lambda **settings: tiny_family("perplexity", tiny, tiny_folder, **settings).metrics()[0]


@pytest.fixture
def plain(tiny):
    """A function from a text and a stride to its perplexity, and to the number of its tokens.

    Windows begin at 0, stride, 2 stride, ..., the last ends with the text; each counts the tokens that none before it
    had, by transformers' loss over labels of -100 elsewhere: its mean times their number.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny("gpt2"))
    model = AutoModelForCausalLM.from_pretrained(tiny("gpt2")).eval()

    def of(text, stride, begin=()):
        ids = [*begin, *tokenizer(text).input_ids]
        total, done = 0.0, 1
        for start in range(0, len(ids), stride):
            window = torch.tensor([ids[start : start + PLACES]])
            end = start + window.shape[1]
            labels = window.clone()
            labels[0, : done - start] = -100
            with torch.inference_mode():
                total += model(window, labels=labels).loss.item() * (end - done)
            done = end
            if end == len(ids):
                break
        return math.exp(total / (len(ids) - 1)), len(ids)

    return of


def test_texts_longer_than_the_network_are_read_in_windows(metric, plain):
    expected, lengths = zip(*(plain(text, PLACES // 2) for text in TEXTS), strict=True)
    assert min(lengths) < PLACES < 4 * PLACES < max(lengths)
    rows = [make_row(text) for text in TEXTS]
    assert [one.raw for one in metric().judge_batch(rows)] == pytest.approx(expected, rel=1e-5)
    with token_budget(1):
        assert [one.raw for one in metric().judge_batch(rows)] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("stride", [1, 7, 20])
def test_any_stride_scores_each_token_once(stride, metric, plain):
    spec = metric().family.model
    found = windowed_log_likelihoods(spec, TEXTS[-1:], stride)[0]
    expected, length = plain(TEXTS[-1], stride)
    assert found.shape == (length - 1,)
    assert math.exp(-found.mean()) == pytest.approx(expected, rel=1e-5)


def test_a_mark_for_the_beginning_lets_the_first_token_count(metric, plain):
    marked = metric(bos=True)
    assert marked.score(TEXTS[0]) == pytest.approx(plain(TEXTS[0], 32, begin=[0])[0], rel=1e-5)
    assert marked.fingerprint() != metric().fingerprint()
    assert math.isfinite(marked.score("a"))


def test_the_mark_of_the_end_inside_a_text_is_a_token_like_any_other(metric, plain):
    text = "The dog slept.<|endoftext|> It was warm."
    assert metric().score(text) == pytest.approx(plain(text, 32)[0], rel=1e-5)


def test_empty_and_single_tokens_have_no_number_but_a_reason(metric):
    empty, blank, single, two = metric().judge_batch([make_row(text) for text in ("", " \n", "a", "a dog")])
    for one in (empty, blank):
        assert (one.status, one.error) == (Status.SKIPPED, "the output is empty")
    assert single.status is Status.SKIPPED
    assert "single token" in single.error
    assert two.raw >= 1.0
    assert metric().output.score(two.raw) < metric().output.score(1.0) == 1.0
