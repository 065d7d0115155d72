"""Tables that are read piece by piece: the rows of `read_table`, in every format, with the same refusals."""

from __future__ import annotations

import csv
import gzip
import io
import json

import pandas
import pandas as pd
import pytest

from metricsmith.datasets.streamed import FIRST, stream_table
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError

ROWS = 2_345  # more than two pieces
RECORDS = [
    {
        "id": f"r{i}", "question": f"Why {i % 7},\n\"so\"?", "answer": f"Because {i}.", "reference": f"For {i}",
        "good": i % 5,
    }
    for i in range(ROWS)
]  # fmt: skip


def csv_text(records=RECORDS, end="\n", separator=","):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]), lineterminator=end, delimiter=separator)
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def json_text(records=RECORDS):
    return "\n".join(map(json.dumps, records))


@pytest.fixture
def write(tmp_path):
    def call(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return call


def rows_of(table):
    """The rows as plain texts and labels, groups aside: a stream joins none."""
    return [{key: value for key, value in row.toDict().items() if "group" not in key} for row in table]


FORMATS = {
    "plain.csv": csv_text().encode(),
    "windows.csv": b"\xef\xbb\xbf" + csv_text(end="\r\n").encode(),
    "unended.csv": csv_text().rstrip("\n").encode(),
    "other.csv": csv_text(separator=";").encode(),
    "tabs.tsv": csv_text(separator="\t").encode(),
    "packed.csv.gz": gzip.compress(csv_text().encode()),
    "lines.jsonl": json_text().encode(),
    "packed.ndjson.gz": gzip.compress(json_text().encode()),
    "list.json": json.dumps(RECORDS).encode(),
}


@pytest.mark.parametrize("name", [*FORMATS, "frame.parquet"])
def test_the_rows_are_those_of_the_table_that_is_read_whole(write, tmp_path, name):
    if name in FORMATS:
        path = write(name, FORMATS[name])
    else:
        pandas.DataFrame(RECORDS).to_parquet(path := tmp_path / name, row_group_size=500)
    options = {"metric_columns": ["good"], "where": ["good!=3"]}
    whole, streamed = read_table(path, require_target=False, **options), stream_table(path, keep=["good"], **options)
    assert len(streamed) == len(whole) == sum(record["good"] != 3 for record in RECORDS)
    assert rows_of(row for row, _ in streamed) == rows_of(whole.rows)
    assert [cells for _, cells in streamed][:5] == [{"good": str(number)} for number in (0, 1, 2, 4, 0)]
    assert streamed.source.checksum == whole.checksum
    assert set(streamed.notes) - set(whole.notes) == {"1876 rows fulfil good!=3"}


def test_a_column_that_first_occurs_late_is_one_of_the_table(write):
    late = [*RECORDS[:1500], {**RECORDS[1500], "context": "There."}]
    table = stream_table(write("late.jsonl", json_text(late)), keep=["context"])
    assert table.columns.context == "context"
    assert [cells["context"] for _, cells in table] == [""] * 1500 + ["There."]


def test_pieces_go_on_after_rows_that_are_done(write):
    table = stream_table(write("plain.csv", csv_text()))
    pieces = list(table.pieces(7, after=2_331))
    assert [len(piece) for piece in pieces] == [7, 7]
    assert [row.id for piece in pieces for row, _ in piece] == [f"r{i}" for i in range(2_331, ROWS)]


def changed(place, **cells):
    return [*RECORDS[:place], {**RECORDS[place], **cells}, *RECORDS[place + 1 :]]


@pytest.mark.parametrize("named", [{}, {"id": "id"}])
def test_an_id_that_repeats_two_pieces_later_stands_in_both_rows(write, named):
    path = write("twice.csv", csv_text(changed(2_200, id="r3")))
    ids = [row.id for row, _ in stream_table(path, **named)]
    assert (ids[3], ids[2_200]) == ("r3", "r3")
    assert ids == read_table(path, require_target=False, **named).ids


def test_a_blank_id_is_named_after_its_row_where_the_column_was_guessed_and_is_an_error_where_it_was_named(write):
    path = write("blank.csv", csv_text(changed(2_200, id="")))
    ids = [row.id for row, _ in stream_table(path)]
    assert ids[2_200] == "row 2201"
    assert ids == read_table(path, require_target=False).ids
    with pytest.raises(DataError) as refused:
        stream_table(path, id="id")
    with pytest.raises(DataError) as whole:
        read_table(path, require_target=False, id="id")
    assert str(refused.value) == str(whole.value)
    assert "the id is blank (1 such rows)" in str(whole.value)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            changed(2_000, answer=" "),
            "row 2001 (line 4002), column 'answer': the output is empty (1 such rows of 2345)",
        ),
        (changed(2_000, good="much"), "row 2001 (line 4002), column 'good': 'much'"),
    ],
)
def test_a_cell_that_cannot_be_used_is_found_before_anything_is_scored(write, records, said):
    with pytest.raises(DataError) as refused:
        stream_table(write("plain.csv", csv_text(records)), output="answer", metric_columns=["good"])
    assert said in str(refused.value)


def test_a_ragged_row_far_below_is_named_by_its_line(write):
    plain = "id,answer\n" + "".join(f"r{i},Text {i}\n" for i in range(9_000)) + "short\n"
    with pytest.raises(DataError, match=r"row 9001 \(line 9002\) has 1 cells"):
        stream_table(write("ragged.csv", plain))


def test_a_byte_that_is_no_utf8_far_below_is_named_by_its_line(write):
    with pytest.raises(DataError, match=r"byte 0xff at position 89124 \(line 10002\)"):
        stream_table(write("latin.csv", b"id,answer\n" + b"12345,7x\n" * 9_889 + b"\n" * 111 + b"a,\xff\n" * 2))


def test_a_packed_file_that_is_cut_off_is_refused(write):
    with pytest.raises(DataError, match=r"ends in \.gz but cannot be unpacked"):
        stream_table(write("cut.csv.gz", FORMATS["packed.csv.gz"][:-20]))


@pytest.mark.parametrize(("name", "content"), [("a.csv", "id,answer\n"), ("a.csv", ""), ("a.jsonl", "\n")])
def test_a_table_without_rows_is_refused(write, name, content):
    with pytest.raises(DataError, match="is empty"):
        stream_table(write(name, content))


def test_conditions_that_no_row_of_a_frame_fulfils_are_refused_alike(write):
    with pytest.raises(DataError, match=r"no row is left by the condition 'good=9'"):
        stream_table(pd.read_csv(write("plain.csv", csv_text())), where=["good=9"])


def test_conditions_that_no_row_fulfils_are_refused_with_values_that_are_there(write):
    with pytest.raises(DataError, match=r"no row is left by the condition 'good=9'.*holds '0', '1', '2'"):
        stream_table(write("plain.csv", csv_text()), where=["good=9"])
    with pytest.raises(OptionError, match=r"no column 'god' \(did you mean 'good'"):
        stream_table(write("plain.csv", csv_text()), where=["god=9"])
    with pytest.raises(DataError, match=r"no column 'god' \(did you mean 'good'"):
        stream_table(write("plain.csv", csv_text()), keep=["god"])


def test_a_file_that_is_written_to_while_it_is_read_is_refused_at_its_end(write):
    path = write("plain.csv", csv_text())
    table = stream_table(path)
    with path.open("a", encoding="utf-8") as file:
        file.write("r9999,Why,Because,For,1\n")
    with pytest.raises(DataError, match="was changed while it was read"):
        list(table.pieces(1_000))


def test_conversations_are_known_by_the_first_rows_and_written_out_in_all(write):
    talk = json.dumps([{"role": "user", "content": "Hi"}])
    rows = [{"id": f"r{i}", "prompt": talk, "answer": "Hello."} for i in range(FIRST + 5)]
    table = stream_table(write("talks.csv", csv_text(rows)))
    (text,) = {row.input for row, _ in table}
    assert "Hi" in text
    assert "role" not in text
    with pytest.raises(DataError, match=r"row 1003 .*is no conversation"):
        stream_table(write("talks.csv", csv_text([*rows[:-3], {**rows[0], "id": "x", "prompt": "plain"}])))
