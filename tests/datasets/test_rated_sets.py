"""The paper's data sets: each in ten rows of our own, as a file in its published form."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from metricsmith.data import rated_sets, read_rated_set
from metricsmith.datasets.rated_sets import RATED_SETS, read_rated_split
from metricsmith.errors import DataError, ModelFailure, OptionError
from metricsmith.records import Scale
from rated_sets import NAMES, rows_of, written


def read(name, folder, *dimension, rows=None, **reading):
    return read_rated_set(name, written(name, folder, rows), *dimension, min_rated=4, **reading)


def test_there_is_an_entry_for_each_data_set_of_the_paper():
    assert tuple(RATED_SETS) == tuple(entry.name for entry in rated_sets()) == NAMES
    # Table 1 of the paper; it leaves out SummEval and Primock57, which its appendix has.
    counts = {entry.name: entry.rows[0] for entry in rated_sets() if entry.rows}
    assert counts == {"simpeval": 360, "helpsteer2": 20_324, "evalgen": 100, "realhumaneval": 5_204, "cogym": 72}
    for entry in rated_sets():
        assert entry.licence == "check at the source"
        assert entry.page.startswith("https://")
        assert "et al." in entry.citation
    unverified = [entry.name for entry in rated_sets() if entry.verified.startswith("format not verified: ")]
    assert unverified == ["evalgen", "summeval", "primock57"]


# By hand from the rows of `rows_of`: texts of row 3 (or its neighbours), scale, groups.
@pytest.mark.parametrize(
    ("name", "target", "scale", "count", "groups"),
    [
        ("simpeval", "score", Scale(0, 100), 10, 5),
        ("helpsteer2", "helpfulness", Scale(0, 4, 1), 10, 5),
        ("evalgen", "grade", Scale(0, 1, 1), 10, 5),
        ("realhumaneval", "accepted", Scale(0, 1, 1), 9, 5),  # the tenth suggestion is blank
        ("cogym", "outcomeRating", Scale(1, 5, 1), 9, 9),  # the tenth is another task
        ("summeval", "coherence", Scale(1, 5), 10, 5),
        ("primock57", "time_sec", None, 10, 5),
    ],
)
def test_ten_rows_in_the_published_form(name, target, scale, count, groups, tmp_path):
    table = read(name, tmp_path)
    assert (table.task.target, len(table), len(set(table.groups))) == (target, count, groups)
    assert scale is None or table.task.scale == scale
    assert table.task.description == RATED_SETS[name].task
    assert all(row["output"].strip() and row["input"].strip() for row in table.rows)
    assert len(set(table.systems)) == (0 if name == "helpsteer2" else 2)
    known = RATED_SETS[name].rows
    short = f"{count} rows, where Table 1 of the paper has {[*known, 0][0]:,} for {RATED_SETS[name].title}"
    assert [note for note in table.notes if "Table 1" in note] == ([short] if known else [])
    assert (RATED_SETS[name].verified in table.notes) == bool(RATED_SETS[name].unverified)


def test_what_is_published_in_another_shape_is_made_into_columns(tmp_path):
    # Co-Gym: the text that stood in the editor last, not the first idea, nor the empty one of the last step.
    assert read("cogym", tmp_path).rows[2]["output"] == "Day 2: the quay, by foot."
    # SummEval, row 0, coherence: three experts gave 1, five others 2; (3 * 1 + 5 * 2) / 8 = 1.625.
    assert read("summeval", tmp_path).rows[0]["coherence"] == 1.625
    # Primock57, row 5: incorrect 5 % 3 + 1 = 3, omissions 1 + 3 = 4; fewer are better.
    sums = {name: read("primock57", tmp_path, name) for name in ("incorrect", "omissions", "inc_plus_omi")}
    assert [table.rows[5][name] for name, table in sums.items()] == [3, 4, 7]
    assert not sums["incorrect"].task.scale.higher_is_better
    assert sums["incorrect"].rows[5]["references"] == ["Fell, the old gate."]  # the doctor's note alone
    # RealHumanEval: the code on both sides of the suggestion.
    row = read("realhumaneval", tmp_path).rows[1]
    assert "prefix_code: def f1(x):" in row["input"]
    assert "suffix_code: print(f1(2))" in row["input"]


def test_ratings_of_one_note_are_averaged_over_its_raters(tmp_path):
    rows = rows_of("primock57")
    again = [{**row, "evaluator": "e" + row["evaluator"], "time_sec": row["time_sec"] + 10} for row in rows]
    table = read("primock57", tmp_path, rows=[*rows, *again])
    assert (len(table), table.rows[0]["time_sec"]) == (10, 35)  # (30 + 40) / 2


def test_options_go_before_the_entry(tmp_path):
    rows = [{"note": row.pop("generated_note"), **row} for row in rows_of("primock57")]
    with pytest.raises(DataError, match=r"no column 'generated_note'.*name yours by option"):
        read("primock57", tmp_path, rows=rows)
    table = read("primock57", tmp_path, rows=rows, output="note", task="Mine.", inputs=(), where=None)
    assert (table.columns.output, table.task.description) == ("note", "Mine.")
    some = read("helpsteer2", tmp_path, "verbosity", where="complexity=1")
    assert (len(some), some.task.target) == (5, "verbosity")
    assert "10 rows, where Table 1 of the paper has 20,324 for HelpSteer2" in some.notes  # the source's, not the chosen


def test_wrong_names_ratings_and_cells_are_told(tmp_path):
    with pytest.raises(OptionError, match=r"no data set 'sumeval' \(did you mean 'summeval'\?\); known are simpeval"):
        read_rated_set("sumeval")
    with pytest.raises(OptionError, match=r"no dimension 'clarity'; it has helpfulness, correctness"):
        read("helpsteer2", tmp_path, "clarity")
    rows = rows_of("helpsteer2")
    rows[2]["helpfulness"] = 5
    with pytest.raises(DataError, match=r"row 3 .*'5' is outside the scale 0 to 4"):
        read("helpsteer2", tmp_path, rows=rows)
    rows = rows_of("summeval")
    rows[1]["turker_annotations"] = [{"coherence": 3}]
    with pytest.raises(DataError, match=r"row 2 .*column 'turker_annotations': .* is no list of ratings"):
        read("summeval", tmp_path, rows=rows)


def test_nothing_is_downloaded_without_being_asked_for(monkeypatch):
    def refuse(*_):
        raise AssertionError("loaded")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=refuse))
    with pytest.raises(OptionError, match=r"--download.*nvidia/HelpSteer2.*helpsteer2=FILE"):
        read_rated_set("HelpSteer2")
    with pytest.raises(OptionError, match=r"not on the hub in a form.*cogym-real-trajectories.*cogym=FILE"):
        read_rated_set("Co-Gym", download=True)


def test_a_download_takes_the_splits_and_the_configuration_that_are_meant(monkeypatch):
    import datasets  # Hugging Face's

    asked = []

    def load(*arguments):
        asked.append(arguments)
        if arguments == ("hsseinmz/realhumaneval", "autocomplete"):
            return datasets.Dataset.from_list(rows_of("realhumaneval"))
        rows = [{key: cell for key, cell in row.items() if key != "split"} for row in rows_of("helpsteer2")]
        return datasets.DatasetDict(
            {"train": datasets.Dataset.from_list(rows[:8]), "validation": datasets.Dataset.from_list(rows[8:])}
        )

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert len(read_rated_set("realhumaneval", download=True)) == 9
    learned, test = read_rated_split("helpsteer2", download=True, min_rated=1)
    assert asked == [("hsseinmz/realhumaneval", "autocomplete"), ("nvidia/HelpSteer2",)]
    assert (len(learned), len(test)) == (8, 2)

    def offline(*_):
        raise ConnectionError

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(ModelFailure, match="cannot be reached"):
        read_rated_set("helpsteer2", download=True)


def test_a_data_set_with_test_rows_of_its_own_is_divided_by_them(tmp_path):
    learned, test = read_rated_split("evalgen", written("evalgen", tmp_path), min_rated=1)
    assert [row["output"].split("\n")[0] for row in test.rows] == ["## Lamp 8", "## Lamp 9"]
    assert len(learned) == 8
    assert "10 rows, where Table 1 of the paper has 100 for EvalGen" in learned.notes
    assert not set(learned.groups) & set(test.groups)
    whole, none = read_rated_split("simpeval", written("simpeval", tmp_path))
    assert (len(whole), none) == (10, None)
    alone = pd.DataFrame(rows_of("helpsteer2")[:8]).drop(columns="split")  # the training file alone
    assert read_rated_split("helpsteer2", alone)[1] is None


@pytest.mark.skipif("METRICSMITH_DATA" not in os.environ, reason="needs the public data: METRICSMITH_DATA")
def test_the_published_simpeval():
    table = read_rated_set("simpeval", Path(os.environ["METRICSMITH_DATA"]) / "simpeval.csv")
    assert (len(table), len(set(table.groups)), len(set(table.systems))) == (360, 60, 6)
    assert not any("Table 1" in note for note in table.notes)
