"""Functions as DSPy's Evaluate takes them, as metrics."""

from __future__ import annotations

import dspy
import numpy as np
import pytest

from metricsmith.errors import JudgementFailed, OptionError
from metricsmith.metric import make_row
from metricsmith.records import Output, Status
from metricsmith.scoring import CallableMetric, score
from stubs import Scripted

ROWS = [make_row("yes" if i % 2 else "no", input=f"question {i}", id=str(i), gold="yes") for i in range(4)]


def exact(example, pred, trace=None):
    return example.gold == pred.output


def numbers(function, **options):
    metric = CallableMetric(function, **options) if options else function
    return score([metric], ROWS, max_failure_rate=1, progress=False)


def test_a_function_sees_the_row_and_its_own_fields_as_the_prediction():
    table = numbers(exact)
    assert table.names == ("exact",)
    np.testing.assert_array_equal(table.values[:, 0, 0], [0, 1, 0, 1])


def test_rows_of_equal_texts_are_kept_apart_for_a_function_may_look_at_anything():
    rows = [make_row("same", id="1", gold="same"), make_row("same", id="2", gold="other")]
    np.testing.assert_array_equal(score([exact], rows, progress=False).values[:, 0, 0], [1, 0])


def test_a_prediction_brings_feedback():
    table = numbers(lambda example, pred: dspy.Prediction(score=0.25, feedback=f"about {pred.input}"))
    assert table.names == ("<lambda>",)
    assert (table.judgement(1, 0).raw, table.judgement(1, 0).feedback) == (0.25, "about question 1")


def raising(problem):
    def function(example, pred):
        raise problem

    return function


@pytest.mark.parametrize(
    ("function", "status", "words"),
    [
        (raising(KeyError("answer")), Status.UNPARSABLE, "the function function raised KeyError: 'answer'"),
        (raising(JudgementFailed("the model declines", "refused")), Status.REFUSED, "the model declines"),
        (raising(dspy.LMError("no way through")), Status.TRANSPORT, "no way through"),
        (lambda example, pred: None, Status.UNPARSABLE, "returned 'None', no number"),
        (lambda example, pred: "good", Status.UNPARSABLE, "returned 'good', no number"),
        (lambda example, pred: float("nan"), Status.UNPARSABLE, "returned nan"),
        (lambda example, pred: dspy.Prediction(answer=3), Status.UNPARSABLE, "a Prediction without score"),
        (lambda example, pred: "0.5", Status.UNPARSABLE, "returned '0.5', no number"),
    ],
)
def test_what_gives_no_number_is_a_failed_judgement(function, status, words):
    table = numbers(function)
    assert table.counts()[status.value] == 4
    assert words in table.judgement(0, 0).error
    assert np.isnan(table.values).all()


def test_a_number_outside_the_stated_range_is_out_of_range():
    table = numbers(lambda example, pred: int(example.id), name="stars", output=Output("stars", 1, 2))
    assert [judgement.status.value for judgement in table.column(0)] == ["out_of_range", "ok", "ok", "out_of_range"]
    assert [judgement.score for judgement in table.column(0)] == [None, 0.0, 1.0, None]


def test_a_dspy_metric_of_ours_is_taken_apart():
    judge = Scripted()
    assert score([judge.as_metric()], ROWS, progress=False).metrics == (judge,)


def test_only_a_function_with_a_version_is_kept_in_a_store(tmp_path):
    calls = []

    def counted(example, pred):
        calls.append(example.id)
        return 1.0

    def run(version):
        return score([CallableMetric(counted, version=version)], ROWS, store=tmp_path / "s.db", progress=False)

    run(None), run(None)
    assert len(calls) == 8
    run("1"), run("1")
    assert len(calls) == 12
    assert run("1").judgement(2, 0).raw == 1.0
    run("2")
    assert len(calls) == 16


def test_a_state_holds_the_name_and_the_range_and_no_code():
    metric = CallableMetric(exact, output=Output("exact", 0, 1), hidden=["rating", "rater"])
    state = metric.to_state()
    assert state == {
        "kind": "callable",
        "name": "exact",
        "hidden": ["rater", "rating"],
        "output": {"low": 0, "high": 1, "half": None, "higher_is_better": True},
    }
    again = CallableMetric.from_state(state, exact)
    assert (again.to_state(), again.fingerprint()) == (state, metric.fingerprint())
    versioned = CallableMetric.from_state(state, CallableMetric(exact, version="2"))
    assert (versioned.version, versioned.hidden, versioned.output) == ("2", ("rater", "rating"), metric.output)


class Called:
    def __call__(self, example, pred, trace=None):
        return 1.0


def five(example, pred, trace=None, pred_name=None, pred_trace=None):
    return 1.0


@pytest.mark.parametrize("function", [five, Called(), lambda *anything: 1, max, Called().__call__])
def test_whatever_takes_an_example_and_a_prediction_is_a_metric(function):
    assert CallableMetric(function).function is function


async def waits(example, pred):
    return 1.0


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda example: 1, r"<lambda>\(example\) cannot be called as \(example, pred\): too many positional"),
        (lambda example, pred, trace: 1, "missing a required argument: 'trace'; .* further parameters need defaults"),
        (lambda *, example, pred: 1, "too many positional arguments"),
        (waits, "waits is a coroutine function"),
        (dspy.Predict("question -> answer"), "Predict is a program, which takes texts by keyword"),
        (7, "7 is no function; give a function of"),
    ],
)
def test_what_cannot_be_called_so_is_refused_at_once(function, words):
    with pytest.raises(OptionError, match=words):
        CallableMetric(function)
    if function != 7:
        with pytest.raises(OptionError, match=words):
            score([function], ROWS, progress=False)


def test_hidden_fields_are_neither_in_the_row_nor_among_its_columns():
    seen = []

    def looks(example, pred):
        seen.append((sorted(example.keys()), sorted(pred.keys()), example.columns))
        return example["gold"] == pred.output

    row = make_row("yes", gold="yes", rating=4.0, columns={"rating": 4.0, "length": 1.0})
    assert CallableMetric(looks, hidden=["rating", "rater"]).judge_batch([row])[0].raw == 1.0
    assert seen == [(["columns", "gold", "output"], ["columns", "gold", "output"], {"length": 1.0})]
    assert row["columns"] == {"rating": 4.0, "length": 1.0}
    judgement = CallableMetric(lambda example, pred: example["rating"], name="cheat", hidden=["rating"]).judge_batch(
        [row]
    )
    assert judgement[0].status is Status.UNPARSABLE
    assert judgement[0].error == "the function cheat raised KeyError: 'rating'; hidden from it: rating"


def test_what_a_function_may_see_is_in_its_fingerprint():
    assert CallableMetric(exact).fingerprint() == CallableMetric(exact).fingerprint()
    assert CallableMetric(exact).fingerprint() != CallableMetric(exact, hidden=["gold"]).fingerprint()
