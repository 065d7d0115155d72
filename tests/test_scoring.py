"""Metrics x rows: everything accounted for, nothing failed entered as a number."""

from __future__ import annotations

import threading

import dspy
import numpy as np
import pytest

from loopback import scripted, serve
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import ModelFailure
from metricsmith.metric import make_row
from metricsmith.programs import calls
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status
from metricsmith.scoring import score, tally

ROWS = [make_row(f"text number {number}", id=str(number), columns={"given": float(number)}) for number in range(40)]
JUDGES = [CriterionJudge(criterion=name, meaning="Good.", task="Write.") for name in ("Clear", "Short", "Kind")]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.001)


def test_values_have_a_row_per_row_and_a_column_per_metric():
    with serve(scripted) as server:
        table = score([ColumnMetric("given"), *JUDGES], ROWS, lm=server.lm())
    assert table.values.shape == (40, 4)
    assert table.names == ("given", "clear", "short", "kind")
    np.testing.assert_array_equal(table.values[:, 0], np.arange(40))
    assert set(np.unique(table.values[:, 1:])) <= {1, 2, 3, 4, 5}


def test_every_judgement_is_accounted_for_under_faults():
    with serve(scripted, server_errors=0.35, malformed=0.25) as server:
        table = score(JUDGES, ROWS, lm=server.lm(), max_failure_rate=1.0)
    counts = tally(table.flat())
    assert counts["requested"] == 120 == sum(counts[status.value] for status in Status)
    assert counts["transport"] > 0
    assert counts["unparsable"] > 0
    assert table.usage.requests == server.requests
    for column in table.judgements:
        for judgement in column:
            assert (judgement.raw is None) == (judgement.status is not Status.OK)
    assert np.isnan(table.values).sum() == 120 - counts["ok"]


def test_results_do_not_depend_on_the_order_of_arrival():
    tables = []
    for concurrency in (1, 12):
        with serve(scripted, server_errors=0.2, malformed=0.2) as server:
            tables.append(score(JUDGES, ROWS, lm=server.lm(), concurrency=concurrency, max_failure_rate=1.0))
    np.testing.assert_array_equal(tables[0].values, tables[1].values)


def test_too_many_failures_stop_the_run_and_keep_what_was_done():
    with (
        serve(scripted, malformed=0.7) as server,
        pytest.raises(ModelFailure, match="more than the 20%") as caught,
    ):
        score(JUDGES, ROWS, lm=server.lm(), concurrency=2)
    assert server.requests < 240
    assert all(judgement.ok for judgement in caught.value.judgements)


def test_rows_without_what_a_metric_needs_are_skipped_and_do_not_count_against_the_gate():
    table = score([ColumnMetric("absent")], ROWS, max_failure_rate=0.0)
    assert tally(table.flat())["skipped"] == 40
    assert np.isnan(table.values).all()


def test_judges_share_one_limit_of_concurrent_requests():
    now, most, lock = 0, 0, threading.Lock()
    barrier = threading.Event()

    def slow(prompt):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        barrier.wait(0.02)
        with lock:
            now -= 1
        return scripted(prompt)

    with serve(slow) as server:
        score(JUDGES, ROWS[:10], lm=server.lm(), concurrency=4)
    assert 2 <= most <= 4


def test_threads_see_the_callers_context():
    with serve(scripted) as server, dspy.context(lm=server.lm()):
        assert score(JUDGES, ROWS[:2]).values.shape == (2, 3)


def test_no_rows_and_no_metrics_give_empty_tables():
    assert score([], ROWS).values.shape == (40, 0)
    assert score([ColumnMetric("given")], []).values.shape == (0, 1)


def test_select_keeps_the_order_asked_for():
    table = score([ColumnMetric("given"), ColumnMetric("absent")], ROWS)
    assert table.select(["absent", "given"]).names == ("absent", "given")
