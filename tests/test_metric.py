"""The texts of a row, and the callable that DSPy takes."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest

from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import DataError, JudgementFailed
from metricsmith.metric import Metric, RowText, content_hash, make_row, row_text
from metricsmith.records import Judgement, MetricCard, Output, Status
from metricsmith.reward import Reward


class Counting:
    """A metric that scores .5, .6, .7 ... and knows the rows it was shown; None stands for a failure."""

    name = "counting"
    output = Output("counting")
    card = MetricCard("counting", "bank", "", "", (output,))

    def __init__(self, *scores):
        self.scores = list(scores)
        self.rows = []

    def fingerprint(self):
        return "counting"

    def judge_batch(self, rows, *, run=0):
        self.rows += rows
        score = self.scores.pop(0)
        if score is None:
            return [Judgement(self.name, status=Status.REFUSED, error="no comment")]
        return [Judgement(self.name, score, score, f"feedback {score}")]


def test_a_row_has_its_texts_as_inputs_and_all_else_as_labels():
    row = make_row("out", input="in", references=("a", "b"), context="ctx", id="7", rating=3.0)
    assert dict(row.inputs()) == {"output": "out", "input": "in", "references": ["a", "b"], "context": "ctx"}
    assert dict(row.labels()) == {"id": "7", "rating": 3.0}


def test_texts_that_a_row_has_not_are_left_out_of_it():
    assert dict(make_row("out", id="7").inputs()) == {"output": "out"}


def test_the_texts_of_a_row_come_back_in_order():
    row = make_row("out", input="in", references=["a", "b"], context="ctx")
    assert row_text(row) == RowText("out", "in", ("a", "b"), "ctx")
    assert row_text(make_row("out")) == RowText("out", "", (), "")


def test_one_reference_may_be_a_plain_text():
    assert row_text(dspy.Example(output="out", references="gold")).references == ("gold",)


def test_fields_map_our_names_to_the_callers():
    example = dspy.Example(question="q", answer="a", gold=["g"], passage="p")
    fields = {"input": "question", "output": "answer", "references": "gold", "context": "passage"}
    assert row_text(example, fields) == RowText("a", "q", ("g",), "p")


@pytest.mark.parametrize("pred", ["new", dspy.Prediction(answer="new")])
def test_a_prediction_replaces_the_output_and_nothing_else(pred):
    example = dspy.Example(input="q", answer="old", references=["g"])
    assert row_text(example, {"output": "answer"}, pred) == RowText("new", "q", ("g",))


def test_a_missing_output_is_an_error_that_names_what_is_there():
    with pytest.raises(DataError, match=r"no field 'answer' in \['text'\]"):
        row_text(dspy.Example(text="x"), {"output": "answer"})


def test_the_bar_for_a_demonstration_is_reached_by_equality():
    metric = Reward(Counting(0.5), success_at=0.5)
    assert metric(dspy.Example(output="o"), trace=[]) is True


def test_the_bar_for_a_demonstration_can_be_set():
    metric = Reward(Counting(0.5, 0.8), success_at=0.8)
    assert metric(dspy.Example(output="a"), trace=[]) is False
    assert metric(dspy.Example(output="b"), trace=[]) is True


def test_gepa_gets_score_and_feedback_although_it_passes_a_trace():
    verdict = Reward(Counting(0.25))(dspy.Example(input="q"), dspy.Prediction(output="o"), [], "predict", [])
    said = "Score 0.25 on a scale from 0 (worst) to 1 (best).\nThis is about the step 'predict' of the program.\n"
    assert (verdict.score, verdict.feedback) == (0.25, f"{said}feedback 0.25")


def test_equal_texts_are_judged_once():
    inner = Counting(0.1, 0.2)
    metric = Reward(inner)
    assert metric(dspy.Example(output="o")).score == metric(dspy.Example(output="o")).score == 0.1
    assert len(inner.rows) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"output": "other"},
        {"input": "other"},
        {"references": ["other"]},
        {"references": ["r", "other"]},
        {"context": "other"},
    ],
)
def test_rows_that_differ_in_any_text_are_judged_apart(other):
    texts = {"output": "o", "input": "i", "references": ["r"], "context": "c"}
    metric = Reward(Counting(0.1, 0.2))
    scores = [metric(dspy.Example(**texts)).score, metric(dspy.Example(**{**texts, **other})).score]
    assert scores == [0.1, 0.2]


def test_the_metric_sees_every_text():
    inner = Counting(0.1)
    Reward(inner)(dspy.Example(output="o", input="i", references=["r"], context="c"))
    assert row_text(inner.rows[0]) == RowText("o", "i", ("r",), "c")


def test_a_failure_is_raised_with_its_status_counted_and_tried_again():
    metric = Reward(Counting(None, 0.7))
    with pytest.raises(JudgementFailed, match="counting: no comment") as caught:
        metric(dspy.Example(output="o"))
    assert caught.value.status == Status.REFUSED
    assert [failure.times for failure in metric.failures] == [1]
    assert metric(dspy.Example(output="o")).score == 0.7
    assert [failure.times for failure in metric.failures] == [1]


def test_hashes_keep_parts_and_order_apart():
    assert content_hash("ab", "c") != content_hash("a", "bc")
    assert content_hash("a", "b") != content_hash("b", "a")
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    assert len(content_hash("\ud800")) == 16


def test_a_column_is_a_metric_that_says_where_a_row_has_no_number():
    column = ColumnMetric("mine")
    assert isinstance(column, Metric)
    rows = [make_row("o", columns={"mine": value}) for value in (2.0, float("nan"), float("inf"))]
    statuses = [judgement.status for judgement in column.judge_batch([*rows, make_row("o")])]
    assert statuses == [Status.OK, Status.SKIPPED, Status.SKIPPED, Status.SKIPPED]
    # A number of unknown range maps by .5 + .5 x / (|x| + 1): 2 -> .5 + .5 * 2 / 3 = 5/6.
    assert column.judge_batch(rows)[0].score == pytest.approx(5 / 6)
    assert column.fingerprint() != ColumnMetric("other").fingerprint()


def test_the_examples_own_columns_reach_the_metric_and_a_new_outputs_do_not():
    metric = ColumnMetric("good").as_metric()
    row = make_row("text", columns={"good": 3.0})
    assert metric(row).score == ColumnMetric("good").output.score(3.0)
    assert metric(make_row("text", columns={"good": -3.0})).score < 0.5
    with pytest.raises(JudgementFailed):
        metric(row, dspy.Prediction(output="another text"))


def test_a_changed_metric_is_asked_again():
    counting = Counting(0.5, 0.6)
    metric = Reward(counting)
    assert metric(make_row("o")).score == 0.5
    counting.fingerprint = lambda: "changed"
    assert metric(make_row("o")).score == 0.6


def test_threads_with_equal_texts_ask_once():
    counting = Counting(0.5)
    metric = Reward(counting)
    with ThreadPoolExecutor(8) as pool:
        scores = [verdict.score for verdict in pool.map(metric, [make_row("o")] * 8)]
    assert scores == [0.5] * 8
    assert len(counting.rows) == 1


def test_the_callable_can_be_deep_copied():
    metric = Reward(Counting(0.5), output="answer", success_at=0.7)
    again = copy.deepcopy(metric)
    assert (again.fields, again.success_at) == (metric.fields, 0.7)
