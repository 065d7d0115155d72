"""Judgements that go into a store come out again, and what is there is never lost to something worse."""

from __future__ import annotations

import gc
import json
import math
import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metricsmith.errors import StoreError
from metricsmith.records import FAILURES, ErrorSpan, Judgement, Status, Usage
from metricsmith.store import Entry, Key, Store
from stores import edit, entry, fill, judgement

FINITE = st.floats(allow_nan=False, allow_infinity=False)
# Two surrogates side by side are one character in JSON; alone they must survive.
TEXT = st.text(st.characters(exclude_categories=()), max_size=40).filter(
    lambda text: text == json.loads(json.dumps(text))
)
USAGE = st.builds(
    Usage,
    requests=st.integers(0, 9),
    prompt_tokens=st.integers(0, 10**9),
    completion_tokens=st.integers(0, 10**9),
    cost=st.none() | st.floats(0, 1e6),
    seconds=st.floats(0, 1e6),
)
PLACE = st.none() | st.integers(0, 9)
SPAN = st.builds(ErrorSpan, TEXT, TEXT, PLACE, PLACE, TEXT, st.sampled_from(["source", "target"]), TEXT)
SPANS = st.lists(SPAN, max_size=3).map(tuple)
GOOD = st.builds(
    Judgement, st.just("m"), FINITE, st.none() | FINITE, TEXT, st.just(Status.OK), TEXT, usage=USAGE, spans=SPANS
)
BAD = st.builds(
    Judgement, st.just("m"), st.none(), st.none(), TEXT, st.sampled_from(FAILURES), TEXT, usage=USAGE
)  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.db"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=GOOD | BAD)
def test_a_judgement_comes_back_as_it_was(tmp_path_factory, kept):
    path = tmp_path_factory.getbasetemp() / "roundtrip.db"
    with Store(path) as store:
        metric = store.metric("f", "m")
        key = Key(f"row {store.info().rows}", metric, 0)
        store.exchange([Entry(key, "r", kept)])
    with Store(path, read_only=True) as store:
        assert store.judgement(key.row, metric, 0) == kept
        assert store.read(key.row) == [(metric, 0, kept.status, kept.raw)]


def test_the_last_digit_and_megabytes_of_text_survive(path):
    numbers = [-0.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308]
    with Store(path) as store:
        metric = store.metric("f", "clarity")
        kept = [
            Judgement("clarity", number, 0.5, "ü\u2028\x00" * 500_000, run=run) for run, number in enumerate(numbers)
        ]
        store.exchange([entry("a", metric, one) for one in kept])
    with Store(path) as store:
        assert [store.judgement("key-a", metric, run) for run in range(4)] == kept
        assert [raw for *_, raw in store.read("key-a")] == numbers


def test_numbers_of_other_libraries_are_kept_as_plain_ones(path):
    odd = Judgement("m", np.float32(2.5), np.float64(0.5), usage=Usage(np.int64(1), 2, 3, np.float32(0.25), math.nan))
    with Store(path) as store:
        metric = store.metric("f", "m")
        store.exchange([entry("a", metric, odd), entry("b", metric, Judgement("m", 10**30, 1))])
        assert store.judgement("key-a", metric, 0) == Judgement("m", 2.5, 0.5, usage=Usage(1, 2, 3, 0.25, 0.0))
        assert store.read("key-b") == [(metric, 0, Status.OK, 1e30)]
    assert store.path == path


def test_no_nan_is_written_as_json(path):
    with Store(path) as store:
        store.exchange([entry("a", store.metric("f", "m"), Judgement("m", 1.0, math.nan))])
    with closing(sqlite3.connect(path)) as connection:
        ((value,),) = connection.execute("SELECT value FROM judgements").fetchall()
    assert json.loads(value, parse_constant=pytest.fail)["score"] is None


def test_what_is_not_there_is_none_and_reads_as_nothing(path):
    with Store(path) as store:
        metric = store.metric("f", "m")
        store.exchange([entry("a", metric, judgement())])
        assert store.read("key-b") == []
        assert store.judgement("key-a", metric, 1) is None
        assert store.judgement("key-a", metric + 1, 0) is None


def test_a_metric_keeps_its_number_and_a_new_fingerprint_gets_a_new_one(path):
    with Store(path) as store:
        first = store.metric("f1", "clarity")
        assert store.metric("f2", "clarity") != first
        assert store.metric("f1", "renamed") == first
    with Store(path, read_only=True) as store:
        assert store.metric("f1", "clarity") == first
        assert store.metric("f3", "clarity") == -1


def test_a_metric_whose_name_no_file_can_hold_is_registered(path):
    with Store(path) as store:
        metric = store.metric("f", "m\ud800")
        store.exchange([Entry(Key("k", metric, 0), "row \ud800", judgement())])
        assert store.judgement("k", metric, 0).metric == "m\\ud800"


@pytest.mark.parametrize(
    ("first", "then", "stays"),
    [
        (Status.OK, Status.TRANSPORT, Status.OK),
        (Status.TRANSPORT, Status.REFUSED, Status.REFUSED),
        (Status.TRANSPORT, Status.OK, Status.OK),
        (Status.SKIPPED, Status.BUDGET, Status.BUDGET),
    ],
)
def test_a_success_is_never_overwritten_by_a_failure_and_a_failure_always(path, first, then, stays):
    with Store(path) as store:
        metric = store.metric("f", "clarity")
        store.exchange([entry("a", metric, judgement(status=first))])
        store.exchange([entry("a", metric, judgement(status=then))])
        assert [status for _, _, status, _ in store.read("key-a")] == [stays]
        assert store.judgement("key-a", metric, 0) == judgement(status=stays)


def test_within_one_exchange_too_a_success_stands(path):
    with Store(path) as store:
        metric = store.metric("f", "clarity")
        store.exchange([entry("a", metric, judgement()), entry("a", metric, judgement(status=Status.REFUSED))])
        assert store.read("key-a") == [(metric, 0, Status.OK, 3.0)]


def test_an_exchange_that_cannot_be_written_whole_is_not_written_at_all(path):
    with Store(path) as store:
        metric = store.metric("f", "clarity")
        with pytest.raises(StoreError, match="metric that is not registered"):
            store.exchange([entry("a", metric, judgement()), entry("b", metric + 7, judgement())])
        assert store.read("key-a") == []
        assert store.exchange([entry("a", metric, judgement())]) == []
        assert len(store.read("key-a")) == 1


def test_a_judgement_is_in_the_file_when_exchange_returns(path):
    with Store(path) as store:
        store.exchange([entry("a", store.metric("f", "clarity"), judgement())])
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("SELECT raw FROM judgements").fetchall() == [(3.0,)]
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_threads_read_one_store_at_once(path):
    fill(path, rows=50)
    seen = []

    def look(store):
        keys = [f"key-r{row:04d}" for row in range(50)]
        seen.append([(store.judgement(key, 1, 0).raw, len(store.read(key))) for key in keys])

    with Store(path) as store:
        threads = [threading.Thread(target=look, args=(store,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == [[(1.0 + row % 5, 2) for row in range(50)]] * 4


def test_a_store_that_is_forgotten_closes_itself_and_gives_its_claims_up(path):
    store = Store(path)
    key = Key("k", store.metric("f", "m"), 0)
    assert store.exchange([], [key]) == [True]
    del store
    gc.collect()
    with Store(path) as other:
        assert other.exchange([], [key]) == [True]
    assert not path.with_name("s.db-wal").exists()


def test_a_closed_store_says_that_it_is_closed(path):
    store = Store(fill(path))
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.read("key-r0000")
    with pytest.raises(StoreError, match="closed already; open it again"):
        store.exchange([])


def test_an_entry_that_was_changed_is_not_returned(path):
    fill(path, rows=3)
    edit(path, "UPDATE judgements SET raw = 5 WHERE row = 2 AND metric = 1")
    with Store(path) as store:
        assert store.judgement("key-r0000", 1, 0).raw == 1.0
        with pytest.raises(StoreError, match=r"key-r0001.*clarity was changed.*store verify"):
            store.judgement("key-r0001", 1, 0)


@pytest.mark.parametrize(
    ("change", "row", "run"), [("run = 7", "r0001", 7), ("metric = 2", "r0001", 0), ("row = 9", "r0008", 0)]
)
def test_an_entry_that_was_moved_to_another_place_is_not_returned(path, change, row, run):
    fill(path, rows=9, metrics=["clarity"])
    edit(path, "DELETE FROM judgements WHERE row = 9")
    with Store(path) as store:
        store.metric("another", "another")
        edit(path, f"UPDATE judgements SET {change} WHERE row = 2")
        with pytest.raises(StoreError, match="was changed"):
            store.judgement(f"key-{row}", 2 if "metric" in change else 1, run)
        with pytest.raises(StoreError, match="was changed"):
            store.read(f"key-{row}")


def test_an_unknown_status_is_damage(path):
    fill(path, rows=3)
    edit(path, "UPDATE judgements SET status = 99 WHERE row = 1")
    with Store(path) as store, pytest.raises(StoreError, match=r"unknown status 99.*store verify"):
        store.read("key-r0000")


def test_a_new_store_and_its_side_files_are_for_the_owner_alone(path, tmp_path):
    target, link = tmp_path / "elsewhere.db", tmp_path / "link.db"
    link.symlink_to(target)
    for place in (path, link):
        with Store(place) as store:
            store.exchange([entry("a", store.metric("f", "m"), judgement())])
            names = [entry for entry in tmp_path.iterdir() if entry.name.startswith(place.resolve().name)]
            assert len(names) == 3  # with -wal and -shm
            assert {entry.stat().st_mode & 0o777 for entry in names} == {0o600}


def test_the_mode_of_a_store_that_is_there_is_the_users(path):
    Store(path).close()
    path.chmod(0o640)
    Store(path).close()
    assert path.stat().st_mode & 0o777 == 0o640
