"""Stores to test with: filled ones, and damage done to them as a disk or another program would."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from metricsmith.records import Judgement, Status, Usage
from metricsmith.store import Entry, Key, Store

__all__ = ["edit", "entry", "fill", "judgement"]


def judgement(raw=3.0, name="clarity", *, run=0, status=Status.OK, feedback="", error="", usage=None):
    """A verdict on a scale from 1 to 5, or a failure where `status` is one."""
    usage = usage or Usage(1, 10, 2, 0.5, 0.25)
    if status is not Status.OK:
        return Judgement(name, status=status, error=error or "no luck", run=run, usage=usage)
    return Judgement(name, raw=raw, score=(raw - 1) / 4, feedback=feedback, run=run, usage=usage)


def entry(row, metric, verdict):
    """The entry kept of row `row` (a short name), whose key is ``key-<row>``."""
    return Entry(Key(f"key-{row}", metric, verdict.run), row, verdict)


def fill(path, rows=20, metrics=("clarity", "brevity"), runs=1, feedback="as it should be"):
    """Fill a store: row ``r0007`` has 1 + 7 % 5 from every metric and run."""
    with Store(path) as store:
        numbers = [store.metric(f"fingerprint-{name}", name) for name in metrics]
        for row in range(rows):
            verdicts = [
                (number, judgement(1.0 + row % 5, name, run=run, feedback=f"{feedback} {row} {run}"))
                for number, name in zip(numbers, metrics, strict=True)
                for run in range(runs)
            ]
            store.exchange([entry(f"r{row:04d}", number, verdict) for number, verdict in verdicts])
    return path


def edit(path, statement, *values):
    """Change a store behind the package's back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        changed = connection.execute(statement, values).rowcount
        assert changed, f"{statement} changed nothing"
