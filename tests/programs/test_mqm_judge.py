"""MQM by several runs: what they share, what is missing, and the judge as a program, as data and as repeated runs."""

from __future__ import annotations

import dspy
import pytest

import metricsmith
from annotating import MAJOR, MINOR, ROW, annotator, error, errors, judge, part, saying
from metricsmith.datasets.segments import read_translations
from metricsmith.errors import OptionError
from metricsmith.mqm import MQMWeights
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import from_state
from metricsmith.programs.state import write_state
from metricsmith.programs.translations import judge_translations
from metricsmith.records import ErrorSpan, Status
from metricsmith.stats.aggregation import rrwa
from reviser import FILES


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


def test_runs_of_a_tuned_annotator():
    tuned = annotator()
    tuned.judge.signature = tuned.judge.signature.with_instructions("Look twice.")
    made = MQMJudge.of(tuned, runs=3, min_runs=2)
    assert (made.name, made.runs, made.min_runs) == ("mqm", 3, 2)
    assert "Look twice." in made.judge.messages(ROW)[0]["content"]
    assert made.card.instruction == "Look twice."
    with pytest.raises(OptionError, match="is no MQMAnnotator"):
        MQMJudge.of(made)


def test_only_a_judge_of_translations_judges_them():
    read = read_translations(FILES[0], FILES[1:2])
    criterion = metricsmith.CriterionJudge(
        criterion="Keeps the facts", meaning="Nothing is lost.", task="Rewrite notices."
    )
    for other in (criterion, Repeated(criterion)):
        with pytest.raises(OptionError, match="is no judge of translations; make one with MQMJudge"):
            judge_translations(other, read)
