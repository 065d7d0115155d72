"""The store itself: reading rows, writing what is finished, and telling processes who works on what."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from metricsmith.errors import StoreError
from metricsmith.records import Judgement, Status
from metricsmith.store.schema import connect, failing_clearly
from metricsmith.store.values import CODES, STATUSES, pack, unpack

__all__ = ["Entry", "Key", "Store"]

LEASE = 60.0  # seconds after which a claim that was not renewed is void
MEMORY = "PRAGMA cache_size = -16000"  # kibibytes of pages kept


@dataclass(frozen=True, slots=True)
class Key:
    """Where a judgement is kept: the row's key, the metric's number in the store, and the repetition."""

    row: str
    metric: int
    run: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A judgement to keep; `row_id` is the row's own name, for people."""

    key: Key
    row_id: str
    judgement: Judgement


class Store:
    """Judgements in one SQLite file, in WAL mode; several processes may use it at once.

    A transaction is on the disk when `exchange` returns. Values are JSON; nothing is ever executed. Closing is
    optional: a store that is not used any more closes itself.

    Parameters
    ----------
    path : path
        The file; it is made if there is none.
    read_only : bool
        Leave the file as it is; works on read-only media too.

    Raises
    ------
    StoreError
        If the file cannot be opened, is of another kind, or of a later version. A damaged file is never
        overwritten.
    """

    def __init__(self, path: str | PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._connection = connect(self.path, read_only=read_only)
        self._connection.execute(MEMORY)
        self._lock = threading.RLock()
        self._claimed = False
        self._rows: dict[str, int] = {}
        self._names = {int(number): str(name) for number, name in self._select("SELECT id, name FROM metrics")}
        self._finalizer = weakref.finalize(self, self._connection.close)

    def metric(self, fingerprint: str, name: str) -> int:
        """The number of a metric, which is registered if it is new; -1 for a new one in a read-only store."""
        known = self._select("SELECT id FROM metrics WHERE fingerprint = ?", fingerprint)
        if not known and self.read_only:
            return -1
        if not known:
            with self._lock, failing_clearly(self.path, "write to"):
                self._connection.execute(
                    "INSERT OR IGNORE INTO metrics (fingerprint, name) VALUES (?, ?)", (fingerprint, name)
                )
            known = self._select("SELECT id FROM metrics WHERE fingerprint = ?", fingerprint)
        number = int(known[0][0])
        self._names.setdefault(number, name)
        return number

    def read(self, row_key: str) -> list[tuple[int, int, Status, float | None]]:
        """Metric, repetition, status and raw number of everything that is known of one row."""
        found = self._select(
            "SELECT metric, run, status, raw FROM judgements WHERE row = (SELECT id FROM rows WHERE key = ?)", row_key
        )
        try:
            return [(metric, run, STATUSES[status], raw) for metric, run, status, raw in found]
        except KeyError as problem:
            raise self._damaged(f"unknown status {problem}") from problem

    def judgement(self, row_key: str, metric: int, run: int) -> Judgement | None:
        """One whole judgement, None if there is none."""
        found = self._select(
            "SELECT status, raw, value FROM judgements "
            "WHERE row = (SELECT id FROM rows WHERE key = ?) AND metric = ? AND run = ?",
            row_key, metric, run,
        )  # fmt: skip
        if not found:
            return None
        try:
            return unpack(self._names.get(metric, ""), run, *found[0])
        except (ValueError, KeyError, TypeError) as problem:
            raise self._damaged(f"the judgement of row {row_key!r}: {problem}") from problem

    def exchange(self, done: Sequence[Entry], wanted: Sequence[Key] = ()) -> list[bool]:
        """Write what is done, give up its claims, and claim what is wanted: one transaction.

        A success is never overwritten by a failure; a failure is overwritten by whatever comes later.

        Parameters
        ----------
        done : sequence of Entry
        wanted : sequence of Key
            What the caller is going to work on.

        Returns
        -------
        list of bool
            For each of `wanted`, whether the caller holds it now; otherwise another owner works on it.

        Raises
        ------
        StoreError
            If nothing could be written: then nothing was, and what was stored before is as it was.
        """
        with self._transaction():
            now = time.time()
            self._connection.executemany(
                "INSERT INTO judgements (row, metric, run, status, raw, value, at) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET status = excluded.status, raw = excluded.raw, value = excluded.value, "
                "at = excluded.at WHERE judgements.status != 0 OR excluded.status = 0",
                [
                    (
                        self._row(entry), entry.key.metric, entry.key.run, CODES[entry.judgement.status],
                        entry.judgement.raw, pack(entry.judgement), now,
                    )
                    for entry in done
                ],
            )  # fmt: skip
            if self._claimed:
                self._connection.executemany(
                    "DELETE FROM claims WHERE key = ? AND metric = ? AND run = ? AND owner = ?",
                    [(entry.key.row, entry.key.metric, entry.key.run, self.owner) for entry in done],
                )
            held = [self._claim(key, now) for key in wanted]
            self._claimed = self._claimed or any(held)
        return held

    def renew(self) -> None:
        """Keep the claims alive; to be called more often than once a minute while work goes on."""
        if self._claimed:
            with self._transaction():
                self._connection.execute(
                    "UPDATE claims SET until = ? WHERE owner = ?", (time.time() + LEASE, self.owner)
                )

    def release(self) -> None:
        """Give up all claims."""
        if self._claimed and not self.read_only:
            with self._transaction():
                self._connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
            self._claimed = False

    def close(self) -> None:
        """Give up claims and close the file."""
        if self._finalizer.alive:
            try:
                self.release()
            finally:
                self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def _row(self, entry: Entry) -> int:
        """The number of a row, which is entered if it is new; the last ones are remembered."""
        key = entry.key.row
        if key not in self._rows:
            if len(self._rows) >= 10_000:
                self._rows.clear()
            self._connection.execute(
                "INSERT INTO rows (key, label) VALUES (?, ?) ON CONFLICT DO NOTHING", (key, _clean(entry.row_id))
            )
            self._rows[key] = self._connection.execute("SELECT id FROM rows WHERE key = ?", (key,)).fetchone()[0]
        return self._rows[key]

    def _claim(self, key: Key, now: float) -> bool:
        place = (key.row, key.metric, key.run)
        claimed = self._connection.execute(
            "INSERT INTO claims (key, metric, run, owner, until) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (*place, self.owner, now + LEASE),
        )
        if claimed.rowcount:
            return True
        (owner, until), *_ = self._connection.execute(
            "SELECT owner, until FROM claims WHERE key = ? AND metric = ? AND run = ?", place
        ).fetchall()
        if owner != self.owner and until > now and not _dead(owner):
            return False
        self._connection.execute(
            "UPDATE claims SET owner = ?, until = ? WHERE key = ? AND metric = ? AND run = ?",
            (self.owner, now + LEASE, *place),
        )
        return True

    def _transaction(self) -> _Transaction:
        if self.read_only:
            raise StoreError(f"the store {self.path} was opened read-only; open it without read_only=True to write")
        return _Transaction(self)

    def _select(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error:
                with failing_clearly(self.path, "read"):
                    raise

    def _damaged(self, what: str) -> StoreError:
        return StoreError(
            f"the store {self.path} is damaged ({what}); nothing was overwritten. `metricsmith store verify` names the "
            "damage, `export` saves the rest"
        )


class _Transaction:
    """All or nothing, under the store's lock; after a failure the file is as it was."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __enter__(self) -> None:
        self.store._lock.acquire()
        try:
            with failing_clearly(self.store.path, "write to"):
                self.store._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self.store._lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection = self.store._connection
        try:
            with failing_clearly(self.store.path, "write to"):
                try:
                    if problem is not None:
                        raise problem
                    connection.execute("COMMIT")
                except BaseException:
                    self.store._rows.clear()  # rows entered in this transaction are not there
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
        finally:
            self.store._lock.release()


def _dead(owner: str) -> bool:
    """Whether an owner was a process of this machine that has ended."""
    host, pid, _ = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's, and alive
        return False
    return False


def _clean(text: str) -> str:
    """SQLite holds no lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
