"""Two that share a store never work on the same judgement, and nobody waits for the dead."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from metricsmith.errors import StoreError
from metricsmith.store import Entry, Key, Store, database, info, verify
from metricsmith.store.database import LEASE
from stores import entry, judgement

A, B = Key("key-a", 1, 0), Key("key-b", 1, 0)

# Claims one key, says so, and lives on.
HOLDER = """
import sys, time
from metricsmith.store import Key, Store
store = Store(sys.argv[1])
print(store.exchange([], [Key("key-a", store.metric("f", "clarity"), 0)]), flush=True)
time.sleep(60)
"""

# Works through the same keys as its twin, in the same order; says what it did.
WORKER = """
import json, sys
from metricsmith.records import Judgement
from metricsmith.errors import StoreError
from metricsmith.store import Entry, Key, Store
path, me = sys.argv[1], float(sys.argv[2])
did, polls = [], 0
with Store(path) as store:
    metric = store.metric("f", "clarity")
    sys.stdin.readline()
    left = [Key(f"key-{number}", metric, 0) for number in range(400)]
    while left and polls < 100_000:
        polls += 1
        wanted, done = left[:7], []
        for key, mine in zip(wanted, store.exchange([], wanted)):
            if mine and not store.read(key.row):
                done.append(Entry(key, key.row, Judgement("clarity", me, 0.5)))
        store.exchange(done)
        did += [entry.key.row for entry in done]
        left = [key for key in left if not store.read(key.row)]
print(json.dumps(did))
"""


class Clock:
    def __init__(self):
        self.now = 1e9

    def time(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(database.time, "time", clock.time)
    return clock


@pytest.fixture
def pair(tmp_path):
    """Two stores on one file in one process: two owners."""
    with Store(tmp_path / "s.db") as one, Store(tmp_path / "s.db") as two:
        one.metric("f", "clarity")
        yield one, two


def process(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_what_one_holds_the_other_does_not_get(pair):
    one, two = pair
    assert one.exchange([], [A]) == [True]
    assert two.exchange([], [A, B]) == [False, True]
    assert one.exchange([], [A, B]) == [True, False]  # one's own again, and not the other's


def test_finishing_gives_the_claim_up(pair):
    one, two = pair
    one.exchange([], [A, B])
    one.exchange([entry("a", 1, judgement())])
    assert two.exchange([], [A, B]) == [True, False]


def test_finishing_does_not_touch_the_claim_of_another(pair):
    one, two = pair
    one.exchange([], [A])
    two.exchange([], [B])
    two.exchange([entry("a", 1, judgement())])
    assert two.exchange([], [A]) == [False]


def test_release_and_close_give_all_claims_up(pair):
    one, two = pair
    one.exchange([], [A, B])
    one.release()
    assert two.exchange([], [A]) == [True]
    two.close()
    assert one.exchange([], [A, B]) == [True, True]


def test_release_clears_away_what_has_lapsed_and_leaves_the_live_claims_of_others(pair, clock):
    one, two = pair
    two.exchange([], [A])
    clock.now += LEASE + 1
    two.exchange([], [B])
    one.exchange([], [Key("key-c", 1, 0)])
    one.release()
    assert one.exchange([], [B]) == [False]
    assert one._connection.execute("SELECT key FROM claims").fetchall() == [("key-b",)]


def test_a_claim_that_was_not_granted_does_not_make_one_forget_those_that_were(pair):
    one, two = pair
    one.exchange([], [A])
    two.exchange([], [B])
    one.exchange([], [B])
    one.release()
    assert two.exchange([], [A]) == [True]


def test_another_run_or_metric_is_another_claim(pair):
    one, two = pair
    one.exchange([], [A])
    assert two.exchange([], [Key(A.row, 1, 1), Key(A.row, 2, 0)]) == [True, True]


def test_a_claim_lapses_unless_it_is_renewed(pair, clock):
    one, two = pair
    one.exchange([], [A, B])
    clock.now += LEASE - 1
    assert two.exchange([], [A]) == [False]
    one.renew()
    clock.now += LEASE - 1
    assert two.exchange([], [A]) == [False]
    clock.now += 2
    assert two.exchange([], [A]) == [True]
    assert one.exchange([], [A, B]) == [False, True]


def test_an_exchange_that_fails_claims_nothing(pair):
    one, two = pair
    one.exchange([], [A])
    with pytest.raises(StoreError):
        one.exchange([Entry(Key("k", 99, 0), "k", judgement())], [B])
    assert two.exchange([], [A, B]) == [False, True]


def test_nobody_waits_for_a_process_that_was_killed(tmp_path):
    path = tmp_path / "s.db"
    holder = process(HOLDER, path)
    try:
        assert holder.stdout.readline() == "[True]\n"
        with Store(path) as store:
            assert store.exchange([], [A]) == [False]
            os.kill(holder.pid, signal.SIGKILL)
            until = time.monotonic() + 5
            while not store.exchange([], [A])[0]:  # dead at once, though nobody has waited for it
                assert time.monotonic() < until
                time.sleep(0.01)
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only Linux tells when a process started")
def test_a_process_number_that_was_given_out_again_does_not_keep_a_claim(pair):
    one, two = pair
    machine, pid, started, name = one._claims.owner.split(":")
    one._claims.owner = f"{machine}:{pid}:{int(started) - 1}:{name}"
    one.exchange([], [A])
    assert two.exchange([], [A]) == [True]


def test_the_claim_of_another_machine_counts_until_it_lapses(pair, clock):
    one, two = pair
    one._claims.owner = "elsewhere:999999999:1:abc"
    one.exchange([], [A])
    assert two.exchange([], [A]) == [False]
    clock.now += LEASE + 1
    assert two.exchange([], [A]) == [True]


def test_where_the_system_does_not_tell_when_processes_started_their_numbers_count(pair, monkeypatch):
    monkeypatch.setattr(database, "_started", lambda pid: 0)
    one, two = pair
    machine = one._claims.owner.split(":")[0]
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for key, pid, taken in ((A, os.getpid(), False), (B, gone.pid, True)):
        one._claims.owner = f"{machine}:{pid}:0:x"
        one.exchange([], [key])
        assert two.exchange([], [key]) == [taken]


def test_two_processes_that_hammer_one_store_lose_nothing_and_do_nothing_twice(tmp_path):
    path = tmp_path / "s.db"
    Store(path).close()
    pair = [process(WORKER, path, number) for number in (1, 2)]
    for worker in pair:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    did = [json.loads(worker.communicate(timeout=60)[0]) for worker in pair]
    assert [worker.returncode for worker in pair] == [0, 0]
    assert sorted(did[0] + did[1]) == sorted(f"key-{number}" for number in range(400))
    with Store(path, read_only=True) as store:
        for number, rows in enumerate(did, start=1):
            assert all(store.judgement(row, 1, 0).raw == number for row in rows)
    assert info(path).judgements == 400
    assert verify(path).ok


def test_entries_are_kept_without_a_claim_too(pair):
    one, _ = pair
    one.exchange([Entry(A, "a", judgement())])
    assert len(one.read(A.row)) == 1
