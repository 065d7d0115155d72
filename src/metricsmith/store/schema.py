"""The tables of a store and how its file is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metricsmith.errors import StoreError

__all__ = ["SCHEMA_VERSION", "connect", "failing_clearly"]

APPLICATION_ID = 0x4D534A31  # "MSJ1": what sets this kind of file apart from other SQLite files
SCHEMA_VERSION = 1
BUSY = 30.0  # seconds to wait for another process that is writing

# All judgements of a row lie together, so that reading a row is one descent of the tree.
TABLES = """
CREATE TABLE rows (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, label TEXT NOT NULL);
CREATE TABLE metrics (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, name TEXT NOT NULL);
CREATE TABLE judgements (
    row INTEGER NOT NULL REFERENCES rows(id),
    metric INTEGER NOT NULL REFERENCES metrics(id),
    run INTEGER NOT NULL,
    status INTEGER NOT NULL,
    raw REAL,
    value TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (row, metric, run)
) WITHOUT ROWID;
CREATE TABLE claims (
    key TEXT NOT NULL,
    metric INTEGER NOT NULL,
    run INTEGER NOT NULL,
    owner TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (key, metric, run)
) WITHOUT ROWID;
"""


@contextmanager
def failing_clearly(path: Path, doing: str) -> Iterator[None]:
    """Turn what SQLite raises into a `StoreError` that says what to do; the file is left as it is."""
    try:
        yield
    except sqlite3.Error as problem:
        raise StoreError(f"cannot {doing} the store {path}: {problem}; {_advice(problem)}") from problem


def _advice(problem: sqlite3.Error) -> str:
    code = getattr(problem, "sqlite_errorname", "") or ""
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "another process holds it; wait for that one, or end it"
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return "the disk may be full or the file at its size limit; what was stored is safe, make room and run again"
    if code.startswith(("SQLITE_READONLY", "SQLITE_PERM")):
        return "it may not be written to; make file and folder writable, or copy it elsewhere"
    if code.startswith("SQLITE_CANTOPEN"):
        return "the file or its folder is missing or may not be opened; name another place"
    if code.startswith("SQLITE_NOTADB"):
        return "it is no SQLite file, or its head is damaged; nothing was overwritten, name another file"
    return (
        "it is damaged; nothing was overwritten. `metricsmith store verify` names the damage, `export` saves the rest"
    )


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Open a store, making its file and tables if there are none.

    Raises
    ------
    StoreError
        If that cannot be done, or the file is of another kind or a later version.
    """
    if not read_only and not path.parent.is_dir():
        raise StoreError(f"cannot open the store {path}: there is no folder {path.parent}; make it first")
    if read_only and not path.is_file():
        raise StoreError(f"cannot open the store {path}: there is no such file; `score(..., store=...)` writes one")
    if path.is_dir():
        raise StoreError(f"cannot open the store {path}: it is a folder; name a file")
    with failing_clearly(path, "open"):
        connection = _opened(path, read_only)
        try:
            _check(connection, path, read_only)
        except BaseException:
            connection.close()
            raise
    return connection


def _opened(path: Path, read_only: bool) -> sqlite3.Connection:
    if not read_only:
        return sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    uri = path.absolute().as_uri()
    connection = sqlite3.connect(
        f"{uri}?mode=ro", uri=True, timeout=BUSY, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:  # on read-only media there can be no shared memory beside the file
        connection.close()
        connection = sqlite3.connect(f"{uri}?immutable=1", uri=True, isolation_level=None, check_same_thread=False)
    return connection


def _check(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and kind != APPLICATION_ID:
        raise StoreError(f"{path} is a SQLite file of another program, not a store of judgements; name another file")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"the store {path} has schema version {version}, this version of metricsmith reads up to {SCHEMA_VERSION}; "
            "update metricsmith"
        )
    if read_only:
        if not tables:
            raise StoreError(f"{path} holds no judgements: it is empty; `score(..., store=...)` writes one")
        return
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # a committed judgement survives a loss of power too
    if not tables:
        connection.execute("BEGIN IMMEDIATE")
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:  # nobody was faster
            for statement in TABLES.split(";")[:-1]:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    else:
        connection.execute("BEGIN IMMEDIATE")  # finds out now, not at the first judgement, whether it can be written
        connection.execute("ROLLBACK")
