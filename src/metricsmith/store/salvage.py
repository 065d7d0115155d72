"""Every entry of a store one after another, as many as can be read, each with what is wrong with it."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from metricsmith.records import Judgement, Status
from metricsmith.store.values import STATUSES, checksum, unpack

__all__ = ["Record", "Unreadable", "damage", "records"]

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
