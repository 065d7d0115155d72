"""A store as a table in three formats, read back with other tools."""

from __future__ import annotations

import csv
import io
import json
import math

import pandas as pd
import pytest

from metricsmith.errors import OptionError, StoreError
from metricsmith.records import Status, Usage
from metricsmith.store import Store, export, exporting
from stores import edit, entry, fill, judgement

COLUMNS = [
    "row_id", "row_key", "metric", "fingerprint", "run", "status", "raw", "score", "feedback", "error", "requests",
    "prompt_tokens", "completion_tokens", "cost", "seconds", "at",
]  # fmt: skip
FEEDBACK = 'Says "no",\nthen\ryes; ünïcödé 日本 🙂'


@pytest.fixture
def path(tmp_path):
    """Two judgements and a failure, with texts that a careless table would break."""
    with Store(tmp_path / "s.db") as store:
        first, second = store.metric("f1", "clarity"), store.metric("f2", "brevity")
        store.exchange(
            [
                entry("b", second, judgement(2.0, "brevity", run=3, usage=Usage(1, 8, 4, None, 0.5))),
                entry("a", first, judgement(4.0, feedback=FEEDBACK)),
                entry("a", second, judgement(status=Status.UNPARSABLE, error="broken \ud800 text", name="brevity")),
            ]
        )
    return tmp_path / "s.db"


def rows(path, kind):
    if kind == "csv":
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    if kind == "jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    return pd.read_parquet(path).astype(object).to_dict("records")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_every_format_has_a_line_for_each_judgement(path, tmp_path, kind):
    done = export(path, tmp_path / f"out.{kind}")
    assert (done.judgements, done.left_out, done.unreadable) == (3, 0, 0)
    lines = rows(tmp_path / f"out.{kind}", kind)
    assert all(list(line) == COLUMNS for line in lines)
    # Rows come in the order in which they came into the store, their metrics in the order of registration.
    assert [(line["row_id"], line["metric"], int(line["run"])) for line in lines] == [
        ("b", "brevity", 3), ("a", "clarity", 0), ("a", "brevity", 0),
    ]  # fmt: skip
    other, good, lost = lines
    assert (good["row_key"], good["fingerprint"], good["status"]) == ("key-a", "f1", "ok")
    assert (float(good["raw"]), float(good["score"]), float(good["cost"])) == (4.0, 0.75, 0.5)
    assert good["feedback"] == FEEDBACK
    assert (lost["status"], lost["error"]) == ("unparsable", "broken \\ud800 text")
    for cell in (lost["raw"], lost["score"], other["cost"]):
        assert cell in ("", None) or math.isnan(cell)
    assert str(good["at"]).endswith("+00:00")
    assert not list(tmp_path.glob("*.part"))


def test_a_stream_takes_csv_or_what_is_named(path):
    text, lines, content = io.StringIO(), io.StringIO(), io.BytesIO()
    export(path, text)
    export(path, lines, format="jsonl")
    export(path, content, format="parquet")
    assert text.getvalue().startswith(",".join(COLUMNS))
    assert len(lines.getvalue().splitlines()) == 3
    assert len(pd.read_parquet(io.BytesIO(content.getvalue()))) == 3


def test_parquet_keeps_types_over_several_batches_and_for_an_empty_store(tmp_path, monkeypatch):
    monkeypatch.setattr("metricsmith.store.exporting.AT_A_TIME", 7)
    Store(tmp_path / "empty.db").close()
    for number, name in enumerate(["full.db", "empty.db"]):
        path = fill(tmp_path / name) if not number else tmp_path / name
        export(path, tmp_path / "out.parquet")
        frame = pd.read_parquet(tmp_path / "out.parquet")
        assert len(frame) == (0 if number else 40)
        assert [str(frame[name].dtype) for name in ("run", "raw", "at")] == ["int64", "float64", "datetime64[us, UTC]"]


def test_what_is_damaged_is_left_out_and_counted(path, tmp_path):
    edit(path, "UPDATE judgements SET crc = crc + 1 WHERE run = 3")
    done = export(path, tmp_path / "out.csv")
    assert (done.judgements, done.left_out) == (2, 1)
    assert [line["row_id"] for line in rows(tmp_path / "out.csv", "csv")] == ["a", "a"]


def test_a_failed_export_leaves_what_was_there(path, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("mine", "utf-8")
    with pytest.raises(StoreError, match="no such file"):
        export(tmp_path / "none.db", target)
    with pytest.raises(OptionError, match=r"cannot write .*nowhere"):
        export(path, tmp_path / "nowhere" / "out.csv")
    assert target.read_text("utf-8") == "mine"
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".csv") == ["out.csv"]


def test_an_export_that_fails_halfway_leaves_no_part_of_it(path, tmp_path, monkeypatch):
    def full(stream, header, rows, **_):
        stream.write(f"{next(iter(rows()))}")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "write_table", full)
    with pytest.raises(OptionError, match="No space left"):
        export(path, tmp_path / "out.csv")
    assert [file.name for file in tmp_path.iterdir() if not file.name.startswith("s.db")] == []


def test_a_store_is_not_overwritten_by_its_export(path):
    before = path.read_bytes()
    for target in (path, path.with_name("s.db-wal")):
        with pytest.raises(OptionError, match="the store itself"):
            export(path, target, format="csv")
    assert path.read_bytes() == before


@pytest.mark.parametrize(("target", "format"), [("out.txt", None), ("out", None), ("out.csv", "xlsx")])
def test_an_unknown_format_is_named_with_those_that_there_are(path, tmp_path, target, format):
    with pytest.raises(OptionError, match="csv, jsonl, parquet"):
        export(path, tmp_path / target, format=format)
