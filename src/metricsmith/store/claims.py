"""Claims: two processes on one store do not pay for the same judgement, as each claims what it works on."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from metricsmith.store.schema import Key

__all__ = ["LEASE", "Claims"]

LEASE = 60.0  # seconds after which a claim that was not renewed is void


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
