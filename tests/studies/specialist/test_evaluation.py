"""Whole evaluations: a model that copies what it is shown is a parrot, prompts hold no leak, nothing is asked twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from metricsmith.datasets.history import HistoricalRating, History, joined_systems
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation.spans import character_f1
from metricsmith.metric import make_row
from metricsmith.optimizers.specialist import Specialist
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.programs.judges.parrot import ExampleMean, Parrot
from metricsmith.programs.specialist.choosing import ExamplePolicy
from metricsmith.records import ErrorSpan, Judgement, Scale, Status
from metricsmith.report.specialist.document import specialist_verdict
from metricsmith.scoring import score
from metricsmith.studies.specialist.evaluation import evaluate_specialist, specialist_requests
from metricsmith.studies.specialist.predictions import PastRatings, Predictions, as_raters, people_as_judges
from metricsmith.testing import GivenModel

TURN = re.compile(r"\[\[ ## source ## \]\]\n«begin \w+»\n(.*?)\n«end \w+»\n\n\[\[ ## translation ## \]\]\n"
                  r"«begin \w+»\n(.*?)\n«end \w+»", re.DOTALL)  # fmt: skip
SHOWN = re.compile(r'\[\[ ## errors ## \]\]\n(\{"critical.*?\})\n\n\[\[ ## completed', re.DOTALL)


def span(text: str, part: str, severity: str = "major") -> ErrorSpan:
    start = text.index(part)
    return ErrorSpan(severity, "accuracy/mistranslation", start, start + len(part), part)


def small_history(sources: int = 6) -> History:
    """Documents of three sources, four systems of which two are one, three raters in fixed places."""
    words = {"A": "rot", "B": "blau", "C": "grün", "D": "blau"}  # D says what B says
    ratings = []
    for number, (system, word) in product(range(sources), words.items()):
        source = f"Sentence number {number} is about a colour."
        output = f"Satz {number} ist {word} und {word} dazu."
        for place, rater in enumerate(("x", "y", "z")):
            marked = [span(output, word)] if (number + place) % 3 else []
            marked += [span(output, "dazu", "minor")] if rater == "y" else []
            ratings.append(
                HistoricalRating(
                    source, system, output, rater, -5.0 * len(marked), tuple(marked), f"s{number}", f"d{number // 3}"
                )
            )
    return History(tuple(ratings), "small", Scale(-25, 0))


def unrated() -> History:
    """Marked errors without a number."""
    return History(tuple(replace(one, rating=None) for one in small_history().ratings), "unrated")


def annotator() -> MQMAnnotator:
    return MQMAnnotator(source_language="English", target_language="German", worked_example=False, context="none")


def copies(prompt: str) -> str:
    """Marks the first place of every error that the examples show, where its words stand in the translation."""
    output = TURN.findall(prompt)[-1][1]
    shown = [json.loads(one) for one in SHOWN.findall(prompt)]
    errors = {
        severity: [
            {**error, "description": "as before", "occurrence": 1}
            for one in shown
            for error in one[severity]
            if error["span"] and not error["in_source"] and error["span"] in output
        ]
        for severity in ("critical", "major", "minor")
    }
    return f"[[ ## errors ## ]]\n{json.dumps(errors, ensure_ascii=False)}\n\n[[ ## completed ## ]]"


def test_a_model_that_copies_is_a_parrot_and_no_prompt_leaks(tmp_path):
    history = small_history()
    with GivenModel(copies) as model:
        options = {"lm": model.lm(temperature=0.4, max_tokens=4000), "store": tmp_path / "store.db", "progress": False}
        found = evaluate_specialist([annotator(), Parrot(occurrences="first")], history, ["same", "other"], **options)
        sent, prompts = model.requests, model.prompts
        again = evaluate_specialist([annotator(), Parrot(occurrences="first")], history, ["same", "other"], **options)
        assert model.requests == sent
    by = {(one.judge, one.policy): one for one in found.results}
    for policy in ("same", "other"):
        assert by["mqm_run", policy].value == pytest.approx(by["parrot_first", policy].value, abs=1e-12)
    assert [one.value for one in again.results] == [one.value for one in found.results]
    assert sent == 2 * len(history)
    (beside,) = found.beside  # the model copies, so that nothing tells it from copying
    assert (beside.judge, beside.value, beside.p_by_segment) == ("parrot_first", by["parrot_first", "same"].value, 1.0)
    assert beside.difference == pytest.approx(0, abs=1e-12)
    assert "does not show that it beats copying" in specialist_verdict(found).sentence
    _check_prompts(prompts, history)


def _check_prompts(prompts, history):
    """Each prompt shows ratings of its source alone, never one of the row's system or of a system that equals it."""
    twins = joined_systems(history)
    outputs = {(one.source, one.output): one.system for one in history.ratings}
    for prompt in prompts:
        *shown, (source, output) = TURN.findall(prompt)
        own = twins.get(outputs[source, output], outputs[source, output])
        systems = [outputs[one] for one in shown]
        assert {one for one, _ in shown} == {source}
        assert own not in {twins.get(system, system) for system in systems}
        assert len(systems) == len(set(systems)) == (3 if own == "B" else 2) - (own == "B")


def test_prompts_are_the_same_for_one_seed_and_hold_the_rows_rater_alone():
    history = small_history()
    first, second = (Specialist(ExamplePolicy(seed=3)).compile(annotator(), history) for _ in range(2))
    marks = {(one.source, one.output, one.rater): one.spans for one in history.ratings}
    for row in history.rows():
        messages = first.messages(row)
        assert messages == second.messages(row)
        for user, answer in zip(messages[1:-1:2], messages[2:-1:2], strict=True):
            source, output = TURN.findall(user["content"])[0]
            listed = json.loads(SHOWN.findall(answer["content"])[0])
            spans = marks[source, output, row.rater]
            assert Counter(error["span"] for errors in listed.values() for error in errors) == Counter(
                one.text for one in spans
            )


def test_equal_outputs_of_several_systems_and_raters_are_judged_each():
    history = small_history()
    with GivenModel(copies) as model:
        judge = Specialist(ExamplePolicy()).compile(annotator(), history)
        score([judge], history.rows(), lm=model.lm(max_tokens=4000), progress=False)
        assert model.requests == len(history) == 72
        plain = annotator()
        score([plain], history.rows(), lm=model.lm(max_tokens=4000), progress=False)
        assert model.requests == 72 + 18  # texts alone: three systems say something of their own on six sources


def test_another_gold_rating_changes_no_key(tmp_path):
    history = small_history()
    with GivenModel(copies) as model:
        options = {"lm": model.lm(max_tokens=4000), "store": tmp_path / "store.db", "progress": False}
        judge = Specialist(ExamplePolicy()).compile(annotator(), history)
        score([judge], history.rows(), **options)
        changed = [row.copy(rating=-1.0, spans=()) for row in history.rows()]
        score([judge], changed, **options)
        assert model.requests == len(history)


def test_the_number_of_requests_is_known_beforehand():
    history = small_history()
    with GivenModel(copies) as model:
        lm = model.lm(max_tokens=4000)
        usage = specialist_requests([annotator(), Parrot()], history, ["same", "none"], lm=lm)
        assert model.requests == 0
        evaluate_specialist([annotator(), Parrot()], history, ["same", "none"], lm=lm, progress=False)
        assert usage.requests == model.requests == len(history) + 18  # without examples neither system nor rater counts


def test_figures_of_people_and_of_systems_are_those_of_their_rows():
    history = small_history()
    found = evaluate_specialist(Parrot(), history, ["same", "shuffled"], seeds=3, curve=(1, 2), progress=False)
    same, shuffled = found.results
    spans = {(one.source, one.system, one.rater): one.spans for one in history.ratings}
    pairs = [
        (spans[s, m, "x"], spans[s, m, "y"], o)
        for (s, m, o) in {(r.source, r.system, r.output) for r in history.ratings}
    ]
    assert found.people["x"]["y"] == pytest.approx(character_f1(*map(list, zip(*pairs, strict=True))).f1)
    assert (shuffled.seeds, same.seeds) == (3, 1)
    assert shuffled.spread >= 0
    assert [count for count, _ in found.curve["parrot_all, same"]] == [1, 2]
    assert set(same.systems) == {"A", "B", "C", "D"}
    assert set(same.raters) == {"x", "y", "z"}
    assert found.notes == ("B, D are the same in all segments they share and are held out together",)
    total = sum(same.excluded.values()) + round(same.examples * len(history))
    assert total == 12 * len(history)  # each rating's source has twelve
    assert same.copying.example_equal == 1.0
    assert same.copying.abstained == 0
    assert not shuffled.difference > 0


def test_numbers_have_their_own_measures_and_a_baseline():
    rows = [
        HistoricalRating(f"prompt {p}", f"system {s}", f"story {p} {s}", rating=1.0 + (p + s) % 5, document=f"d{p}")
        for p in range(8) for s in range(4)
    ]  # fmt: skip
    history = History(tuple(rows), "stories", Scale(1, 5))
    found = evaluate_specialist(
        ExampleMean(), history, {"others": ExamplePolicy(rater="any")}, measure="pearson", progress=False
    )
    judged = Specialist(ExamplePolicy(rater="any")).compile(ExampleMean(), history).judge_batch(history.rows())
    for row, judgement in zip(rows, judged, strict=True):
        others = [one.rating for one in rows if one.source == row.source and one.system != row.system]
        assert judgement.raw == pytest.approx(sum(others) / 3)
    values = np.corrcoef([one.raw for one in judged], [one.rating for one in rows])[0, 1]
    assert found.results[0].value == pytest.approx(values)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"policies": ["sam"]}, OptionError, "unknown policy 'sam'"),
        ({"policies": []}, OptionError, "no policy"),
        ({"measure": "f1"}, OptionError, "unknown measure 'f1'"),
        ({"seeds": 0}, OptionError, "seeds=0"),
        ({"policies": {}}, OptionError, "policies={} must be names, or ExamplePolicy objects"),
        ({"policies": {"mine": "same"}}, OptionError, "must be names, or ExamplePolicy objects"),
        ({"curve": 3}, OptionError, "curve=3 must be a list"),
        ({"curve": "13"}, OptionError, "curve='13' must be a list"),
        ({"judges": []}, OptionError, "no judge to evaluate"),
        ({"judges": ExampleMean()}, OptionError, "'example_mean' marks no errors, which character-f1 compares"),
        ({"curve": [2, 0]}, OptionError, "curve=[2, 0] must be a list of numbers of examples from 1"),
        ({"history": [1]}, OptionError, "history=[1] must be a History"),
        ({"history": unrated(), "measure": "acc-t"}, DataError, "has no numbers, which measure='acc-t' compares"),
        ({"runs": 2}, OptionError, "runs= has no meaning here"),
    ],
)
def test_wrong_arguments_are_named(change, error, words):
    changed = {"judges": Parrot(), "history": small_history(), "policies": ["same"], **change}
    with pytest.raises(error, match=re.escape(words)):
        evaluate_specialist(**changed)


def test_one_system_alone_cannot_be_held_out():
    ratings = tuple(one for one in small_history().ratings if one.system in ("B", "D"))
    with pytest.raises(DataError, match="one system alone"):
        evaluate_specialist(Parrot(), History(ratings, "twins", Scale(-25, 0)))


def test_a_row_of_another_test_set_is_skipped_with_the_reason():
    judge = Specialist(ExamplePolicy()).compile(Parrot(), small_history())
    (judgement,) = judge.judge_batch([make_row("Ein Satz.", input="Another source.", system="A", rater="x")])
    assert "no rating of the source 'Another source.'" in judgement.error
    assert judgement.status == "skipped"


def test_two_documents_of_wmt23_are_judged_as_a_parrot_judges_them(shared_data):
    table = read_wmt_mqm(shared_data / "wmt23_sxs_ende.jsonl.gz")
    whole = History.from_table(table)
    documents = list(dict.fromkeys(one.document for one in whole.ratings))[:2]
    history = History(tuple(one for one in whole.ratings if one.document in documents), "two documents", whole.scale)
    policies = {"kept": ExamplePolicy(same_output="keep")}
    with GivenModel(copies) as model:
        lm = model.lm(max_tokens=8000)
        found = evaluate_specialist(
            [annotator(), Parrot(occurrences="first")], history, policies, lm=lm, progress=False
        )
        assert model.requests == len(history)
    model_line, parrot = found.results
    assert model_line.judgements["ok"] == len(history)
    assert model_line.value == pytest.approx(
        parrot.value, abs=0.002
    )  # neutral and source errors are not in a prompt's lists


def test_ratings_of_one_segment_by_unknown_raters_or_of_several_sources_all_count():
    ratings = tuple(
        HistoricalRating(
            f"source {n}", f"system {s}", f"text {n} {s}", "", float((n * s + again) % 7), None, f"g{n // 2}"
        )
        for n, s, again in product(range(6), range(4), range(3))
    )
    history = History(ratings, "anonymous", Scale(0, 6))
    found = evaluate_specialist(
        ExampleMean(), history, {"others": ExamplePolicy(rater="any")}, measure="pearson", progress=False
    )
    judged = Specialist(ExamplePolicy(rater="any")).compile(ExampleMean(), history).judge_batch(history.rows())
    expected = np.corrcoef([one.raw for one in judged], [one.rating for one in ratings])[0, 1]
    assert found.results[0].value == pytest.approx(expected)


def test_without_documents_nothing_is_said_over_documents():
    ratings = tuple(replace(one, document="") for one in small_history().ratings)
    found = evaluate_specialist(Parrot(), History(ratings, "small", Scale(-25, 0)), ["same", "other"], progress=False)
    for line in found.results:
        assert np.isfinite(line.by_segment.low)
        assert np.isnan([line.by_document.low, line.by_document.high, line.p_by_document]).all()
    assert np.isfinite(found.results[1].p_by_segment)
    assert "over segments" in specialist_verdict(found).sentence


def test_a_sentence_that_stands_in_two_segments_counts_twice_between_raters():
    texts = [("s0", "Danke dir"), ("s1", "Danke dir"), ("s2", "Ade")]
    marks = {"x": ["Danke", "dir", "Ade"], "y": ["Danke", "Danke", "Ade"]}
    ratings = [
        HistoricalRating("Thanks" if n < 2 else "Bye", system, text, rater, -5.0, (span(text, marks[rater][n]),), place)
        for n, (place, text) in enumerate(texts) for system in "AB" for rater in "xy"
    ]  # fmt: skip
    found = people_as_judges(PastRatings(History(tuple(ratings), "twice", Scale(-25, 0)), "character-f1"))
    assert as_raters(found)["x"]["y"] == pytest.approx((5 + 3) / ((5 + 3 + 3 + 5 + 5 + 3) / 2))


def test_a_failed_judgement_is_neither_an_abstention_nor_one_without_errors():
    history = small_history()
    first = history.ratings[0].source

    def fails(prompt):
        return "nothing" if TURN.findall(prompt)[-1][0] == first else copies(prompt)

    with GivenModel(fails) as model:
        options = {"lm": model.lm(temperature=0.4, max_tokens=4000), "progress": False, "max_failure_rate": 1.0}
        found = evaluate_specialist(annotator(), history, ["same", "none"], **options)
    same, none = found.results
    assert same.judgements["unparsable"] == none.judgements["unparsable"] == 12
    kept = History(tuple(one for one in history.ratings if one.source != first), "kept", Scale(-25, 0))
    parrot = evaluate_specialist(Parrot(occurrences="first"), kept, ["same"], progress=False).results[0].copying
    assert same.copying.abstained == 0
    assert found.only["same"][0] == parrot.predicted


@pytest.mark.filterwarnings("error")
def test_systems_are_told_by_their_errors_where_nobody_gave_numbers():
    rated = evaluate_specialist(Parrot(), small_history(), ["same"], progress=False)
    found = evaluate_specialist(Parrot(), unrated(), ["same"], progress=False)
    weighed = {"major": 5.0, "minor": 1.0}
    for system in found.systems:
        own = [one.spans for one in small_history().ratings if one.system == system.name]
        assert system.mean == pytest.approx(-sum(weighed[s.severity] for spans in own for s in spans) / len(own))
    assert {one.name for one in found.systems} == {one.name for one in rated.systems}
    some = tuple(replace(one, rating=None) if one.system == "A" else one for one in small_history().ratings)
    partly = evaluate_specialist(Parrot(), History(some, "partly", Scale(-25, 0)), ["same"], progress=False)
    assert partly.systems[-1].name == "A"
    assert np.isnan(partly.systems[-1].mean)


def test_the_best_system_stands_first_where_less_is_better():
    ratings = tuple(
        HistoricalRating(f"source {n}", system, f"{system} {n}", rating=cost) for n in range(3)
        for system, cost in (("worst", 9.0), ("best", 1.0))
    )  # fmt: skip
    history = History(ratings, "costs", Scale(0, 25, higher_is_better=False))
    found = evaluate_specialist(
        ExampleMean(), history, {"any": ExamplePolicy(rater="any")}, measure="acc-t", progress=False
    )
    assert [one.name for one in found.systems] == ["best", "worst"]


def test_a_judge_that_fails_where_others_do_well_is_tested_on_the_rows_of_both():
    ratings = tuple(
        HistoricalRating(f"source {n}", f"system {s}", f"text {n} {s}", rating=float(s))
        for n in range(20)
        for s in range(5)
    )
    gold = PastRatings(History(ratings, "numbers", Scale(0, 4)), "pearson")

    def judged(numbers):
        return Predictions(
            gold,
            [
                Judgement("judge", status=Status.SKIPPED) if one is None else Judgement("judge", one, one)
                for one in numbers
            ],
        )

    random = np.random.default_rng(0)
    alone = judged([one.rating / 4 for one in ratings[:50]] + list(random.random(50)))  # right where it is alone
    other = judged([None] * 50 + [(one.rating + 1.8 * random.normal()) / 4 for one in ratings[50:]])
    assert alone.value()[0] > other.value()[0]
    for one, two, sign in ((alone, other, -1), (other, alone, 1)):
        observed, p, _ = one.difference(two, gold.segments, 0)
        assert sign * observed > 0.3
        assert p < 0.1


def test_a_history_without_raters_has_a_curve():
    unknown = History(tuple(replace(one, rater="") for one in small_history().ratings), "unknown", Scale(-25, 0))
    found = evaluate_specialist(Parrot(), unknown, ["any"], curve=(1, 2), progress=False)
    assert [most for most, _ in found.curve["parrot_all, same"]] == [1, 2]


def test_a_policy_without_numbers_has_no_p_value_and_no_part_in_the_verdict():
    found = evaluate_specialist(
        ExampleMean(), small_history(), ["same", "other", "none"], measure="pearson", progress=False
    )
    none = found.results[-1]
    assert np.isnan([none.value, none.difference, none.p_by_segment, none.p_by_document]).all()
    assert "none" not in specialist_verdict(found).sentence
    assert "other" in specialist_verdict(found).sentence


def test_requests_that_carry_several_runs_are_counted_as_they_are_sent():
    judge, history = MQMJudge.of(annotator(), runs=2), small_history(2)
    with GivenModel(copies) as model:
        options = {"lm": model.lm(temperature=0.4, max_tokens=4000), "batch_n": True}
        usage = specialist_requests(judge, history, ["same"], **options)
        evaluate_specialist(judge, history, ["same"], **options, progress=False)
        assert usage.requests == model.requests == len(history)
