"""The contents of a store in numbers, and deleting the judgements that nobody needs any more."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from metricsmith.errors import OptionError, StoreError, nearest
from metricsmith.records import Usage
from metricsmith.store import schema
from metricsmith.store.schema import DAMAGED, SCHEMA_VERSION, STATUSES, begin, connect, failing_clearly

__all__ = ["MetricInfo", "StoreInfo", "info", "prune"]

SHORTEST = 4  # characters of a fingerprint that say enough
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """One metric's judgements in a store.

    Parameters
    ----------
    name, fingerprint : str
        Metrics of one name differ in their fingerprints when their prompts, models or settings differ.
    counts : dict from str to int
        Judgements by status, as far as there are any.
    runs : int
        Repetitions: one more than the highest run.
    usage : Usage
        What these judgements cost when they were made; ``cost`` sums up the known prices, None if none is known.
        Attempts whose failures were replaced later are not in it.
    """

    name: str
    fingerprint: str
    counts: dict[str, int]
    runs: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """The contents of a store in numbers.

    Parameters
    ----------
    path : str
        The file.
    bytes : int
        Its size, with what waits beside it to be moved in.
    schema_version : int
    rows : int
        Rows that have at least one judgement.
    metrics : tuple of MetricInfo
        Those that have at least one judgement, by name.
    runs : int
        Repetitions: one more than the highest run.
    usage : Usage
        Over all metrics.
    first, last : datetime or None
        When the oldest and the newest judgement were written, in UTC; None in an empty store.
    """

    path: str
    bytes: int
    schema_version: int
    rows: int
    metrics: tuple[MetricInfo, ...]
    runs: int
    usage: Usage
    first: datetime | None
    last: datetime | None

    @property
    def judgements(self) -> int:
        """The number of judgements, failures included."""
        return sum(sum(metric.counts.values()) for metric in self.metrics)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-ready data; times in ISO 8601."""
        times = {"first": self.first and self.first.isoformat(), "last": self.last and self.last.isoformat()}
        return {**asdict(self), "judgements": self.judgements, **times}


def info(path: str | PathLike[str]) -> StoreInfo:
    """Count what a store holds; it is only read.

    Raises
    ------
    StoreError
        If it cannot be read.
    """
    file = Path(path)
    with failing_clearly(file, "read"), closing(connect(file, read_only=True)) as connection:
        connection.execute("BEGIN")
        known = connection.execute("SELECT id, name, fingerprint FROM metrics").fetchall()
        (rows,) = connection.execute("SELECT count(DISTINCT row) FROM judgements").fetchone()
        first, last = connection.execute("SELECT min(at), max(at) FROM judgements").fetchone()
        tallies = _tallies(connection, file)
    metrics = tuple(
        tallies[number].result(name, fingerprint)
        for name, fingerprint, number in sorted((name, fingerprint, number) for number, name, fingerprint in known)
        if number in tallies
    )
    beside = file.with_name(f"{file.name}-wal")
    return StoreInfo(
        path=str(file),
        bytes=file.stat().st_size + (beside.stat().st_size if beside.exists() else 0),
        schema_version=SCHEMA_VERSION,
        rows=rows,
        metrics=metrics,
        runs=max((metric.runs for metric in metrics), default=0),
        usage=sum((metric.usage for metric in metrics), Usage()),
        first=None if first is None else datetime.fromtimestamp(first, UTC),
        last=None if last is None else datetime.fromtimestamp(last, UTC),
    )


@dataclass(slots=True)
class _Tally:
    """Sums over the judgements of one metric: by status, and of what they cost in the order of `Usage`."""

    counts: Counter[int] = field(default_factory=Counter)
    runs: int = 0
    costs: list[float] = field(default_factory=lambda: [0, 0, 0, 0.0, 0.0])
    priced: bool = False

    def result(self, name: str, fingerprint: str) -> MetricInfo:
        """The tally in words and numbers."""
        requests, prompt, completion, cost, seconds = self.costs
        usage = Usage(int(requests), int(prompt), int(completion), cost if self.priced else None, seconds)
        counts = {status.value: self.counts[code] for code, status in STATUSES.items() if self.counts[code]}
        return MetricInfo(name, fingerprint, counts, self.runs, usage)


def _tallies(connection: sqlite3.Connection, path: Path) -> dict[int, _Tally]:
    tallies: dict[int, _Tally] = defaultdict(_Tally)
    for metric, run, status, value in connection.execute("SELECT metric, run, status, value FROM judgements"):
        tally = tallies[metric]
        try:
            tally.counts[status] += 1
            tally.runs = max(tally.runs, run + 1)
            for place, number in enumerate(json.loads(value)["usage"]):
                if number is not None:
                    tally.costs[place] += number
                    tally.priced = tally.priced or place == 3
        except (ValueError, KeyError, TypeError, IndexError) as problem:
            raise StoreError(
                f"cannot read the store {path}: an entry has a wrong form ({problem}); {DAMAGED}"
            ) from problem
    return tallies


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
        parts, values = ["1"], list[float]()
        if metrics:
            numbers = _numbers(connection, metrics)
            values += numbers
            parts.append(f"metric IN ({', '.join('?' * len(numbers))})")
        if failures:
            parts.append("status <> 0")
        if before is not None:
            parts.append("at < ?")
            values.append(before.timestamp())
        condition = " AND ".join(parts)
        if dry_run:
            query = f"SELECT count(*) FROM judgements WHERE {condition}"
            return int(connection.execute(query, values).fetchone()[0])
        (text,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if text != "ok":
            raise StoreError(f"cannot prune the store {file}: {' '.join(text.split())}; {DAMAGED}")
        deleted = _delete(connection, condition, values)
        try:
            connection.execute(f"PRAGMA busy_timeout = {schema.BUSY * 1000:.0f}")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as problem:  # what is deleted stays deleted
            logger.warning("the store %s was pruned but not made smaller: %s; prune it again later", file, problem)
    return deleted


def _numbers(connection: sqlite3.Connection, wanted: Sequence[str]) -> list[int]:
    """The numbers of the metrics of any of these names or beginnings of fingerprints."""
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
