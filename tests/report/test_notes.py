"""What a run warns of and notes stands on each page that tells of it, every text of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meta_evaluations import FULL
from metricsmith.report.assets import render_html as page_of
from metricsmith.report.induction.markdown import render_markdown
from metricsmith.report.markdown import render_markdown as markdown_of
from metricsmith.report.meta_evaluation.write import MetaEvaluationDocument
from metricsmith.report.page import render_html
from metricsmith.report.probe.write import ProbeDocument
from probes import RECORD

SAID = {
    "warnings": ("the first warning", "another warning", "the last warning"),
    "notes": ("the first note", "another note", "the last note"),
}


@pytest.mark.parametrize("kind", ["induction", "meta-evaluation", "probe"])
def test_every_warning_and_note_stands_in_the_page_and_in_markdown(kind, make_record, read):
    renderers = {
        "induction": (make_record(), render_html, render_markdown),
        "meta-evaluation": (
            FULL,
            lambda one: page_of(MetaEvaluationDocument(one)),
            lambda one: markdown_of(MetaEvaluationDocument(one)),
        ),
        "probe": (
            RECORD,
            lambda record: page_of(ProbeDocument(record)),
            lambda record: markdown_of(ProbeDocument(record)),
        ),
    }
    record, html, markdown = renderers[kind]
    record = replace(record, **SAID)
    for text in (read(html(record)).text, markdown(record)):
        assert [text.count(line) for lines in SAID.values() for line in lines] == [1] * 6
