"""What a store holds, in numbers."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from metricsmith.errors import StoreError
from metricsmith.records import Usage
from metricsmith.store.schema import DAMAGED, SCHEMA_VERSION, connect, failing_clearly
from metricsmith.store.values import STATUSES

__all__ = ["MetricInfo", "StoreInfo", "info"]


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
    """What a store holds.

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
        """How many judgements there are, failures included."""
        return sum(sum(metric.counts.values()) for metric in self.metrics)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-ready data; times in ISO 8601."""
        times = {"first": self.first and self.first.isoformat(), "last": self.last and self.last.isoformat()}
        return {**asdict(self), "judgements": self.judgements, **times}


class _Tally:
    """Sums over the judgements of one metric."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = defaultdict(int)
        self.runs = 0
        self.sums = [0, 0, 0, 0.0, 0.0]
        self.priced = False

    def add(self, run: int, status: int, value: str) -> None:
        self.counts[status] += 1
        self.runs = max(self.runs, run + 1)
        for place, number in enumerate(json.loads(value)["usage"]):
            if number is not None:
                self.sums[place] += number
                self.priced = self.priced or place == 3

    def result(self, fingerprint: str, name: str) -> MetricInfo:
        requests, prompt, completion, cost, seconds = self.sums
        usage = Usage(int(requests), int(prompt), int(completion), cost if self.priced else None, seconds)
        counts = {status.value: self.counts[code] for code, status in STATUSES.items() if self.counts[code]}
        return MetricInfo(name, fingerprint, counts, self.runs, usage)


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
        names = {
            number: (fingerprint, name) for number, fingerprint, name in connection.execute("SELECT * FROM metrics")
        }
        (rows,) = connection.execute("SELECT count(DISTINCT row) FROM judgements").fetchone()
        first, last = connection.execute("SELECT min(at), max(at) FROM judgements").fetchone()
        tallies = _tallies(connection, file)
        metrics = tuple(sorted((tallies[n].result(*names[n]) for n in names if n in tallies), key=_order))
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


def _tallies(connection: sqlite3.Connection, path: Path) -> dict[int, _Tally]:
    tallies: dict[int, _Tally] = defaultdict(_Tally)
    for metric, run, status, value in connection.execute("SELECT metric, run, status, value FROM judgements"):
        try:
            tallies[metric].add(run, status, value)
        except (ValueError, KeyError, TypeError, IndexError) as problem:
            raise StoreError(
                f"cannot read the store {path}: an entry has a wrong form ({problem}); {DAMAGED}"
            ) from problem
    return tallies


def _order(metric: MetricInfo) -> tuple[str, str]:
    return metric.name, metric.fingerprint
