"""A grid as tables, sentences, a curve and files: pure functions of the record."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from grids import CURVE, ablation, rankings
from metricsmith.records import Usage
from metricsmith.report.ablation.document import (
    ABLATION_FILES,
    AblationDocument,
    ablation_verdict,
    write_ablation,
)
from metricsmith.report.ablation.record import GridLine, GridPart
from metricsmith.report.blocks import Details, TextTable
from metricsmith.report.render import render_html, render_markdown, render_terminal
from metricsmith.stats.resampling import Interval

FULL = ablation()
GROWN = ablation(CURVE, data=("notices",))


def line(setting, difference=math.nan, p=math.nan, *, half=0.1, **changes):
    known = {
        "taus": (0.3, 0.5), "tau": 0.4, "interval": Interval(0.2, 0.6), "over_seeds": Interval(0.35, 0.45),
        "difference": difference, "difference_interval": Interval(difference - half, difference + half),
        "p_value": p, "p_adjusted": p, "cells": 2, "reference": math.isnan(difference),
    }  # fmt: skip
    return GridLine(setting, "notices", **{"rows": 0, **known, **changes})


def record(*lines, **changes):
    return replace(FULL, parts=(GridPart("Sizes", lines),), data=FULL.data[:1], **changes)


def tables(document, *, page=False):
    blocks = [block for _, _, part in document.parts(page=page) for block in part]
    blocks += [inner for block in blocks if isinstance(block, Details) for inner in block.blocks]
    return {table.caption: table for table in blocks if isinstance(table, TextTable)}


def test_the_paper_s_table_has_settings_down_and_data_across_with_the_best_in_bold():
    made = record(line("k=30"), line("k=5", -0.1, 0.3, tau=0.3, over_seeds=Interval(-0.7, 1.0)), line("none", cells=0))
    table = tables(AblationDocument(made))["Mean tau-b ± over seeds"]
    assert table.head == ("setting", "notices")
    assert [tuple(row) for row in table.rows] == [
        ("k=30", ".400 ± .050"), ("k=5", ".300 (−.700 to 1.000)"), ("none", "–"),
    ]  # fmt: skip
    assert [getattr(row[1], "style", "") for row in table.rows] == ["strong", "", ""]
    assert list(table.own) == [0, 2]


def test_below_it_each_data_set_has_intervals_and_tests():
    made = record(line("k=30"), line("k=5", -0.1, 0.024, p_adjusted=0.048))
    table = tables(AblationDocument(made))["notices, beside k=30"]
    assert [tuple(row) for row in table.rows] == [
        ("k=30", ".400", ".200 to .600", "2", "reference", "–", "–", "–"),
        ("k=5", ".400", ".200 to .600", "2", "−.100", "−.200 to .000", ".024", ".048"),
    ]
    assert list(table.own) == [0]


@pytest.mark.parametrize(
    ("lines", "tone", "words"),
    [
        ([line("k=5", 0.2, 0.01)], "good", "1 better (most k=5 on notices: +.20, 95 % interval .10 to .30, p = .010"),
        ([line("k=5", -0.2, 0.01)], "good", "Of 1 comparison with k=30, by more than chance: none better, 1 worse"),
        ([line("k=5", 0.2, 0.01, half=0.3)], "unsure", "No difference is more than chance, in 1 comparison"),
        ([line("k=5", 0.2, 0.06)], "unsure", "No difference is more than chance"),
        ([line("k=5", math.nan, cells=0, reference=False)], "unsure", "No setting can be held against k=30."),
    ],
)
def test_the_verdict_needs_interval_and_test(lines, tone, words):
    found = ablation_verdict(record(line("k=30"), *lines))
    assert found.tone == tone
    assert words in found.sentence.replace("\u00a0", " ")


def test_the_verdict_corrects_over_all_that_it_counts():
    parts = tuple(GridPart(name, (line("k=30"), line(name, 0.2, 0.03))) for name in ("One", "Two"))
    assert ablation_verdict(replace(FULL, parts=parts[:1])).tone == "good"
    found = ablation_verdict(replace(FULL, parts=parts)).sentence
    assert found.startswith("No difference is more than chance, in 2 comparisons")


def test_a_line_that_stands_in_two_tables_is_counted_once():
    parts = (GridPart("One", (line("k=30"), line("k=5", -0.2, 0.01))),) * 2
    assert "Of 1 comparison" in ablation_verdict(replace(FULL, parts=parts)).sentence


def test_a_curve_has_a_column_for_each_number_of_rows_and_a_plot_with_single_seeds():
    document = AblationDocument(GROWN)
    table = tables(document)["Mean tau-b ± over seeds: notices, by learning rows"]
    assert table.head == ("setting", "5", "10", "20", "40", "80", "160")
    assert table.rows[0][1] == "–"
    html = render_html(document)
    assert html.count('opacity="0.35"') == 2 * 5 * 5  # settings, defined sizes, seeds
    places = [float(one.split(",")[0]) for one in re.search(r'<polyline points="([^"]+)"', html)[1].split()]
    steps = [right - left for left, right in pairwise(places)]
    assert steps == pytest.approx([steps[0]] * 4, abs=0.2), "twice the rows are a step of one length"


def test_all_rows_stand_at_their_number_in_the_curve():
    parts = (GridPart("Curve", (line("k=30", rows=10), line("k=30", rows=0)), curve=True),)
    cells = tuple(replace(cell, setting="k=30", learned=33) for cell in FULL.cells)
    made = replace(FULL, parts=parts, cells=cells, data=FULL.data[:1])
    assert "k=30: .40 at 10, .40 at 33" in render_html(AblationDocument(made))
    assert tables(AblationDocument(made))["notices, beside k=30"].rows[1][1] == "all"


def test_cells_that_were_not_done_stand_with_their_reason():
    text = render_markdown(AblationDocument(GROWN)).replace("\u00a0", " ")
    assert "- too few: k=30 on notices with 5 rows and k=20 on notices with 5 rows (10 cells): 5 learning rows" in text
    assert "50 of 60 cells done" in text
    assert "not done: too few" in render_terminal(AblationDocument(GROWN))


def test_every_cell_that_is_done_stands_in_its_table():
    table = tables(AblationDocument(GROWN))["Each cell beside the reference with the same data, rows and seed"]
    assert len(table.rows) == 50
    assert table.rows[0][:4] == ("k=30", "notices", "10", "0")


def test_costs_are_the_union_the_sum_and_what_was_spent():
    table = tables(AblationDocument(FULL))["What cells share is paid for once"]
    assert [row[:2] for row in table.rows] == [
        ("expected, each cell by itself", "9,000"), ("expected, all cells together", "2,500"), ("spent", "2,345"),
    ]  # fmt: skip
    free = replace(FULL, usage=Usage(seconds=12), union=Usage(), summed=Usage(), model="")
    assert "No language model was asked. All cells took 12 s." in render_markdown(AblationDocument(free))


def test_the_terminal_has_the_difference_of_each_setting_with_its_interval_for_new_rows():
    text = render_terminal(AblationDocument(record(line("k=30"), line("k=5", -0.1, 0.024, p_adjusted=0.048))))
    assert "Sizes. notices, minus k=30:" in text
    assert re.search("setting +minus +95\u00a0% rows, seeds +p \\(Holm\\)\n", text)
    assert re.search(r"k=5 +−\.100 +−\.200 to \.000 +\.048\n", text)
    assert "minus k=30" not in render_terminal(AblationDocument(record(line("k=30"))))


@pytest.mark.parametrize("made", [GROWN, rankings()])
def test_tables_in_the_terminal_fit_into_eighty_columns(made):
    shown = render_terminal(AblationDocument(replace(made, usage=Usage(), union=Usage(), summed=Usage())))
    assert max(len(one) for one in shown.splitlines() if one.startswith("  ")) <= 80


def test_a_curve_has_its_rows_down_in_the_terminal():
    text = render_terminal(AblationDocument(GROWN))
    assert re.search(r"k=20 +10 +\.\d{3} ± \.\d{3} +[+−]\.\d{3} +", text)
    assert "by learning rows" not in text


def test_the_glossary_says_what_each_interval_speaks_of():
    text = render_markdown(AblationDocument(FULL))
    assert "It speaks of the spread from run to run alone" in text
    assert "speaks of other rows of this kind and of other seeds" in text


def test_rankings_are_a_table_of_their_own_and_name_no_winner_beyond_chance():
    document = AblationDocument(rankings())
    table = tables(document)["Mean ± standard deviation over data sets and seeds"]
    assert table.head[:3] == ("retrieval", "NDCG@1", "NDCG@5")
    assert table.rows[1][4] == ".650 ± .050"
    assert set(table.rows[2][1:-1]) == {"–"}
    assert ablation_verdict(document.record).sentence == "bm25 model has the highest NDCG@20, .65; no test was made."
    assert "Holm" not in render_markdown(document)


def test_files_hold_everything_and_undefined_is_null(tmp_path):
    write_ablation(GROWN, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(ABLATION_FILES)
    content = json.loads((tmp_path / "ablation.json").read_text("utf-8"))
    assert content["parts"][0]["lines"][0]["tau"] is None
    assert content["cells"][5]["status"] == "done"


def test_texts_of_the_data_are_text():
    evil = "</style><script>alert(1)</script>"
    lines = (line(evil), line("k=5", -0.2, 0.01))
    made = record(*lines, title=evil, reference=evil, warnings=(evil,), notes=(evil,), model=evil, signature=evil)
    assert "<script>alert" not in render_html(AblationDocument(made))
    assert "&lt;script&gt;" in render_html(AblationDocument(made))
