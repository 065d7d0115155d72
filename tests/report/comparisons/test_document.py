"""Comparisons on several data sets as tables and files: pure functions of the record."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from metricsmith.records import Scale, Task, Usage
from metricsmith.report.blocks import TextTable
from metricsmith.report.comparison.document import comparison_verdict
from metricsmith.report.comparison.record import Comparison, MethodResult
from metricsmith.report.comparisons.document import COMPARISONS_FILES, ComparisonsDocument, write_comparisons
from metricsmith.report.comparisons.record import Comparisons
from metricsmith.report.render import render_html, render_markdown, render_terminal
from metricsmith.stats.resampling import Interval


def line(key, tau, **changes):
    settings = {
        "label": key.title(), "model": False, "taus": (tau, tau), "tau": tau,
        "over_seeds": Interval(tau - 0.02, tau + 0.02), "over_both": Interval(tau - 0.12, tau + 0.12),
    }  # fmt: skip
    return MethodResult(key, **{**settings, **changes})


def comparison(*lines, signature, warnings=()):
    rows = {"train": 30, "validation": 12, "test": 18, "test_groups": 6, "unrated": 0}
    task = Task("Rewrite notices.", "rating", Scale(1, 5))
    usage = Usage(40, 1000, 50, 0.5)
    return Comparison(task, lines, "", 5, rows, "m", signature, usage, warnings=warnings, notes=("a note",))


def both():
    missing = line("dna", math.nan, skipped="needs a language model", taus=())
    return Comparisons.of(
        {
            "first": comparison(line("judge", 0.3), missing, line("length", 0.1), signature="s"),
            "second": comparison(
                line("judge", 0.2), missing, line("length", 0.25), signature="t", warnings=("few <rows>",)
            ),
        }
    )


def test_methods_stand_down_and_data_sets_across():
    seeds, rows = (block for block in ComparisonsDocument(both()).terminal(None) if isinstance(block, TextTable))
    assert seeds.head == ("tau-b ± seeds", "first", "second")
    assert seeds.rows == [
        ("Judge", ".300 ± .020", ".200 ± .020"),
        ("Dna", "not run", "not run"),
        ("Length", ".100 ± .020", ".250 ± .020"),
    ]
    assert rows.head == ("95 % rows, seeds", "first", "second")
    assert rows.rows[0] == ("Judge", ".180 to .420", ".080 to .320")


def test_the_page_and_markdown_say_the_same_and_escape_texts():
    page, markdown = (render(ComparisonsDocument(both())) for render in (render_html, render_markdown))
    for text in ("Judge on 1, Length on 1", "Dna: it needs a language model", "second: a note", ".080 to .320"):
        assert text in page
        assert text in markdown
    assert "few &lt;rows&gt;" in page
    assert "few <rows>" not in page


def test_a_data_set_without_a_defined_agreement_has_no_best_method():
    undefined = comparison(line("judge", math.nan), signature="s")
    some = ComparisonsDocument(Comparisons.of({"one": undefined, "two": comparison(line("judge", 0.2), signature="t")}))
    assert "is best with Judge on 1; what could be chance" in some.opening().verdict.sentence
    none = ComparisonsDocument(Comparisons.of({"one": undefined, "two": replace(undefined, signature="t")}))
    assert none.opening().verdict.sentence.startswith("No method has a defined agreement")


def test_the_verdict_on_one_data_set_is_that_of_its_comparison():
    one = comparison(line("judge", 0.2), line("dna", 0.1), signature="s")
    assert ComparisonsDocument(Comparisons.of({"one": one})).opening().verdict == comparison_verdict(one)


def test_the_terminal_says_why_a_method_was_not_run():
    assert "not run: Dna: it needs a language model" in render_terminal(ComparisonsDocument(both()))


def test_usage_warnings_and_signatures_are_those_of_all():
    record = both()
    assert (record.usage.requests, record.usage.cost) == (80, 1.0)
    assert record.warnings == ("second: few <rows>",)
    assert record.signature == "first: s\nsecond: t"
    assert any(text == "80 requests, $1.00" for text in ComparisonsDocument(record).terminal(None))
    assert "<strong>" not in record._repr_html_().partition("</style>")[0]


def test_three_files_are_written_and_the_json_holds_every_comparison(tmp_path):
    write_comparisons(both(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(COMPARISONS_FILES)
    content = json.loads((tmp_path / "comparisons.json").read_text("utf-8"))
    assert content["sets"]["second"]["methods"][2]["tau"] == 0.25
    assert content["sets"]["first"]["methods"][1]["tau"] is None  # undefined is no number
