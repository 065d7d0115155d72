"""MQM without spans: errors by type, severity and description, and nothing that takes a place stands in their stead."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from annotating import LANGUAGES, ROW, annotator, error, errors, judge, saying
from loopback import serve
from metricsmith.datasets.history import History
from metricsmith.datasets.segments import read_translations
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.errors import OptionError, StateError
from metricsmith.metric import make_row
from metricsmith.mqm import MQMWeights
from metricsmith.programs.judges.mqm import NO_SPANS, WORKED, WORKED_ERRORS
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.translations import _nearest, judge_translations
from metricsmith.records import ErrorSpan, Judgement
from metricsmith.report.render import render_html, render_markdown
from metricsmith.report.translations.document import TranslationDocument, write_translations
from metricsmith.report.translations.record import WITHOUT_SPANS
from metricsmith.studies.specialist.evaluation import evaluate_specialist
from reviser import DOCUMENTS, FILES, GOLD, Reviser

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("span", "occurrence", "in_source")


def named(kind="accuracy/mistranslation", description="open for shut"):
    return {"type": kind, "description": description}


def one(answer, **changes):
    with saying(answer):
        return annotator(spans=False, **changes).judge_batch([ROW])[0]


def test_its_prompt_asks_for_no_place_and_its_worked_example_has_none():
    told = "\n".join(message["content"] for message in annotator(spans=False).messages(ROW))
    assert not [name for name in PLACES if f'"{name}"' in told]
    assert '{"type": "fluency/punctuation", "description": "Space before the comma."}' in told
    assert all(f'"{name}"' in annotator().messages(ROW)[2]["content"] for name in PLACES)


def test_errors_count_by_severity_and_type_alone():
    # 25 for a critical error, 5 for a major one, 1 and .1 for minor ones: 31.1
    said = errors(
        critical=[named()],
        major=[named("accuracy/omission", "")],
        minor=[named("style/awkward"), named("Fluency, punctuation")],
    )
    judgement = one(said)
    assert judgement.raw == pytest.approx(-31.1)
    assert [(span.severity, span.category, span.start, span.text) for span in judgement.spans] == [
        ("critical", "accuracy/mistranslation", None, ""), ("major", "accuracy/omission", None, ""),
        ("minor", "style/awkward", None, ""), ("minor", "fluency/punctuation", None, ""),
    ]  # fmt: skip
    assert judgement.feedback.startswith("critical accuracy/mistranslation: open for shut; major accuracy/omission;")
    assert one(errors(major=[named("non-translation")]), weights=MQMWeights.wmt()).raw == -25.0
    assert one(errors(critical=[named("No error")])).raw is None


def test_a_model_that_quotes_all_the_same_is_read_without_the_quotation():
    judgement = one(errors(major=[error()]))
    assert (judgement.raw, judgement.spans[0].text, judgement.spans[0].start) == (-5.0, "", None)


def test_marked_rows_are_its_demonstrations_without_places():
    spans = (
        ErrorSpan("major", "accuracy/mistranslation", 12, 17, "offen", description="open for shut"),
        ErrorSpan("minor", "style/awkward", 0, 3, "Die"),
        ErrorSpan("minor", "Accuracy/Omission", 4, 8, "door", "source"),
        ErrorSpan("minor", "other"), ErrorSpan("neutral", "style/awkward", 0, 3, "Die"),
    )  # fmt: skip
    row = make_row(ROW.output, input=ROW.input, spans=spans)
    made = annotator(spans=False).with_examples([row], [-8.0])
    assert made.examples[0].errors.model_dump() == {
        "critical": [],
        "major": [named()],
        "minor": [
            named("style/awkward", "«Die»"),
            named("Accuracy/Omission", "«door» in the source"),
            named("other", "other"),
        ],
    }
    assert '"description": "«Die»"' in made.messages(make_row("x", input="y"))[2]["content"]


def test_the_runs_share_nothing_and_the_nearest_run_is_told():
    with saying(*[errors(major=[named()])] * 3):
        made = judge(runs=3, spans=False)
        prediction = made(output=ROW.output, input=ROW.input, context=ROW.context)
    assert prediction.raw == -5.0
    assert "spans" not in prediction
    assert prediction.feedback.endswith("the nearest, gave -5: major accuracy/mistranslation: open for shut")
    assert "share" not in prediction.feedback
    with pytest.raises(OptionError, match="errors without a place are not matched; take spans=True"):
        made.shared([])


@pytest.mark.parametrize("make", [annotator, judge])
def test_the_setting_is_in_state_and_fingerprint_only_where_it_is_off(make, tmp_path):
    with_spans, without = make(), make(spans=False)
    assert '"spans"' not in json.dumps(with_spans.to_state())
    assert json.dumps(without.to_state()).count('"spans": false') == 1
    assert make(spans=True).fingerprint() == with_spans.fingerprint() != without.fingerprint()
    without.save(tmp_path / "judge.json")
    again = load(tmp_path / "judge.json")
    assert again.fingerprint() == without.fingerprint()
    inner = again if make is annotator else again.judge
    assert inner.messages(ROW) == annotator(spans=False).messages(ROW)


def test_a_judge_built_today_has_the_fingerprint_under_which_older_stores_know_it():
    then = json.loads((ROOT / "tests" / "golden" / "before_one_house" / "scores.json").read_text("utf-8"))
    assert annotator(weights=MQMWeights.wmt(cap=25)).fingerprint() == then["mqm_annotator"]["fingerprint"]
    assert judge(runs=2).fingerprint() == then["mqm_judge"]["fingerprint"]


@pytest.mark.parametrize("value", [True, None, 0, "no"])
def test_a_file_says_false_or_nothing(value, tmp_path):
    state = annotator(spans=False).to_state()
    state["state"]["settings"]["spans"] = value
    with pytest.raises(StateError, match="spans"):
        from_state(state)


def test_settings_of_the_other_kind_are_told_apart_when_dspy_loads_them(tmp_path):
    annotator(spans=False, worked_example=False).save(tmp_path / "judge.json", save_program=False)
    other = annotator(worked_example=False)
    other.load(tmp_path / "judge.json")
    with pytest.raises(StateError, match="the loaded settings are those of a judge with spans=False"):
        other.messages(ROW)


def test_the_report_leaves_marks_out_by_name(tmp_path):
    read = read_translations(FILES[0], FILES[1:], documents=DOCUMENTS)
    with serve(Reviser()) as server:
        record = judge_translations(judge(runs=3, spans=False), read, lm=server.lm(), progress=False)
    assert record.judgements["ok"] == 36 * 3
    assert min(line.raw for line in record.segments) < 0
    assert {line.errors for line in record.segments} == {None}
    assert not record.number.marks
    assert NO_SPANS in record.notes
    assert not [line for line in record.warnings if "quote words" in line]
    page, text = (render(TranslationDocument(record)) for render in (render_html, render_markdown))
    assert "<mark" not in page
    for shown in (page, text):
        assert WITHOUT_SPANS in shown
        assert NO_SPANS in shown
        assert "at least half" not in shown
    assert f"note: {NO_SPANS}" in TranslationDocument(record).terminal(None)
    write_translations(record, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "segments.jsonl").read_text("utf-8").splitlines()]
    assert {line["errors"] for line in lines} == {None}


def test_it_is_cheaper_by_what_the_page_says(capsys):
    runpy.run_path(str(ROOT / "benchmarks" / "mqm_tokens.py"), run_name="__main__")
    table = capsys.readouterr().out
    assert table in (ROOT / "docs" / "mqm.md").read_text("utf-8")
    prompt, completion = [int(line.split("|")[4].strip(" %")) for line in table.splitlines()[2:]]
    assert prompt > 5
    assert completion > 15


def test_character_f1_refuses_it_and_measures_of_numbers_do_not(tmp_path):
    history = History.from_table(read_wmt_mqm(GOLD), by_rater=True)
    made = annotator(spans=False, worked_example=False, context="none")
    for one_judge in (made, type(judge()).of(made, runs=2)):
        with pytest.raises(OptionError, match="marks no errors, which character-f1 compares: take MQMAnnotator or"):
            evaluate_specialist(one_judge, history, ["any"])
    with serve(Reviser()) as server:
        found = evaluate_specialist(made, history, ["any"], measure="acc-t", lm=server.lm(), progress=False)
    assert found.results[0].value > 0
    assert LANGUAGES["source_language"] in server.prompts[0]
    assert not [name for name in PLACES if f'"{name}"' in server.prompts[0]]


def test_the_worked_example_says_without_spans_what_it_says_with_them():
    with saying(WORKED_ERRORS.model_dump_json()):
        (judgement,) = annotator(spans=False).judge_batch([make_row(WORKED.output, input=WORKED.input)])
    assert judgement.raw == pytest.approx(-30.1)


def test_the_reasons_are_those_of_the_nearest_run_that_was_kept():
    runs = ((-4.0, "left out"), (-6.0, "near"), (-1.0, "far"))
    parts = [Judgement("mqm_run", raw, 0.5, feedback=told) for raw, told in runs]
    whole = Judgement("mqm", -4.5, 0.5)
    assert _nearest(whole, parts, np.array([False, True, True])) == "near"
    assert _nearest(whole, parts, np.array([True, True, True])) == "left out"
    assert _nearest(whole, parts, np.zeros(3, dtype=bool)) == ""
