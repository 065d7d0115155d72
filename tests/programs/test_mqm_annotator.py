"""One run of MQM by a model: its prompt, its number, its errors, and what never becomes a number."""

from __future__ import annotations

import pytest
from dspy.utils.exceptions import AdapterParseError

from annotating import ROW, annotator, error, errors, judge, one, saying
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.errors import DataError, JudgementFailed, OptionError, StateError
from metricsmith.metric import make_row
from metricsmith.mqm import MQMWeights
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.judges.mqm import WORKED, WORKED_ERRORS
from metricsmith.records import ErrorSpan, Status
from metricsmith.testing import GivenModel
from reviser import GOLD, Reviser


def test_errors_become_spans_and_a_negated_sum():
    judgement = one(
        errors(critical=[error()], minor=[error(".", "fluency/punctuation"), error("Die", "style/awkward")])
    )
    assert judgement.raw == pytest.approx(-26.1)
    assert judgement.score == pytest.approx(5 / 31.1)
    assert [(span.severity, span.start, span.end) for span in judgement.spans] == [
        ("critical", 12, 17), ("minor", 17, 18), ("minor", 0, 3),
    ]  # fmt: skip
    assert judgement.feedback.startswith("critical accuracy/mistranslation «offen»: offen is wrong; minor fluency")


def test_no_errors_is_zero_and_one():
    judgement = one(errors())
    assert (judgement.raw, judgement.score, judgement.spans) == (0.0, 1.0, ())
    assert judgement.feedback == "No error was found."


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "No errors.",
        "N/A",
        "{}",
        "[]",
        "null",
        "**Critical:**\nnone\n**Major:**\nnone\n**Minor:**\nnone",
        '{"critical": [], "major": []}',
        '{"Critical": [], "Major": [], "Minor": []}',
        '{"errors": {"critical": [], "major": [], "minor": []}}',
        '{"critical": "none", "major": [], "minor": []}',
        '{"critical": [{"span": "offen"}], "major": [], "minor": []}',
        '{"critical": [], "major": [{"span": "offen", "type": "accura',
        '{"critical": [], "major": [], "minor": [',
        '{"critical": [], "major": [], "minor": []}\nBut "offen" is wrong.',
        errors(critical=[error("", "None")]),
        errors(minor=[error("", "No-error"), error("Die", "style/awkward")]),
    ],
)
def test_what_cannot_be_read_is_no_number(answer):
    judgement = one(answer)  # the repair says the same, and then nothing
    assert judgement.status is not Status.OK
    assert (judgement.raw, judgement.score, judgement.spans) == (None, None, ())


def test_a_plain_call_reads_no_broken_list_either():
    """A student of DSPy's optimisers is called past the scoring engine, where DSPy would close the list."""
    with saying('{"critical": [], "major": [], "minor": ['), pytest.raises(AdapterParseError):
        annotator()(output=ROW.output, input=ROW.input)
    with saying(errors()):
        assert annotator()(output=ROW.output, input=ROW.input).raw == 0.0


def test_a_hint_at_no_errors_inside_an_error_changes_nothing():
    assert one(errors(minor=[error("offen", "other", description="no error, N/A, none")])).raw == -1.0


@pytest.mark.parametrize(
    ("weights", "raw"),
    [
        (MQMWeights.gemba(), -32.1),
        (MQMWeights.wmt(), -12.1),
        (MQMWeights.gemba(cap=25), -25.0),
        (MQMWeights.gemba(max_errors=1), -25.0),
        (MQMWeights(1, 1, 1), -5.0),
    ],
)
def test_weights_are_a_value(weights, raw):
    said = errors(
        critical=[error()], major=[error("Tür")], minor=[error("."), error("Die"), error(" ", "fluency/punctuation")]
    )
    judgement = one(said, weights=weights)
    assert judgement.raw == pytest.approx(raw)


@pytest.mark.parametrize("weights", [MQMWeights.gemba(), MQMWeights.gemba(cap=25), MQMWeights(0, 0, 0)])
def test_the_map_to_the_unit_interval_is_monotone(weights):
    output = annotator(weights=weights).output
    scores = [output.score(raw) for raw in (0.0, -0.1, -1.0, -5.0, -24.0, -25.0)]
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 6
    assert scores[-1] >= 0


def test_the_scale_ends_at_the_cap_or_at_four_of_the_gravest_errors():
    ends = [annotator(weights=weights).scale for weights in (MQMWeights.gemba(), MQMWeights.gemba(cap=30))]
    assert [(scale.low, scale.high) for scale in ends] == [(-100.0, 0.0), (-30.0, 0.0)]


def test_prompts_show_languages_texts_and_a_worked_example():
    messages = annotator(source_language="Danish", target_language="Czech").messages(ROW)
    asked = messages[-1]["content"]
    assert "Danish" in asked
    assert "Czech" in asked
    assert "Knock twice." in asked
    assert WORKED.output in messages[1]["content"]
    assert "Czech" not in messages[1]["content"]
    assert "occurrence" in messages[2]["content"]
    assert len(annotator(worked_example=False).messages(ROW)) == 2
    assert "Knock twice." not in annotator(context="none").messages(ROW)[-1]["content"]


def test_the_worked_example_is_true():
    """Its quotations stand where it says, and its own text is judged without it."""
    made = annotator()
    with saying(WORKED_ERRORS.model_dump_json()):
        (judgement,) = made.judge_batch([make_row(WORKED.output, input=WORKED.input, context=WORKED.context)])
    assert [span.text for span in judgement.spans] == ["offen", "das Ventil", " ,"]
    assert judgement.spans[1].start == WORKED.output.rindex("das Ventil")
    assert len(made.messages(make_row(WORKED.output, input=WORKED.input))) == 2


def test_a_row_without_a_source_is_skipped_and_costs_nothing():
    with saying():
        (judgement,) = annotator().judge_batch([make_row("Die Tür.")])
        assert (judgement.status, judgement.usage.requests) == (Status.SKIPPED, 0)
        assert "no source text" in judgement.error
        for blank in ("", " \n\u2028"):
            with pytest.raises(JudgementFailed, match="no source text"):
                annotator()(output="Die Tür.", input=blank)
    assert judge(runs=2).verdict([judgement, judgement], 0).status is Status.SKIPPED


def test_an_empty_translation_is_judged():
    with saying(errors(critical=[error("The door is shut.", "accuracy/omission", in_source=True)])):
        (judgement,) = annotator().judge_batch([make_row("", input="The door is shut.")])
    assert judgement.raw == -25.0
    assert (judgement.spans[0].side, judgement.spans[0].start, judgement.spans[0].end) == ("source", 0, 17)


def test_dspy_saves_and_loads_it(tmp_path):
    made = annotator(weights=MQMWeights.wmt())
    made.judge.demos = made.judge.demos * 2
    made.save(tmp_path / "judge.json")
    again = annotator(source_language="Danish")
    again.load(tmp_path / "judge.json")
    assert again.fingerprint() == made.fingerprint()
    assert again.messages(ROW) == made.messages(ROW)


def test_marked_rows_are_its_demonstrations():
    rows = [row for row in read_wmt_mqm(GOLD).rows if row.system == "beta" and row.rater == "rater1"][:4]
    made = annotator().with_examples(rows, [row.mqm for row in rows])
    demo = made.examples[3]
    assert demo.errors.major[0].model_dump() == {
        "span": " until six", "occurrence": 1, "in_source": True, "type": "Accuracy/Omission",
        "description": "Accuracy/Omission",
    }  # fmt: skip
    assert demo.errors.minor[0].span == "Lesezimmer"
    assert made.examples[2].errors == type(demo.errors)(critical=[], major=[], minor=[])
    assert "Lesezimmer" in made.messages(ROW)[8]["content"]
    with pytest.raises(DataError, match="no marked errors under 'spans'"):
        annotator().example(ROW, -1.0)


def test_the_occurrence_is_counted_in_demonstrations():
    text = "das Ventil und das Ventil"
    row = make_row(text, input="x", spans=(ErrorSpan("major", "other", 15, 25, "das Ventil"),))
    assert annotator().example(row, -5).errors.major[0].occurrence == 2
    row = make_row("x", input=text, spans=(ErrorSpan("major", "other", 15, 25, "das Ventil", "source"),))
    assert annotator().example(row, -5).errors.major[0].occurrence == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_language": " "}, "source_language=' ' must name a language"),
        ({"context": "page"}, "unknown context='page'"),
        ({"temperature": 3}, "temperature=3 must lie between"),
        ({"weights": {"critical": 1}}, "the MQM weights cannot be read"),
    ],
)
def test_settings_without_a_meaning(changes, message):
    with pytest.raises((OptionError, StateError), match=message):
        annotator(**changes)


def test_it_learns_from_marked_ratings():
    table = read_wmt_mqm(GOLD)
    with GivenModel(Reviser()) as server:
        tuner = JudgeTuner(method="labeled", task=table.task, budget=200, lm=server.lm(temperature=1.0))
        tuned = tuner.compile(annotator(), table.rows)
        assert server.requests <= 200
        shown = [prompt for prompt in server.prompts if "«Lesezimmer»" in prompt or '"span": "Lesezimmer"' in prompt]
    assert shown  # marked errors of gold ratings were demonstrations
    assert tuned.tuning.usage.requests == server.requests


@pytest.mark.parametrize(("weights", "kind"), [("gemba", OptionError), (5, OptionError), ({}, StateError)])
def test_what_are_no_weights_is_refused(weights, kind):
    with pytest.raises(kind, match="MQMWeights"):
        judge(weights=weights)
