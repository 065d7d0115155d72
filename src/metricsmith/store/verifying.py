"""Whether a store is whole, and what in it is not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from metricsmith.errors import StoreError
from metricsmith.store.salvage import Unreadable, damage, records
from metricsmith.store.schema import connect

__all__ = ["Damage", "Verified", "verify"]


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
