"""The questions of UniEval: what the network reads, and its answer."""

from __future__ import annotations

import math
import shutil
import sys

import numpy as np
import pytest

import tiny_hostile
import tiny_texts
from metricsmith.bank.models import unieval_dialogue, unieval_sum
from metricsmith.bank.models.unieval import FACT_CONSISTENCY
from metricsmith.bank.weighted import model_family
from metricsmith.errors import NeedsError
from metricsmith.metric import make_row
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
OUTPUT = "The dog slept. It was warm!"
ROW = make_row(OUTPUT, input="A small dog slept.", references=["The dog lay there.", " ", "A dog slept."])


@pytest.fixture
def judged(tiny, tiny_folder):
    """A function from a metric's name and rows to its judgements by output."""

    def of(name, *rows):
        metrics = tiny_family(name, tiny, tiny_folder).metrics()
        return {metric.name: metric.judge_batch(rows) for metric in metrics}

    return of


@pytest.fixture
def answer(tiny):
    """A function from a prompt to the share of Yes: softmax over the vocabulary, then over the two words."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny("t5_unieval"))
    model = AutoModelForSeq2SeqLM.from_pretrained(tiny("t5_unieval")).eval()
    yes, no = (tokenizer(word).input_ids[0] for word in ("Yes", "No"))

    def of(prompt):
        encoded = tokenizer([prompt], return_tensors="pt", truncation=True, max_length=1024)
        with torch.inference_mode():
            logits = model(**encoded, labels=torch.tensor([[no]])).logits[0, 0]
        chances = logits.double().softmax(-1)
        return (chances[yes] / (chances[yes] + chances[no])).item()

    return of


def test_the_prompts_are_those_that_the_weights_were_trained_on():
    """Written out by hand from maszhongming/UniEval, utils.py."""
    texts = {"output": ["O1. O2."], "sentence": ["O1.", "O2."], "input": ["I"], "reference": ["R", "S"], "fact": ["R"]}
    written = {name: question.prompts(texts) for name, question in unieval_sum.QUESTIONS.items()}
    assert written == {
        "unieval_coherence": [
            "question: Is this a coherent summary to the document? </s> summary: O1. O2. </s> document: I"
        ],
        "unieval_consistency": [
            "question: Is this claim consistent with the document? </s> claim: O1. </s> document: I",
            "question: Is this claim consistent with the document? </s> claim: O2. </s> document: I",
        ],
        "unieval_fluency": [
            "question: Is this a fluent paragraph? </s> paragraph: O1.",
            "question: Is this a fluent paragraph? </s> paragraph: O2.",
        ],
        "unieval_relevance": [
            "question: Is this summary relevant to the reference? </s> summary: O1. O2. </s> reference: R",
            "question: Is this summary relevant to the reference? </s> summary: O1. O2. </s> reference: S",
        ],
    }
    written = {name: question.prompts(texts) for name, question in unieval_dialogue.QUESTIONS.items()}
    asked = "question: Is this an engaging and informative response according to the dialogue history and fact?"
    assert written["dialogue_engagingness"] == [
        f"{asked} </s> response: O1. </s> dialogue history: I </s> fact: R",
        f"{asked} </s> response: O2. </s> dialogue history: I </s> fact: R",
    ]
    assert written["dialogue_groundedness"] == [
        "question: Is this response consistent with knowledge in the fact? </s> response: O1. O2. </s> fact: R"
    ]
    assert written["dialogue_naturalness"] == [
        "question: Is this a natural response in the dialogue? </s> response: O1. O2."
    ]
    assert FACT_CONSISTENCY is unieval_sum.QUESTIONS["unieval_consistency"]


def test_a_summary_has_means_over_sentences_and_references(judged, answer):
    found = {name: rows[0].raw for name, rows in judged("unieval_sum", ROW).items()}
    sentences, source = ["The dog slept.", "It was warm!"], ROW.input
    asks = "question: Is this"
    expected = {
        "unieval_coherence": [
            f"{asks} a coherent summary to the document? </s> summary: {OUTPUT} </s> document: {source}"
        ],
        "unieval_consistency": [
            f"{asks} claim consistent with the document? </s> claim: {one} </s> document: {source}" for one in sentences
        ],
        "unieval_fluency": [f"{asks} a fluent paragraph? </s> paragraph: {one}" for one in sentences],
        "unieval_relevance": [
            f"{asks} summary relevant to the reference? </s> summary: {OUTPUT} </s> reference: {one}"
            for one in ROW.references
            if one.strip()
        ],
    }  # fmt: skip
    for name, prompts in expected.items():
        assert found[name] == pytest.approx(np.mean([answer(prompt) for prompt in prompts]), abs=1e-6), name
    assert len(set(found.values())) == 4


def test_engagingness_is_a_sum_and_can_pass_one(judged):
    many = make_row(" ".join([OUTPUT] * 12), input=ROW.input, references=ROW.references)
    once, often = judged("unieval_dialogue", ROW, many)["dialogue_engagingness"]
    assert often.raw == pytest.approx(12 * once.raw, abs=1e-6)
    output = unieval_dialogue.CARD.output("dialogue_engagingness")
    assert (output.low, output.high) == (0.0, None)
    assert 0.0 < once.score < often.score < 1.0


def test_fact_is_the_consistency_of_a_summary(judged):
    fact, summary = judged("unieval_fact", ROW), judged("unieval_sum", ROW)
    assert fact["unieval_fact"][0].raw == summary["unieval_consistency"][0].raw


@pytest.mark.parametrize(
    ("name", "undefined", "reason"),
    [
        ("unieval_sum", {"unieval_relevance"}, "the row has no reference"),
        (
            "unieval_dialogue",
            {"dialogue_engagingness", "dialogue_groundedness"},
            "the row has no reference to take as the fact",
        ),
    ],
)
def test_a_row_without_references_lacks_only_what_reads_them(name, undefined, reason, judged):
    full, bare = judged(name, ROW), judged(name, make_row(OUTPUT, input=ROW.input), make_row(OUTPUT, input=ROW.input))
    for output, rows in bare.items():
        if output in undefined:
            assert [(one.status, one.error) for one in rows] == [(Status.SKIPPED, reason)] * 2
        else:
            assert rows[0].raw == pytest.approx(full[output][0].raw, abs=1e-6)


def test_blank_texts_have_no_number(judged):
    rows = [make_row(" ", input="A dog."), make_row("A dog.", input=" ")]
    for output, (empty, sourceless) in judged("unieval_sum", *rows).items():
        assert empty.error == "the output is empty"
        if output == "unieval_fluency":
            assert math.isfinite(sourceless.raw)
        else:
            assert sourceless.error == "the row has no input and no reference"


def test_a_checkpoint_whose_tokenizer_confuses_yes_and_no_is_refused(tiny_folder):
    broken = tiny_hostile.hostile("t5_unieval", tiny_folder, "yes_is_no")
    metric = tiny_family("unieval_fact", lambda name: broken, tiny_folder).metrics()[0]
    with pytest.raises(NeedsError, match=r"'Yes' and 'No' are the tokens .* cannot be told apart"):
        metric.judge_batch([ROW])


def test_a_tokenizer_that_needs_another_package_is_refused_with_its_name(tiny, tmp_path, monkeypatch):
    import sentencepiece

    path = shutil.copytree(tiny("t5_unieval"), tmp_path / "pieces")
    (path / "tokenizer.json").unlink()
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(tiny_texts.sentences(60)), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(texts), model_prefix=str(path / "spiece"), vocab_size=400, hard_vocab_limit=False, minloglevel=2
    )
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(NeedsError, match="protobuf"):
        model_family("unieval_fact", path=str(path), device="cpu").metrics()[0].score("No.", input="A dog.")
