"""A suite laid out: the verdict first, then the table, the tasks, and what took no part."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from metricsmith.report.blocks import Details, TextTable
from metricsmith.report.render import render_html, render_markdown, render_terminal
from metricsmith.report.suite.document import (
    SUITE_FILES,
    SuiteDocument,
    suite_measured,
    suite_verdict,
    write_suite,
)
from suites import FULL, column, metric, result, suite, wide

JUDGE = " my_judge[noref], which was added, has place 2 of 3, in cluster 2 (.76)."


def part(key, record=FULL, page=True):
    return next((blocks for name, _, blocks in SuiteDocument(record).parts(page=page) if name == key), None)


def one_task(*lines, averages, p_values, roles=None):
    roles = roles or {}
    metrics = [metric(one.name, roles.get(one.name, "primary")) for one in lines]
    return suite([column("en-de", "spa", *lines)], metrics, averages, p_values)


def test_a_clear_lead_is_said_with_its_p_value_and_ones_own_place():
    verdict = suite_verdict(FULL)
    assert verdict.tone == "good"
    assert verdict.sentence == (
        "atlas comes first on average over 3 tasks of own24 (.83); its lead is more than chance (p = .012 against "
        "my_judge[noref])." + JUDGE
    )


def test_a_lead_inside_the_first_cluster_is_no_lead():
    close = replace(FULL, averages=tuple(replace(one, rank=min(one.rank, 1)) for one in FULL.averages))
    verdict = suite_verdict(close)
    assert verdict.tone == "unsure"
    assert "(.83); it cannot be told from my_judge[noref] and BLEU. my_judge" in verdict.sentence


def test_a_first_metric_that_may_be_chance_somewhere_is_said_to_be():
    record = one_task(
        result("a", 0.6, 1, p=0.2), result("b", 0.5, 2), averages=[("a", 0.6, 1), ("b", 0.5, 2)],
        p_values=[[math.nan, 0.01], [math.nan, math.nan]],
    )  # fmt: skip
    verdict = suite_verdict(record)
    assert verdict.tone == "bad"
    assert verdict.sentence.endswith("(.60), and may be no better than chance on en-de spa.")


def test_an_added_judge_without_an_average_is_said_to_lack_its_tasks():
    added = replace(
        FULL, metrics=tuple(replace(one, role="added" if one.name == "flat" else "primary") for one in FULL.metrics)
    )
    assert suite_verdict(added).sentence.endswith(" flat, which was added, has no average: it lacks en-de spa.")


def test_of_several_added_judges_the_best_is_named():
    added = replace(FULL, metrics=tuple(replace(one, role="added") for one in FULL.metrics))
    assert suite_verdict(added).sentence.endswith(" Of 5 added metrics atlas has place 1 of 3, in cluster 1 (.83).")


def test_a_table_without_averages_says_so():
    record = replace(FULL, averages=(), p_values=())
    assert suite_verdict(record).sentence.startswith("No metric has a value in all 3 tasks of own24")
    assert part("overview", record)[-1] == part("overview")[-2]  # the legend, and no tests behind it
    assert "\n" in render_terminal(SuiteDocument(record))


def test_a_single_metric_has_nothing_to_lead():
    record = one_task(result("a", 0.6, 1), averages=[("a", 0.6, 1)], p_values=[[math.nan]])
    assert suite_verdict(record).sentence == (
        "a comes first on average over 1 task of own24 (.60), and no other metric has an average."
    )


def test_gold_is_named_by_language_pair_where_it_differs():
    assert suite_measured(FULL) == (
        "5 metrics against mqm in 3 tasks of 2 language pairs; 3 stand in all of them and have an average."
    )
    assert "against mqm (1 language pair) and esa (1 language pair) in" in suite_measured(
        replace(FULL, gold={"en-de": "mqm", "ja-zh": "esa"})
    )


def test_what_was_measured_has_gold_weight_range_and_size_of_each_task():
    table, source = part("tasks")
    assert table.rows[0] == ("en-de spa", "mqm", ".333", "0 to 1", "3", "5", "104", "312", "30")
    assert table.rows[2] == ("ja-zh system-pearson", "mqm", ".333", "−1 to 1", "3", "4", "1", "312", "–")
    assert source.text == "Defined in: the tests."


def test_a_task_has_the_blocks_of_a_meta_evaluation():
    box, table, caution, tests = part("task-2")
    assert box.blocks[0].text.startswith("Pairwise accuracy with tie calibration")
    assert table.rows[0][:3] == ("my_judge[noref]", "1", ".620")
    assert "told equally good metrics apart" in caution.text
    assert tests.blocks[0].head[0] == "better than"
    assert len(part("task-2", replace(FULL, swap="scores"))) == 3  # the caution is of the test of pairs


def test_many_metrics_of_a_task_are_opened_by_a_click():
    (details,) = part("task-1", wide(1))
    assert isinstance(details, Details)
    assert details.summary == "50 metrics with intervals, chance and tests"


def test_what_took_no_part_is_listed_with_its_reason():
    (table,) = part("left-out")
    assert table.rows == [
        ("refB", "system", "en-de", "the standard reference"),
        ("noise|x", "system", "ja-zh", "an outlier"),
        ("odd", "metric", "ja-zh", "its file is broken"),
    ]
    assert part("left-out", replace(FULL, left_out=())) == []


def test_links_lead_to_every_task_of_the_page():
    page = render_html(SuiteDocument(FULL))
    for place in (1, 2, 3):
        assert f'<a href="#task-{place}">' in page
        assert f'<section id="task-{place}"' in page
    assert "href" not in render_markdown(SuiteDocument(FULL))


def test_texts_from_the_data_are_escaped_everywhere():
    page, markdown = render_html(SuiteDocument(FULL)), render_markdown(SuiteDocument(FULL))
    for text in (page, markdown):
        assert "<b>" not in text
        assert "<floats>" not in text
    assert "fox&lt;b&gt;\\*" in markdown
    assert "noise\\|x" in markdown
    assert '<th scope="colgroup" colspan="4">en-de</th>' in page.replace("\N{NON-BREAKING HYPHEN}", "-")


def test_the_terminal_has_verdict_table_legend_numbers_left_out_and_signature():
    lines = render_terminal(SuiteDocument(FULL), Path("out")).splitlines()
    assert lines[0] == suite_verdict(FULL).sentence
    assert lines[4].split() == ["atlas", "1", ".827", "1", ".920", "2", ".610", "1", ".900"]
    assert "left out: 2 systems and 1 metric (odd); the report and --json say why" in lines
    assert lines[-4:] == [
        "warning: flat | is undefined", "note: differences as <floats>", "report: out/suite.html", "s | t",
    ]  # fmt: skip


def test_the_files_are_those_that_are_named(tmp_path):
    write_suite(FULL, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(SUITE_FILES)
    content = json.loads((tmp_path / "suite.json").read_text("utf-8"))
    assert content["averages"][0] == {"name": "atlas", "value": FULL.averages[0].value, "rank": 1}
    assert content["p_values"][0] == [None, 0.012, 0.0004]
    assert content["columns"][2]["bounds"] == [-1.0, 1.0]


@pytest.mark.parametrize("record", [FULL, wide(3, metrics=12)], ids=["small", "12 metrics"])
def test_every_table_has_as_many_cells_as_its_head(record):
    def tables(blocks):
        for block in blocks:
            if isinstance(block, TextTable):
                yield block
            yield from tables(getattr(block, "blocks", ()))

    found = [
        table for page in (True, False) for _, _, own in SuiteDocument(record).parts(page=page) for table in tables(own)
    ]
    assert len(found) > 10
    assert all(len(row) == len(table.head) for table in found for row in table.rows)
