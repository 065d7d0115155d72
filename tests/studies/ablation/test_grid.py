"""Grids in TOML: what is read, how settings are called, and what is refused with its place."""

from __future__ import annotations

import re

import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.studies.ablation.grid import PRESETS, Grid, Setting, SettingTable, preset, read_grid

WHOLE = """
title = "How many"
measure = "candidates"
seeds = 3
test = 0.4
reference = {k = 20}
[base]
bank = "full"
k = 30
panel = false
[[parts]]
title = "Cards"
cells = [{k = 20}, {k = 20, cards = "brief", label = "without cards"}, {bank = "existing", k = 20}, {}]
[[parts]]
title = "Sizes"
[parts.vary]
k = [20, 30]
rows = [10, 20]
[data.notices]
target = "rating"
inputs = ["notice"]
higher_is_better = true
"""


@pytest.fixture
def read(tmp_path):
    def reading(text):
        (tmp_path / "grid.toml").write_text(text, "utf-8")
        return read_grid(tmp_path / "grid.toml")

    return reading


def test_a_grid_is_what_its_file_says(read):
    base = {"bank": "full", "k": 30, "panel": False}
    twenty = {**base, "label": "k=20", "k": 20}
    cards = (
        Setting(**twenty),
        Setting(**{**twenty, "label": "without cards", "cards": "brief"}),
        Setting(**{**twenty, "label": "bank=existing, k=20", "bank": "existing"}),
        Setting("bank=full, k=30, panel=false", **base),
    )
    sizes = tuple(Setting(**own, rows=rows) for own in (twenty, {**base, "label": cards[3].label}) for rows in (10, 20))
    assert read(WHOLE) == Grid(
        "How many",
        (SettingTable("Cards", cards), SettingTable("Sizes", sizes)),
        cards[0],
        "candidates",
        3,
        0.4,
        {"notices": {"target": "rating", "inputs": ["notice"], "higher_is_better": True}},
    )


def test_a_short_grid_has_the_defaults(read):
    grid = read('title = "t"\n[[parts]]\ntitle = "p"\ncells = [{n = 1}, {}]')
    assert (grid.measure, grid.seeds, grid.test, grid.data) == ("metric", 5, 0.3, {})
    assert grid.reference == Setting("defaults")
    assert [one.label for one in grid.parts[0].settings] == ["n=1", "defaults"]


def test_one_setting_has_one_label_wherever_it_stands(read):
    grid = read(
        'title = "t"\nreference = {k = 5}\n[base]\nlabel = "as ever"\nk = 30\n'
        '[[parts]]\ntitle = "p"\ncells = [{k = 5, rows = 9}, {k = 30}, {generators = {rubric = 2, criterion = 1}}]\n'
        '[[parts]]\ntitle = "q"\ncells = [{k = 5, label = "five"}, {rows = 40}]'
    )
    labels = [[one.label for one in part.settings] for part in grid.parts]
    assert labels == [["five", "as ever", "generators=2 rubric + 1 criterion"], ["five", "as ever"]]
    assert grid.reference.label == "five"


PART = '[[parts]]\ntitle = "p"\ncells = [{}]\n'
WRONG = {
    "title": ('seeds = 1\n[[parts]]\ntitle = "p"\ncells = [{}]', "title is missing; give a text that is not blank"),
    "toml": ("title = t", "is no TOML: .*line 1"),
    "key": (f'title = "t"\nseed = 3\n{PART}', r"seed is no key here \(did you mean 'seeds'\?\); there are base, data"),
    "measure": (
        f'title = "t"\nmeasure = "metrics"\n{PART}',
        r"measure is 'metrics' \(did you mean 'metric'\?\)",
    ),
    "seeds": (f'title = "t"\nseeds = true\n{PART}', "seeds is True; it must be a whole number from 1"),
    "test": (f'title = "t"\ntest = 1.0\n{PART}', "test is 1.0; it must be a share above 0 and below 1"),
    "no parts": ('title = "t"\nparts = []', "parts is \\[\\]; it must be a list of one table of keys or more"),
    "both": (f'title = "t"\n{PART}vary = {{k = [1]}}', r"parts\[1\] has both cells and vary, or neither"),
    "neither": ('title = "t"\n[[parts]]\ntitle = "p"', r"parts\[1\] has both cells and vary, or neither"),
    "cell": ('title = "t"\n[[parts]]\ntitle = "p"\ncells = [{}, {k = 0}]', r"parts\[1\].cells\[2\].k is 0; .* from 1"),
    "bank": (
        f'title = "t"\n{PART}[[parts]]\ntitle = "q"\ncells = [{{bank = "ful"}}]',
        r"parts\[2\].cells\[1\].bank is 'ful' \(did you mean 'full'\?\); it must be one of existing, generated, full",
    ),
    "vary": ('title = "t"\n[[parts]]\ntitle = "p"\nvary = {kk = [1]}', r"parts\[1\].vary.kk is no key here"),
    "no list": ('title = "t"\n[[parts]]\ntitle = "p"\nvary = {k = 1}', r"parts\[1\].vary.k is 1; it must be a list"),
    "a value": (
        'title = "t"\n[[parts]]\ntitle = "p"\nvary = {k = [1, "2"]}',
        r"parts\[1\].vary.k is '2'; it must be a",
    ),
    "family": (
        f'title = "t"\n[base]\ngenerators = {{rubrics = 2}}\n{PART}',
        r"base.generators.rubrics is no key here \(did you mean 'rubric'\?\); there are",
    ),
    "rows of the base": (f'title = "t"\n[base]\nrows = 20\n{PART}', "base.rows is no key here"),
    "no reference": (
        'title = "t"\n[[parts]]\ntitle = "p"\ncells = [{k = 3}]',
        "reference is not given, and by default the base itself, 'defaults', which",
    ),
    "reference": (f'title = "t"\nreference = {{n = 3}}\n{PART}', "reference is 'n=3', which stands in no part; add it"),
    "two labels": (
        'title = "t"\n[[parts]]\ntitle = "p"\ncells = [{label = "a"}, {label = "b"}]',
        r"parts\[1\].cells\[2\].label is 'b', but this setting is called 'a' before",
    ),
    "one label": (
        'title = "t"\n[[parts]]\ntitle = "p"\ncells = [{}, {n = 2, label = "a"}, {n = 3, label = "a"}]',
        r"parts\[1\].cells\[3\] is called 'a', as another setting is; give it a label of its own",
    ),
    "columns": (
        f'title = "t"\n{PART}[data.a]\ninput = "x"',
        r"data.a.input is no key here .*'inputs'\?",
    ),
    "column": (f'title = "t"\n{PART}[data.a]\ninputs = 3', "data.a.inputs is 3; it must be a text, a list of texts"),
    "data": (f'title = "t"\n{PART}[data]\na = "x"', "data.a is 'x'; it must be a table of keys"),
    "retrieval": (
        f'title = "t"\nmeasure = "retrieval"\n{PART}',
        "parts hold a setting without its retrieval",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_has_no_meaning_is_refused_with_its_place(read, case):
    text, said = WRONG[case]
    with pytest.raises(DataError, match=rf"grid\.toml:? {said}"):
        read(text)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(DataError, match=re.escape(f"the grid {tmp_path / 'none.toml'} cannot be read")):
        read_grid(tmp_path / "none.toml")


@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_are_grids_of_five_seeds(name):
    grid = preset(name)
    assert grid.seeds == 5
    assert any(one.label == grid.reference.label for part in grid.parts for one in part.settings)


def test_table_3_has_the_settings_of_the_paper():
    bank, retrieval, regression = preset("table3").parts
    assert [one.bank for one in bank.settings] == ["existing", "generated", "full"]
    assert [(one.k, one.cards) for one in retrieval.settings] == [
        (5, None), (10, None), (20, "brief"), (20, None), (30, None),
    ]  # fmt: skip
    assert [one.n for one in regression.settings] == [1, 3, 5, 10, 20]
    whole = [one for part in (bank, retrieval, regression) for one in part.settings]
    assert {one.regression for one in whole} == {"pls"}
    assert all(one.generators == {"criterion": 10, "rubric": 5, "examples": 1, "tuned": 1} for one in whole)
    assert {one.k for one in (*bank.settings, *regression.settings)} == {30}
    assert {one.n for one in (*bank.settings, *retrieval.settings)} == {5}


def test_figure_4_doubles_the_rows_and_table_8_measures_each_generator():
    (curve,) = preset("figure4").parts
    rows = [5, 10, 20, 40, 80, 160, 320, 640]
    assert [one.bank for one in curve.settings] == ["generated"] * 8 + ["full"] * 8
    assert [one.rows for one in curve.settings] == rows * 2
    table8 = preset("table8")
    assert table8.measure == "candidates"
    counts = [dict(one.generators) for one in table8.parts[0].settings]
    assert {"criterion": 10} in counts
    assert {"examples": 1} in counts
    assert {count for one in counts for count in one.values()} == {10, 1}


def test_table_6_ranks_by_five_ways():
    grid = preset("table6")
    assert grid.measure == "retrieval"
    ways = [one.retrieval for one in grid.parts[0].settings]
    assert ways == ["bm25", "colbert", "model", "bm25 model", "colbert model"]
    assert {one.k for one in grid.parts[0].settings} == {20}


def test_a_grid_of_the_paper_is_read_by_its_name():
    assert read_grid("table3") == preset("table3")
    with pytest.raises(
        DataError, match=r"tabel3 cannot be read: No such file.* or a grid of the paper: table3, table6"
    ):
        read_grid("tabel3")


def test_another_preset_is_refused_with_the_nearest():
    with pytest.raises(OptionError, match=r"no preset 'tabel3' \(did you mean 'table3'\?\); there are table3, table6"):
        preset("tabel3")
