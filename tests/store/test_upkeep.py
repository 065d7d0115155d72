"""Counting what a store holds, naming what is damaged in it, deleting what nobody needs."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime

import pytest

from metricsmith.errors import OptionError, StoreError
from metricsmith.records import Status, Usage
from metricsmith.store import Damage, Store, export, info, prune, verify, verifying
from metricsmith.store.schema import connect
from stores import edit, entry, fill, judgement


@pytest.fixture
def path(tmp_path):
    """Twenty rows, two metrics, two runs: eighty judgements."""
    return fill(tmp_path / "s.db", runs=2)


def where(metric="clarity", row="r0003", run=1):
    return (
        "WHERE run = ? AND row = (SELECT id FROM rows WHERE label = ?) AND metric = (SELECT id FROM metrics "
        "WHERE name = ?)",
        (run, row, metric),
    )


def damage(path, change, *values):
    condition, key = where()
    edit(path, f"UPDATE judgements SET {change} {condition}", *values, *key)


def test_info_counts_rows_metrics_runs_statuses_and_cost(path):
    before = datetime.now(UTC)
    with Store(path) as store:
        lost = judgement(status=Status.TRANSPORT, run=4, usage=Usage(3, 0, 0, None, 1.0))
        store.exchange([entry("extra", 2, lost)])
    found = info(path)
    assert (found.path, found.schema_version, found.rows, found.judgements, found.runs) == (str(path), 1, 21, 81, 5)
    brevity, clarity = found.metrics
    assert [brevity.name, clarity.name] == ["brevity", "clarity"]
    assert (clarity.fingerprint, clarity.counts, clarity.runs) == ("fingerprint-clarity", {"ok": 40}, 2)
    assert (brevity.counts, brevity.runs) == ({"ok": 40, "transport": 1}, 5)
    assert clarity.usage == Usage(40, 400, 80, 20.0, 10.0)
    assert found.usage == Usage(83, 800, 160, 40.0, 21.0)  # the price of the failed one is not known
    assert found.first <= before <= found.last <= datetime.now(UTC)
    assert found.bytes >= path.stat().st_size > 0
    assert json.loads(json.dumps(found.as_dict()))["judgements"] == 81


def test_what_nobody_knows_the_price_of_costs_nothing_known(tmp_path):
    with Store(tmp_path / "s.db") as store:
        unpriced = judgement(usage=Usage(1, 10, 2, None, 0.5))
        store.exchange([entry(row, store.metric("f", "clarity"), unpriced) for row in "ab"])
    assert info(tmp_path / "s.db").metrics[0].usage == Usage(2, 20, 4, None, 1.0)


def test_info_of_an_empty_store(tmp_path):
    Store(tmp_path / "s.db").close()
    found = info(tmp_path / "s.db")
    assert (found.rows, found.metrics, found.runs, found.first, found.last) == (0, (), 0, None, None)
    assert found.usage == Usage()


def test_info_of_what_is_damaged_sends_to_verify(path):
    damage(path, "value = '{}'")
    with pytest.raises(StoreError, match="store verify"):
        info(path)


def test_a_whole_store_is_whole(path):
    found = verify(path)
    assert (found.ok, found.judgements, found.damages) == (True, 80, ())
    assert str(found) == f"{path}: 80 judgements, all whole"


@pytest.mark.parametrize(
    ("change", "values", "says"),
    [
        ("raw = 4.5", (), "the checksum does not match"),
        ("raw = NULL", (), "status ok without a finite number"),
        ("raw = 9e999", (), "status ok without a finite number"),
        ("status = 1", (), "with the number 4.0"),
        ("status = 77", (), "status 77 is unknown"),
        ("value = ?", ("{cut",), "no JSON"),
        ("value = ?", ("[]",), "wrong form"),
        ("value = ?", ('{"score": 0.5}',), "lacks something"),
        ("value = replace(value, 'as it should be', 'as it should not be')", (), "the checksum does not match"),
        ("value = replace(value, '[1, 10,', '[1, \"10\",')", (), "text for a number"),
        ("value = x'ff00'", (), "no JSON|wrong form"),
        ("at = 'yesterday'", (), "time"),
        ("crc = crc + 1", (), "the checksum does not match"),
    ],
)  # fmt: skip
def test_verify_names_the_entry_that_is_damaged_and_what_is_wrong(path, change, values, says):
    damage(path, change, *values)
    found = verify(path)
    assert (found.ok, found.judgements, found.damaged, found.unreadable) == (False, 80, 1, 0)
    named = next(one for one in found.damages if one.row)
    assert (named.row, named.metric, named.run) == ("r0003", "clarity", 1)
    assert re.search(says, named.what), named.what
    assert str(named).startswith("row r0003, metric clarity, run 1: ")


def test_verify_names_rows_and_metrics_that_are_not_there(path):
    edit(path, "DELETE FROM rows WHERE label = 'r0003'")
    edit(path, "DELETE FROM metrics WHERE name = 'brevity'")
    found = verify(path)
    assert found.damaged == 40 + 2  # two of the four of row 3 have lost their metric too
    assert {one.what.split()[1] for one in found.damages if one.run is not None} == {"row", "metric"}


def test_verify_counts_all_and_names_as_many_as_asked_for(path):
    edit(path, "UPDATE judgements SET crc = crc + 1")
    found = verify(path, limit=3)
    assert (found.damaged, len(found.damages)) == (80, 3)


def test_verify_changes_nothing_and_says_what_is_not_there(path, tmp_path):
    before = path.read_bytes()
    verify(path)
    assert path.read_bytes() == before
    with pytest.raises(StoreError, match="no such file"):
        verify(tmp_path / "none.db")
    assert str(Damage("wrong")) == "file: wrong"


def left(path):
    with Store(path, read_only=True) as store:
        return {row: len(store.read(f"key-r{row:04d}")) for row in range(20)}


@pytest.mark.parametrize(
    ("conditions", "count"),
    [
        ({"metrics": ["clarity"]}, 40),
        ({"metrics": "clarity"}, 40),
        ({"metrics": ["clarity", "brevity"]}, 80),
        ({"metrics": ["fingerprint-b"]}, 40),
        ({"metrics": ["fing"]}, 80),
        ({"failures": True}, 1),
        ({"failures": True, "metrics": ["brevity"]}, 0),
    ],
)
def test_prune_deletes_what_meets_all_conditions(path, conditions, count):
    with Store(path) as store:
        store.exchange([entry("lost", 1, judgement(status=Status.UNPARSABLE))])
    if conditions.get("metrics") and "failures" not in conditions and conditions["metrics"] != ["fingerprint-b"]:
        count += 1  # the failure is clarity's
    assert prune(path, **conditions, dry_run=True) == count
    assert info(path).judgements == 81
    assert prune(path, **conditions) == count
    assert info(path).judgements == 81 - count
    assert prune(path, **conditions, dry_run=True) == 0
    assert verify(path).ok


def test_prune_by_time_takes_what_was_written_before_it(path):
    time.sleep(0.01)
    now = datetime.now(UTC)
    with Store(path) as store:
        store.exchange([entry("late", 1, judgement())])
    assert prune(path, before=now) == 80
    with Store(path) as store:
        assert len(store.read("key-late")) == 1
        assert info(path).rows == 1
    assert prune(path, before=datetime.now()) == 1  # local time where no zone is given


def test_what_was_pruned_is_gone_and_the_rest_stays_and_the_file_shrinks(tmp_path):
    path = fill(tmp_path / "s.db", rows=300, feedback="word " * 100)
    before = path.stat().st_size
    assert prune(path, metrics=["clarity"]) == 300
    assert set(left(path).values()) == {1}
    assert prune(path, metrics=["brevity"]) == 300
    with closing(sqlite3.connect(path)) as connection:  # rows of which nothing is left are gone too
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (0,)
    assert path.stat().st_size < before * 0.7


def test_a_run_goes_on_while_its_store_is_pruned(path):
    with Store(path) as store:
        number = store.metric("fingerprint-clarity", "clarity")
        assert prune(path, metrics=["clarity"]) == 40
        assert [found[0] for found in store.read("key-r0001")] == [2, 2]
        store.exchange([entry("r0001", number, judgement(5.0))])
        assert store.judgement("key-r0001", number, 0).raw == 5.0
    assert verify(path).ok


def test_prune_without_a_condition_or_with_an_unknown_metric_deletes_nothing(path):
    for conditions, says in [
        ({}, "at least one condition"),
        ({"metrics": ["clarty"]}, "did you mean 'clarity'|clarity"),
        ({"metrics": ["fin"]}, "4 or more characters"),
    ]:
        with pytest.raises(OptionError, match=says):
            prune(path, **conditions)
    assert info(path).judgements == 80


def test_prune_leaves_a_damaged_file_as_it_is(tmp_path):
    path = fill(tmp_path / "s.db", rows=400)
    content = bytearray(path.read_bytes())
    content[len(content) // 3 : len(content) // 2] = b"\x55" * (len(content) // 2 - len(content) // 3)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        prune(path, failures=True)
    assert path.read_bytes() == content
    with pytest.raises(StoreError, match="no such file"):
        prune(tmp_path / "none.db", failures=True)


def test_where_pages_are_damaged_the_rest_is_found_and_the_damage_named(tmp_path):
    path = fill(tmp_path / "s.db", rows=400)
    whole = path.read_bytes()
    # One page of judgements in the middle of the file, found by a text that only its rows have.
    start = whole.index(b"as it should be 200 0") // 4096 * 4096
    path.write_bytes(whole[:start] + b"\x00" * 4096 + whole[start + 4096 :])
    found = verify(path)
    assert not found.ok
    assert found.complaints >= 1
    assert 0 < found.unreadable < 50
    assert 700 < found.judgements < 800
    assert "r0200" in {one.row for one in found.damages}
    assert all("cannot be read" in one.what for one in found.damages if one.row)
    # What was read is what was written.
    with Store(path, read_only=True) as store:
        lost = {one.row for one in found.damages if one.row}
        sound = [row for row in range(400) if f"r{row:04d}" not in lost]
        assert all(store.judgement(f"key-r{row:04d}", 1, 0).raw == 1.0 + row % 5 for row in sound)


def listed(path):
    """The number of entries of each row in an export; no entry stands there twice."""
    stream = io.StringIO()
    found = export(path, stream, format="jsonl")
    entries = [
        (line["row_id"], line["metric"], line["run"]) for line in map(json.loads, stream.getvalue().splitlines())
    ]
    assert len(set(entries)) == len(entries) == found.judgements
    return Counter(row for row, _, _ in entries), found


def test_a_row_that_lies_on_a_damaged_page_in_part_is_saved_in_part_and_named(tmp_path):
    path = fill(tmp_path / "s.db", rows=100, runs=5)
    whole = path.read_bytes()
    start = whole.index(b"as it should be 50 2") // 4096 * 4096
    path.write_bytes(whole[:start] + b"\x00" * 4096 + whole[start + 4096 :])
    counts, found = listed(path)
    assert any(0 < count < 10 for count in counts.values())
    cut = {f"r{row:04d}" for row in range(100) if counts[f"r{row:04d}"] < 10}
    assert cut == {one.row for one in verify(path).damages if "cannot be read" in one.what and one.row}
    assert found.unreadable == len(cut)


def test_judgements_are_counted_where_the_names_of_their_rows_are_damaged(tmp_path):
    path = fill(tmp_path / "s.db", rows=400)
    whole = path.read_bytes()
    start = whole.index(b"key-r0399r0399") // 4096 * 4096  # the page of the last rows' names
    path.write_bytes(whole[:start] + b"\x00" * 4096 + whole[start + 4096 :])
    counts, found = listed(path)
    assert (found.judgements + found.left_out, found.unreadable) == (800, 0)
    assert counts["r0000"] == 2 > counts["r0399"]


class Torn:
    """A connection that reads one entry without the number of its row, and then meets a damaged page."""

    def __init__(self, connection):
        self.connection = connection

    def execute(self, query, values=()):
        found = self.connection.execute(query, values)
        return self.torn(found) if query == verifying.ALL else found

    def torn(self, found):
        yield (None, *next(found)[1:])
        raise sqlite3.DatabaseError("database disk image is malformed")


def test_an_entry_without_the_number_of_its_row_does_not_end_the_reading(path):
    with closing(connect(path, read_only=True, salvage=True)) as connection:
        found = list(verifying.records(Torn(connection)))
    assert [record.damage.row for record in found if record.damage is not None] == ["r0000"]
    assert sum(record.judgement is not None for record in found) == 80
