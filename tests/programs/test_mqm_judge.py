"""MQM by a model: one run, several runs, what they share, what is missing, and what never becomes a number."""

from __future__ import annotations

import json

import dspy
import pytest
from dspy.utils import DummyLM
from dspy.utils.exceptions import AdapterParseError

import metricsmith
from loopback import serve
from metricsmith.aggregation import rrwa
from metricsmith.datasets.segments import read_translations
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.errors import DataError, JudgementFailed, OptionError, StateError
from metricsmith.metric import make_row
from metricsmith.mqm import MQMWeights
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.judges.mqm import WORKED, WORKED_ERRORS, MQMAnnotator, MQMJudge, in_words
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import from_state
from metricsmith.programs.state import write_state
from metricsmith.programs.translations import judge_translations
from metricsmith.records import ErrorSpan, Judgement, Status
from reviser import FILES, GOLD, Reviser

LANGUAGES = {"source_language": "English", "target_language": "German"}
ROW = make_row("Die Tür ist offen.", input="The door is shut.", context="The door is shut.\nKnock twice.")


def annotator(**changes):
    return MQMAnnotator(**{**LANGUAGES, **changes})


def judge(**changes):
    return MQMJudge(**{**LANGUAGES, **changes})


def error(span="offen", kind="accuracy/mistranslation", **more):
    return {"span": span, "type": kind, "description": f"{span} is wrong", **more}


def errors(**lists):
    return json.dumps({"critical": [], "major": [], "minor": [], **lists})


def saying(*answers):
    lm = DummyLM([{"errors": answer} for answer in answers])
    lm.kwargs["temperature"] = 1.0
    return dspy.context(lm=lm)


def one(answer, **changes):
    with saying(answer):
        return annotator(**changes).judge_batch([ROW])[0]


def part(*spans, run=0, status=Status.OK):
    if status is not Status.OK:
        return Judgement("mqm_run", status=status, error="small talk", run=run)
    costs = {"critical": 25, "major": 5, "minor": 1}
    return Judgement("mqm_run", -float(sum(costs[span.severity] for span in spans)), 0.5, "f", run=run, spans=spans)


MAJOR = ErrorSpan("major", "accuracy/mistranslation", 12, 17, "offen", description="open for shut")
MINOR = ErrorSpan("minor", "style/awkward", 0, 3, "Die")


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
    """As a student of DSPy's optimisers it is called past the scoring engine, where DSPy would close the list."""
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


def test_shared_errors_are_told_by_weight_and_not_by_place_alone():
    comma, style = ErrorSpan("minor", "fluency/punctuation", 3, 4, ","), ErrorSpan("minor", "style/awkward", 12, 17)
    shared = judge(runs=2).shared([part(comma, style), part(comma, style, run=1)])
    assert [error.span.category for error in shared] == ["style/awkward", "fluency/punctuation"]


def test_a_long_list_of_errors_is_cut_in_the_feedback_and_whole_in_the_spans():
    many = [ErrorSpan("minor", "style/awkward", 3 * place, 3 * place + 2, "ab") for place in range(14)]
    verdict = judge(runs=2).verdict([part(*many), part(*many, run=1)], 0)
    assert len(verdict.spans) == 14
    assert verdict.feedback.count("(2 of 2 runs)") == 12
    assert verdict.feedback.endswith("; 2 more")


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


def test_table_1_of_the_paper():
    """Runs with the error counts of Table 1 of GEMBA-MQM V2: rrwa -8.496, nine runs kept, two errors shared."""
    counts = [
        (2, 0, 0),
        (0, 2, 1),
        (0, 1, 1),
        (0, 1, 1),
        (0, 2, 1),
        (0, 1, 1),
        (0, 1, 1),
        (2, 1, 0),
        (0, 1, 1),
        (0, 2, 1),
    ]
    places = {"critical": 40, "major": 0, "minor": 20}
    runs = [
        part(
            *[
                ErrorSpan(severity, "accuracy/mistranslation", places[severity] + 5 * n, places[severity] + 5 * n + 4)
                for severity, number in zip(("critical", "major", "minor"), found, strict=True)
                for n in range(number)
            ],
            run=run,
        )
        for run, found in enumerate(counts)
    ]
    assert [run.raw for run in runs] == [-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]
    judgement = judge().verdict(runs, 0)
    assert judgement.raw == pytest.approx(-8.496, abs=5e-4)
    assert judge().kept(runs).tolist() == [True] * 7 + [False, True, True]
    assert [(one.span.severity, one.span.start, one.found) for one in judge().shared(runs)] == [
        ("major", 0, 8), ("minor", 20, 8),
    ]  # fmt: skip
    assert [span.severity for span in judgement.spans] == ["major", "minor"]
    assert "rrwa of 9 of 10 runs (1 left out as outlying)" in judgement.feedback
    assert "(8 of 9 runs)" in judgement.feedback


def test_missing_runs_are_counted_and_enough_must_be_left():
    runs = [part(MAJOR, run=0), part(MAJOR, MINOR, run=1), part(run=2, status=Status.UNPARSABLE), part(run=3)]
    judgement = judge(runs=4).verdict(runs, 0)
    assert judgement.raw == rrwa([-5, -6, 0])
    assert "3 of 4 runs (1 without a number)" in judgement.feedback
    assert [span.text for span in judgement.spans] == ["offen"]
    failed = judge(runs=4, min_runs=4).verdict(runs, 0)
    assert (failed.status, failed.raw, failed.spans) == (Status.UNPARSABLE, None, ())
    assert "3 of 4 runs gave a number and 4 are needed" in failed.error


def test_runs_after_enough_do_not_count():
    """A store may know more runs than were needed: they change neither the number nor the errors."""
    runs = [part(MAJOR, run=0), part(MAJOR, run=1), part(MINOR, run=2), part(MINOR, run=3)]
    stopping = judge(runs=4, min_runs=2, stop_when=1.0)
    judgement = stopping.verdict(runs, 0)
    assert (judgement.raw, judgement.spans) == (-5.0, (MAJOR,))
    assert stopping.kept(runs).tolist() == [True, True]
    assert "2 more were not needed" in judgement.feedback
    assert "(2 of 2 runs)" in judgement.feedback


def test_errors_of_runs_that_are_left_out_do_not_count():
    """Of ten runs one is outlying; what five of the nine kept ones share is told, what it adds is not."""
    runs = [part(MAJOR, run=run) for run in range(5)] + [part(run=run) for run in range(5, 9)]
    far = part(*[ErrorSpan("critical", "other", place, place + 1) for place in range(9)], MINOR, run=9)
    (only,) = judge().shared([*runs, far])
    assert (only.span, only.found) == (MAJOR, 5)


def test_worst_first_goes_by_the_weights():
    dot = ErrorSpan("minor", "fluency/punctuation", 17, 18)
    runs = [part(dot, MINOR, MAJOR, run=run) for run in range(2)]
    assert judge(runs=2).verdict(runs, 0).spans == (MAJOR, MINOR, dot)


def test_no_shared_error_is_said():
    runs = [part(MAJOR), part(), part()]
    judgement = judge(runs=3, outliers=None).verdict(runs, 0)
    assert judgement.raw == pytest.approx(rrwa([-5, 0, 0], outliers=None))
    assert judgement.spans == ()
    assert judgement.feedback.endswith("at least half of them share no error")


def test_it_runs_as_a_program_with_errors_in_its_prediction():
    with saying(errors(major=[error()]), errors(), errors(major=[error()])):
        prediction = judge(runs=3)(output=ROW.output, input=ROW.input, context=ROW.context)
    assert prediction.raw == pytest.approx(rrwa([-5, 0, -5]))
    assert [span.text for span in prediction.spans] == ["offen"]
    assert 0 < prediction.score < 1


def test_the_temperature_is_in_the_request():
    with dspy.context(lm=dspy.LM("openai/m")):
        metricsmith.estimate([judge()], [ROW])  # the model itself has no temperature
        with pytest.raises(OptionError, match="independent samples"):
            metricsmith.estimate([judge(temperature=0.1)], [ROW])
        with pytest.raises(OptionError, match="independent samples"):
            metricsmith.estimate([judge(temperature=None)], [ROW])
        metricsmith.estimate([judge(temperature=0.0, runs=1)], [ROW])
    assert annotator().request == {"temperature": 0.4}
    assert annotator(temperature=None).request == {}


def test_state_and_fingerprint(tmp_path):
    made = judge(weights=MQMWeights.wmt(), runs=4, aggregate="median", context="none", min_runs=3)
    write_state(made.to_state(), tmp_path / "judge.json")
    again = metricsmith.load(tmp_path / "judge.json")
    assert isinstance(again, MQMJudge)
    assert again.to_state() == made.to_state()
    assert again.fingerprint() == made.fingerprint()
    assert again.judge.weights == MQMWeights.wmt()
    assert again.judge.messages(ROW) == made.judge.messages(ROW)
    assert isinstance(from_state(made.judge.to_state()), MQMAnnotator)
    others = [
        judge(), judge(runs=5), judge(aggregate="mean"), judge(weights=MQMWeights.wmt()), judge(context="none"),
        judge(source_language="Danish"), judge(temperature=0.5), Repeated(annotator()),
    ]  # fmt: skip
    assert len({other.fingerprint() for other in others}) == len(others)


def test_dspy_saves_and_loads_it(tmp_path):
    made = annotator(weights=MQMWeights.wmt())
    made.judge.demos = made.judge.demos * 2
    made.save(tmp_path / "judge.json")
    again = annotator(source_language="Danish")
    again.load(tmp_path / "judge.json")
    assert again.fingerprint() == made.fingerprint()
    assert again.messages(ROW) == made.messages(ROW)


def test_runs_of_a_tuned_annotator():
    tuned = annotator()
    tuned.judge.signature = tuned.judge.signature.with_instructions("Look twice.")
    made = MQMJudge.of(tuned, runs=3, min_runs=2)
    assert (made.name, made.runs, made.min_runs) == ("mqm", 3, 2)
    assert "Look twice." in made.judge.messages(ROW)[0]["content"]
    assert made.card.instruction == "Look twice."
    with pytest.raises(OptionError, match="is no MQMAnnotator"):
        MQMJudge.of(made)


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


def test_only_an_mqm_judge_judges_translations():
    read = read_translations(FILES[0], FILES[1:2])
    with pytest.raises(OptionError, match="is no MQMJudge"):
        judge_translations(annotator(), read)


def test_an_error_in_words():
    assert in_words(MAJOR) == "major accuracy/mistranslation «offen»: open for shut"
    assert in_words(ErrorSpan("minor", "accuracy/omission", side="source", text="x")) == (
        "minor accuracy/omission «x» in the source"
    )


def test_it_learns_from_marked_ratings():
    table = read_wmt_mqm(GOLD)
    with serve(Reviser()) as server:
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
