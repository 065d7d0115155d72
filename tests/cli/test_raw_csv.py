"""Tables of the command line that spreadsheets do not run, and `--raw-csv`."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from metricsmith.datasets.formats import parse_file
from metricsmith.spreadsheets import MARK
from metricsmith.store import Store
from stores import entry, judgement

IDS = ("=cmd|' /C calc'!A0", "'=x", "plain", "-5", "+49 30 1234")


@pytest.fixture
def scored(run, own, tmp_path):
    """Score rows with these ids: the table's lines as any reader sees them, and as ours does, and what was said."""
    basics = ["--target", "rating", "--bank", "none", "--metric-columns", "good", "--output", "rewrite"]
    assert run("induce", own, *basics, "--out", tmp_path / "out")[0] == 0
    with (tmp_path / "new.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["case", "rewrite", "good"], *([name, "Text.", 2] for name in IDS)])

    def call(*options):
        out = tmp_path / "scores.csv"
        arguments = [tmp_path / "out" / "metric.json", tmp_path / "new.csv", "--output", "rewrite", "--id", "case"]
        code, _, said = run("score", *arguments, "--out", out, *options)
        assert code == 0, said
        with out.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file)), parse_file(out, out.read_bytes()).columns, said

    return call


def test_scores_are_marked_said_once_and_read_back(scored):
    lines, columns, said = scored()
    assert [line["id"] for line in lines] == ["'=cmd|' /C calc'!A0", "''=x", "plain", "-5", "'+49 30 1234"]
    assert columns["id"] == list(IDS)
    assert MARK in lines[0]
    assert MARK not in columns
    assert said.count("apostrophe") == 1


def test_raw_csv_writes_texts_as_they_are(scored):
    lines, _, said = scored("--raw-csv")
    assert [line["id"] for line in lines] == list(IDS)
    assert MARK not in lines[0]
    assert "apostrophe" not in said


def test_an_export_is_marked_and_its_counts_are_those_of_one_reading(run, tmp_path):
    with Store(tmp_path / "s.db") as store:
        number = store.metric("f", "m")
        store.exchange([entry(name, number, judgement(feedback=f"{name} said")) for name in IDS])
    out: Path = tmp_path / "export.csv"
    code, _, said = run("store", "export", tmp_path / "s.db", "--out", out)
    assert code == 0
    assert f"{len(IDS)} judgements: {out}" in said
    columns = parse_file(out, out.read_bytes()).columns
    assert sorted(columns["row_id"]) == sorted(IDS)
    assert sorted(columns["feedback"]) == sorted(f"{name} said" for name in IDS)
    assert f",{MARK}\r\n".encode() in out.read_bytes()
    raw = tmp_path / "raw.csv"
    assert run("store", "export", tmp_path / "s.db", "--out", raw, "--raw-csv")[0] == 0
    assert MARK.encode() not in raw.read_bytes()
    lines = tmp_path / "export.jsonl"
    assert run("store", "export", tmp_path / "s.db", "--out", lines)[0] == 0
    assert '"row_id": "\'=x"' in lines.read_text("utf-8")
