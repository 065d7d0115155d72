"""A probe as a page, as Markdown, as files, and as a part of the main report."""

from __future__ import annotations

import json
from dataclasses import replace

from metricsmith.report.probe.document import PROBE_FILES, ProbeDocument, write_probe
from metricsmith.report.render import render_html, render_markdown
from probes import COLUMN, RECORD


def test_the_page_shows_every_metric_strategy_attack_and_surprise():
    page = render_html(ProbeDocument(RECORD))
    for text in (
        "drop_<wbr>sentence",
        "Blur facts",
        "markup",
        "self_<wbr>praise",
        "empty_<wbr>output",
        "fkgl",
        "a constant",
    ):
        assert text in page, text
    assert "<del>" in page
    assert "<ins>cats</ins>" in page
    assert "deceived: it rises" in page
    assert "holds: it falls" in page
    assert "never moves" in page
    assert "118 estimated" in page


def test_texts_are_escaped_and_nothing_is_fetched():
    page = render_html(ProbeDocument(RECORD))
    assert "<b>" not in page
    assert "&lt;b&gt;plainly&lt;/b&gt;" in page
    assert "<i>facts</i>" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_a_probe_without_a_task_has_a_title_that_ends():
    page = ProbeDocument(replace(RECORD, task=replace(RECORD.task, target=""))).page()
    assert page.title == f"Probe of the {RECORD.title}"


def test_metrics_without_a_place_are_in_the_table_and_not_in_the_plot():
    plot = ProbeDocument(RECORD).plot()
    assert plot.count('class="dot') == 2
    assert "good" not in plot
    assert not ProbeDocument(replace(RECORD, subjects=(COLUMN,))).plot()


def test_markdown_has_the_same_figures():
    text = render_markdown(ProbeDocument(RECORD))
    assert "| induced metric | .820 | .740 to .880 |" in text
    assert "| self\\_praise | 20 | +.100 | .050 to .150 | deceived: it rises |" in text
    assert "> Warning: fkgl is insensitive" in text
    assert "Bring &lt;b&gt;two&lt;/b&gt; forms." in text
    assert text.endswith("Signature: metricsmith 0 \\| probe\n")


def test_the_files_are_written_whole(tmp_path):
    write_probe(RECORD, tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(PROBE_FILES)
    content = json.loads((tmp_path / "new" / "probe.json").read_text("utf-8"))
    assert content["subjects"][0]["sensitivity"]["value"] == 0.82
    assert content["subjects"][1]["insensitive"] is True
    assert content["subjects"][0]["p_sensitivity"] is None
    assert [attack["verdict"] for attack in content["attacks"]] == ["deceived", "held"]
