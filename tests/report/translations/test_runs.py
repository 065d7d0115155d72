"""Runs beside each other: cells, the spread in words, segments that say nothing about it."""

from __future__ import annotations

from dataclasses import replace

from metricsmith.records import Usage
from metricsmith.report.render import render_html, render_markdown
from metricsmith.report.translations.document import TranslationDocument
from metricsmith.report.translations.record import JudgedNumber, MeanScore, SegmentScore, TranslationRecord
from metricsmith.report.translations.runs import run_blocks, run_cells, spread_stated

EVIL = '<script>alert("x")</script> | *bold* `code`'
COUNTS = ({"critical": 0, "major": 1, "minor": 0}, {"critical": 0, "major": 1, "minor": 0}, None,
          {"critical": 0, "major": 1, "minor": 1})  # fmt: skip


def segment(**changes):
    line = SegmentScore(
        id="A|d:1", system="A", document="d", segment=1, source="Shut.", translation="Zu.", raw=-5.0, score=0.5,
        half_width=1.25, status="ok", error="", runs=(-5.0, -5.0, None, -6.0), kept=3, errors=(),
    )  # fmt: skip
    return replace(line, **changes)


def record(*segments, **changes):
    mean = MeanScore("A", "", -5.0, -6.0, -4.0, 1, 0, 1)
    made = TranslationRecord(
        title="doors.txt", languages="English-German", method="Minus the sum.", segments=segments or (segment(),),
        documents=(mean,), systems=(mean,), judgements={"requested": 4, "ok": 3, "unparsable": 1}, reused=0,
        usage=Usage(), estimated=Usage(), signature="metricsmith 0",
    )  # fmt: skip
    return replace(made, **changes)


def test_a_segment_without_two_runs_has_no_delta():
    assert segment(runs=(-5.0, None, -12.0)).delta == 7
    assert segment(runs=(-5.0, -5.0)).delta == 0
    assert segment(runs=(-5.0, None)).delta is None
    assert segment(runs=()).delta is None


def test_missing_deltas_enter_no_figure_and_are_counted():
    lines = [segment(id=str(place), runs=runs) for place, runs in enumerate([(-1, -4), (-1, -31), (-1,), (None, None)])]
    said = spread_stated(record(*lines))
    assert "lie 16.50 points apart in the median, more than 5.00 in 50" in said
    assert "30.00 at most. Left out, for want of two runs with a number: 2 segments." in said


def test_without_two_runs_anywhere_there_is_no_part_on_runs():
    alone = record(segment(runs=(-5.0,)))
    assert run_blocks(alone, page=True) == []
    assert "apart in the median" not in render_html(TranslationDocument(alone))


def test_a_failed_run_has_blank_cells():
    cells = list(run_cells(segment(counts=COUNTS, outliers=(4,))))
    assert cells[0] == ["A|d:1", "A", "d", 1, 1, 0, 1, 0, 0, -5.0]
    assert cells[2] == ["A|d:1", "A", "d", 1, 3, None, None, None, None, None]
    assert [row[8] for row in cells] == [0, 0, None, 1]


def test_a_judge_that_marks_nothing_has_scores_alone():
    markdown = render_markdown(
        TranslationDocument(record(number=JudgedNumber("Stars", "points", "is.", 4.0, marks=False)))
    )
    assert "| run | left out | score |" in markdown.replace("---", "")
    mixed = record(segment(runs=(-1.0, 2.0, 3.0)))
    table = run_blocks(mixed, page=False)[-1]
    assert [row[0] for row in table.rows] == ["1", "2", "3", "mean-all", "mean", "max", "rrwa"]  # no geometric mean


def test_names_from_the_data_break_nothing(read):
    evil = replace(segment(counts=COUNTS), id=EVIL, system=EVIL)
    page = read(render_html(TranslationDocument(record(evil))))
    assert page.mismatched == []
    assert 'Runs of <script>alert("x")</script>' in page.text
