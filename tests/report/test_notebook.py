"""Every record shows itself in a notebook: in short, by itself, and safe against texts from the data."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace

import pytest

from metricsmith.report.blocks import Paragraph, TextTable, Verdict, Warnings, element, joined
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.notebook import SHORT, NotebookRecord, short_form
from metricsmith.report.render import render_brief

RECORDS = {
    "ablation": "Ablation",
    "induction": "RunRecord",
    "comparison": "Comparison",
    "distillation": "Distillation",
    "probe": "ProbeRecord",
    "meta_evaluation": "MetaEvaluation",
    "specialist": "SpecialistEvaluation",
    "suite": "SuiteEvaluation",
    "validation": "Validation",
    "translations": "TranslationRecord",
    "tuning": "Tuning",
    "versus": "Versus",
}


@pytest.mark.parametrize(("folder", "name"), RECORDS.items())
def test_a_record_with_a_document_beside_it_is_shown(folder, name):
    assert issubclass(getattr(importlib.import_module(f"metricsmith.report.{folder}.record"), name), NotebookRecord)


def test_the_short_form_is_verdict_figures_tables_and_warnings(make_record):
    document = RunDocument(make_record(warnings=tuple(f"warning {n}" for n in range(5))))
    heading, verdict, *facts, components, agreement, warnings = short_form(document)
    assert heading.text == document.page().title
    assert isinstance(verdict, Verdict)
    assert 'class="facts"' in facts[-1]
    assert components.head[0] == "Component"
    assert agreement.head[0] == "Predictor"
    assert warnings == Warnings(["warning 0", "warning 1", "warning 2", "… and 2 more"])


def test_a_link_of_the_page_is_left_out_and_a_sentence_stays(make_record):
    shown = short_form(RunDocument(make_record(warnings=("one",))))
    details = next(block for block in shown if isinstance(block, Verdict)).details
    assert details
    assert not any("href" in part.text for part in details)


def test_a_long_table_is_cut_with_a_word_on_the_rest():
    rows = [(f"row {n}", str(n)) for n in range(SHORT + 4)]

    class Long:
        record = type("Record", (), {"warnings": ()})

        def page(self):
            block = [TextTable(("name", "n"), rows)]
            return type("Page", (), {"title": "Long", "header": [], "main": block})

        def facts(self):
            return []

    _, table, _ = short_form(Long())
    assert table.rows[:SHORT] == rows[:SHORT]
    assert table.rows[-1].text == "… and 4 more"


def test_a_run_shows_itself_with_its_signature_and_the_word_on_synthetic_data(make_record):
    shown = make_record(synthetic="Made up by hand.", signature="metricsmith 0 | seed <3>")._repr_html_()
    assert shown.startswith('<div class="metricsmith"><style>')
    assert shown.endswith("</div>")
    assert "Made up by hand." in shown
    assert "metricsmith 0 | seed &lt;3&gt;" in shown
    assert 'class="verdict ' in shown


def test_nothing_in_a_text_runs_or_closes_the_piece(make_record):
    evil = "</style></div><script>alert(1)</script><img src=x onerror=alert(1)>"
    record = make_record(warnings=(evil,), signature=evil, title=evil, synthetic=evil, baselines={})
    parts = tuple(replace(part, name=evil) for part in record.components)
    shown = replace(record, components=parts)._repr_html_()
    assert "<script" not in shown
    assert "<img" not in shown
    assert shown.count("</style>") == shown.count("<style>") == 1
    assert shown.count("<div") == shown.count("</div>")
    assert "&lt;script&gt;" in shown


def test_the_style_sheet_touches_nothing_outside_the_piece():
    css = re.search("<style>(.*?)</style>", render_brief([]), re.DOTALL)[1]
    selectors = [one.strip() for rule in css.split("}")[:-1] for one in rule.split("{")[0].split(",")]
    assert selectors
    assert all(one.split()[0] == ".metricsmith" for one in selectors)
    assert not re.search(r"(?<!border-)color: (?!inherit)|background: (?!none)", css), "a dark notebook keeps its own"


def test_blocks_are_escaped_and_markup_is_pasted():
    shown = render_brief([Paragraph("a < b"), Paragraph(joined("x ", element("strong", "y & z")))])
    assert "<p>a &lt; b</p>" in shown
    assert "<p>x <strong>y &amp; z</strong></p>" in shown
    assert "signature" not in shown.partition("</style>")[2]
