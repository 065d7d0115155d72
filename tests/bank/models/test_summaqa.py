"""SummaQA: questions from entities, joint best spans, and no number where there is nothing to ask."""

from __future__ import annotations

import copy
import itertools
import math
from importlib.util import find_spec

import numpy as np
import pytest

import tiny_texts
from metricsmith.bank.base import BankMetric, TextBatch
from metricsmith.bank.catalogue import full_bank
from metricsmith.bank.models import summaqa
from metricsmith.bank.models.engine.classifier import _best_span, answers
from metricsmith.bank.weighted import lacking
from metricsmith.errors import DataError, NeedsError, OptionError
from metricsmith.metric import make_row
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.state import write_state
from metricsmith.records import Status
from model_cases import capitals_and_numbers, tiny_family

pytestmark = pytest.mark.extras
NAMES = ["summaqa_prob", "summaqa_f"]


@pytest.fixture
def family(tiny, tiny_folder):
    return tiny_family("summaqa", tiny, tiny_folder)


def judged(family, *pairs):
    inputs, outputs = zip(*pairs, strict=True)
    scores, reasons = family.compute(TextBatch(outputs, inputs, [[]] * len(pairs), None, family.model), NAMES)
    return np.array([scores[name] for name in NAMES]).T, list(reasons)


def test_each_entity_makes_a_question_of_its_sentence():
    assert summaqa.questions("It rained. Ann left at 9. The end", lambda text: capitals_and_numbers(text)[-2:]) == [
        ("MASKED rained.", "It"),
        ("MASKED left at 9.", "Ann"),
        ("Ann left at MASKED.", "9"),
    ]  # "The" is an article, of which the comparison of words would leave nothing


@pytest.mark.parametrize("place", [(0, 99), (-1, 3), (3, 3)])
def test_a_place_outside_its_sentence_is_an_error(place):
    with pytest.raises(DataError, match="for a sentence of 7 characters"):
        summaqa.questions("A text.", lambda text: [place])


@pytest.mark.parametrize(
    ("answer", "entity", "expected"),
    [
        ("The United Nations!", "united nations", 1.0),
        ("Ann Lee", "Lee", 2 / 3),  # precision 1/2, recall 1
        ("new new York", "New York City", 2 / 3),  # two shared of 3 and of 3
        ("Bob", "Ann", 0.0),
        (".", "Ann", 0.0),
    ],
)
def test_words_are_compared_as_squad_does(answer, entity, expected):
    assert summaqa._word_f1(answer, entity) == pytest.approx(expected)


def test_the_best_span_is_the_best_of_all_with_start_before_end():
    for seed in range(50):
        shares = np.random.default_rng(seed).dirichlet(np.ones(7), size=2)
        start, end, product = _best_span(shares)
        expected = max(shares[0, a] * shares[1, b] for a, b in itertools.combinations_with_replacement(range(7), 2))
        assert start <= end
        assert product == pytest.approx(expected)
        assert shares[0, start] * shares[1, end] == pytest.approx(expected)


def test_an_answer_is_what_transformers_gives_one_row_at_a_time(family, tiny):
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    pairs = [(f"{question} MASKED", context) for question, context in tiny_texts.pairs_of_texts(30)]
    tokenizer = AutoTokenizer.from_pretrained(tiny("bert_qa"))
    model = AutoModelForQuestionAnswering.from_pretrained(tiny("bert_qa")).eval()
    found = answers(family.model, *map(list, zip(*pairs, strict=True)))
    assert len({answer.text for answer in found}) > 10
    for (question, context), answer in zip(pairs, found, strict=True):
        tokens = tokenizer(
            question, context, return_tensors="pt", truncation=True, max_length=128, return_offsets_mapping=True
        )
        offsets, inside = tokens.pop("offset_mapping")[0].tolist(), tokens.sequence_ids(0)
        with torch.inference_mode():
            out = model(**tokens)
        starts, ends = out.start_logits[0].softmax(-1).tolist(), out.end_logits[0].softmax(-1).tolist()
        product, start, end = max(
            (starts[a] * ends[b], a, b) for b in range(len(ends)) for a in range(b + 1) if inside[a] == inside[b] == 1
        )
        assert answer.probability == pytest.approx(product, abs=1e-5)
        assert answer.text == context[offsets[start][0] : offsets[end][1]]


def test_a_row_is_the_mean_over_its_questions(family):
    source, output = "The mayor thanked Ann on Friday. Rain fell in Lisbon.", "On Friday Ann was thanked."
    asked = summaqa.questions(source, capitals_and_numbers)
    assert [entity for _, entity in asked] == ["Ann", "Friday", "Rain", "Lisbon"]
    given = answers(family.model, [question for question, _ in asked], [output] * 4)
    expected = [
        np.mean([answer.probability for answer in given]),
        np.mean([summaqa._word_f1(answer.text, entity) for answer, (_, entity) in zip(given, asked, strict=True)]),
    ]
    (row,), _ = judged(family, (source, output))
    assert row == pytest.approx(expected, abs=1e-6)


def test_undefined_rows_have_their_reasons_and_no_number(family):
    numbers, reasons = judged(
        family,
        ("nothing here", "a text"),
        ("Ann left.", " "),
        (" ", "a text"),
        ("Ann left.", "\u200d"),
        ("Ann.", "Ann"),
    )
    assert np.isnan(numbers[:4]).all()
    assert np.isfinite(numbers[4]).all()
    assert reasons == [
        "the input has no entity to ask for",
        "the output is empty",
        "the input is empty",
        "the output has no word that the network reads",
        "",
    ]


def test_a_saved_metric_names_the_function_and_a_copy_keeps_it(family):
    metric = BankMetric(family, "summaqa_f")
    assert metric.to_state()["model"]["options"] == {"entities": "capitals_and_numbers"}
    row = make_row("Ann left at 9.", input="At 9 Ann left for Lisbon.")
    assert copy.deepcopy(metric).judge_batch([row]) == metric.judge_batch([row])
    assert metric.judge_batch([make_row("Ann", input="no names")])[0].status is Status.SKIPPED
    compute, model = summaqa.with_entities(lambda text: [], "none")
    assert compute.keywords["entities"]("Ann") == []
    assert model.using(entities="none") == model
    assert model.option("entities") != family.model.option("entities")


@pytest.mark.skipif(find_spec("spacy") is not None, reason="spaCy is installed")
def test_without_spacy_it_is_left_out_with_the_reason(tiny):
    places = {"summaqa": tiny("bert_qa")}
    bank = full_bank(["summaqa"], local=places)
    how = "pip install spacy, then python -m spacy download en_core_web_sm; or entities=function in Python"
    assert lacking(bank.get("summaqa_f").family) == f"spacy is not installed: {how}"
    _, unusable = bank.usable([])
    assert [(one.name, one.reason) for one in unusable] == [(name, f"spacy is not installed: {how}") for name in NAMES]
    nowhere = full_bank(["summaqa"], local={"summaqa": "/nowhere"}).get("summaqa_f").family
    assert lacking(nowhere) == f"spacy is not installed: {how}; /nowhere: no such file or folder"
    usable, _ = full_bank(["summaqa"], local=places, entities=capitals_and_numbers).usable([])
    assert NAMES[0] in [metric.name for metric in usable]
    assert not math.isnan(usable[-1].score("Ann left.", input="Ann left."))


def test_a_saved_metric_takes_its_function_from_whoever_loads_it(family, tmp_path):
    metric, row = BankMetric(family, "summaqa_f"), make_row("Ann left at 9.", input="At 9 Ann left for Lisbon.")
    state, given = metric.to_state(), {"capitals_and_numbers": capitals_and_numbers}
    write_state(state, tmp_path / "metric.json")
    with pytest.raises(NeedsError, match=r"functions=\{'capitals_and_numbers': capitals_and_numbers\}\), and score"):
        load(tmp_path / "metric.json")
    with pytest.raises(NeedsError, match=r"pass functions=\{'capitals_and_numbers': function\}"):
        from_state(state)
    loaded = load(tmp_path / "metric.json", functions=given, local={"summaqa": family.model.path})
    assert loaded.judge_batch([row]) == metric.judge_batch([row])
    assert loaded.judge_batch([row])[0].ok
    assert (loaded.to_state(), loaded.fingerprint()) == (state, metric.fingerprint())
    assert from_state(state, given).fingerprint() == metric.fingerprint()
    with pytest.raises(OptionError, match="is no function"):
        load(tmp_path / "metric.json", functions={"capitals_and_numbers": 5})


def test_a_function_may_be_called_by_a_setting_and_not_as_spacys_model():
    def named(name):
        given = {"summaqa": {"entities": name}}
        return full_bank(["summaqa"], entities=lambda text: [], settings=given).get("summaqa_f").family.model

    assert named("none").option("entities") == "none"
    with pytest.raises(OptionError, match="with a name of its own"):
        named(summaqa.SPACY)
    with pytest.raises(OptionError, match="entities='none' must be one of 'en_core_web_sm'"):
        full_bank(["summaqa"], settings={"summaqa": {"entities": "none"}})
