"""BARTScore against the network's own loss, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest

import tiny_texts
from metricsmith.bank.models import bartscore
from metricsmith.metric import make_row
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
PAIRS = tiny_texts.pairs_of_texts(12)


@pytest.fixture
def metric(tiny, tiny_folder):
    """A function from a direction to the metric."""
    return lambda direction="f": tiny_family("bartscore", tiny, tiny_folder, direction=direction).metrics()[0]


@pytest.fixture
def likelihood(tiny):
    """A function from a source and a target to the mean log-likelihood: transformers' loss with labels, negated.

    transformers moves the labels by one place itself; its loss is the mean over all of them, both marks included.
    """
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny("bart"))
    model = AutoModelForSeq2SeqLM.from_pretrained(tiny("bart")).eval()

    def of(source, target):
        encoded = tokenizer([source], return_tensors="pt", truncation=True, max_length=64)
        labels = tokenizer([target], return_tensors="pt", truncation=True, max_length=64).input_ids
        with torch.inference_mode():
            return -model(**encoded, labels=labels).loss.item()

    return of


def test_each_direction_is_the_mean_log_likelihood_of_its_target(metric, likelihood):
    directions = {
        "ref->hyp": lambda output, reference: likelihood(reference, output),
        "hyp->ref": lambda output, reference: likelihood(output, reference),
        "f": lambda output, reference: (likelihood(reference, output) + likelihood(output, reference)) / 2,
    }
    for direction, expected in directions.items():
        judged = metric(direction).judge_batch([make_row(output, references=[one]) for output, one in PAIRS])
        assert [one.raw for one in judged] == pytest.approx([expected(*pair) for pair in PAIRS], abs=1e-5)


def test_labels_are_moved_once_and_not_twice(metric, tiny):
    """autometrics-ai 0.1.0 lets transformers move the labels, and compares place t with label t + 1 once more."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny("bart"))
    model = AutoModelForSeq2SeqLM.from_pretrained(tiny("bart")).eval()
    output, reference = PAIRS[3]
    source, labels = (tokenizer([text], return_tensors="pt").input_ids for text in (reference, output))
    start = torch.cat([torch.tensor([[2]]), labels[:, :-1]], dim=1)
    with torch.inference_mode():
        logs = model(input_ids=source, decoder_input_ids=start).logits.log_softmax(-1)[0]
    once = np.mean([logs[place, token].item() for place, token in enumerate(labels[0])])
    twice = np.mean([logs[place, token].item() for place, token in enumerate(labels[0, 1:])])
    found = metric("ref->hyp").score(output, references=reference)
    assert found == pytest.approx(once, abs=1e-5)
    assert abs(found - twice) > 0.01


def test_several_references_are_averaged_and_blank_ones_ignored(metric):
    output, references = PAIRS[0][0], [PAIRS[1][1], " ", PAIRS[2][1]]
    alone = [metric().score(output, references=one) for one in references if one.strip()]
    assert metric().score(output, references=references) == pytest.approx(np.mean(alone), abs=1e-6)


def test_src_to_hyp_needs_the_input_and_no_reference(metric, likelihood):
    one, other = metric("src->hyp"), metric()
    rows = [make_row("A dog slept.", input="The dog slept all day."), make_row("A dog.", references=["No dog."])]
    judged = one.judge_batch(rows)
    assert judged[0].raw == pytest.approx(likelihood("The dog slept all day.", "A dog slept."), abs=1e-5)
    assert judged[1].error == "row has no input"
    assert "references" in other.card.needs
    assert other.judge_batch(rows)[0].error == "row has no references"
    assert one.fingerprint() != other.fingerprint()


def test_an_empty_text_has_no_number_though_its_marks_have_a_likelihood(metric):
    judged = metric().judge_batch([make_row(" ", references=["A dog."]), make_row("A dog.", references=["A dog."])])
    assert (judged[0].status, judged[0].error) == (Status.SKIPPED, "the output is empty")
    assert judged[1].status is Status.OK
    unanswered = metric().judge_batch([make_row("A dog.", references=[" ", "\n"])])[0]
    assert (unanswered.status, unanswered.error) == (Status.SKIPPED, "every reference is empty")
    blank = metric("src->hyp").judge_batch([make_row("A dog.", input=" \n")])[0]
    assert (blank.status, blank.error) == (Status.SKIPPED, "the input is empty")


def test_sources_that_a_batch_has_twice_are_encoded_once(metric, tiny):
    from metricsmith.bank.models.engine.batching import token_budget
    from metricsmith.bank.models.engine.loader import network

    encoder = network(metric().family.model).module.get_encoder()
    seen = []
    hook = encoder.register_forward_hook(lambda module, given, made: seen.append(len(made.last_hidden_state)))
    rows = [make_row(output, references=[PAIRS[0][1]]) for output, _ in PAIRS[:6]]
    try:
        together = [one.raw for one in metric("ref->hyp").judge_batch(rows)]
        assert seen == [1]
        with token_budget(1):
            alone = [one.raw for one in metric("ref->hyp").judge_batch(rows)]
    finally:
        hook.remove()
    assert seen == [1] * 7
    assert together == pytest.approx(alone, abs=1e-5)


def test_the_default_is_the_first_choice_and_its_card_says_so():
    assert bartscore.MODEL.option("direction") == "f"
    assert "f, the default" in bartscore.CARD.formula
