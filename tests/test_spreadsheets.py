"""Tables are read back to the letter, and no spreadsheet runs it."""

from __future__ import annotations

import csv
import io
import logging
from pathlib import Path

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.datasets.formats import parse_file
from metricsmith.spreadsheets import MARK, write_table

HEADER = ["id", "text"]
STARTS = ("=", "+", "-", "@", "\t", "\r")
# Every text, and often those that begin with what is marked, with numbers, and with apostrophes of their own.
PIECES = st.sampled_from([*STARTS, "'", "''", "1", "-1", "+.5e3", "=x", "\n", '"', ",", ";", " ", "inf"])
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
CELL = st.builds("".join, st.lists(PIECES | TEXT, max_size=4))


def written(rows, header=HEADER, **options):
    stream = io.StringIO()
    write_table(stream, header, lambda: rows, **options)
    return stream.getvalue()


def read(text, name="a.csv"):
    return parse_file(Path(name), text.encode("utf-8")).columns


def number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return cell[-1:].isdigit() or cell.endswith(".")


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5), st.sampled_from([(",", "a.csv"), ("\t", "a.tsv")]))
def test_what_is_written_is_read_back_to_the_letter(rows, form):
    separator, name = form
    columns = read(written(rows, separator=separator), name)
    assert columns == {"id": [row[0] for row in rows], "text": [row[1] for row in rows]}


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_no_cell_starts_as_a_formula_does(rows):
    for line in csv.reader(io.StringIO(written(rows), newline=""), strict=True):
        for cell in line:
            assert not cell.startswith(STARTS) or number(cell), line


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("'=x", "''=x"),
        ("''=x", "'''=x"),
        ("+49 30 1234", "'+49 30 1234"),
        ("-", "'-"),
        ("- a list", "'- a list"),
        ("@here", "'@here"),
        ("\tx", "'\tx"),
        ("-2+3|cmd", "'-2+3|cmd"),
        ("-inf", "'-inf"),
        ("-5", "-5"),
        ("+3.25", "+3.25"),
        ("-1e-05", "-1e-05"),
        ("'quoted'", "'quoted'"),
        ("'-5", "'-5"),
        ("a=b", "a=b"),
    ],
)
def test_a_text_that_would_run_gets_one_apostrophe_and_a_number_none(cell, shown):
    other = ("=always", "")
    assert list(csv.reader(io.StringIO(written([(cell, 1), other]))))[1] == [shown, "1", ""]
    assert read(written([(cell, ""), other]))["id"] == [cell, "=always"]


def test_a_table_without_such_texts_is_what_it_was(caplog):
    rows = [("a", 1.5), ('b,"c"\nd', None), ("-3", True), ("'=1"[:1], "")]
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([HEADER, *rows])
    assert written(rows) == stream.getvalue()
    assert caplog.records == []


def test_the_mark_is_one_empty_column_for_others_and_none_for_us(caplog):
    with caplog.at_level(logging.WARNING, "metricsmith.notes"):
        text = written([("=1", 2), ("b", -3)])
    assert text == f"id,text,{MARK}\n'=1,2,\nb,-3,\n"
    frame = pandas.read_csv(io.StringIO(text))
    assert frame["text"].tolist() == [2, -3]
    assert frame[MARK].isna().all()
    assert list(read(text)) == HEADER
    assert len(caplog.records) == 1


def test_an_apostrophe_in_a_file_that_is_not_ours_stays():
    assert read("id,text\n'=x,1\n")["id"] == ["'=x"]


def test_names_of_columns_are_texts_too():
    text = written([("a", 1)], ["id", "=cmd"])
    assert text.splitlines()[0] == f"id,'=cmd,{MARK}"
    assert list(read(text)) == ["id", "=cmd"]


def test_raw_tables_have_no_apostrophes():
    assert written([("=1", "'=x")], raw=True) == "id,text\n=1,'=x\n"
