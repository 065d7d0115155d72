"""A full disk, a damaged file, one that may not be written: a clear error, and nothing is overwritten."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from metricsmith.errors import StoreError
from metricsmith.store import Key, Store, info, schema, verify
from stores import entry, fill, judgement

# Fills a store until the file may not grow any more; says how many judgements were in by then and what the error was.
FULL = """
import resource, signal, sys
from metricsmith.errors import StoreError
from metricsmith.records import Judgement
from metricsmith.store import Entry, Key, Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(sys.argv[1])
metric = store.metric("f", "clarity")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
kept = 0
try:
    for number in range(10_000):
        verdict = Judgement("clarity", number, 0.5, "word " * 100)
        store.exchange([Entry(Key(f"key-{number}", metric, 0), str(number), verdict)])
        kept += 1
except StoreError as problem:
    print(kept, problem)
    print(sum(len(store.read(f"key-{number}")) for number in range(10_000)))
    store.close()
"""

NOBODY = 65534
# Opens a store as a user who may not write there, to write and to read.
AS_NOBODY = f"""
import os, sys
from metricsmith.errors import StoreError
from metricsmith.store import Store
os.setgid({NOBODY})
os.setuid({NOBODY})
for read_only in (False, True):
    try:
        with Store(sys.argv[1], read_only=read_only) as store:
            print(store.read("key-r0001"))
    except StoreError as problem:
        print(problem)
"""
needs_root = pytest.mark.skipif(
    os.name != "posix" or os.getuid() != 0, reason="only root can act as a user who may not write"
)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def python(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_on_a_full_disk_what_was_stored_stays(tmp_path):
    path = tmp_path / "s.db"
    first, read = python(FULL, path)
    kept, message = first.split(" ", 1)
    assert int(kept) > 10
    assert int(read) == int(kept)  # nothing half-written, and the store still reads
    assert f"cannot write to the store {path}" in message
    assert "make room and run again" in message
    assert verify(path).ok
    with Store(path) as store:  # there is room again
        for number in range(int(kept)):
            assert store.judgement(f"key-{number}", 1, 0).raw == number
        store.exchange([entry("new", 1, judgement())])
        assert info(path).judgements == int(kept) + 1


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: path.write_text("id,score\na,1\n" * 50), "no SQLite file"),
        (lambda path: path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000), "no SQLite file"),
        (lambda path: edit_new(path, "CREATE TABLE notes (text TEXT)"), "SQLite file of another program"),
        (lambda path: edit_new(path, "PRAGMA application_id = 7"), "SQLite file of another program"),
        (lambda path: path.mkdir(), "is a folder"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_store_is_refused_and_left_as_it_is(tmp_path, write, says, read_only):
    path = tmp_path / "file"
    write(path)
    before = None if path.is_dir() else digest(path)
    with pytest.raises(StoreError, match=says):
        Store(path, read_only=read_only)
    if before is not None:
        assert digest(path) == before
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def edit_new(path, statement):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
        connection.execute("PRAGMA user_version = 0")


def test_a_store_of_a_later_version_is_refused(tmp_path):
    path = fill(tmp_path / "s.db")
    edit_new(path, f"PRAGMA application_id = {schema.APPLICATION_ID}")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = digest(path)
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"schema version 99.*up to 1; update metricsmith"):
            Store(path, read_only=read_only)
    assert digest(path) == before


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"no folder .*nowhere; make it first"):
        Store(tmp_path / "nowhere" / "s.db")
    with pytest.raises(StoreError, match="no such file"):
        Store(tmp_path / "s.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_store_but_is_none_yet(tmp_path):
    path = tmp_path / "s.db"
    path.touch()
    with pytest.raises(StoreError, match="it is empty"):
        Store(path, read_only=True)
    with Store(path) as store:
        store.exchange([entry("a", store.metric("f", "clarity"), judgement())])


def flip(path, start, stop):
    content = bytearray(path.read_bytes())
    content[int(len(content) * start) : int(len(content) * stop)] = os.urandom(
        int(len(content) * stop) - int(len(content) * start)
    )
    path.write_bytes(content)


def test_damage_in_the_middle_is_an_error_and_stays_as_it_is(tmp_path):
    path = fill(tmp_path / "s.db", rows=400)
    flip(path, 0.2, 0.9)
    before = digest(path)
    errors = []
    with Store(path, read_only=True) as store:
        for row in range(400):
            try:
                store.read(f"key-r{row:04d}")
            except StoreError as problem:
                errors.append(str(problem))
    assert errors
    assert all("it is damaged; nothing was overwritten" in error and "store verify" in error for error in errors)
    assert digest(path) == before
    again = [entry(f"r{row:04d}", 1, judgement()) for row in range(400)]
    with Store(path) as store, pytest.raises(StoreError, match="it is damaged"):
        store.exchange(again)
    assert digest(path) == before


def test_a_file_that_was_cut_short_is_refused(tmp_path):
    path = fill(tmp_path / "s.db", rows=400)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    before = digest(path)
    for read_only in (False, True):
        with pytest.raises(StoreError, match="it is damaged; nothing was overwritten"):
            Store(path, read_only=read_only)
    assert digest(path) == before


def test_read_only_reads_and_never_writes(tmp_path):
    path = fill(tmp_path / "s.db")
    before = digest(path)
    with Store(path, read_only=True) as store:
        assert len(store.read("key-r0001")) == 2
        assert store.judgement("key-r0001", 1, 0).raw == 2.0
        for write in (lambda: store.exchange([], [Key("k", 1, 0)]), lambda: store.prune(failures=True)):
            with pytest.raises(StoreError, match="opened read-only"):
                write()
        store.renew()
        store.release()
    assert digest(path) == before


def test_read_only_sees_what_another_store_writes(tmp_path):
    path = tmp_path / "s.db"
    with Store(path) as writer, Store(path, read_only=True) as reader:
        writer.exchange([entry("a", writer.metric("f", "clarity"), judgement())])
        assert len(reader.read("key-a")) == 1
        assert reader.judgement("key-a", 1, 0).metric == "clarity"


def as_nobody(folder):
    """The message of opening ``s.db`` in a folder that may not be written, first for writing, then for reading."""
    for place in [folder, *folder.parents]:
        if not place.stat().st_mode & 0o001:
            place.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    before = {file.name: digest(file) for file in folder.iterdir()}
    said = python(AS_NOBODY, folder / "s.db")
    assert {file.name: digest(file) for file in folder.iterdir()} == before
    return said


@needs_root
def test_in_a_read_only_folder_reading_works_and_writing_says_why_not(tmp_path):
    folder = tmp_path / "media"
    folder.mkdir()
    fill(folder / "s.db")
    message, read = as_nobody(folder)
    assert f"the store {folder / 's.db'}" in message
    assert "make file and folder writable" in message
    assert read == "[(1, 0, <Status.OK: 'ok'>, 2.0), (2, 0, <Status.OK: 'ok'>, 2.0)]"


@needs_root
def test_judgements_that_still_wait_beside_a_read_only_file_are_not_passed_over(tmp_path):
    live, copy = tmp_path / "live", tmp_path / "copy"
    live.mkdir()
    fill(live / "s.db")
    with Store(live / "s.db") as store:
        store.exchange([entry("new", 1, judgement())])
        shutil.copytree(live, copy, ignore=shutil.ignore_patterns("*-shm"))  # the last judgement is in s.db-wal alone
    _, read = as_nobody(copy)
    assert "its last judgements are still in s.db-wal; copy both files" in read


def test_a_store_that_another_process_holds_is_an_error_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "BUSY", 0.05)
    path = fill(tmp_path / "s.db")
    with Store(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process holds it"):
            store.exchange([entry("a", 1, judgement())])
        assert len(store.read("key-r0000")) == 2
        with pytest.raises(StoreError, match="another process holds it"):
            Store(path)
        other.execute("ROLLBACK")
        store.exchange([entry("a", 1, judgement())])
        assert len(store.read("key-a")) == 1


# Processes that start together open new stores one after the other; prints what they could not do.
TOGETHER = """
import multiprocessing, sys
from metricsmith.errors import StoreError
from metricsmith.store import Store

def work(folder, together):
    for number in range(15):
        together.wait()
        try:
            Store(f"{folder}/{number}.db").close()
        except StoreError as problem:
            print(problem, flush=True)

fork = multiprocessing.get_context("fork")
together = fork.Barrier(6)
workers = [fork.Process(target=work, args=(sys.argv[1], together)) for _ in range(6)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
    assert worker.exitcode == 0
"""


def test_six_processes_that_start_together_make_one_store_each_time(tmp_path):
    done = subprocess.run([sys.executable, "-c", TOGETHER, tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert all(verify(path).ok for path in tmp_path.glob("*.db"))
    assert len(list(tmp_path.glob("*.db"))) == 15


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_a_new_file_that_another_connection_holds_is_waited_for(tmp_path, journal):
    path = tmp_path / "s.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute(f"PRAGMA journal_mode = {journal}")
        other.execute("BEGIN EXCLUSIVE")
        held = 5 * schema.SLICE
        let_go = threading.Timer(held, other.execute, ["ROLLBACK"])
        started = time.monotonic()
        let_go.start()
        Store(path).close()
        let_go.join()
    assert time.monotonic() - started >= held


def test_a_new_file_that_is_never_let_go_is_an_error_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "BUSY", 0.3)
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="another process holds it"):
            Store(tmp_path / "s.db")
