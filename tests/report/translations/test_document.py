"""Judged translations as pages and files: errors where they stand, nothing that data can break, all numbers valid."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.mqm import SharedError
from metricsmith.records import ErrorSpan, Usage
from metricsmith.report.render import render_html, render_markdown
from metricsmith.report.translations.document import (
    TRANSLATION_FILES,
    TranslationDocument,
    marked_pieces,
    score_basis,
    write_translations,
)
from metricsmith.report.translations.record import MeanScore, SegmentScore, TranslationRecord

EVIL = '<script>alert("x")</script> | *bold* `code` \u202e «begin»'


def found(start, end, severity="major", side="target", text="words", count=3, category="accuracy/mistranslation"):
    return SharedError(ErrorSpan(severity, category, start, end, text, side, "what is wrong"), count)


def segment(**changes):
    line = SegmentScore(
        id="A|d:1", system="A", document="d", segment=1, source="The door is shut.", translation="Die Tür ist offen.",
        raw=-5.0, score=0.5, half_width=1.25, status="ok", error="", runs=(-5.0, -5.0, None, -6.0), kept=3,
        errors=(found(12, 17),),
    )  # fmt: skip
    return replace(line, **changes)


def record(*segments, **changes):
    lines = segments or (segment(),)
    made = TranslationRecord(
        title="doors.txt", languages="English-German", method="Minus the sum.", segments=lines,
        documents=(MeanScore("A", "d", -5.0, -7.5, -2.5, 1, 0, 4), MeanScore("A", "e", -1.0, -2.0, 0.0, 1, 0, 4)),
        systems=(MeanScore("A", "", -5.0, math.nan, math.nan, 1, 2, 1),),
        judgements={"requested": 4, "ok": 3, "unparsable": 1}, reused=2, usage=Usage(5, 100, 10, None, 3.0),
        estimated=Usage(4), signature="metricsmith 0", warnings=("careful",), notes=("a note",),
    )  # fmt: skip
    return replace(made, **changes)


def pieces(text, *errors, side="target"):
    return [(one.text, one.severity, one.numbers, one.ends) for one in marked_pieces(text, errors, side)]


def test_a_text_is_cut_where_errors_begin_and_end():
    assert pieces("abcdef", found(1, 3), found(4, 6, "minor")) == [
        ("a", "", (), ()), ("bc", "major", (1,), (1,)), ("d", "", (), ()), ("ef", "minor", (2,), (2,)),
    ]  # fmt: skip


def test_where_errors_overlap_the_worst_decides():
    assert pieces("abcdef", found(0, 4, "minor"), found(2, 6, "critical")) == [
        ("ab", "minor", (1,), ()), ("cd", "critical", (1, 2), (1,)), ("ef", "critical", (2,), (2,)),
    ]  # fmt: skip


def test_a_place_is_a_piece_without_text():
    assert pieces("ab", found(1, 1, "minor"), found(2, 2)) == [
        ("a", "", (), ()), ("", "minor", (1,), (1,)), ("b", "", (), ()), ("", "major", (2,), (2,)),
    ]  # fmt: skip


def test_errors_elsewhere_mark_nothing():
    assert pieces("ab", found(0, 1, side="source"), found(None, None)) == [("ab", "", (), ())]
    assert pieces("ab", found(0, 1, side="source"), side="source")[0] == ("a", "major", (1,), (1,))
    assert pieces("") == []


@given(
    st.text(max_size=12),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 14), st.sampled_from(["critical", "major", "minor"]))),
)
def test_no_character_is_lost_and_every_error_ends_once(text, places):
    errors = [
        found(min(start, len(text)), max(min(start, len(text)), end), severity) for start, end, severity in places
    ]
    marked = marked_pieces(text, errors, "target")
    assert "".join(one.text for one in marked) == text
    assert sorted(number for one in marked for number in one.ends) == list(range(1, len(errors) + 1))


def test_what_a_score_rests_on():
    assert score_basis(segment()) == "3 of 4 runs, from −6.00 to −5.00, ±1.25"
    assert score_basis(segment(runs=(0.0, 0.0), kept=2, half_width=None)) == "2 of 2 runs, all 0.00"
    one_out = segment(runs=(-6.0, -6.0, None, 0.0), kept=2)
    assert score_basis(one_out) == "3 of 4 runs, from −6.00 to 0.00, 1 left out as outlying, ±1.25"
    none = segment(raw=None, score=None, half_width=None, error="small talk", kept=0, errors=(), status="unparsable")
    assert score_basis(none) == "no score: small talk (3 of 4 runs, from −6.00 to −5.00)"
    assert score_basis(replace(none, runs=(None, None))) == "no score: small talk"


def test_the_page_shows_means_errors_and_what_is_missing():
    page = render_html(TranslationDocument(record()))
    assert 'Die Tür ist <mark class="major">offen<sup>[1]</sup></mark>.' in page
    assert "accuracy/mistranslation: what is wrong" in page
    assert "3 of 3 runs" in page
    assert "−7.50 to −2.50" in page
    assert "careful" in page
    assert "2 runs came from the store" in page
    empty = render_html(TranslationDocument(record(segment(translation="", errors=()))))
    assert "(empty)" in empty


def test_numbers_of_errors_that_end_together_stay_apart():
    page = render_html(TranslationDocument(record(segment(errors=(found(8, 17), found(12, 17), found(17, 17))))))
    assert "<sup>[1]</sup><sup>[2]</sup></mark>" in page
    assert "<sup>[3]</sup>" in page


def test_every_warning_and_note_stands_in_the_page_and_in_markdown():
    said = {"warnings": ("the first warning", "the last warning"), "notes": ("the first note", "the last note")}
    for render in (render_html, render_markdown):
        text = render(TranslationDocument(record(**said)))
        assert [text.count(line) for lines in said.values() for line in lines] == [1] * 4


def test_errors_that_are_not_found_in_the_text_are_quoted():
    page = render_html(TranslationDocument(record(segment(errors=(found(None, None, text="offne"),)))))
    assert "accuracy/mistranslation «offne»: what is wrong" in page
    assert "<mark" not in page.split('id="segments-head"')[1].split("<article")[1]


def test_no_data_can_break_a_page_or_markdown():
    error = SharedError(ErrorSpan("major", EVIL, 0, 4, EVIL, "target", EVIL), 3)
    made = record(
        segment(id=EVIL, system=EVIL, document=EVIL, source=EVIL, translation=EVIL, errors=(error,)),
        title=EVIL, languages=EVIL, warnings=(EVIL,), notes=(EVIL,), signature=EVIL,
    )  # fmt: skip
    page = render_html(TranslationDocument(made))
    assert "<script" not in page
    assert "&lt;scr" in page
    text = render_markdown(TranslationDocument(made))
    assert "<script" not in text
    assert "\\| \\*bold\\* \\`code\\`" in text.splitlines()[0]


def test_a_long_page_shows_the_worst_and_says_so(monkeypatch):
    monkeypatch.setattr("metricsmith.report.translations.document.MOST_SHOWN", 2)
    lines = [segment(id=f"A|d:{n}", segment=n, raw=raw) for n, raw in enumerate([-1.0, -9.0, None, -2.0], 1)]
    shown, left = TranslationDocument(record(*lines)).segments()
    assert [line.segment for line in shown] == [2, 4]
    assert "The 2 worst of 4 segments" in left


def test_files(tmp_path):
    none = segment(id="A|d:2", segment=2, raw=None, score=None, half_width=None, kept=0, errors=(), error="tab\there")
    write_translations(record(segment(), none), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(TRANSLATION_FILES)
    first, second = map(json.loads, (tmp_path / "out" / "segments.jsonl").read_text("utf-8").splitlines())
    assert (first["doc"], first["raw"], first["metric"], first["errors"][0]["found"]) == ("d", -5.0, "mqm", 3)
    assert second["raw"] is None
    content = json.loads((tmp_path / "out" / "mqm.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert (content["segments"], content["missing"], content["systems"][0]["low"]) == (2, 1, None)
    table = (tmp_path / "out" / "segments.tsv").read_text("utf-8").splitlines()
    assert len(table) == 3
    assert all(len(line.split("\t")) == 13 for line in table[:2])
