"""The Markdown report, and that texts cannot act as Markdown or HTML."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from metricsmith.report.induction.document import RunDocument
from metricsmith.report.induction.rows import reliability_bins, reliability_sentence
from metricsmith.report.render import escape, render_markdown
from metricsmith.stats.agreement import Agreement


def test_the_sections_follow_the_page(make_record):
    heads = re.findall(r"^#+ (.*)$", render_markdown(RunDocument(make_record())), re.M)
    assert heads == [
        "Plain notices for rating (1 to 5)", "What was induced", "Agreement with the raters",
        "What more labels would buy", "Where metric and raters disagree most", "Cost and failures",
        "Warnings, notes and use",
    ]  # fmt: skip


def test_verdict_figures_and_signature_are_there(make_record):
    record = make_record()
    text = render_markdown(RunDocument(record))
    for wanted in (
        "> **Synthetic data.**", "tau-b .41 (95 % interval .28 to .52, p &lt; .001)",
        "| keeps\\_every\\_fact | single-criterion judge | +0.46 |", "| Length in words | 72 | 18 | −.194 |",
        "raters 5, metric", "Judgements: 3,600 requested; 3,589 gave a number", "| Cost | $0.55 | $0.53 |",
        "**Warning:** keeps\\_every\\_fact failed on 3 rows", 'metricsmith.load("metric.json")',
    ):  # fmt: skip
        assert wanted in text, wanted
    assert text.rstrip().endswith(escape(f"Signature: {record.signature}"))


def test_few_groups_are_remarked_on_below_the_verdict_and_the_table(make_record):
    record = make_record()
    said = f"95 % intervals of tau-b from so few groups ({record.test.groups}) held the true value in at least"
    text = render_markdown(RunDocument(record))
    assert f"\n{said}" in text[text.index("**Ranks outputs") :]
    assert f"- {said}" in text
    assert "in simulations" not in render_markdown(
        RunDocument(make_record(evaluation="cv", train=replace(record.train, groups=9)))
    )


def test_every_table_is_rectangular(evil_record, make_record):
    for record in (evil_record, make_record()):
        for block in re.findall(r"(?:^\|.*\n)+", render_markdown(RunDocument(record)), re.M):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1


def test_no_text_gets_out_of_its_place(evil_record):
    text = render_markdown(RunDocument(evil_record))
    assert "<" not in text.replace("```", "")
    assert "&lt;script&gt;" in text
    assert "\u202e" not in text
    assert "\x00" not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a | b", "a \\| b"),
        ("# no heading", "\\# no heading"),
        ("- no list", "\\- no list"),
        ("1. no list", "&#8203;1. no list"),
        ("[a](javascript:x) `c` *d* _e_", "\\[a\\](javascript:x) \\`c\\` \\*d\\* \\_e\\_"),
        ("<b>&lt;", "&lt;b&gt;&amp;lt;"),
        ("two\n\n# lines", "two # lines"),
        ("東京 שלום", "東京 שלום"),
        ("", ""),
    ],
)
def test_escape_leaves_nothing_to_act_on(text, expected):
    assert escape(text) == expected


def test_undefined_numbers_are_dashes(make_record):
    text = render_markdown(RunDocument(make_record(test=Agreement(1, 1), fidelity=math.nan)))
    assert "nan" not in re.findall(r"[a-z]+", text.lower())
    assert "| induced metric, held-out rows | 1 | 1 | – | – | – | – | – |" in text


def test_an_almost_empty_record_renders(make_record):
    record = make_record(
        components=(), data=(), learning=(), baselines={}, usage={}, judgements={}, failures=(), warnings=(),
        notes=(), test=Agreement(0, 0), train=Agreement(0, 0), rows={}, synthetic="",
    )  # fmt: skip
    text = render_markdown(RunDocument(record))
    assert "No component was selected." in text
    assert "disagree most" not in text
    assert "Judgements: none." in text


def test_training_rows_alone_are_warned_about(make_record):
    text = render_markdown(RunDocument(make_record(evaluation="train_only")))
    assert "> Warning: Only training rows were available." in text
    assert "held-out rows |" not in text


def test_what_the_reliability_plot_says_stands_there_too(make_record):
    text = render_markdown(RunDocument(make_record()))
    said = reliability_sentence(reliability_bins(make_record()), make_record().task.scale)
    assert said
    assert escape(said) in text
    assert "interval of the mean rating" not in render_markdown(RunDocument(make_record(evaluation="train_only")))
