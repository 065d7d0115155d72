"""Deleting judgements that nobody needs any more."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from os import PathLike
from pathlib import Path

from metricsmith.errors import OptionError, StoreError, nearest
from metricsmith.store import schema
from metricsmith.store.schema import DAMAGED, begin, connect, failing_clearly

__all__ = ["prune"]

SHORTEST = 4  # characters of a fingerprint that say enough
logger = logging.getLogger(__name__)


def prune(
    path: str | PathLike[str],
    *,
    metrics: Sequence[str] = (),
    failures: bool = False,
    before: datetime | None = None,
    dry_run: bool = False,
) -> int:
    """Delete the judgements that meet all of the given conditions, then give their space back.

    Parameters
    ----------
    path : path
        The store. Processes that score may go on; what is deleted under them is asked again by their next run.
    metrics : sequence of str
        Names of metrics, or the first four or more characters of fingerprints; those of any of them.
    failures : bool
        Only what has no number.
    before : datetime, optional
        Only what was written before; local time where it has no zone.
    dry_run : bool
        Only count.

    Returns
    -------
    int
        How many were deleted, or would be.

    Raises
    ------
    OptionError
        If there is no condition at all, or no such metric.
    StoreError
        If the store cannot be read or written, or its pages are damaged: then it is left as it is.
    """
    if isinstance(metrics, str):
        metrics = (metrics,)
    if not metrics and not failures and before is None:
        raise OptionError(
            "prune needs at least one condition, or it would delete everything: name metrics, failures or a time"
        )
    file = Path(path)
    if not file.exists():
        raise StoreError(f"cannot open the store {file}: there is no such file; name one that exists")
    with failing_clearly(file, "prune"), closing(connect(file, read_only=dry_run)) as connection:
        condition, values = _condition(connection, metrics, failures, before)
        if dry_run:
            query = f"SELECT count(*) FROM judgements WHERE {condition}"
            return int(connection.execute(query, values).fetchone()[0])
        _check_whole(connection, file)
        deleted = _delete(connection, condition, values)
        _give_space_back(connection, file)
    return deleted


def _condition(
    connection: sqlite3.Connection, metrics: Sequence[str], failures: bool, before: datetime | None
) -> tuple[str, list[float]]:
    parts, values = ["1"], list[float]()
    if metrics:
        numbers = _numbers(connection, metrics)
        parts.append(f"metric IN ({', '.join('?' * len(numbers))})")
        values += numbers
    if failures:
        parts.append("status <> 0")
    if before is not None:
        parts.append("at < ?")
        values.append(before.timestamp())
    return " AND ".join(parts), values


def _numbers(connection: sqlite3.Connection, wanted: Sequence[str]) -> list[int]:
    known = connection.execute("SELECT id, fingerprint, name FROM metrics").fetchall()
    numbers: set[int] = set()
    for text in wanted:
        found = {
            number
            for number, fingerprint, name in known
            if text == name or (len(text) >= SHORTEST and fingerprint.startswith(text))
        }
        if not found:
            names = sorted({name for _, _, name in known})
            raise OptionError(
                f"the store holds no metric {text!r}{nearest(text, names)}; it holds {', '.join(names) or 'none'}: "
                f"give a name, or {SHORTEST} or more characters of a fingerprint"
            )
        numbers |= found
    return sorted(numbers)


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    (text,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if text != "ok":
        raise StoreError(f"cannot prune the store {path}: {' '.join(text.split())}; {DAMAGED}")


def _delete(connection: sqlite3.Connection, condition: str, values: Sequence[float]) -> int:
    begin(connection, schema.BUSY)
    try:
        deleted = connection.execute(f"DELETE FROM judgements WHERE {condition}", values).rowcount
        # Metrics keep their numbers: runs that go on know them.
        connection.execute("DELETE FROM rows WHERE NOT EXISTS (SELECT 1 FROM judgements WHERE row = rows.id)")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return deleted


def _give_space_back(connection: sqlite3.Connection, path: Path) -> None:
    """Shrink the file; what is deleted stays deleted where that fails."""
    try:
        connection.execute(f"PRAGMA busy_timeout = {schema.BUSY * 1000:.0f}")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as problem:
        logger.warning("the store %s was pruned but not made smaller: %s; prune it again later", path, problem)
