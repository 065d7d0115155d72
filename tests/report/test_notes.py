"""Warnings and notes of a run stand on each page that tells of it, every text of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meta_evaluations import FULL
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.meta_evaluation.document import MetaEvaluationDocument
from metricsmith.report.probe.document import ProbeDocument
from metricsmith.report.render import render_html, render_markdown
from metricsmith.report.suite.document import SuiteDocument
from probes import RECORD
from suites import FULL as SUITE

SAID = {
    "warnings": ("the first warning", "another warning", "the last warning"),
    "notes": ("the first note", "another note", "the last note"),
}


@pytest.mark.parametrize("kind", ["induction", "meta-evaluation", "probe", "suite"])
def test_every_warning_and_note_stands_in_the_page_and_in_markdown(kind, make_record, read):
    documents = {
        "induction": (make_record(), RunDocument),
        "meta-evaluation": (FULL, MetaEvaluationDocument),
        "probe": (RECORD, ProbeDocument),
        "suite": (SUITE, SuiteDocument),
    }
    record, document = documents[kind]
    record = replace(record, **SAID)
    for text in (read(render_html(document(record))).text, render_markdown(document(record))):
        assert [text.count(line) for lines in SAID.values() for line in lines] == [1] * 6
