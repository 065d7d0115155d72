"""The table of a suite: what is absent stays empty, and names from the data break no form."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from metricsmith.report.blocks import Cell
from metricsmith.report.suite.tables import (
    Standing,
    legend,
    marked_name,
    standings,
    suite_latex,
    suite_overview,
    suite_tsv,
    terminal_tables,
)
from suites import FULL, column, metric, result, suite, wide

EVIL = "".join(map(chr, range(32, 127))) + "–−†‡[noref]"


def rows(record=FULL):
    return {row[0]: row[1:] for row in suite_overview(record, page=False).rows}


def test_a_standing_is_value_cluster_and_place():
    found = standings(FULL)
    assert list(found) == ["atlas", "my_judge[noref]", "BLEU", "flat", "fox<b>"]
    assert found["atlas"][1:] == [Standing(0.92, 1, 1), Standing(0.61, 2, 2), Standing(0.9, 1, 1)]
    # Two metrics have .5 in en-de acc-t: they share place 3, and the next has place 5.
    assert [found[name][2].place for name in ("BLEU", "fox<b>", "flat")] == [3, 3, 5]


def test_an_absent_metric_has_no_average_and_no_rank():
    average, spa, acc_t, pearson = standings(FULL)["fox<b>"]
    assert (average.place, average.cluster, pearson.place, pearson.cluster) == (None,) * 4
    assert (spa.cluster, acc_t.cluster) == (2, 3)
    assert rows()["fox<b>*"] == ("–", "–", "2", ".800", "3", ".500", "–", "–")


def test_an_undefined_value_has_neither_rank_nor_place():
    standing = standings(FULL)["flat"][1]
    assert (standing.cluster, standing.place) == (None, None)
    assert rows()["flat"] == ("–", "–", "–", "–", "4", ".400", "2", "−.200")


def test_marks_tell_roles_apart_and_the_legend_explains_those_that_stand_there():
    assert [marked_name(one) for one in FULL.metrics] == ["atlas", "my_judge[noref]‡", "BLEU†", "flat", "fox<b>*"]
    assert legend(FULL) == (
        "# is the cluster; [noref] without a reference; * contrastive; † a baseline of the organisers; ‡ added; – "
        "absent or undefined."
    )
    plain = suite([column("en-de", "spa", result("a", 0.5, 1))], [metric("a", "unknown")], [("a", 0.5, 1)], [[0.0]])
    assert legend(plain) == "# is the cluster; – absent or undefined."


def test_a_page_has_language_pairs_above_measures_and_shades_added_metrics():
    table = suite_overview(FULL, page=True)
    assert [name.replace("\N{NON-BREAKING HYPHEN}", "-") for name in table.head] == [
        "metric", "#", "average", "#", "spa", "#", "acc-t", "#", "system-pearson",
    ]  # fmt: skip
    assert list(table.over) == [("", 1), ("", 2), ("en-de", 4), ("ja-zh", 2)]
    assert sum(columns for _, columns in table.over) == len(table.head)
    assert list(table.own) == [1]
    bold = [[isinstance(cell, Cell) and cell.style == "strong" for cell in row[2::2]] for row in table.rows]
    assert bold[:3] == [[True, True, False, True], [False, True, True, False], [False, False, False, False]]


def test_without_a_page_each_column_names_pair_and_measure():
    assert suite_overview(FULL, page=False).head == (
        "metric", "#", "average", "#", "en-de spa", "#", "en-de acc-t", "#", "ja-zh system-pearson",
    )  # fmt: skip


def test_a_pooled_task_stands_under_all():
    pooled = column("all", "system-accuracy", result("a", 0.5, 1), pairs=("en-de", "he-en"))
    record = suite([pooled], [metric("a")], [("a", 0.5, 1)], [[0.0]])
    assert list(suite_overview(record, page=True).over)[2:] == [("all", 2)]


def test_the_terminal_tears_no_language_pair_and_loses_no_task():
    tables = terminal_tables(wide(16, metrics=4))
    heads = [[name for name in table.head[1:] if name != "#"] for table in tables]
    tasks = [f"en-xx_{number:02} {measure}" for number in range(16) for measure in ("spa", "acc-t")]
    assert [name for head in heads for name in head] == ["average", *tasks]
    assert [len(head) for head in heads] == [7, 6, 6, 6, 6, 2]
    assert all(len(table.rows) == 4 for table in tables)
    assert len(terminal_tables(wide(3, metrics=4))) == 1
    assert all(len(row[0]) <= 40 for row in terminal_tables(wide(3))[0].rows)


def test_tsv_has_all_digits_and_empty_cells_for_what_is_absent():
    head, *lines = csv.reader(io.StringIO(suite_tsv(FULL)), delimiter="\t")
    assert head[:6] == ["metric", "role", "average", "average cluster", "average place", "en-de spa"]
    found = {line[0]: dict(zip(head[1:], line[1:], strict=True)) for line in lines}
    assert list(found) == [one.name for one in FULL.metrics]
    assert float(found["atlas"]["average"]) == FULL.averages[0].value
    assert (found["BLEU"]["average cluster"], found["BLEU"]["average place"]) == ("3", "3")
    assert [found["fox<b>"][f"ja-zh system-pearson{part}"] for part in ("", " cluster", " place")] == ["", "", ""]
    assert [found["flat"][f"en-de spa{part}"] for part in ("", " cluster", " place")] == ["", "", ""]
    assert (found["flat"]["role"], found["my_judge[noref]"]["role"]) == ("primary", "added")


def test_tsv_keeps_a_name_with_a_tab_in_one_cell():
    record = suite([column("x", "spa", result("a\tb", 0.5, 1))], [metric("a\tb")], [("a\tb", 0.5, 1)], [[0.0]])
    assert list(csv.reader(io.StringIO(suite_tsv(record)), delimiter="\t"))[1][:2] == ["a\tb", "primary"]


def without_escapes(line):
    return re.sub(r"\\[\\{}$&#%_]", "", line)


@pytest.mark.parametrize("record", [FULL, wide(16, metrics=30)], ids=["small", "32 tasks"])
def test_latex_is_balanced_and_every_line_has_all_its_columns(record):
    text = suite_latex(record)
    assert without_escapes(text).count("{") == without_escapes(text).count("}")
    assert without_escapes(text).count("$") % 2 == 0
    tables = re.findall(r"\\begin\{tabular\}\{(l(?:rl)+)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL)
    assert len(tables) == text.count(r"\begin{tabular}") == text.count(r"\end{tabular}")
    for layout, body in tables:
        for line in body.splitlines():
            if line.endswith(r"\\"):
                spanned = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
                assert without_escapes(line).count("&") + 1 + spanned == len(layout)
        assert [rule in body for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\cmidrule(lr)")] == [True] * 4
    assert sum(layout.count("rl") for layout, _ in tables) == len(record.columns) + 1


def test_latex_has_heads_by_language_pair_clusters_letters_and_marks():
    lines = suite_latex(FULL).splitlines()
    assert r" & \multicolumn{2}{c}{} & \multicolumn{4}{c}{en-de} & \multicolumn{2}{c}{ja-zh} \\" in lines
    assert r"\cmidrule(lr){4-7} \cmidrule(lr){8-9}" in lines
    assert r"metric & \# & average & \# & spa & \# & acc-t & \# & system-pearson \\" in lines
    atlas, judge, bleu, flat, fox = (line for line in lines if re.search(r"\.\d", line) and "&" in line)
    assert atlas == (
        r"atlas & 1 & \textbf{.827}$^{\mathrm{a}}$ & 1 & \textbf{.920}$^{\mathrm{a}}$ & 2 & .610$^{\mathrm{b}}$ "
        r"& 1 & \textbf{.900}$^{\mathrm{a}}$ \\"
    )
    assert judge.startswith(r"\textit{my\_judge{[}noref{]}$^{\ddagger}$} & 2 & .757$^{\mathrm{b}}$")
    assert bleu.startswith(r"BLEU$^{\dagger}$ & 3 &")
    assert flat.startswith(r"flat & -- & -- & -- & -- & 4 & .400$^{\mathrm{d}}$ & 2 & $-$.200")
    assert fox.startswith(r"fox\textless{}b\textgreater{}{*} & -- & -- & 2 &")


def test_latex_acts_on_nothing_in_a_name():
    named = suite([column("a&b", "spa", result(EVIL, 0.5, 1))], [metric(EVIL)], [(EVIL, 0.5, 1)], [[0.0]])
    text = suite_latex(replace(named, suite="50 %\n\\input{x}"))
    name = next(line for line in text.splitlines() if ".500" in line).split(" & ", 1)[0]
    bare = re.sub(r"\\text\w+\{\}|\$\^\{\\d?dagger\}\$|\\[{}$&#%_]|\{\[\}|\{\]\}|\{\*\}|\$-\$", "", name)
    assert not set(bare) & set("\\{}$&#%_~^<>|[]*")
    assert text.isascii()
    assert [line[0] for line in text.splitlines()[:2]] == ["%", "%"]
    assert r"\input" not in text


def test_letters_go_on_after_z():
    lines = [result(str(n), 1 - n / 100, n) for n in range(1, 29)]
    record = suite([column("x", "spa", *lines)], [metric(one.name) for one in lines], [], [])
    assert re.findall(r"mathrm\{(\w+)\}", suite_latex(record))[-4:] == ["y", "z", "aa", "ab"]
