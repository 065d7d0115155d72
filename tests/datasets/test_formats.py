from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from metricsmith.datasets.formats import frame_columns, parse_file, table_suffix
from metricsmith.errors import DataError, NeedsError


def parse(name: str, content: str | bytes):
    return parse_file(Path(name), content.encode() if isinstance(content, str) else content)


def message(name: str, content: str | bytes) -> str:
    with pytest.raises(DataError) as caught:
        parse(name, content)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.csv", ".csv"),
        ("A.CSV.GZ", ".csv"),
        ("a.b.jsonl", ".jsonl"),
        ("a.parquet", ".parquet"),
        ("a.xlsx", ".xlsx"),
        ("a.ods", ""),
    ],
)
def test_the_name_decides_the_format(name, suffix):
    assert table_suffix(Path(name)) == suffix


def test_cells_of_a_csv_stay_text():
    assert parse("a.csv", "x,y\nNA,1\n,007\n").columns == {"x": ["NA", ""], "y": ["1", "007"]}


def test_lines_are_those_of_the_file_where_cells_hold_line_breaks_and_lines_are_blank():
    parsed = parse("a.csv", 'x,y\n"one\ntwo",1\n\nthree,2\n')
    assert parsed.columns["x"] == ["one\ntwo", "three"]
    assert parsed.lines == (2, 5)


def test_byte_order_mark_and_dos_line_ends_are_no_part_of_cells():
    assert parse("a.csv", b"\xef\xbb\xbfx,y\r\n1,2\r\n").columns == {"x": ["1"], "y": ["2"]}


def test_a_cell_may_be_longer_than_the_csv_module_allows_by_default():
    limit = csv.field_size_limit()
    assert len(parse("a.csv", f"x,y\n{'z' * 200_000},1\n").columns["x"][0]) == 200_000
    assert csv.field_size_limit() == limit


def test_a_nameless_column_gets_its_place_as_name():
    assert list(parse("a.csv", ",x\n0,1\n").columns) == ["column 1", "x"]


def test_tsv_keeps_commas():
    assert parse("a.tsv", "x\ty\n1,5\t2\n").columns == {"x": ["1,5"], "y": ["2"]}


def test_another_separator_is_noticed_and_said():
    parsed = parse("a.csv", "x;y\n1,5;2\n")
    assert parsed.columns == {"x": ["1,5"], "y": ["2"]}
    assert parsed.notes == ("a.csv: the header has no ',': cells are taken to be separated by semicolons",)


def test_jsonl_keeps_types_and_fills_absent_keys_with_none():
    parsed = parse("a.jsonl", '{"x": 1, "y": ["a"]}\n\n{"x": null, "z": true}\n')
    assert parsed.columns == {"x": [1, None], "y": [["a"], None], "z": [None, True]}
    assert parsed.lines == (1, 3)


@pytest.mark.parametrize("content", ['[{"x": 1}, {"x": 2}]', '{"x": 1}\n{"x": 2}', '\ufeff [{"x": 1},\n{"x": 2}]'])
def test_json_is_a_list_or_lines(content):
    assert parse("a.json", content).columns == {"x": [1, 2]}


def test_gzip_is_unpacked():
    assert parse("a.csv.gz", gzip.compress(b"x\n1\n")).columns == {"x": ["1"]}


def test_parquet_lists_become_lists(tmp_path):
    frame = pd.DataFrame({"x": ["a", None], "y": [["r", "s"], []], "z": [1.5, None]})
    frame.to_parquet(tmp_path / "a.parquet")
    parsed = parse("a.parquet", (tmp_path / "a.parquet").read_bytes())
    assert parsed.columns == {"x": ["a", None], "y": [["r", "s"], []], "z": [1.5, None]}


def test_a_named_index_is_a_column_and_a_nameless_one_is_not():
    frame = pd.DataFrame({"x": [1]}, index=pd.Index(["k"], name="key"))
    assert frame_columns("f", frame) == {"key": ["k"], "x": [1]}
    assert frame_columns("f", pd.DataFrame({"x": [1]}, index=["k"])) == {"x": [1]}


@pytest.mark.parametrize("content", [b"", b"  \n\n", b"\xef\xbb\xbf \n"])
def test_an_empty_file_is_said_to_be_empty(content):
    assert "a.csv is empty" in message("a.csv", content)


@pytest.mark.parametrize(("name", "content"), [("a.csv", "x,y\n"), ("a.json", "[]"), ("a.json", "[{}]")])
def test_no_row_of_data_is_an_error(name, content):
    text = message(name, content)
    assert f"{name} is empty" in text
    assert "at least one row is needed" in text


def test_an_unknown_format_lists_the_known_ones():
    text = message("a.ods", b"PK")
    assert "'.ods'" in text
    assert ".csv, .tsv, .jsonl, .ndjson, .json, .parquet, .xlsx" in text


# "café" in ISO-8859-1: the bytes before the é are "x\ncaf", so it stands at position 5, on line 2.
def test_a_wrong_encoding_names_byte_position_and_line():
    text = message("a.csv", b"x\ncaf\xe9\n")
    assert "a.csv is not UTF-8 text: byte 0xe9 at position 5 (line 2)" in text
    assert "iconv -f ISO-8859-1 -t UTF-8" in text


def test_utf_16_is_recognised_by_its_mark():
    assert "iconv -f UTF-16 -t UTF-8" in message("a.csv", "x,y\n1,2\n".encode("utf-16"))


@pytest.mark.parametrize("row", ["3", "3,4,5"])
def test_ragged_rows_name_row_line_and_widths(row):
    text = message("a.csv", f"x,y\n1,2\n\n{row}\n")
    assert f"a.csv, row 2 (line 4) has {row.count(',') + 1} cells" in text
    assert "the header has 2 columns" in text


def test_an_unclosed_quote_names_its_line():
    text = message("a.csv", 'x,y\n1,2\n3,"4\n')
    assert "a.csv, line 3: cannot be split into cells" in text
    assert "quotes must be closed" in text


def test_equal_column_names_are_refused():
    assert "the column name 'x' stands 2 times" in message("a.csv", "x,x\n1,2\n")
    with pytest.raises(DataError, match="'1' stands 2 times"):
        frame_columns("f", pd.DataFrame([[1, 2]], columns=[1, "1"]))


def test_bad_json_names_row_and_line():
    text = message("a.jsonl", '{"x": 1}\n\n{"x": \n')
    assert "a.jsonl, row 2 (line 3): not JSON" in text
    assert "one JSON object per line" in text


def test_a_json_row_that_is_no_object_is_shown():
    text = message("a.jsonl", json.dumps({"x": 1}) + "\n[4, 5]\n")
    assert "a.jsonl, row 2 (line 2): a list, seen '[4, 5]'" in text
    assert message("a.json", "[3]").startswith("a.json, row 1: a int")


def test_a_broken_gzip_or_parquet_file_is_said_to_be_broken():
    assert "cannot be unpacked" in message("a.csv.gz", b"x,y\n1,2\n")
    assert "cannot be unpacked" in message("a.csv.gz", gzip.compress(b"x" * 1000)[:-9])
    assert "cannot be read as Parquet" in message("a.parquet", b"no parquet")


def workbook(*rows, sheets=("ratings",)):
    """The bytes of a workbook whose first sheet has these rows."""
    openpyxl = pytest.importorskip("openpyxl")
    book, stream = openpyxl.Workbook(), io.BytesIO()
    book.active.title = sheets[0]
    for cells in rows:
        book.active.append(cells)
    for title in sheets[1:]:
        book.create_sheet(title)
    book.save(stream)
    return stream.getvalue()


def test_a_sheet_keeps_numbers_truth_values_and_dates_and_drops_blank_rows_and_columns():
    day, hour = datetime.datetime(2026, 11, 22), datetime.datetime(2026, 11, 22, 9, 30)
    parsed = parse(
        "a.xlsx",
        workbook(
            (), ("text", None, "rating", None, "on"), ("a", None, 4, "x", day), (None, " "),
            ("b", None, 4.5, None, hour), (True, None, None, None, None),
        ),
    )  # fmt: skip
    assert parsed.columns == {
        "text": ["a", "b", True],
        "rating": [4, 4.5, None],
        "column 4": ["x", None, None],
        "on": ["2026-11-22", "2026-11-22 09:30:00", None],
    }
    assert parsed.lines == (3, 5, 6)  # as the spreadsheet counts
    assert parsed.notes == ()


def test_the_first_of_several_sheets_is_read_and_named():
    parsed = parse("a.xlsx", workbook(("x",), (1,), sheets=("own", "other")))
    assert parsed.notes == ("a.xlsx: the first of 2 sheets is read, 'own'",)


def test_formulas_are_their_stored_values_and_those_without_one_are_told():
    parsed = parse("a.xlsx", workbook(("x", "y"), (1, "=A2*2"), (2, "=A3*2"), (3, 6)))
    assert parsed.columns == {"x": [1, 2, 3], "y": [None, None, 6]}
    assert parsed.notes == (
        "column 'y': 2 formulas have no stored value and are blank: open the file in a spreadsheet and save it",
    )
    # The same file with the value that a spreadsheet would have stored in B2.
    packed, stored = zipfile.ZipFile(io.BytesIO(workbook(("x", "y"), (1, "=A2*2")))), io.BytesIO()
    with zipfile.ZipFile(stored, "w") as file:
        for name in packed.namelist():
            content = packed.read(name)
            file.writestr(name, content.replace(b"<f>A2*2</f><v></v>", b"<f>A2*2</f><v>2</v>").replace(
                b"<f>A2*2</f><v />", b"<f>A2*2</f><v>2</v>"))  # fmt: skip
    parsed = parse("a.xlsx", stored.getvalue())
    assert (parsed.columns["y"], parsed.notes) == ([2], ())


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"PK", "cannot be read as an Excel workbook"), (b"x,y\n1,2\n", "export the sheet as CSV")],
)
def test_bytes_that_are_no_workbook_are_an_error(content, why):
    pytest.importorskip("openpyxl")
    assert why in message("a.xlsx", content)


def test_an_empty_sheet_and_a_name_that_stands_twice_are_errors():
    assert "a.xlsx is empty" in message("a.xlsx", workbook())
    assert "a.xlsx is empty: a header (x) but no row" in message("a.xlsx", workbook(("x",)))
    assert "the column name 'x' stands 2 times" in message("a.xlsx", workbook(("x", "x"), (1, 2)))


def test_without_the_extra_the_line_that_installs_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(NeedsError, match=r"pip install 'metricsmith\[excel\]'"):
        parse("a.xlsx", b"PK")
