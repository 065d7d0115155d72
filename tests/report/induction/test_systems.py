"""Figures for new systems in words and drawn, and where they stand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from metricsmith.report.induction.document import RunDocument
from metricsmith.report.induction.record import NewSystems
from metricsmith.report.induction.sections import GLOSSARY, systems_plot
from metricsmith.report.induction.verdict import run_verdict, systems_caution, systems_lines
from metricsmith.report.render import render_html, render_markdown, render_terminal

BLOCK = NewSystems(6, 72, 0.31, -0.02, 0.58, 0.25, 0.12, 0.37)
SAME = "New rows of these 6 systems: tau-b .41 (95\u00a0% interval .28 to .52)."
NEW = "New systems: tau-b .31 (95\u00a0% interval −.02 to .58)"
INSIDE = "Inside systems, over pairs of rows of one system: tau-b .25 (95\u00a0% interval .12 to .37)."


def test_both_figures_and_the_one_inside_systems_are_said(make_record):
    lines = systems_lines(BLOCK, make_record().test)
    assert [line.startswith(said) for line, said in zip(lines, (SAME, NEW, INSIDE), strict=True)] == [True] * 3


def test_without_a_block_nothing_is_said_or_drawn(make_record):
    rows = make_record().test
    assert (systems_lines(None, rows), systems_caution(None, rows), systems_plot(None, rows)) == ([], "", "")
    assert "New systems" not in render_html(RunDocument(make_record())) + render_markdown(RunDocument(make_record()))
    assert "new_systems" not in make_record().as_dict()


def test_a_figure_that_is_withheld_has_its_reason_and_no_plot(make_record):
    block = NewSystems(1, 72, within_tau_b=0.25, withheld="six systems are the least, and there is 1")
    lines = systems_lines(block, make_record().test)
    assert lines[0].startswith("New rows of this one system: tau-b .41")
    assert lines[1] == "New systems: no figure, since six systems are the least, and there is 1."
    assert "tau-b .25 (no interval)" in lines[2]
    assert systems_plot(block, make_record().test) == ""
    assert render_html(RunDocument(make_record(new_systems=block))).count("no figure, since six systems") == 1


def test_judges_and_rows_left_out_are_counted(make_record):
    lines = systems_lines(replace(BLOCK, judges=2, unnamed=1), make_record().test)
    assert any(line.startswith("2 components of the metric learned from rated rows of all") for line in lines)
    assert lines[-1] == "1 held-out row without a system left out."


def test_the_verdict_cautions_where_the_evidence_ends_at_the_rated_systems(make_record):
    said = "For outputs of systems that were not rated here there is no clear evidence: tau-b .31"
    cautioned = run_verdict(make_record(new_systems=BLOCK))
    assert [line.startswith(said) for line in cautioned.cautions] == [True]
    for block in (replace(BLOCK, ci_low=0.05), replace(BLOCK, ci_low=math.nan, withheld="so")):
        assert run_verdict(make_record(new_systems=block)).cautions == ()
    unsure = replace(make_record().test, ci_low=-0.1)
    assert systems_caution(BLOCK, unsure) == ""


def test_page_markdown_terminal_and_json_have_the_block(make_record, read):
    record = make_record(new_systems=BLOCK, usage={})
    page = render_html(RunDocument(record))
    for said in (SAME, NEW, INSIDE):
        assert said in page
        assert said.replace("\u00a0", " ") in render_markdown(RunDocument(record)).replace("\u00a0", " ")
        assert said in render_terminal(RunDocument(record), Path("out"))
    assert "plot-systems" in page
    assert read(page).mismatched == []
    assert record.as_dict()["new_systems"]["ci_high"] == 0.58


def test_the_glossary_says_that_new_systems_have_a_figure_of_their_own():
    assert "have a figure of their own where rows name their system" in dict(GLOSSARY)["95\u00a0% interval"]
