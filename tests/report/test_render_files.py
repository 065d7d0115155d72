"""The four files of a report."""

from __future__ import annotations

import csv
import json
import os

import pytest

from metricsmith.report import render
from metricsmith.report.induction.document import write_reports

FILES = {"report.html", "report.md", "report.json", "scores.csv"}


def test_the_four_files_are_written_and_nothing_is_left_behind(make_record, tmp_path):
    folder = tmp_path / "new" / "folder"
    write_reports(make_record(), folder)
    assert {path.name for path in folder.iterdir()} == FILES
    assert json.loads((folder / "report.json").read_text("utf-8"))["schema_version"] == 1
    assert (folder / "report.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_second_run_replaces_the_first_and_equals_it(make_record, tmp_path):
    write_reports(make_record(), tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_reports(make_record(title="Other"), tmp_path)
    assert (tmp_path / "report.md").read_bytes() != first["report.md"]
    write_reports(make_record(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


def test_a_failing_write_leaves_the_old_file_whole(make_record, tmp_path, monkeypatch):
    write_reports(make_record(), tmp_path)
    before = (tmp_path / "report.html").read_bytes()

    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(render.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_reports(make_record(title="Other"), tmp_path)
    monkeypatch.undo()
    assert (tmp_path / "report.html").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_a_lone_surrogate_in_a_name_does_not_stop_the_report(make_record, tmp_path):
    record = make_record(title="bad \udc80 name", signature="\udc80")
    write_reports(record, tmp_path)
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["title"] == "bad \udc80 name"
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.reader(stream))) == len(record.data) + 1


@pytest.mark.skipif(os.name != "posix", reason="POSIX file modes")
def test_the_files_get_the_modes_that_the_user_set(make_record, tmp_path):
    before = os.umask(0o027)
    try:
        write_reports(make_record(), tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o640
