"""The HTML page, read back as a browser's parser would."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from metricsmith.errors import DataError
from metricsmith.records import Scale, Task
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.induction.record import RowRecord
from metricsmith.report.induction.rows import FULL_TEXT
from metricsmith.report.plots.reliability import bins, reliability_plot
from metricsmith.report.render import render_html, standalone
from metricsmith.stats.agreement import Agreement

PLOTS = {"verdict", "weights", "forest", "scatter", "reliability", "outlook", "learning"}
TAGS = {
    "a", "article", "bdi", "body", "caption", "circle", "code", "dd", "desc", "details", "div", "dl", "dt",
    "figcaption", "figure", "footer", "g", "h1", "h2", "h3", "head", "header", "html", "li", "line", "link",
    "main", "meta", "nav", "ol", "p", "path", "polygon", "polyline", "pre", "rect", "section", "span", "strong",
    "style", "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul", "wbr",
}  # fmt: skip


def drawn(page):
    return {
        css.removeprefix("plot plot-")
        for tag, attributes in page.elements
        if tag == "svg" and (css := attributes.get("class") or "")
    }


def test_few_groups_are_remarked_on_below_the_verdict_and_below_the_table(make_record):
    record = make_record()
    said = f"95 % intervals of tau-b from so few groups ({record.test.groups}) held the true value in at least"
    page = render_html(RunDocument(record)).replace("\u00a0", " ")
    assert page.count(said) == 2
    assert page.index("tau-b .41 (95") < page.index(said)
    many = replace(record.test, groups=30)
    plenty = make_record(test=many, train=many, baselines={"Length in words": many})
    assert "in simulations" not in render_html(RunDocument(plenty)) + render_html(
        RunDocument(make_record(evaluation="cv", train=replace(record.train, groups=9)))
    )


def test_the_page_is_well_formed_with_headings_in_order(make_record, read):
    page = read(render_html(RunDocument(make_record())))
    assert page.mismatched == []
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    names = [tag for tag, _ in page.elements]
    assert all(names.count(tag) == 1 for tag in ("main", "header", "footer", "nav"))


def test_ids_are_unique_and_every_inner_link_and_label_has_its_target(make_record, read):
    page = read(render_html(RunDocument(make_record())))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    wanted = {attributes["href"][1:] for tag, attributes in page.elements if tag == "a"}
    for _, attributes in page.elements:
        wanted |= set((attributes.get("aria-labelledby") or "").split())
    assert wanted <= set(ids)


def test_nothing_outside_the_file_is_referred_to(make_record, read):
    source = render_html(RunDocument(make_record()))
    page = read(source)
    for tag, attributes in page.elements:
        assert "src" not in attributes
        assert "style" not in attributes
        if "href" in attributes:
            assert attributes["href"] == "data:," if tag == "link" else attributes["href"].startswith("#")
    assert not re.search(r"url\(|@import|https?://", source)


def test_the_policy_admits_the_style_sheet_and_nothing_else(make_record, read):
    source = render_html(RunDocument(make_record()))
    policy = next(
        attributes["content"]
        for tag, attributes in read(source).elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    style = source.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_all_plots_are_there_and_described(make_record, read):
    page = read(render_html(RunDocument(make_record())))
    assert drawn(page) == PLOTS
    assert all(len(text) > 10 for text in page.inside("desc"))
    assert len(page.inside("desc")) == len(PLOTS)


def test_the_verdict_and_every_section_say_what_the_record_says(make_record, read):
    record = make_record()
    page = read(render_html(RunDocument(record)))
    for wanted in (
        "tau-b .41 (95\u00a0% interval .28 to .52, p < .001) on 72 unseen rows of 18 groups",
        "keeps_every_fact", "more of it lowers the prediction", "correlate .978", "81\u00a0%",
        "The paper's PLS (n = 5)", "−.351 to −.021", "Water is off on Tuesday.", "too low by",
        "Two of the five facts in the notice are gone", "Lin 2004, ROUGE", "3,612", "$0.53", "5 min 41 s",
        "HTTP 500: the server is overloaded", "8 rows have no rating", record.signature,
        'metricsmith.load("metric.json")', "dspy.configure",
    ):  # fmt: skip
        assert wanted in page.text, wanted


def test_synthetic_data_are_labelled_wherever_results_show(make_record, read):
    page = read(render_html(RunDocument(make_record())))
    assert "Synthetic data. The notices" in page.text
    captions = page.inside("figcaption")
    assert len(captions) == len(PLOTS)
    assert all(caption.startswith("synthetic data") for caption in captions)
    assert "synthetic" not in read(render_html(RunDocument(make_record(synthetic="")))).text.lower()


def test_no_text_gets_out_of_its_place(evil_record, evil, read):
    source = render_html(RunDocument(evil_record))
    page = read(source)
    assert page.mismatched == []
    assert {tag for tag, _ in page.elements} <= TAGS
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert "{{ 7 * 7 }}" in page.text
    shown = evil.replace("\x00", "␀").replace("\x1b", "␛")
    assert page.text.count(shown) > 20
    assert page.inside("h1")[0].startswith("<script>alert(1)</script>")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", source)


def test_every_name_and_text_keeps_its_direction_to_itself(evil_record, read):
    page = read(render_html(RunDocument(evil_record)))
    labels = page.inside("text", class_="text halo")
    assert labels
    assert not any("\u202e" in label for label in labels)
    assert page.turning == []


def test_undefined_numbers_are_dashes_with_their_reason(make_record, read):
    record = make_record(test=Agreement(1, 1), baselines={"Length": Agreement(1, 1)}, fidelity=math.nan)
    page = read(render_html(RunDocument(record)))
    assert "nan" not in re.findall(r"[a-z]+", page.text.lower())
    assert "inf" not in re.findall(r"[a-z]+", page.text.lower())
    assert "Length: 1 row with both a rating and a prediction; two are the least." in page.text
    assert "No verdict: tau-b is undefined on 1 unseen row" in page.text
    assert "These rows are too few for an interval" in page.text


def test_without_a_test_the_page_says_so_and_promises_nothing(make_record, read):
    data = tuple(replace(row, split="train") for row in make_record().data)
    page = read(render_html(RunDocument(make_record(evaluation="train_only", test=Agreement(0, 0), data=data))))
    assert "Not tested on unseen outputs" in page.text
    assert "Only training rows were available" in page.text
    assert "outlook" not in drawn(page)
    assert "held-out rows" not in page.text
    assert "Induced metric (training rows)" in page.text


def test_an_almost_empty_record_renders(make_record, read):
    record = make_record(
        components=(), data=(), learning=(), baselines={}, usage={}, judgements={}, failures=(), warnings=(),
        notes=(), signature="", test=Agreement(0, 0), train=Agreement(0, 0), rows={}, combiner="",
        fidelity=math.nan, clipped_share=0.0, synthetic="", task=Task("", "score", Scale(0, 1)),
    )  # fmt: skip
    page = read(render_html(RunDocument(record)))
    assert page.mismatched == []
    assert drawn(page) == set()
    for wanted in ("No component was selected", "No row has both", "No judgements", "No verdict"):
        assert wanted in page.text


def test_a_single_row_renders(make_record, read):
    data = (RowRecord("only", "only", "test", 4.0, 3.2, output="One."),)
    page = read(render_html(RunDocument(make_record(data=data, test=Agreement(1, 1)))))
    assert "Row only" in page.text
    assert page.text.count("One.") == 1


def test_no_judge_means_no_talk_of_models(make_record, read):
    bank = tuple(component for component in make_record().components if component.kind == "bank")
    page = read(render_html(RunDocument(make_record(components=bank))))
    assert "dspy.configure" not in page.text


def test_long_texts_open_from_an_excerpt_and_are_cut_with_a_note(make_record, read):
    data = (RowRecord("long", "g", "test", 5.0, 1.0, output="word " * 3000),)
    page = read(render_html(RunDocument(make_record(data=data))))
    full = page.inside("p", class_="full")[0]
    assert len(full) == FULL_TEXT + 1
    assert f"{15000 - FULL_TEXT:,} more characters, not shown here." in page.text


def test_long_names_are_cut_in_plots_and_break_in_tables(make_record, read):
    name = "a_very_long_component_name_" * 20
    part = replace(make_record().components[0], name=name)
    page = read(render_html(RunDocument(make_record(components=(part,)))))
    labels = page.inside("text", class_="text halo")
    assert any(label.startswith("a_very_long") and label.endswith("…") and len(label) <= 38 for label in labels)
    assert max(len(text) for text in page.inside("th", scope="row")) < 250


def test_many_components_are_all_listed_without_flooding_the_page(make_record, read):
    first = make_record().components[0]
    many = tuple(
        replace(first, name=f"judge {k:03d}", card=replace(first.card, name=f"judge {k:03d}")) for k in range(140)
    )
    source = render_html(RunDocument(make_record(components=many)))
    page = read(source)
    assert page.mismatched == []
    assert all(f"judge {k:03d}" in page.text for k in (0, 19, 20, 139))
    assert "120 more components" in page.text
    assert "120 more cards" in page.text
    bars = [a for t, a in page.elements if t == "rect" and (a.get("class") or "").startswith("bar")]
    assert len(bars) == 20


def test_many_rows_are_thinned_and_said_so(make_record, read):
    data = tuple(RowRecord(str(k), str(k), "test", float(k % 5 + 1), 1.0 + k % 37 / 9) for k in range(9000))
    source = render_html(RunDocument(make_record(data=data)))
    page = read(source)
    assert sum(attributes.get("class") == "point test" for _, attributes in page.elements) == 2001  # legend
    assert "7,000 rows left out at random (seed 0)" in page.text
    assert len(source) < 600_000
    assert source == render_html(RunDocument(make_record(data=data)))


def test_training_rows_are_absent_from_the_legend_of_cross_validation(make_record, read):
    page = read(render_html(RunDocument(make_record(evaluation="cv"))))
    assert not any(attributes.get("class") == "point train" for _, attributes in page.elements)


def test_predictions_far_outside_the_scale_are_counted(make_record, read):
    data = (RowRecord("a", "a", "test", 3.0, 40.0), RowRecord("b", "b", "test", 3.0, 3.1))
    assert "1 prediction far outside the scale" in read(render_html(RunDocument(make_record(data=data)))).text


@pytest.mark.parametrize("tone", ["good", "unsure", "bad"])
def test_the_tone_is_more_than_a_colour(make_record, read, tone):
    tau = {"good": 0.4, "unsure": 0.1, "bad": -0.4}[tone]
    block = Agreement(72, 18, tau, tau - 0.2, tau + 0.2, 0.001)
    page = read(render_html(RunDocument(make_record(test=block, baselines={}))))
    assert any(attributes.get("class") == f"verdict {tone}" for _, attributes in page.elements)
    assert {"good": "✓", "unsure": "?", "bad": "✕"}[tone] in page.text


def test_a_plot_can_be_a_file_of_its_own(read):
    drawing = reliability_plot("own", bins([1, 2, 3], [1, 2, 4]), Scale(1, 5))
    source = standalone(drawing)
    root = ElementTree.fromstring(source)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    (style,) = root.findall("{http://www.w3.org/2000/svg}style")
    assert ".dot.main" in style.text
    assert source.count("<style>") == 1
    with pytest.raises(DataError, match="the plot is empty"):
        standalone(reliability_plot("own", [], Scale(1, 5)))
