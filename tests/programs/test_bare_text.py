"""A metric of any kind judges a bare text: the output first, the row's other fields by keyword."""

from __future__ import annotations

import dspy
import pytest

from metricsmith.bank.catalogue import default_bank
from metricsmith.errors import DataError, JudgementFailed
from metricsmith.metric import make_row
from metricsmith.testing import GivenModel
from saved import ROW, answer, every_kind

KINDS = {name: metric for name, metric in every_kind().items() if hasattr(metric, "judge_batch")}
TEXTS = {"input": ROW.input, "references": ROW.references}


def model():
    return GivenModel(answer)


@pytest.mark.parametrize("name", KINDS)
def test_a_bare_text_is_judged_as_by_keyword_and_else_as_its_row(name):
    metric = KINDS[name]
    fields = {"input": ROW.input} if name in ("parrot", "example_mean") else TEXTS  # these look at no reference
    fields = {**fields, "columns": {"length": 4.0}} if name == "column" else fields
    with model() as server, dspy.context(lm=server.lm(temperature=1.0, engine="lm15")):
        found = metric("The gate is shut.", **fields)
        if isinstance(metric, dspy.Module):
            assert dict(found) == dict(metric(output="The gate is shut.", **fields))
        else:
            row = metric.judge_batch([make_row("The gate is shut.", **fields)])[0]
            assert dict(found) == {"score": row.score, "raw": row.raw, "feedback": row.feedback}
    assert isinstance(found, dspy.Prediction)


def test_one_reference_may_be_given_as_it_is():
    rouge = default_bank().get("rouge1_f")
    assert rouge("a b", references="a b").raw == rouge("a b", references=["a b"]).raw == 1.0
    assert make_row("a b", references="a b").references == ["a b"]
    with model() as server, dspy.context(lm=server.lm()):
        KINDS["rubric_judge"]("a b", references="gold text")
        KINDS["rubric_judge"](output="a c", references="gold text")
    assert all("»\ngold text\n«" in prompt for prompt in server.prompts)
    assert len(server.prompts) == 2


def test_a_text_that_has_no_value_is_a_failure_with_its_reason():
    with pytest.raises(JudgementFailed, match="row has no references"):
        default_bank().get("rouge1_f")("a b")


@pytest.mark.parametrize("name", ["rubric_judge", "bank", "callable", "induced"])
def test_rows_and_predictions_stay_the_call_that_dspy_makes_and_two_texts_are_none(name):
    metric = KINDS[name]
    with model() as server, dspy.context(lm=server.lm(temperature=1.0, engine="lm15")):
        row = make_row("Shut.", **TEXTS)
        assert "raw" not in metric(row)
        assert metric({"input": "q", "references": ["shut"]}, dspy.Prediction(output="shut")) == metric.as_metric()(
            {"input": "q", "references": ["shut"]}, dspy.Prediction(output="shut")
        )
        with pytest.raises(DataError, match=r"a metric itself takes a text: metric\(output, input=...\)"):
            metric("the input", "the output")


def test_an_output_is_named_once():
    with pytest.raises(TypeError, match="output"):
        KINDS["rubric_judge"]("one", output="two")
    with pytest.raises(TypeError, match="output"):
        KINDS["bank"]("one", output="two")
