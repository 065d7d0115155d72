"""InfoLM: distances by hand, guesses one masked token at a time, long texts, and rows without a number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.bank.models.engine.batching import token_budget
from metricsmith.bank.models.infolm import MEASURES, guesses
from metricsmith.metric import make_row
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
TEXTS = ["A small dog slept.", "Nobody answered the phone, so I left a message.", "No."]
P, Q = np.array([0.5, 0.5]), np.array([0.2, 0.8])


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("kl", 0.2 * math.log(0.4) + 0.8 * math.log(1.6)),
        ("l1", 0.6),
        ("l2", math.sqrt(0.18)),
        ("l_infinity", 0.3),
        ("fisher_rao", 2 * math.acos(math.sqrt(0.1) + math.sqrt(0.4))),
        ("renyi_0.3", -math.log(0.2**0.3 * 0.5**0.7 + 0.8**0.3 * 0.5**0.7) / 0.7),
        # ln(sum p^1.6) = -.6 ln 2; ln(sum q p^.6) = -.6 ln 2
        ("beta_0.6", math.log(0.2**1.6 + 0.8**1.6) / 0.96 - 0.6 * math.log(2) / 1.6 + math.log(2)),
    ],
)
def test_each_measure_is_its_formula_and_0_for_equal_distributions(measure, expected):
    assert MEASURES[measure](P, Q) == pytest.approx(expected)
    assert MEASURES[measure](Q, Q) == pytest.approx(0.0, abs=1e-7)


def test_kl_counts_words_that_the_reference_rules_out_as_0():
    assert MEASURES["kl"](P, np.array([1.0, 0.0])) == pytest.approx(math.log(2))
    assert MEASURES["kl"](np.array([1.0, 0.0]), P) == math.inf


@pytest.fixture
def spec(tiny, tiny_folder):
    """Return the spec of the tiny checkpoint."""
    return tiny_family("infolm", tiny, tiny_folder).model


def test_guesses_are_the_mean_over_tokens_masked_one_at_a_time(spec, tiny):
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    path = tiny("bert_masked")
    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModelForMaskedLM.from_pretrained(path).eval()
    for text, found in zip(TEXTS, guesses(spec, TEXTS), strict=True):
        ids, rows = tokenizer(text, return_tensors="pt")["input_ids"], []
        for place in range(1, ids.shape[1] - 1):
            masked = ids.clone()
            masked[0, place] = tokenizer.mask_token_id
            with torch.no_grad():
                rows.append(torch.softmax(model(input_ids=masked).logits[0, place].double() / 0.25, dim=-1).numpy())
        assert found == pytest.approx(np.mean(rows, axis=0), abs=1e-6)
        assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("budget", [1, 50, 100_000])
def test_the_batch_a_text_runs_in_does_not_change_its_guess(spec, budget):
    usual = guesses(spec, TEXTS)
    with token_budget(budget):
        for one, other in zip(guesses(spec, TEXTS[::-1]), usual[::-1], strict=True):
            assert one == pytest.approx(other, abs=1e-6)


def test_equal_texts_are_at_0_and_the_closest_reference_counts(scored):
    rows = [make_row(TEXTS[0], references=refs) for refs in ([TEXTS[1]], [TEXTS[2]], TEXTS[1:], [TEXTS[1], TEXTS[0]])]
    one, two, both, same = (judgement.raw for judgement in scored("infolm", rows))
    assert both == pytest.approx(min(one, two), abs=1e-6)
    assert both > 0.1
    assert same == pytest.approx(0.0, abs=1e-9)


def test_a_smaller_distance_is_a_better_score(scored):
    near, far = scored("infolm", [make_row(text, references=[TEXTS[0]]) for text in (TEXTS[0], TEXTS[1])])
    assert near.score == pytest.approx(1.0)
    assert far.score < near.score


def test_texts_are_read_beyond_20_tokens(scored):
    long = " ".join(["the dog slept and"] * 10)
    (found,) = scored("infolm", [make_row(f"{long} nobody.", references=[f"{long} 3 boats."])])
    assert found.raw > 1e-4


def test_a_text_beyond_the_networks_places_is_cut(scored):
    long = " ".join(["the dog slept"] * 60)
    (found,) = scored("infolm", [make_row(long, references=[f"{long} nobody."])])
    assert found.raw == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("output", "reason"), [("", "the output is empty"), ("\x01", "no token")])
def test_a_text_without_tokens_is_skipped_and_not_perfect(scored, output, reason):
    (found,) = scored("infolm", [make_row(output, references=["a dog"])])
    assert found.status is Status.SKIPPED
    assert found.error.startswith(reason)


def test_an_infinite_distance_is_an_error_of_its_row_alone(scored, monkeypatch):
    monkeypatch.setitem(MEASURES, "kl", lambda p, q: math.inf if np.allclose(p, q) else 1.0)
    bad, good = scored("infolm", [make_row(TEXTS[0], references=[text]) for text in TEXTS[:2]])
    assert bad.status is Status.TRANSPORT
    assert "the distance is infinite" in bad.error
    assert good.raw == 1.0
