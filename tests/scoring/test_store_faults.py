"""A store that cannot be used stops a run before it pays, one that fails midway keeps what was paid for."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from metricsmith.errors import StoreError
from metricsmith.metric import make_row
from metricsmith.scoring import estimate, score
from metricsmith.store import Store, verify
from stores import edit, fill
from stubs import Scripted

SUPPORT = Path(__file__).parents[1] / "support"
ROWS = [make_row(f"some text number {i}", id=str(i)) for i in range(2000)]

# Scores until the file may not grow any more, then says what there is: in the table, in the file, asked for.
FULL = """
import resource, signal, sys
from metricsmith.errors import StoreError
from metricsmith.metric import make_row
from metricsmith.records import Status
from metricsmith.scoring import score
from metricsmith.store import info
from stubs import Scripted
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
judge = Scripted(lambda row, run: 1 + int(row.id) % 5)
rows = [make_row(f"some text number {i}", id=str(i)) for i in range(2000)]
try:
    score([judge], rows, store=sys.argv[1], progress=False)
except StoreError as problem:
    frame = problem.table.to_pandas()
    done = frame[frame["status"] == "ok"]
    assert (done["raw"] == 1 + done["id"].astype(int) % 5).all()
    counts = problem.table.counts()
    assert counts["requested"] == 2000 == sum(counts[status.value] for status in Status)
    print(counts["ok"], len(judge.asked), info(sys.argv[1]).judgements)
    print(problem)
"""


def test_a_disk_that_runs_full_ends_the_run_with_all_that_was_paid_for_in_the_table(tmp_path):
    path = tmp_path / "s.db"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    numbers, message = done.stdout.strip().split("\n", 1)
    in_table, asked, in_file = map(int, numbers.split())
    assert 100 < in_file <= in_table == asked < 2000
    assert asked - in_file <= 64  # what was in flight or waited for the same commit
    assert "make room and run again" in message
    assert verify(path).ok
    # There is room again: only what was not stored is asked for.
    judge = Scripted(lambda row, run: 1 + int(row.id) % 5)
    table = score([judge], ROWS, store=path, progress=False)
    assert len(judge.asked) == 2000 - in_file
    assert table.counts()["ok"] == 2000


def unusable(path):
    """Ways to make a store that cannot be used, with what the error says."""
    return {
        "no store": (lambda: path.write_text("id,score\n" * 500, "utf-8"), "no SQLite file"),
        "cut short": (lambda: cut(path), "it is damaged; nothing was overwritten"),
        "of a later version": (lambda: edit_version(path), "schema version 99"),
        "a folder": (lambda: path.mkdir(), "is a folder"),
    }


def cut(path):
    fill(path, rows=400)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def edit_version(path):
    fill(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize("kind", list(unusable(Path())))
def test_a_store_that_cannot_be_used_is_an_error_before_anything_is_asked(tmp_path, kind):
    path = tmp_path / "s.db"
    make, says = unusable(path)[kind]
    make()
    before = None if path.is_dir() else path.read_bytes()
    judge = Scripted()
    for call in (score, estimate):
        with pytest.raises(StoreError, match=says):
            call([judge], ROWS[:5], store=path)
    assert judge.asked == []
    assert before is None or path.read_bytes() == before


def test_a_store_opened_to_read_is_an_error_before_anything_is_asked(tmp_path):
    path = fill(tmp_path / "s.db")
    judge = Scripted()
    with Store(path, read_only=True) as store, pytest.raises(StoreError, match="opened read-only"):
        score([judge], ROWS[:5], store=store, progress=False)
    assert judge.asked == []


@pytest.mark.parametrize("change", ["raw = 4.0", "value = replace(value, '0.', '1.')"])
def test_an_entry_that_was_changed_behind_our_back_ends_the_run_and_is_not_returned(tmp_path, change):
    path = tmp_path / "s.db"
    score([Scripted(lambda row, run: 3.0)], ROWS[:20], store=path, progress=False)
    edit(path, f"UPDATE judgements SET {change} WHERE row = 7")
    judge = Scripted()
    with pytest.raises(StoreError, match="store verify") as caught:
        score([judge], ROWS[:20], store=path, progress=False)
    assert judge.asked == []
    assert np.isnan(caught.value.table.values[6]).all()
    assert [damage.row for damage in verify(path).damages] == ["6"]
