from __future__ import annotations

import dspy
import numpy as np
import pandas as pd
import pytest

import datasets
from metricsmith.datasets.sources import Condition, filter_rows, load_hub, open_source, parse_condition
from metricsmith.errors import DataError, ModelFailure, OptionError

COLUMNS = ["system", "a", "a b", "a=b", "why!"]
FRAME = pd.DataFrame({"x": ["a", "b", "c"], "y": [1, 2, 3]})


def test_a_file_knows_where_its_rows_stand(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,y\n"a\na",1\nb,2\n')
    raw = open_source(path)
    assert len(raw) == 2
    assert raw.place(1, "y") == f"{path}, row 2 (line 4), column 'y'"
    assert raw.take([1]).place(0) == f"{path}, row 2 (line 4)"


def test_a_frame_counts_rows_from_one():
    assert open_source(FRAME).place(2, "x") == "the data frame, row 3 (counted from 1), column 'x'"


def test_a_text_path_and_a_path_are_the_same(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    assert open_source(str(path)) == open_source(path)


def test_the_checksum_follows_the_content(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    # First 16 digits of `printf 'x\n1\n' | sha256sum` (coreutils 9).
    assert open_source(path).checksum == "daff832f802000e6"
    assert open_source(FRAME).checksum == open_source(FRAME.copy()).checksum
    assert open_source(FRAME).checksum != open_source(FRAME.assign(y=["1", "2", "3"])).checksum


def test_a_data_set_object_is_read():
    raw = open_source(datasets.Dataset.from_dict({"x": ["a"], "y": [["r", "s"]]}))
    assert raw.columns == {"x": ["a"], "y": [["r", "s"]]}


def test_of_several_splits_train_is_read_and_said():
    part = datasets.Dataset.from_pandas(FRAME)
    raw = open_source(datasets.DatasetDict(test=part.select([0]), train=part))
    assert len(raw) == 3
    assert raw.notes == ("the data set: split 'train' of test, train is read",)


def test_the_only_split_is_read_whatever_its_name():
    raw = open_source(datasets.DatasetDict(test=datasets.Dataset.from_pandas(FRAME)))
    assert (len(raw), raw.notes) == (3, ())


def test_several_splits_without_train_are_refused():
    part = datasets.Dataset.from_pandas(FRAME)
    with pytest.raises(DataError, match=r"several splits \(a, b\) and none is called 'train'"):
        open_source(datasets.DatasetDict(a=part, b=part))


def test_a_hub_id_goes_to_the_loader():
    raw = load_hub("owner/name", lambda name: datasets.Dataset.from_dict({"x": [name]}))
    assert (raw.name, raw.columns) == ("owner/name", {"x": ["owner/name"]})


def test_a_hub_that_cannot_be_reached_is_a_failure_of_the_network():
    def load(name: str):
        raise ConnectionError("it is down")

    with pytest.raises(ModelFailure, match="owner/name: the Hugging Face hub cannot be reached"):
        load_hub("owner/name", load)


@pytest.mark.parametrize("error", [FileNotFoundError, ValueError, RuntimeError])
def test_a_hub_failure_is_a_data_error_that_keeps_the_reason(error):
    def load(name: str):
        raise error("it is down")

    with pytest.raises(DataError) as caught:
        load_hub("owner/name", load)
    assert f"owner/name: cannot be loaded from the Hugging Face hub ({error.__name__}: it is down)" in str(caught.value)
    assert "check the spelling" in str(caught.value)


def test_a_missing_file_suggests_its_neighbour(tmp_path):
    (tmp_path / "ratings.csv").write_text("x\n1\n")
    with pytest.raises(DataError, match=r"rating\.csv: no such file \(did you mean 'ratings\.csv'\?\)"):
        open_source(tmp_path / "rating.csv")


@pytest.mark.parametrize("name", ["data/ratings.csv", "nowhere/a.parquet"])
def test_a_missing_table_file_is_never_looked_up_on_the_hub(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"no such file \(nor the folder"):
        open_source(name)


def test_a_missing_file_in_an_existing_folder_is_never_looked_up_on_the_hub(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="data/ratings: no such file: check the path; "):
        open_source("data/ratings")


def test_a_folder_is_not_a_table(tmp_path):
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        open_source(tmp_path)


@pytest.mark.parametrize("source", [iter([{"x": 1}]), np.array([["a"]]), range(2), 7, None])
def test_another_kind_of_source_is_named(source):
    with pytest.raises(DataError, match=f"a {type(source).__name__} cannot be read as a table; allowed are .* write "):
        open_source(source)


CELLS = {"text": ["a", None, "c"], "refs": [["x", "y"], [], ["z"]], "n": [1, 2, 3]}
DICTS = [dict(zip(CELLS, cells, strict=True)) for cells in zip(*CELLS.values(), strict=True)]


@pytest.mark.parametrize(
    "source",
    [
        DICTS,
        tuple(DICTS),
        CELLS,
        {name: np.array(cells, dtype=object) for name, cells in CELLS.items()},
        [dspy.Example(**one) for one in DICTS],
        [dspy.Example(text=one["text"], refs=one["refs"], columns={"n": one["n"]}) for one in DICTS],
        [{"text": "a", "refs": ["x", "y"], "n": 1}, {"refs": [], "n": 2}, {"text": "c", "refs": ["z"], "n": 3}],
        datasets.Dataset.from_list(DICTS),
    ],
)
def test_all_forms_in_memory_give_the_columns_of_the_frame(source):
    raw, frame = open_source(source), open_source(pd.DataFrame(DICTS))
    assert raw.columns == frame.columns == CELLS
    assert raw.checksum == frame.checksum


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ([], "the list is empty: seen 0 rows and 0 columns"),
        ({}, "the dict is empty"),
        ({"x": []}, "the dict is empty: seen 0 rows and 1 columns"),
        ([{"x": 1}, "text"], "the list, row 2: a str, seen 'text'; each row is an object such as"),
        ({"text": "one row", "n": [1]}, r"seen text: no list, n: 1; .* write \[row\] for one row"),
        ({"text": ["a", "b"], "n": [1]}, "seen text: 2, n: 1; .* all of one length"),
    ],
)
def test_what_is_no_table_in_memory_says_why(source, says):
    with pytest.raises(DataError, match=says):
        open_source(source)


@pytest.mark.parametrize("frame", [FRAME.iloc[:0], pd.DataFrame(index=[0, 1])])
def test_an_empty_frame_is_refused(frame):
    with pytest.raises(DataError, match="the data frame is empty"):
        open_source(frame)


def test_a_missing_column_suggests_the_nearest():
    with pytest.raises(DataError) as caught:
        open_source(FRAME.rename(columns={"x": "response"})).require("responce", "output=... (--output)")
    text = str(caught.value)
    assert "the data frame: no column 'responce' (did you mean 'response'?)" in text
    assert "the columns are response, y" in text
    assert "--output" in text


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("system=Human", Condition("system", "Human", True)),
        ("system!=Human", Condition("system", "Human", False)),
        ("system != Human", Condition("system", "Human", False)),
        ("a=b=c", Condition("a=b", "c", True)),
        ("a=c=d", Condition("a", "c=d", True)),
        ("a=b!=c", Condition("a=b", "c", False)),
        ("a b=x", Condition("a b", "x", True)),
        ("why!=x", Condition("why!", "x", True)),
        ("why!!=x", Condition("why!", "x", False)),
        ("a=", Condition("a", "", True)),
        ("a!=", Condition("a", "", False)),
        ("a=b", Condition("a", "b", True)),
    ],
)
def test_the_longest_existing_name_before_an_operator_is_the_column(text, condition):
    assert parse_condition(text, COLUMNS) == condition


def test_an_unknown_column_suggests_the_nearest():
    with pytest.raises(OptionError, match=r"no column 'sytem' \(did you mean 'system'\?\)"):
        parse_condition("sytem!=Human", COLUMNS)


def test_a_condition_without_operator_says_the_form():
    with pytest.raises(OptionError, match=r"'system' has no '='; allowed are COL=VALUE and COL!=VALUE"):
        parse_condition("system", COLUMNS)


@pytest.mark.parametrize(
    ("cell", "value", "same"),
    [
        ("1", "1.0", True),
        (1, "1", True),
        (1.0, "1", True),
        ("1", "2", False),
        ("Human", "human", False),
        (" Human", "Human", True),
        (True, "true", True),
        (True, "True", True),
        (None, "", True),
        ("nan", "NaN", False),
        (None, "nan", False),
        ("inf", "inf", True),
    ],
)
def test_texts_and_numbers_are_compared(cell, value, same):
    assert Condition("c", value, True).holds(cell) is same
    assert Condition("c", value, False).holds(cell) is not same


def test_all_conditions_hold_and_rows_keep_their_numbers():
    raw = open_source(pd.DataFrame({"s": ["a", "b", "a", "a"], "n": [1, 1, 2, 1]}))
    kept = filter_rows(raw, ["s=a", "n!=2"])
    assert kept.numbers == (1, 4)
    assert kept.columns == {"s": ["a", "a"], "n": [1, 1]}


def test_no_condition_keeps_everything():
    raw = open_source(pd.DataFrame({"s": ["a"]}))
    assert filter_rows(raw, []) is raw


def test_no_row_left_shows_what_the_column_holds():
    raw = open_source(pd.DataFrame({"s": ["human", "model"]}))
    with pytest.raises(DataError) as caught:
        filter_rows(raw, ["s=humans"])
    text = str(caught.value)
    assert "no row is left by the condition 's=humans'" in text
    assert "'human', 'model' (did you mean 'human'?)" in text
