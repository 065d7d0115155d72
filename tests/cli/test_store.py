"""`metricsmith store info|export|verify|prune`."""

from __future__ import annotations

import csv
import io
import json

import pytest

from metricsmith.records import Status
from metricsmith.store import Store, info
from stores import edit, entry, fill, judgement


@pytest.fixture
def path(tmp_path):
    """Forty judgements and a failure."""
    path = fill(tmp_path / "s.db")
    with Store(path) as store:
        store.exchange([entry("r0000", 1, judgement(status=Status.TRANSPORT, run=1))])
    return path


def test_info_says_what_a_store_holds(run, path):
    code, out, _ = run("store", "info", path)
    assert code == 0
    first, paid, written, *metrics = out.splitlines()
    assert first.startswith(f"{path}: 41 judgements of 20 rows")
    assert "what these cost: 41 requests, 410 prompt and 82 completion tokens, $20.50" in paid
    assert written.startswith("written: ")
    assert metrics == [
        "brevity  fingerprint-  1 run: 20 ok",
        "clarity  fingerprint-  2 runs: 20 ok, 1 transport",
    ]
    code, out, _ = run("store", "info", path, "--json")
    assert (code, json.loads(out)["judgements"]) == (0, 41)


def test_export_prints_or_writes(run, path, tmp_path):
    code, out, _ = run("store", "export", path)
    assert (code, len(list(csv.DictReader(io.StringIO(out))))) == (0, 41)
    code, out, err = run("store", "export", path, "--out", tmp_path / "all.jsonl")
    assert (code, out) == (0, "")
    assert err.strip() == f"41 judgements: {tmp_path / 'all.jsonl'}"
    assert len((tmp_path / "all.jsonl").read_text("utf-8").splitlines()) == 41
    code, _, err = run("store", "export", path, "--format", "parquet")
    assert code == 2
    assert "--out" in err


def test_verify_ends_with_an_error_where_there_is_damage(run, path):
    code, out, _ = run("store", "verify", path)
    assert (code, out.strip()) == (0, f"{path}: 41 judgements, all whole")
    edit(path, "UPDATE judgements SET raw = 4.5 WHERE row = 4 AND metric = 2")
    code, out, err = run("store", "verify", path)
    assert code == 2
    assert "row r0003, metric brevity, run 0: its number or text was changed" in out
    assert f"metricsmith store export {path}" in err
    code, out, _ = run("store", "verify", path, "--json")
    found = json.loads(out)
    assert (code, found["ok"], found["damaged"]) == (2, False, 1)
    code, out, err = run("store", "export", path)
    assert (code, len(out.splitlines())) == (2, 41)  # the head, and all but one
    assert "1 damaged judgements were left out" in err


def test_prune_deletes_on_conditions_alone_and_tells_beforehand(run, path):
    code, _, err = run("store", "prune", path)
    assert code == 2
    assert "--metric, --failures or --before" in err
    code, out, _ = run("store", "prune", path, "--failures", "--dry-run")
    assert (code, out.strip(), info(path).judgements) == (0, "1 judgements would be deleted", 41)
    code, out, _ = run("store", "prune", path, "--failures")
    assert (code, out.strip(), info(path).judgements) == (0, "1 judgements were deleted", 40)
    code, out, _ = run("store", "prune", path, "--metric", "clarity", "--before", "2020-01-31", "--json")
    assert (code, json.loads(out)) == (0, {"judgements": 0, "deleted": True})
    code, _, err = run("store", "prune", path, "--before", "soon")
    assert code == 2
    assert "2026-01-31" in err


@pytest.mark.parametrize("command", ["info", "export", "verify"])
def test_a_store_that_is_not_there_is_not_made(run, tmp_path, command):
    code, _, err = run("store", command, tmp_path / "none.db")
    assert code == 2
    assert "no such file" in err
    assert list(tmp_path.iterdir()) == []
