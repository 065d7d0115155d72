"""A comparison as cells, sentences, files: pure functions of the record."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from metricsmith.records import Scale, Task, Usage
from metricsmith.report.comparison.document import (
    COMPARISON_FILES,
    COSTS,
    ComparisonDocument,
    by_tau,
    columns,
    comparison_verdict,
    cost_lines,
    method_cells,
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
    cells = dict(zip(columns(full()), method_cells(full(), full().method("length")), strict=True))
    assert cells["tau-b ± seeds"] == ".100 ± .020"
    assert (cells["95 % rows"], cells["95 % rows, seeds"]) == (".000 to .200", "−.020 to .220")
    assert (cells["Autometrics minus this"], cells["p"], cells["p (Holm)"]) == ("+.200", ".010", ".010")
    assert method_cells(full(), full().method("autometrics"))[3] == "reference"
    assert method_cells(full(), full().method("judge"))[0] == "–"
    assert method_cells(full(), line("one", 0.1, over_seeds=Interval(math.nan, math.nan)))[0] == ".100"
    assert method_cells(full(), line("wide", -0.103, over_seeds=Interval(-1.0, 1.0)))[0] == "−.103 (−1.000 to 1.000)"
    assert method_cells(full(), line("perfect", 1.0, over_seeds=Interval(1.0, 1.0)))[0] == "1.000 ± .000"


def test_methods_stand_in_the_order_of_their_tau_with_the_undefined_ones_last():
    mixed = record(
        line("none", math.nan), line("low", -0.4), line("also none", math.nan, model=True),
        line("best", 0.5, model=True),
        line("skipped", math.nan, skipped="lacks a model"), line("autometrics", 0.3),
    )  # fmt: skip
    order = ["best", "autometrics", "low", "none", "also none"]
    assert [item.key for item in by_tau(mixed)] == order
    labels = [item.label for item in by_tau(mixed)]
    for text in (render_html(ComparisonDocument(mixed)), render_markdown(ComparisonDocument(mixed))):
        table = text[text.rindex("tau-b ± seeds", 0, text.index("95 % rows, seeds")) :]
        assert (
            sorted(
                labels,
                key=lambda label: re.search(rf"(?:^\| |<bdi>){label}(?: \||</bdi>)", table, re.MULTILINE).start(),
            )
            == labels
        )
    table = next(block for block in ComparisonDocument(mixed).terminal(None) if not isinstance(block, str))
    assert [row[0] for row in table.rows] == labels


def test_the_difference_is_the_references_tau_less_the_methods_in_name_and_sign():
    """.3 - .1 = +.2: the reference agrees better. .3 - .5 = -.2: the method does."""
    compared = record(line("worse", 0.1), line("better", 0.5), line("autometrics", 0.3))
    place = columns(compared).index("Autometrics minus this")
    signs = {item.key: method_cells(compared, item)[place] for item in compared.run}
    assert signs == {"worse": "+.200", "better": "−.200", "autometrics": "reference"}
    assert "Autometrics minus it is −.20 (" in comparison_verdict(compared).sentence
    assert columns(record(line("a", 0.1), reference=""))[place] == "difference"
    for text in (render_html(ComparisonDocument(compared)), render_markdown(ComparisonDocument(compared))):
        assert "Autometrics minus this" in text
        assert "behind" not in text
    assert compared.as_dict()["methods"][1]["difference"] == pytest.approx(-0.2)


def test_the_terminal_begins_with_the_verdict():
    document = ComparisonDocument(full())
    assert document.terminal(None)[0] == comparison_verdict(full()).sentence
    assert "Judge asked m; the others ask no model." in document.terminal(None)[1]


@pytest.mark.parametrize(
    ("lines", "tone", "says"),
    [
        ([line("a", 0.1, 0.01), line("autometrics", 0.3)], "good", "lead over every other method is more than chance"),
        ([line("a", 0.1, 0.2), line("autometrics", 0.3)], "unsure", "Its lead over A could be chance."),
        ([line("a", 0.1, 0.2), line("b", 0.0, 0.01), line("autometrics", 0.3)], "unsure", "Its lead over A could"),
        ([line("a", 0.5, 0.01), line("autometrics", 0.3)], "bad", "A agrees best with the raters (tau-b .50"),
        (
            [line("a", 0.5, 0.01), line("autometrics", 0.3)],
            "bad",
            "it is −.20 (no interval, p = .010), which is more than",
        ),
        ([line("a", 0.5, 0.2), line("autometrics", 0.3)], "unsure", "p = .200), which could be chance."),
        ([line("a", 0.5, math.nan), line("autometrics", 0.3)], "unsure", "p undefined), which could be chance."),
        ([line("autometrics", 0.3)], "unsure", "Autometrics agrees best"),
        ([line("a", 0.3, difference=math.nan), line("autometrics", 0.1)], "unsure", "cannot be held against it"),
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
        "Autometrics minus it is −.20 (95\u00a0% interval −.42 to .04, p = .200), which could"
        in comparison_verdict(record(first, line("autometrics", 0.3))).sentence
    )


def test_without_a_reference_there_is_no_claim_about_one():
    verdict = comparison_verdict(record(line("a", 0.5), line("b", 0.1), reference=""))
    assert (
        verdict.sentence
        == "A agrees best with the raters (tau-b .50, 95\u00a0% interval .38 to .62 over test rows and repetitions)."
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
    assert {row.count(" |") for row in rows if "bold" not in row} == {1 + len(columns(full())), 1 + len(COSTS)}
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


def test_the_frame_has_a_line_for_each_method():
    frame = full().to_pandas().set_index("key")
    assert frame.loc["length", ["tau", "over_both_low", "over_both_high", "difference"]].tolist() == [
        0.1, 0.1 - 0.12, 0.1 + 0.12, 0.3 - 0.1,
    ]  # fmt: skip
    assert frame.loc["judge", ["requests", "prompt_tokens", "failed"]].tolist() == [36, 1000, 36]
    assert np.isnan(frame.tau["dna"])
    assert frame.skipped["dna"] == "needs a language model"
    assert not {"usage", "judgements", "over_rows"} & {*frame.columns}


def test_a_notebook_shows_the_verdict_and_the_table():
    shown = full()._repr_html_()
    assert comparison_verdict(full()).sentence.split(".")[0] in shown
    assert "Length" in shown
    assert "&lt;b&gt;" not in shown  # what methods made is left to the page
