"""The public fakes: numbers and answers are those that were given, or a failure that says what is missing."""

from __future__ import annotations

import asyncio
import copy
import doctest
import json
import math
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import dspy
import numpy as np
import pytest

import metricsmith
from metricsmith import testing
from metricsmith.errors import JudgementFailed, ModelFailure, OptionError
from metricsmith.metric import Metric, make_row
from metricsmith.model_calls import metering
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import load
from metricsmith.records import Output, Status, Usage
from metricsmith.scoring import estimate, score
from metricsmith.studies.comparison.run import compare
from metricsmith.studies.probing.run import Prober
from metricsmith.testing import GivenAnswer, GivenJudge, GivenModel
from planted import TASK, planted_rows
from rated import rated_table

ROWS = [make_row(text, id=text) for text in ("a", "b", "c")]
JUDGE = CriterionJudge(criterion="Brevity", meaning="Short.", task="Write.")
PAGE = (Path(__file__).resolve().parents[1] / "docs" / "testing.md").read_text("utf-8")
quiet = {"progress": False, "max_failure_rate": 1.0}


def outcomes(judge, run=0, rows=ROWS):
    return [judgement.raw if judgement.ok else judgement.error for judgement in judge.judge_batch(rows, run=run)]


def post(model, body):
    request = urllib.request.Request(f"{model.api_base}/chat/completions", json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, json.load(problem)


def ask(text="?", **parameters):
    return {"model": "m", "messages": [{"role": "user", "content": text}], **parameters}


# A judge with given numbers


def test_numbers_are_those_of_the_output_of_the_run_or_of_the_function():
    assert outcomes(GivenJudge(4)) == [4.0, 4.0, 4.0]
    assert outcomes(GivenJudge([4, 5]), run=1) == [5.0, 5.0, 5.0]
    assert outcomes(GivenJudge({"a": 1, "b": [2, 3], "c": 4.5}), run=1) == [1.0, 3.0, 4.5]
    assert outcomes(GivenJudge(lambda row: 1 + "abc".index(row.id))) == [1.0, 2.0, 3.0]
    assert outcomes(GivenJudge(lambda row, run: 1 + run, name="runs"), run=2) == [3.0, 3.0, 3.0]
    assert outcomes(GivenJudge(lambda row, bonus=2: 1 + bonus), run=1) == [3.0, 3.0, 3.0]


def test_what_is_missing_is_a_failure_with_a_reason_and_never_a_number():
    missing = ["no number is given for the output 'b'", "no number is given for the output 'c'"]
    assert outcomes(GivenJudge({"a": 1, "c": None})) == [1.0, *missing]
    assert outcomes(GivenJudge([4, 5]), run=2) == ["no number is given for run 2: there are 2, from run 0"] * 3
    assert outcomes(GivenJudge(lambda row: {"a": 1}.get(row.id))) == [1.0, *missing]
    judgements = GivenJudge({"a": 9, "b": math.nan, "c": Status.REFUSED}).judge_batch(ROWS)
    assert [judgement.status for judgement in judgements] == ["out_of_range", "unparsable", "refused"]
    assert judgements[2].error == "the given end of this judgement is refused"
    assert {judgement.score for judgement in judgements} == {None}


def test_an_error_of_the_function_comes_through_and_a_failure_that_it_raises_is_one():
    def failing(row):
        raise JudgementFailed("too dull", Status.REFUSED)

    with pytest.raises(KeyError, match="b"):
        score([GivenJudge(lambda row: {"a": 1}[row.id])], ROWS[1:2], **quiet)
    (judgement,) = GivenJudge(failing).judge_batch(ROWS[:1])
    assert (judgement.status, judgement.error) == (Status.REFUSED, "too dull")


def test_it_is_a_metric_with_a_range_feedback_and_a_cost():
    judge = GivenJudge(
        lambda row: dspy.Prediction(score=30, feedback="Dull."),
        name="clarity", output=Output("", 0, 100, higher_is_better=False), usage=Usage(1, 10, 5),
    )  # fmt: skip
    assert isinstance(judge, Metric)
    (judgement,) = judge.judge_batch(ROWS[:1])
    assert (judgement.metric, judgement.raw, judgement.score, judgement.feedback) == ("clarity", 30.0, 0.7, "Dull.")
    assert judgement.usage == Usage(1, 10, 5)
    assert GivenJudge(1).judge_batch(ROWS[:1])[0].usage == Usage()
    assert (GivenJudge(1).output.low, GivenJudge(1).output.high) == (1, 5)


def test_its_fingerprint_follows_from_its_numbers():
    assert GivenJudge({"a": 1}).fingerprint() == GivenJudge({"a": 1}).fingerprint()
    other = [GivenJudge({"a": 1}, name="b"), GivenJudge({"a": 2}), GivenJudge({"a": [1]}), GivenJudge({"b": 1})]
    assert len({judge.fingerprint() for judge in [GivenJudge({"a": 1}), *other]}) == 5


def test_it_is_scored_in_threads_without_a_model_and_remembers_what_it_was_asked(tmp_path):
    judge = GivenJudge({"a": [1, 2], "b": [3, Status.TRANSPORT], "c": [5, 5]})
    table = score([judge, Repeated(judge, 2, "mean")], ROWS, runs=2, store=tmp_path / "s.db", **quiet)
    np.testing.assert_array_equal(table.values[:, 0], [[1, 2], [3, math.nan], [5, 5]])
    assert table.values[0, 1, 0] == 1.5
    assert estimate([judge], ROWS).requests == table.usage.requests == 0
    assert {("a", 0), ("b", 1)} <= set(judge.asked)
    again = GivenJudge({"a": [1, 2], "b": [3, Status.TRANSPORT], "c": [5, 5]})
    score([again], ROWS, runs=2, store=tmp_path / "s.db", **quiet)
    assert again.asked == [("b", 1)]  # failures alone are asked again


def test_a_function_is_kept_in_stores_with_a_version_alone(tmp_path):
    for version, asked in ((None, 3), ("1", 0)):
        for _ in range(2):
            judge = GivenJudge(lambda row: 3, version=version)
            score([judge], ROWS, store=tmp_path / "s.db", **quiet)
        assert len(judge.asked) == asked


def test_failures_beyond_what_is_allowed_end_a_scoring():
    with pytest.raises(ModelFailure, match="no number is given for the output"):
        score([GivenJudge({"a": 1})], ROWS, progress=False, max_failure_rate=0.5)


def test_dspy_takes_it_as_a_metric_and_its_copies_share_what_was_asked():
    judge = GivenJudge({"yes": 5, "no": 2})
    example = dspy.Example(question="?").with_inputs("question")
    assert judge(example, dspy.Prediction(output="yes")).score == 1.0
    evaluate = dspy.Evaluate(devset=[example], metric=judge, num_threads=2, display_progress=False)
    assert evaluate(lambda question: dspy.Prediction(output="no")).score == 25.0
    copy.deepcopy(judge).judge_batch([make_row("yes")])
    assert [text for text, _ in judge.asked] == ["yes", "no", "yes"]


def test_it_is_induced_saved_loaded_and_compared_like_a_function(tmp_path):
    numbers = {row.output: min(5.0, max(1.0, row["columns"]["good"])) for row in rated_table().rows}
    table, judge = rated_table(metric_columns=[]), GivenJudge(numbers, name="truth")
    options = AutoMetrics(metrics=[judge, "rouge1_f"], bank="none", generators={}, n=2)
    done = induce(table, options)
    assert {"truth", "rouge1_f"} == {component.name for component in done.record.components}
    done.write(tmp_path)
    again = load(tmp_path / "metric.json", functions={"truth": judge})
    assert again.judge_batch(table.rows)[0].raw == done.metric.judge_batch(table.rows)[0].raw
    comparison = compare(table, options, methods=["autometrics"], seeds=1)
    assert [(line.key, line.skipped) for line in comparison.methods] == [("autometrics", "")]
    assert comparison.usage.requests == 0


def test_its_fields_are_hidden_where_a_functions_are():
    judge = GivenJudge(lambda row: row.get("rating", 1) + row["columns"].get("rating", 1)).among("other", {"rating"})
    (judgement,) = judge.judge_batch([make_row("a", rating=2, columns={"rating": 2})])
    assert (judgement.metric, judgement.raw) == ("other", 2.0)


def test_a_probe_asks_it_about_changed_outputs():
    judge = GivenJudge(lambda row: min(5.0, 1 + len(row.output.split()) / 8), name="length")
    rows = planted_rows(sources=8)
    record = Prober(n=8).probe(judge, rows, TASK)
    assert [subject.name for subject in record.subjects if subject.kind == "metric"] == ["length"]
    assert len(judge.asked) > len(rows)
    assert record.judgements["ok"] == record.judgements["requested"]


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ("4", "numbers='4' gives no numbers; allowed are a number, a list"),
        (None, "numbers=None gives no numbers"),
        ([], r"numbers=\[\] gives no numbers"),
        ({}, "gives no numbers"),
        (lambda: 4, "takes 0 parameters without a default; it is called with row, run"),
        (lambda a, b, c: 4, "takes 3 parameters without a default; it is called with row, run"),
    ],
)
def test_numbers_that_are_none_are_refused(numbers, says):
    with pytest.raises(OptionError, match=says):
        GivenJudge(numbers)


# A model with given answers


def test_answers_of_a_list_are_used_once_each_and_then_have_run_out():
    with GivenModel([{"answer": "one"}, "two"]) as model, dspy.context(lm=model.lm()):
        assert dspy.Predict("question -> answer")(question="?").answer == "one"
        assert model.lm()("?") == ["two"]
        status, content = post(model, ask())
    assert (status, content["error"]["message"]) == (
        400, "the given answers ran out: 2 were given, and this is number 3",
    )  # fmt: skip
    assert model.requests == 3


def test_a_judgement_says_that_the_answers_ran_out_and_nothing_is_repeated():
    with GivenModel([]) as model:
        judgement = score([JUDGE], ROWS[:1], lm=model.lm(), **quiet).judgement(0, 0)
    assert (judgement.status, model.requests) == (Status.TRANSPORT, 1)
    assert "the given answers ran out: 0 were given, and this is number 1" in judgement.error


def test_answers_by_a_piece_of_the_prompt_and_by_a_function_do_not_depend_on_the_order():
    rows = [make_row(f"text {number}") for number in range(9)]
    by_text = {row.output: {"reasoning": "r", "score": 1 + place % 5} for place, row in enumerate(rows)}

    def by_function(prompt):
        return next(answer for text, answer in by_text.items() if text in prompt)

    expected = [1.0 + place % 5 for place in range(9)]
    for answers in (by_text, by_function):
        with GivenModel(answers) as model:
            table = score([JUDGE], rows, lm=model.lm(), concurrency=8, **quiet)
            assert table.run()[:, 0].tolist() == expected
            assert model.requests == 9
            assert {text for text in by_text for prompt in model.prompts if text in prompt} == set(by_text)


def test_a_prompt_that_nothing_is_given_for_and_a_function_that_fails_say_so():
    for answers, words in (
        ({"Paris": "yes"}, "no answer is given for the prompt that ends with 'of Rome?'"),
        (lambda prompt: {}["Rome"], "the function of the answers failed: KeyError: 'Rome'"),
        (lambda prompt: 3.5, "the function of the answers failed: OptionError: 3.5 is no answer"),
    ):
        with GivenModel(answers) as model:
            status, content = post(model, ask("of Rome?"))
        assert status == 400
        assert words in content["error"]["message"]


def test_statuses_are_tried_again_like_those_of_a_server(monkeypatch):
    monkeypatch.setattr(metering, "FIRST_PAUSE", 0.001)
    with GivenModel([429, GivenAnswer("no room", 503), {"reasoning": "r", "score": 4}]) as model:
        table = score([JUDGE], ROWS[:1], lm=model.lm(), **quiet)
    assert (table.run()[0, 0], model.requests) == (4.0, 3)
    with GivenModel([500, GivenAnswer("no room", 503)]) as model:
        assert post(model, ask()) == (
            500, {"error": {"message": "this request was given the status 500", "type": "given", "code": "500"}},
        )  # fmt: skip
        assert post(model, ask())[1]["error"]["message"] == "no room"


def test_tokens_are_those_given_or_a_quarter_of_the_characters():
    with GivenModel([GivenAnswer("yes", tokens=(7, 3)), "x" * 40]) as model:
        given, counted = (post(model, ask("y" * 80))[1]["usage"] for _ in range(2))
    assert given == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert counted == {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    with GivenModel([GivenAnswer("yes", tokens=(7, 3)), GivenAnswer("no", tokens=(7, 2))]) as model:
        both = post(model, ask(n=2))[1]["usage"]  # one prompt, two answers
    assert both == {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    with GivenModel(lambda prompt: GivenAnswer({"reasoning": "r", "score": 3}, tokens=(100, 10))) as model:
        usage = score([JUDGE], ROWS, lm=model.lm(), **quiet).usage
    assert (usage.requests, usage.prompt_tokens, usage.completion_tokens) == (3, 300, 30)


def test_each_of_n_choices_takes_an_answer_and_a_status_is_the_whole_response():
    with GivenModel(["one", "two", "three", 500]) as model:
        _, content = post(model, ask(n=2))
        assert [choice["message"]["content"] for choice in content["choices"]] == ["one", "two"]
        assert post(model, ask(n=2))[0] == 500


def test_log_probabilities_are_sent_where_they_are_asked_for():
    judge = GEval(criterion="Brevity", meaning="Short.", steps=["Count."], task="Write.", mode="logprob")
    answer = GivenAnswer({"reasoning": "r", "score": "4"}, probabilities={"4": 0.75, "3": 0.25})
    with GivenModel(lambda prompt: answer) as model:
        (value,) = score([judge], ROWS[:1], lm=model.lm(), **quiet).run()[0]
        assert "logprobs" not in post(model, ask())[1]["choices"][0]
    assert value == pytest.approx(3.75)  # 4 * .75 + 3 * .25


def test_requests_are_recorded_whole_and_a_function_is_called_by_one_thread_at_a_time():
    inside, most = [0], [0]

    def answer(prompt):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.01)
        inside[0] -= 1
        return {"reasoning": "r", "score": 3}

    with GivenModel(answer) as model:
        score([JUDGE], [make_row(str(n)) for n in range(12)], lm=model.lm(temperature=0.3), concurrency=6, **quiet)
    assert most == [1]
    assert {body["temperature"] for body in model.bodies} == {0.3}
    assert {message["role"] for body in model.bodies for message in body["messages"]} == {"system", "user"}


def test_every_answer_is_held_back_by_the_delay():
    with GivenModel(["slow"], delay=0.2) as model:
        started = time.monotonic()
        assert asyncio.run(model.lm().acall("?")) == ["slow"]
    assert time.monotonic() - started >= 0.2


def test_after_the_block_nobody_listens_and_no_thread_is_left():
    with GivenModel(["here"]) as model:
        address = model.api_base
        assert address.startswith("http://127.0.0.1:")
        model.lm()("?")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=1)
    assert "given model" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(OptionError, match=r"answers inside its block alone: with GivenModel\(answers\) as model"):
        model.lm()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: GivenModel("yes"), r"answers='yes' gives no answers; allowed are a list, .* write GivenModel\(\["),
        (lambda: GivenModel(None), "answers=None gives no answers"),
        (lambda: GivenModel(lambda: "yes"), "takes 0 parameters without a default; it is called with prompt"),
        (lambda: GivenModel([3.5]), "3.5 is no answer; allowed are a text and a dict of its fields"),
        (lambda: GivenModel({"a": ["b"]}), r"\['b'\] is no answer"),
        (lambda: GivenModel([4]), "status=4 fails nothing: give 429 or 500, or the text '4'"),
        (lambda: GivenAnswer({"score": 4}, 500), "is no answer"),
    ],
)
def test_answers_that_are_none_are_refused_at_once(call, says):
    with pytest.raises(OptionError, match=says):
        call()


# The module


def test_the_page_runs_as_it_stands(monkeypatch):
    monkeypatch.setattr(metering, "FIRST_PAUSE", 0.001)
    names = {}
    exec(compile(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], "testing.md", "exec"), names)
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 3
    for name in tests:
        names[name]()


def test_the_docstrings_examples_print_what_they_show():
    found = doctest.testmod(testing, extraglobs={"make_row": make_row, "dspy": dspy})
    assert (found.failed, found.attempted > 3) == (0, True)


def test_it_is_there_without_an_import_is_not_loaded_with_the_package_and_needs_no_test_framework():
    code = (
        "import sys, metricsmith; print('metricsmith.testing' in sys.modules); metricsmith.testing.GivenJudge(1); "
        "print('metricsmith.testing' in sys.modules, 'pytest' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "False\nTrue False\n"
    assert metricsmith.testing is testing
    listed = re.findall(r"^`(\w+)`  ", testing.__doc__, re.MULTILINE)
    assert sorted(listed) == testing.__all__ == sorted(testing.__all__)
