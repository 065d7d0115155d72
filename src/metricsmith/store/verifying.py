"""Whether a store is whole, and what in it is not."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from metricsmith.errors import StoreError
from metricsmith.records import Judgement, Status
from metricsmith.store.schema import STATUSES, checksum, connect, unpack

__all__ = ["Damage", "Record", "Unreadable", "Verified", "damage", "records", "verify"]

COLUMNS = "j.row, j.metric, j.run, j.status, j.raw, j.value, j.crc, j.at"
ALL = (
    f"SELECT {COLUMNS}, rows.key, rows.label FROM judgements AS j LEFT JOIN rows ON rows.id = j.row "
    "ORDER BY j.row, j.metric, j.run"
)
ONE_ROW = f"SELECT {COLUMNS} FROM judgements AS j WHERE j.row = ? ORDER BY j.metric, j.run"


@dataclass(frozen=True, slots=True)
class Record:
    """One entry as it lies in the file; in a damaged file any value may be of any type.

    ``key``, ``label``, ``fingerprint`` and ``name`` are None where the row or the metric is not there.
    """

    row: Any
    metric: Any
    run: Any
    status: Any
    raw: Any
    value: Any
    crc: Any
    at: Any
    key: str | None
    label: str | None
    fingerprint: str | None
    name: str | None

    def judgement(self) -> Judgement:
        """The judgement of a record without damage."""
        return unpack(self.name or "", self.run, self.status, self.raw, self.value)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row whose judgements, or the rest of them, lie on damaged pages; None for all that follow."""

    row: int | None
    label: str | None
    reason: str


def records(connection: sqlite3.Connection) -> Iterator[Record | Unreadable]:
    """Every entry by row, metric and run, in bounded memory.

    Where pages are damaged, row by row, so that only what lies on them is missing.

    Parameters
    ----------
    connection : sqlite3.Connection
        Opened with ``connect(path, read_only=True, salvage=True)``.
    """
    metrics = _metrics(connection)
    last: tuple[Any, ...] | None = None
    try:
        for found in connection.execute(ALL):
            last = found[:3]
            yield _record(found, metrics)
    except sqlite3.DatabaseError as problem:
        yield from _row_by_row(connection, metrics, last, problem)


def damage(record: Record) -> str:
    """What is wrong with an entry; empty if nothing is."""
    if record.status not in STATUSES:
        return f"status {record.status!r} is unknown"
    finite = isinstance(record.raw, float) and math.isfinite(record.raw)
    if STATUSES[record.status] is Status.OK and not finite:
        return f"status ok without a finite number (raw is {record.raw!r})"
    if STATUSES[record.status] is not Status.OK and record.raw is not None:
        return f"status {STATUSES[record.status]} with the number {record.raw!r}"
    if not isinstance(record.run, int) or record.run < 0:
        return f"run {record.run!r} is no number from 0"
    if record.key is None:
        return f"its row {record.row!r} is not registered"
    if record.name is None:
        return f"its metric {record.metric!r} is not registered"
    if not isinstance(record.at, float) or not math.isfinite(record.at):
        return f"its time {record.at!r} is none"
    return _wrong_value(record)


def _wrong_value(record: Record) -> str:
    try:
        judgement = record.judgement()
    except json.JSONDecodeError as problem:
        return f"its value is no JSON ({problem})"
    except (ValueError, KeyError, TypeError) as problem:
        return f"its value lacks something or has a wrong form ({type(problem).__name__}: {problem})"
    usage = judgement.usage
    texts = judgement.feedback, judgement.error
    counts = usage.requests, usage.prompt_tokens, usage.completion_tokens
    numbers = [number for number in (judgement.score, usage.cost, usage.seconds) if number is not None]
    if not (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(count, int) for count in counts)
        and all(isinstance(number, float | int) for number in numbers)
    ):
        return "its value has a number where there should be text, or text for a number"
    if checksum(record.row, record.metric, record.run, record.status, record.raw, record.value) != record.crc:
        return "its number or text was changed (the checksum does not match)"
    return ""


def _record(found: tuple[Any, ...], metrics: Mapping[Any, tuple[str | None, str | None]]) -> Record:
    row, metric, run, status, raw, value, crc, at, key, label = found
    return Record(row, metric, run, status, raw, value, crc, at, key, label, *metrics.get(metric, (None, None)))


def _metrics(connection: sqlite3.Connection) -> dict[Any, tuple[str | None, str | None]]:
    try:
        return {
            number: (fingerprint, name) for number, fingerprint, name in connection.execute("SELECT * FROM metrics")
        }
    except sqlite3.DatabaseError:
        return {}


def _row_by_row(
    connection: sqlite3.Connection,
    metrics: Mapping[Any, tuple[str | None, str | None]],
    last: tuple[Any, ...] | None,
    problem: sqlite3.DatabaseError,
) -> Iterator[Record | Unreadable]:
    highest = max(
        _highest(connection, "SELECT max(id) FROM rows"), _highest(connection, "SELECT max(row) FROM judgements")
    )
    first = 1 if last is None else int(last[0])
    if highest < first:
        yield Unreadable(None, None, str(problem))
    for row in range(first, highest + 1):
        key, label = _row(connection, row)
        try:
            for found in connection.execute(ONE_ROW, (row,)):
                if last is None or found[:3] > last:
                    yield _record((*found, key, label), metrics)
        except sqlite3.DatabaseError as trouble:
            yield Unreadable(row, label, str(trouble))


def _row(connection: sqlite3.Connection, row: int) -> tuple[str | None, str | None]:
    try:
        return connection.execute("SELECT key, label FROM rows WHERE id = ?", (row,)).fetchone() or (None, None)
    except sqlite3.DatabaseError:
        return None, None


def _highest(connection: sqlite3.Connection, query: str) -> int:
    try:
        (number,) = connection.execute(query).fetchone()
    except sqlite3.DatabaseError:
        return 0
    return number if isinstance(number, int) else 0


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong in a store.

    Parameters
    ----------
    what : str
        What is wrong, in words.
    row, metric : str
        The row's own name (its key where it has none) and the metric's; empty if the damage is not one entry's.
    run : int or None
        The repetition.
    """

    what: str
    row: str = ""
    metric: str = ""
    run: int | None = None

    def __str__(self) -> str:
        parts = [f"row {self.row}" if self.row else "", f"metric {self.metric}" if self.metric else ""]
        place = ", ".join([*filter(None, parts), *([] if self.run is None else [f"run {self.run}"])])
        return f"{place or 'file'}: {self.what}"


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found.

    Parameters
    ----------
    path : str
        The store.
    judgements : int
        Entries that were read, whole or not.
    damaged : int
        How many of them are not whole.
    unreadable : int
        Rows of which some entries could not be read.
    complaints : int
        What SQLite says about the file's structure, counted up to the limit.
    damages : tuple of Damage
        The first ones of each kind, up to the limit.
    """

    path: str
    judgements: int
    damaged: int
    unreadable: int
    complaints: int
    damages: tuple[Damage, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.damaged or self.unreadable or self.complaints)

    def __str__(self) -> str:
        if self.ok:
            return f"{self.path}: {self.judgements} judgements, all whole"
        return (
            f"{self.path}: {self.judgements} judgements read, {self.damaged} of them damaged; "
            f"{self.unreadable} rows cannot be read in full; SQLite has {self.complaints} complaints about the file"
        )


def verify(path: str | PathLike[str], *, limit: int = 100) -> Verified:
    """Check a store from end to end; it is only read.

    SQLite checks its pages and indexes. Then every entry is read: its status is known, it has a finite number
    exactly if its status is ok, its row and metric are registered, its JSON has the right form, and nothing in it
    changed since it was written (a checksum).

    Parameters
    ----------
    path : path
        The store.
    limit : int
        How many complaints of SQLite, and how many damaged entries or rows, are named; all are counted.

    Returns
    -------
    Verified

    Raises
    ------
    StoreError
        If there is no such file, it is no store, or of a later version. A damaged one is reported instead.
    """
    try:
        connection = connect(Path(path), read_only=True, salvage=True)
    except StoreError as problem:
        if not _corrupt(problem.__cause__):
            raise
        return Verified(str(path), 0, 0, 0, 1, (Damage(f"it cannot be opened ({problem.__cause__})"),))
    with closing(connection):
        named = [Damage(text) for text in _integrity(connection, limit)]
        complaints = len(named)
        judgements = damaged = unreadable = 0
        for record in records(connection):
            if isinstance(record, Unreadable):
                unreadable += 1
                where = "" if record.row is None else record.label or f"number {record.row}"
                found = Damage(f"some of it cannot be read ({record.reason})", where)
            else:
                judgements += 1
                what = damage(record)
                if not what:
                    continue
                damaged += 1
                found = Damage(
                    what, record.label or record.key or f"number {record.row}", record.name or "", record.run
                )
            if damaged + unreadable <= limit:
                named.append(found)
    return Verified(str(path), judgements, damaged, unreadable, complaints, tuple(named))


def _integrity(connection: sqlite3.Connection, limit: int) -> list[str]:
    try:
        found = connection.execute(f"PRAGMA integrity_check({int(limit)})").fetchall()
    except sqlite3.DatabaseError as problem:
        return [f"SQLite's own check ends with: {problem}"]
    return [line for (text,) in found if text != "ok" for line in text.splitlines()][:limit]


def _corrupt(problem: BaseException | None) -> bool:
    return isinstance(problem, sqlite3.Error) and (getattr(problem, "sqlite_errorname", "") or "").startswith(
        "SQLITE_CORRUPT"
    )
