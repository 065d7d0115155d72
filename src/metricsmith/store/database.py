"""The store itself: reads the judgements of a row, writes finished ones, and claims those that its owner works on.

Two processes on one store do not pay for the same judgement, as each claims what it works on.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from metricsmith.errors import StoreError
from metricsmith.records import Judgement, Status
from metricsmith.store import schema
from metricsmith.store.exporting import Exported, export
from metricsmith.store.schema import Entry, Key, begin, checksum, connect, pack, store_error, unpack, without_surrogates
from metricsmith.store.upkeep import StoreInfo, info, prune
from metricsmith.store.verifying import Verified, verify

__all__ = ["LEASE", "Claims", "Store"]

MEMORY = "PRAGMA cache_size = -16000"  # kibibytes of pages kept
LEASE = 60.0  # seconds after which a claim that was not renewed is void


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

    Attributes
    ----------
    patience : float
        Seconds to wait for another process that is writing, 30 to begin with.

    Raises
    ------
    StoreError
        If the file cannot be opened, is of another kind, or of a later version. A damaged file is never
        overwritten.
    """

    def __init__(self, path: str | PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self.patience = schema.BUSY
        self._connection = connect(self.path, read_only=read_only)
        self._connection.execute(MEMORY)
        self._claims = Claims(self._connection)
        self._finalizer = weakref.finalize(self, self._claims.abandon)
        self._lock = threading.RLock()
        self._names: dict[int, str] = {}

    def metric(self, fingerprint: str, name: str) -> int:
        """The number of a metric, which is registered if it is new; -1 for a new one in a read-only store."""
        known = self.number(fingerprint)
        if known > 0 or self.read_only:
            return known
        with self._transaction():
            self._connection.execute(
                "INSERT OR IGNORE INTO metrics (fingerprint, name) VALUES (?, ?)",
                (fingerprint, without_surrogates(name)),
            )
        return self.number(fingerprint)

    def number(self, fingerprint: str) -> int:
        """The number of a metric that is registered; -1 for any other."""
        known = self._select("SELECT id FROM metrics WHERE fingerprint = ?", fingerprint)
        return int(known[0][0]) if known else -1

    def read(self, row_key: str) -> list[tuple[int, int, Status, float | None]]:
        """The metric, run, status and raw number of every judgement of one row."""
        found = self._select(
            "SELECT row, metric, run, status, raw, value, crc FROM judgements "
            "WHERE row = (SELECT id FROM rows WHERE key = ?)",
            row_key,
        )
        try:
            known = [(metric, run, schema.STATUSES[status], raw) for _, metric, run, status, raw, _, _ in found]
        except KeyError as problem:
            raise self._damaged(f"unknown status {problem}") from problem
        if any(checksum(*entry) != crc for *entry, crc in found):
            raise self._damaged(f"a judgement of row {row_key!r} was changed")
        return known

    def judgement(self, row_key: str, metric: int, run: int) -> Judgement | None:
        """One whole judgement, None if there is none.

        Raises
        ------
        StoreError
            If the file cannot be read, or the entry is damaged.
        """
        found = self._select(
            "SELECT row, status, raw, value, crc FROM judgements "
            "WHERE row = (SELECT id FROM rows WHERE key = ?) AND metric = ? AND run = ?",
            row_key, metric, run,
        )  # fmt: skip
        if not found:
            return None
        row, status, raw, value, crc = found[0]
        if checksum(row, metric, run, status, raw, value) != crc:
            raise self._damaged(f"the judgement of row {row_key!r} by {self._name(metric)} was changed")
        try:
            return unpack(self._name(metric), run, status, raw, value)
        except (ValueError, KeyError, TypeError) as problem:
            raise self._damaged(f"the judgement of row {row_key!r} by {self._name(metric)}: {problem}") from problem

    def exchange(self, done: Sequence[Entry], wanted: Sequence[Key] = ()) -> list[bool]:
        """Write the judgements that are done, give up their claims, and claim the wanted ones: one transaction.

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
        keys, packed, labels = [entry.key for entry in done], [], {}
        for entry in done:  # before anybody has to wait
            packed.append(pack(entry.judgement))
            labels[entry.key.row] = without_surrogates(entry.row_id)
        with self._transaction():
            now, rows, entries = time.time(), {}, []
            for row, label in labels.items():
                known = self._connection.execute("SELECT id FROM rows WHERE key = ?", (row,)).fetchone()
                if known is None:
                    cursor = self._connection.execute("INSERT INTO rows (key, label) VALUES (?, ?)", (row, label))
                    known = (cursor.lastrowid,)
                rows[row] = known[0]
            for key, (status, raw, value) in zip(keys, packed, strict=True):
                place = rows[key.row], key.metric, key.run
                entries.append((*place, status, raw, value, checksum(*place, status, raw, value), now))
            self._connection.executemany(
                "INSERT INTO judgements (row, metric, run, status, raw, value, crc, at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET status = excluded.status, "
                "raw = excluded.raw, value = excluded.value, crc = excluded.crc, at = excluded.at "
                "WHERE judgements.status != 0 OR excluded.status = 0",
                entries,
            )
            self._claims.give_up(keys)
            return self._claims.take(wanted)

    def renew(self) -> None:
        """Keep the claims alive; to be called more often than once a minute while work goes on."""
        if self._claims.any:
            with self._transaction():
                self._claims.renew()

    def release(self) -> None:
        """Give up all claims."""
        if self._claims.any:
            with self._transaction():
                self._claims.release()

    def info(self) -> StoreInfo:
        """Count what the store holds: `metricsmith.store.info`."""
        return info(self.path)

    def verify(self, *, limit: int = 100) -> Verified:
        """Check the store from end to end: `metricsmith.store.verify`, which takes damaged files, too."""
        return verify(self.path, limit=limit)

    def export(
        self,
        target: str | PathLike[str] | IO[str] | IO[bytes],
        *,
        format: str | None = None,
        raw_csv: bool = False,
    ) -> Exported:
        """Write the judgements as CSV, JSON lines or Parquet: `metricsmith.store.export`."""
        return export(self.path, target, format=format, raw_csv=raw_csv)

    def prune(
        self,
        *,
        metrics: Sequence[str] = (),
        failures: bool = False,
        before: datetime | None = None,
        dry_run: bool = False,
    ) -> int:
        """Delete the judgements that meet all conditions; returns their number: `metricsmith.store.prune`."""
        if not dry_run:
            self._check_writable()
        return prune(self.path, metrics=metrics, failures=failures, before=before, dry_run=dry_run)

    def close(self) -> None:
        """Give up claims and close the file."""
        with self._lock:
            if self._finalizer.alive:
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

    def _name(self, metric: int) -> str:
        if metric not in self._names:
            found = self._select("SELECT name FROM metrics WHERE id = ?", metric)
            if not found:
                raise self._damaged(f"metric {metric} has no name")
            self._names[metric] = found[0][0]
        return self._names[metric]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run a block as one transaction under the store's lock; after a failure the file is as it was."""
        self._check_writable()
        connection = self._connection
        with self._lock:
            try:
                if connection.in_transaction:  # an interrupt fell between two steps
                    connection.execute("ROLLBACK")
                begin(connection, self.patience)
                try:
                    yield
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as problem:
                raise store_error(self.path, "write to", problem) from problem

    def _check_writable(self) -> None:
        if self.read_only:
            raise StoreError(f"the store {self.path} was opened read-only; open it without read_only=True to write")

    def _select(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as problem:
                raise store_error(self.path, "read", problem) from problem

    def _damaged(self, what: str) -> StoreError:
        return StoreError(f"cannot read the store {self.path}: {what}; {schema.DAMAGED}")


class Claims:
    """The claims of one owner, an open store; all methods but `abandon` run inside its transactions.

    A claim is void when its lease has run out, or at once when its owner was a process of this machine that has
    ended, however it ended.

    Parameters
    ----------
    connection : sqlite3.Connection
        Of the store that holds the claims.

    Attributes
    ----------
    owner : str
        Machine, process, and a name that no other open store has.
    any : bool
        False if there are surely no claims of this owner.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.owner = f"{_machine()}:{os.getpid()}:{_started(os.getpid())}:{uuid.uuid4().hex[:12]}"
        self.any = False

    def take(self, keys: Sequence[Key]) -> list[bool]:
        """Claim keys; returns for each whether this owner holds it now."""
        now = time.time()
        held = [self._take((key.row, key.metric, key.run), now) for key in keys]
        self.any = self.any or any(held)
        return held

    def give_up(self, keys: Iterable[Key]) -> None:
        """Give up this owner's claims on these keys."""
        if self.any:
            self._connection.executemany(
                "DELETE FROM claims WHERE key = ? AND metric = ? AND run = ? AND owner = ?",
                [(key.row, key.metric, key.run, self.owner) for key in keys],
            )

    def renew(self) -> None:
        """Renew the leases, which begin now."""
        self._connection.execute("UPDATE claims SET until = ? WHERE owner = ?", (time.time() + LEASE, self.owner))

    def release(self) -> None:
        """Give up all claims of this owner, and delete those of others whose leases have run out."""
        self._connection.execute("DELETE FROM claims WHERE owner = ? OR until < ?", (self.owner, time.time()))
        self.any = False

    def abandon(self) -> None:
        """Give up all claims without an error if that fails, as the store is no longer in use; close the connection."""
        try:
            if self.any and os.getpid() == int(self.owner.split(":")[1]):
                with suppress(sqlite3.Error):
                    self._connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
        finally:
            self._connection.close()

    def _take(self, place: tuple[str, int, int], now: float) -> bool:
        claimed = self._connection.execute(
            "INSERT INTO claims (key, metric, run, owner, until) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (*place, self.owner, now + LEASE),
        )
        if claimed.rowcount:
            return True
        owner, until = self._connection.execute(
            "SELECT owner, until FROM claims WHERE key = ? AND metric = ? AND run = ?", place
        ).fetchone()
        if owner != self.owner and until > now and not _dead(owner):
            return False
        self._connection.execute(
            "UPDATE claims SET owner = ?, until = ? WHERE key = ? AND metric = ? AND run = ?",
            (self.owner, now + LEASE, *place),
        )
        return True


@cache
def _machine() -> str:
    """Names this machine since it started, and its numbering of processes (a container has its own)."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # on Linux alone
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts).replace(":", "-")


def _started(pid: int) -> int:
    """The start of a process, in ticks since that of the machine; -1 if it has ended, 0 if the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:  # it has ended, or this system does not tell, or not everybody
        return 0
    state, *fields = stat.rpartition(")")[2].split()
    return -1 if state in "ZX" else int(fields[18])


def _dead(owner: str) -> bool:
    """True if an owner was a process of this machine that has ended."""
    machine, pid, started, _ = owner.split(":")
    if machine != _machine():
        return False
    now = _started(int(pid))
    if now:
        return now != int(started)  # ended and not buried yet, or its number was given to another process
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's, and alive
        return False
    return False
