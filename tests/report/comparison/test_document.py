"""A comparison as cells, sentences, files: pure functions of the record."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from metricsmith.records import Scale, Task, Usage
from metricsmith.report.comparison.document import (
    COLUMNS,
    COMPARISON_FILES,
    COSTS,
    ComparisonDocument,
    comparison_verdict,
    cost_lines,
    method_cells,
    sections,
    write_comparison,
)
from metricsmith.report.comparison.record import Comparison, MethodResult
from metricsmith.report.render import render_html, render_markdown
from metricsmith.stats.resampling import Interval


def line(key, tau, p=math.nan, **changes):
    settings = {
        "label": key.title(), "model": False, "taus": (tau, tau), "tau": tau, "n": 18, "groups": 6,
        "over_seeds": Interval(tau - 0.02, tau + 0.02), "over_rows": Interval(tau - 0.1, tau + 0.1),
        "over_both": Interval(tau - 0.12, tau + 0.12), "difference": 0.3 - tau, "p_value": p, "p_adjusted": p,
    }  # fmt: skip
    return MethodResult(key, **{**settings, **changes})


def record(*lines, **changes):
    settings = {
        "task": Task("Rewrite notices.", "rating", Scale(1, 5)), "reference": "autometrics", "seeds": 5, "model": "m",
        "rows": {"train": 30, "validation": 12, "test": 18, "test_groups": 6, "unrated": 0}, "signature": "s | t",
    }  # fmt: skip
    return Comparison(methods=lines or full().methods, **{**settings, **changes})


def full():
    return record(
        line("length", 0.1, 0.01, remarks=("chosen: <b>bold</b> | pipe",)),
        line("judge", math.nan, model=True, usage=Usage(36, 1000, 50), judgements={"requested": 36, "refused": 36}),
        line("dna", math.nan, skipped="needs a language model", model=True, taus=()),
        line("autometrics", 0.3),
    )


def test_cells_follow_the_columns():
    cells = dict(zip(COLUMNS, method_cells(full(), full().method("length")), strict=True))
    assert cells["tau-b ± seeds"] == ".100 ± .020"
    assert (cells["95 % rows"], cells["95 % rows, seeds"]) == (".00 to .20", "−.02 to .22")
    assert (cells["behind by"], cells["p"], cells["p (Holm)"]) == ("+.200", ".010", ".010")
    assert method_cells(full(), full().method("autometrics"))[3] == "reference"
    assert method_cells(full(), full().method("judge"))[0] == "–"
    assert method_cells(full(), line("one", 0.1, over_seeds=Interval(math.nan, math.nan)))[0] == ".100"
    assert method_cells(full(), line("wide", -0.103, over_seeds=Interval(-1.0, 1.0)))[0] == "−.103 (−1.00 to 1.00)"
    assert method_cells(full(), line("perfect", 1.0, over_seeds=Interval(1.0, 1.0)))[0] == "1.000 ± .000"


def test_methods_stand_by_whether_they_ask_a_model_and_only_those_that_were_run():
    assert [(title, [item.key for item in lines]) for title, lines in sections(full())] == [
        ("Without a language model", ["length", "autometrics"]),
        ("With m", ["judge"]),
    ]


@pytest.mark.parametrize(
    ("lines", "tone", "says"),
    [
        ([line("a", 0.1, 0.01), line("autometrics", 0.3)], "good", "lead over every other method is more than chance"),
        ([line("a", 0.1, 0.2), line("autometrics", 0.3)], "unsure", "Its lead over A could be chance."),
        ([line("a", 0.1, 0.2), line("b", 0.0, 0.01), line("autometrics", 0.3)], "unsure", "Its lead over A could"),
        ([line("a", 0.5, 0.01), line("autometrics", 0.3)], "bad", "A agrees best with the raters (tau-b .500"),
        ([line("a", 0.5, 0.01), line("autometrics", 0.3)], "bad", "Autometrics is .200 behind, which is more than"),
        ([line("a", 0.5, 0.2), line("autometrics", 0.3)], "unsure", "which could be chance (p .200)"),
        ([line("a", 0.5, math.nan), line("autometrics", 0.3)], "unsure", "could be chance (p –)"),
        ([line("autometrics", 0.3)], "unsure", "Autometrics agrees best"),
        ([line("a", math.nan), line("autometrics", math.nan)], "unsure", "No method has a defined agreement"),
    ],
)
def test_the_verdict_claims_no_more_than_the_tests_support(lines, tone, says):
    verdict = comparison_verdict(record(*lines))
    assert verdict.tone == tone
    assert says in verdict.sentence


def test_a_lead_over_the_reference_stands_with_its_interval():
    first = line("a", 0.5, 0.2, difference=-0.2, difference_interval=Interval(-0.42, 0.04))
    assert (
        "Autometrics is .200 (95 % −.04 to .42) behind, which could"
        in comparison_verdict(record(first, line("autometrics", 0.3))).sentence
    )


def test_without_a_reference_there_is_no_claim_about_one():
    verdict = comparison_verdict(record(line("a", 0.5), line("b", 0.1), reference=""))
    assert (
        verdict.sentence
        == "A agrees best with the raters (tau-b .500, 95 % .38 to .62 over test rows and repetitions)."
    )


def test_an_unknown_price_is_no_price_of_nothing():
    asked = record(usage=Usage(36, 1000, 50, None, 3), estimated=Usage(40, 1, 1, None))
    assert cost_lines(asked) == [
        "Expected at most: 40 requests, price unknown. Actual: 36 requests, price unknown, 3.0 s."
    ]
    assert cost_lines(record()) == ["No language model was asked."]


def test_every_warning_and_note_stands_in_the_page_and_in_markdown():
    said = {"warnings": ("the first warning", "the last warning"), "notes": ("the first note", "the last note")}
    for render in (render_html, render_markdown):
        text = render(ComparisonDocument(record(**said)))
        assert [text.count(line) for lines in said.values() for line in lines] == [1] * 4


def test_failures_are_those_that_were_asked_for():
    counts = {"requested": 20, "ok": 10, "refused": 3, "transport": 2, "skipped": 4, "budget": 1}
    assert line("a", 0.1, judgements=counts).failed == 5


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "link", "br", "line", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_is_whole_refers_to_nothing_outside_and_escapes_texts():
    html = render_html(ComparisonDocument(full()))
    page = Page(html)
    assert html.startswith("<!doctype html>")
    assert page.open == []
    assert page.links == ["data:,", "#main"]
    assert "<b>bold</b>" not in html
    assert "&lt;b&gt;bold&lt;/b&gt;" in html
    text = " ".join(page.words)
    for expected in ("Length", "Dna", "needs a language model", ".100 ± .020", "s | t", "Rewrite notices."):
        assert expected in text


def test_the_style_is_admitted_by_its_hash():
    import base64
    import hashlib

    html = render_html(ComparisonDocument(full()))
    style = html.split("<style>", 1)[1].split("</style>", 1)[0]
    assert f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in html


def test_the_markdown_has_a_line_for_each_method_and_escapes_texts():
    text = render_markdown(ComparisonDocument(full()))
    rows = [row for row in text.splitlines() if row.startswith("| ")]
    assert {row.count(" |") for row in rows if "bold" not in row} == {1 + len(COLUMNS), 1 + len(COSTS)}
    assert "- Dna: needs a language model" in text
    assert "&lt;b&gt;bold&lt;/b&gt; \\| pipe" in text


def test_the_files_are_written_and_the_json_is_plain(tmp_path):
    write_comparison(full(), tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(COMPARISON_FILES)
    content = json.loads((tmp_path / "new" / "compare.json").read_text("utf-8"))
    assert content["schema_version"] == 1
    assert [method["key"] for method in content["methods"]] == ["length", "judge", "dna", "autometrics"]
    assert content["methods"][1]["tau"] is None
    assert content["methods"][0]["over_both"]["low"] == pytest.approx(-0.02)


def test_a_method_that_was_not_asked_for_is_a_key_error():
    with pytest.raises(KeyError, match="nothing"):
        replace(full(), seeds=1).method("nothing")
