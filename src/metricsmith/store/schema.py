"""The file of a store: its tables, the form of an entry in them, and how it is opened."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from metricsmith.errors import StoreError
from metricsmith.records import ErrorSpan, Judgement, Status, Usage

__all__ = [
    "CODES", "Entry", "Key", "SCHEMA_VERSION", "STATUSES", "begin", "checksum", "connect", "failing_clearly",
    "pack", "store_error", "unpack", "without_surrogates",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """The place of a judgement: the row's key, the metric's number in the store, and the run from 0.

    The row's key is text that UTF-8 can hold, without lone surrogates.
    """

    row: str
    metric: int
    run: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A judgement to keep, and its place; `row_id` is the row's own name, for people."""

    key: Key
    row_id: str
    judgement: Judgement


# Written into files: never renumber, only add.
CODES: dict[Status, int] = {
    Status.OK: 0, Status.UNPARSABLE: 1, Status.OUT_OF_RANGE: 2, Status.REFUSED: 3, Status.TRANSPORT: 4,
    Status.BUDGET: 5, Status.SKIPPED: 6,
}  # fmt: skip
STATUSES: dict[int, Status] = {code: status for status, code in CODES.items()}

_encode = json.JSONEncoder(allow_nan=False, check_circular=False).encode


def pack(judgement: Judgement) -> tuple[int, float | None, str]:
    """Turn a judgement into the status, the raw number and the JSON text of an entry.

    The text holds score, feedback, error, usage and, where there are any, spans; surrogates are escaped in it, so any
    text survives. What is not finite has no place in JSON and is kept as null.
    """
    usage = judgement.usage
    content: dict[str, Any] = {
        "score": _number(judgement.score),
        "feedback": judgement.feedback,
        "error": judgement.error,
        "usage": [
            int(usage.requests), int(usage.prompt_tokens), int(usage.completion_tokens), _number(usage.cost),
            _number(usage.seconds) or 0.0,
        ],
    }  # fmt: skip
    if judgement.spans:
        content["spans"] = [asdict(span) for span in judgement.spans]
    return CODES[judgement.status], _number(judgement.raw), _encode(content)


def unpack(name: str, run: int, status: int, raw: float | None, value: str) -> Judgement:
    """Turn the columns and the text of an entry, as `pack` made them, into a judgement.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the entry is damaged.
    """
    content: dict[str, Any] = json.loads(value)
    requests, prompt_tokens, completion_tokens, cost, seconds = content["usage"]
    return Judgement(
        metric=name,
        raw=raw,
        score=content["score"],
        feedback=content["feedback"],
        status=STATUSES[status],
        error=content["error"],
        run=run,
        usage=Usage(requests, prompt_tokens, completion_tokens, cost, seconds),
        spans=tuple(ErrorSpan(**span) for span in content.get("spans", ())),
    )


def checksum(row: int, metric: int, run: int, status: int, raw: float | None, value: str) -> int:
    """CRC-32 over a whole entry: SQLite itself does not notice a changed digit."""
    return zlib.crc32(f"{row} {metric} {run} {status} {raw!r} {value}".encode())


def without_surrogates(text: str) -> str:
    """The text with escapes for lone surrogates, which neither SQLite nor a file holds."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _number(value: float | None) -> float | None:
    """A plain float of any kind of number; None for what is not finite."""
    return float(value) + 0.0 if value is not None and math.isfinite(value) else None  # SQLite knows no -0.0


APPLICATION_ID = 0x4D534A31  # "MSJ1": what sets this kind of file apart from other SQLite files
SCHEMA_VERSION = 1
BUSY = 30.0  # seconds to wait for another process that is writing
SLICE = 0.1  # seconds of them that pass inside SQLite, where no interrupt is heard

_making = threading.Lock()

# All judgements of a row lie together, so that reading a row is one descent of the tree.
TABLES = """
CREATE TABLE rows (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, label TEXT NOT NULL);
CREATE TABLE metrics (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, name TEXT NOT NULL);
CREATE TABLE judgements (
    row INTEGER NOT NULL REFERENCES rows(id),
    metric INTEGER NOT NULL REFERENCES metrics(id),
    run INTEGER NOT NULL CHECK (run >= 0),
    status INTEGER NOT NULL,
    raw REAL CHECK ((raw IS NULL) = (status <> 0)),
    value TEXT NOT NULL,
    crc INTEGER NOT NULL,
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

# By the start of SQLite's name for what went wrong.
ADVICE = {
    "SQLITE_BUSY": "another process holds it; wait for that one, or end it",
    "SQLITE_LOCKED": "another process holds it; wait for that one, or end it",
    "SQLITE_FULL": "the disk is full or the file at its size limit; what was stored is safe, make room and run again",
    "SQLITE_IOERR": "the disk may be full or failing; what was stored is safe, make room and run again",
    "SQLITE_READONLY": "it may not be written to; make file and folder writable, or copy it elsewhere",
    "SQLITE_PERM": "it may not be written to; make file and folder writable, or copy it elsewhere",
    "SQLITE_CANTOPEN": "the file or its folder may not be opened; check the permissions of both, or name another place",
    "SQLITE_NOTADB": "it is no SQLite file, or its head is damaged; nothing was overwritten, name another file",
    "SQLITE_TOOBIG": "one value is larger than a file of this kind may hold",
    "SQLITE_CONSTRAINT": "an entry names a metric that is not registered or has no meaning; nothing was written",
    "SQLITE_NOMEM": "memory ran out; free some and run again",
}
DAMAGED = (
    "it is damaged; nothing was overwritten. `metricsmith store verify FILE` names the damage, "
    "`metricsmith store export FILE` saves the rest"
)


@contextmanager
def failing_clearly(path: Path, doing: str) -> Iterator[None]:
    """Turn what SQLite raises into a `StoreError` that says what to do; the file is left as it is."""
    try:
        yield
    except sqlite3.Error as problem:
        raise store_error(path, doing, problem) from problem


def store_error(path: Path, doing: str, problem: sqlite3.Error) -> StoreError:
    """The error that says what SQLite would not do with a store, and what to do about it."""
    name = getattr(problem, "sqlite_errorname", "") or ""
    advice = next((advice for start, advice in ADVICE.items() if name.startswith(start)), DAMAGED)
    if isinstance(problem, sqlite3.ProgrammingError):
        advice = "it was closed already; open it again"
    return StoreError(f"cannot {doing} the store {path}: {problem}; {advice}")


def connect(path: Path, *, read_only: bool, salvage: bool = False) -> sqlite3.Connection:
    """Open a store, making its file and tables if there are none.

    Parameters
    ----------
    path : Path
    read_only : bool
        Make and change nothing. On read-only media, where the files that writers share cannot be made, the file
        is taken for one that nobody changes.
    salvage : bool
        With `read_only`: open a file that is too short or whose texts are not UTF-8, to save what can be read.

    Raises
    ------
    StoreError
        If that cannot be done, or the file is of another kind or a later version.
    """
    _check_place(path, read_only)
    if not read_only:
        # A new file is its owner's alone; SQLite gives -wal and -shm the same mode. One thread at a time, because
        # closing a file drops the locks that this process holds on it. SQLite says what is wrong with the place.
        with _making, suppress(OSError):
            os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with failing_clearly(path, "open"):
        connection = _reader(path, salvage) if read_only else _session(path, "rwc", salvage=False)
        try:
            _check(connection, path, read_only)
            if not read_only:
                _make_ready(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def begin(connection: sqlite3.Connection, patience: float) -> None:
    """Begin to write, waiting for another process for at most so many seconds."""
    _waiting(lambda: connection.execute("BEGIN IMMEDIATE"), patience)


def _waiting(action: Callable[[], Any], patience: float) -> Any:
    """Return the result of `action`, repeated for at most `patience` seconds while another process holds the file."""
    until = time.monotonic() + patience
    while True:
        try:
            return action()
        except sqlite3.OperationalError as problem:
            if not problem.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > until:
                raise
            time.sleep(0.01)  # SQLite itself does not always wait


def _check_place(path: Path, read_only: bool) -> None:
    try:
        if path.is_dir():
            raise StoreError(f"cannot open the store {path}: it is a folder; name a file")
        if not path.parent.is_dir():
            raise StoreError(f"cannot open the store {path}: there is no folder {path.parent}; make it first")
        if read_only and not path.is_file():
            raise StoreError(f"cannot open the store {path}: there is no such file; `score(..., store=...)` writes one")
    except OSError as problem:
        raise StoreError(
            f"cannot open the store {path}: {problem.strerror}; check the permissions of its folders"
        ) from problem


def _session(path: Path, mode: str, *, salvage: bool) -> sqlite3.Connection:
    option = "immutable=1" if mode == "immutable" else f"mode={mode}"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{option}",
        uri=True,
        timeout=SLICE if mode == "rwc" else BUSY,
        isolation_level=None,
        check_same_thread=False,
    )
    if salvage:
        connection.execute("PRAGMA writable_schema = ON")  # lifts the check that the file is as long as its head says
        connection.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
    return connection


def _reader(path: Path, salvage: bool) -> sqlite3.Connection:
    connection = _session(path, "ro", salvage=salvage)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as problem:
        connection.close()
        if not problem.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
            raise
        journal = path.with_name(f"{path.name}-wal")
        if journal.exists() and journal.stat().st_size:
            raise StoreError(
                f"cannot read the store {path} where nothing can be written: its last judgements are still in "
                f"{journal.name}; copy both files to a folder that can be written to and open that copy"
            ) from problem
        return _session(path, "immutable", salvage=salvage)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path, only_read: bool) -> None:
    """Refuse a file that is no store; to write, an empty file will do."""
    kind, version, tables = _waiting(lambda: _head(connection), BUSY)
    if (tables or kind) and kind != APPLICATION_ID:
        raise StoreError(f"{path} is a SQLite file of another program, not a store of judgements; name another file")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"the store {path} has schema version {version}, this version of metricsmith knows up to "
            f"{SCHEMA_VERSION}; update metricsmith"
        )
    if only_read and not tables:
        raise StoreError(f"{path} holds no judgements: it is empty; `score(..., store=...)` writes one")


def _head(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """The kind and version of the file and its number of tables, all of one moment: another process may make them."""
    connection.execute("BEGIN")
    try:
        (kind,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    finally:
        if connection.in_transaction:  # some errors have ended it
            connection.execute("ROLLBACK")
    return kind, version, tables


def _make_ready(connection: sqlite3.Connection) -> None:
    """Switch to WAL and make the tables; a file that cannot be written fails here, not at the first judgement."""
    _waiting(lambda: connection.execute("PRAGMA journal_mode = WAL"), BUSY)
    connection.execute("PRAGMA synchronous = FULL")  # a committed judgement survives a loss of power too
    connection.execute("PRAGMA foreign_keys = ON")
    begin(connection, BUSY)
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        for statement in TABLES.split(";")[:-1]:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
