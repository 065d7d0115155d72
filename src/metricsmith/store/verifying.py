"""One pass over all entries of a store that may be damaged: each is read or named with its damage."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from metricsmith.errors import StoreError
from metricsmith.records import Judgement, Status
from metricsmith.store.schema import STATUSES, checksum, connect, unpack

__all__ = ["Damage", "Record", "Verified", "records", "verify"]

COLUMNS = "j.row, j.metric, j.run, j.status, j.raw, j.value, j.crc, j.at"
ALL = (
    f"SELECT {COLUMNS}, rows.key, rows.label FROM judgements AS j LEFT JOIN rows ON rows.id = j.row "
    "ORDER BY j.row, j.metric, j.run"
)
ONE_ROW = f"SELECT {COLUMNS} FROM judgements AS j WHERE j.row = ? ORDER BY j.metric, j.run"


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
class Record:
    """One entry as far as it can be read, or a row of which some entries cannot.

    Parameters
    ----------
    judgement : Judgement or None
        None if the entry is damaged.
    damage : Damage or None
        None if the entry is whole.
    row_id, row_key, fingerprint : str or None
        The row's own name and key, and the metric's fingerprint; None where row or metric are not registered.
    at : float
        When it was written, in seconds since 1970; NaN if the entry is damaged.
    lost : bool
        True for a row whose judgements, or the rest of them, lie on damaged pages.
    """

    judgement: Judgement | None
    damage: Damage | None
    row_id: str | None = None
    row_key: str | None = None
    fingerprint: str | None = None
    at: float = math.nan
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of `verify`.

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
        """True if nothing is wrong."""
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
        cause = problem.__cause__
        if not (getattr(cause, "sqlite_errorname", "") or "").startswith("SQLITE_CORRUPT"):
            raise
        return Verified(str(path), 0, 0, 0, 1, (Damage(f"it cannot be opened ({cause})"),))
    with closing(connection):
        damages = [Damage(text) for text in _integrity(connection, limit)]
        complaints = len(damages)
        judgements = damaged = lost = 0
        for record in records(connection):
            judgements += not record.lost
            if record.damage is not None:
                lost += record.lost
                damaged += not record.lost
                if damaged + lost <= limit:
                    damages.append(record.damage)
    return Verified(str(path), judgements, damaged, lost, complaints, tuple(damages))


def _integrity(connection: sqlite3.Connection, limit: int) -> list[str]:
    """The complaints of SQLite about the pages and indexes of its file."""
    try:
        found = connection.execute(f"PRAGMA integrity_check({int(limit)})").fetchall()
    except sqlite3.DatabaseError as problem:
        return [f"SQLite's own check ends with: {problem}"]
    return [line for (text,) in found if text != "ok" for line in text.splitlines()][:limit]


def records(connection: sqlite3.Connection) -> Iterator[Record]:
    """Yield every entry by row, metric and run, in bounded memory.

    Where pages are damaged, row by row, so that only what lies on them is missing.

    Parameters
    ----------
    connection : sqlite3.Connection
        Opened with ``connect(path, read_only=True, salvage=True)``.
    """
    found = _rows(connection, "SELECT id, fingerprint, name FROM metrics")
    metrics = {number: (fingerprint, name) for number, fingerprint, name in found}
    row, read = None, set[tuple[Any, Any]]()
    try:
        for *entry, key, label in connection.execute(ALL):
            if entry[0] != row:
                row, read = entry[0], set()
            read.add((entry[1], entry[2]))
            yield _record(entry, key, label, metrics)
    except sqlite3.DatabaseError as problem:
        yield from _row_by_row(connection, metrics, row, read, problem)


def _row_by_row(
    connection: sqlite3.Connection,
    metrics: Mapping[Any, tuple[str, str]],
    last: Any,
    read: set[tuple[Any, Any]],
    problem: sqlite3.DatabaseError,
) -> Iterator[Record]:
    """Yield the entries behind those `read` of the `last` row, each row by a search of its own."""
    ends = [*_rows(connection, "SELECT max(id) FROM rows"), *_rows(connection, "SELECT max(row) FROM judgements")]
    highest = max((number for (number,) in ends if isinstance(number, int)), default=0)
    first = last if isinstance(last, int) else 1
    if highest < first:
        yield Record(None, Damage(f"some of it cannot be read ({problem})"), lost=True)
    for row in range(first, highest + 1):
        ((key, label),) = _rows(connection, "SELECT key, label FROM rows WHERE id = ?", row) or [(None, None)]
        try:
            for entry in connection.execute(ONE_ROW, (row,)):
                if row != last or (entry[1], entry[2]) not in read:
                    yield _record(entry, key, label, metrics)
        except sqlite3.DatabaseError as trouble:
            yield Record(None, Damage(f"some of it cannot be read ({trouble})", label or f"number {row}"), lost=True)


def _rows(connection: sqlite3.Connection, query: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows that a query finds; none if it meets damage."""
    try:
        return connection.execute(query, values).fetchall()
    except sqlite3.DatabaseError:
        return []


def _record(entry: Sequence[Any], key: str | None, label: str | None, metrics: Mapping[Any, tuple[str, str]]) -> Record:
    """Check an entry, given as `COLUMNS`; in a damaged file any value may be of any type."""
    fingerprint, name = metrics.get(entry[1], (None, None))
    wrong, judgement = _wrong_columns(entry, key, name), None
    if not wrong:
        wrong, judgement = _decoded(entry, name or "")
    if wrong:
        return Record(None, Damage(wrong, label or key or f"number {entry[0]}", name or "", entry[2]))
    return Record(judgement, None, label, key, fingerprint, entry[7])


def _wrong_columns(entry: Sequence[Any], key: str | None, name: str | None) -> str:
    """The first thing wrong with the columns of an entry; empty if nothing is."""
    row, metric, run, status, raw, _, _, at = entry
    if status not in STATUSES:
        return f"status {status!r} is unknown"
    if STATUSES[status] is Status.OK and not (isinstance(raw, float) and math.isfinite(raw)):
        return f"status ok without a finite number (raw is {raw!r})"
    if STATUSES[status] is not Status.OK and raw is not None:
        return f"status {STATUSES[status]} with the number {raw!r}"
    if not isinstance(run, int) or run < 0:
        return f"run {run!r} is no number from 0"
    if key is None:
        return f"its row {row!r} is not registered"
    if name is None:
        return f"its metric {metric!r} is not registered"
    if not isinstance(at, float) or not math.isfinite(at):
        return f"its time {at!r} is none"
    return ""


def _decoded(entry: Sequence[Any], name: str) -> tuple[str, Judgement | None]:
    """The first thing wrong with the value of an entry, empty if nothing is, and its judgement."""
    row, metric, run, status, raw, value, crc, _ = entry
    try:
        judgement = unpack(name, run, status, raw, value)
    except json.JSONDecodeError as problem:
        return f"its value is no JSON ({problem})", None
    except (ValueError, KeyError, TypeError) as problem:
        return f"its value lacks something or has a wrong form ({type(problem).__name__}: {problem})", None
    usage = judgement.usage
    texts = judgement.feedback, judgement.error
    counts = usage.requests, usage.prompt_tokens, usage.completion_tokens
    numbers = [number for number in (judgement.score, usage.cost, usage.seconds) if number is not None]
    if not (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(count, int) for count in counts)
        and all(isinstance(number, float | int) for number in numbers)
    ):
        return "its value has a number where there should be text, or text for a number", None
    if checksum(row, metric, run, status, raw, value) != crc:
        return "its number or text was changed (the checksum does not match)", None
    return "", judgement
