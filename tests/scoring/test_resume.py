"""Nothing that is stored is lost or asked again, whoever ends the process and however many share a store."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest

from faults import Fault, Faults
from loopback import serve
from metricsmith.errors import StoreError
from metricsmith.scoring import coordinator
from metricsmith.store import Store
from metricsmith.store.database import LEASE
from scorer import Task, scorer

ROW = re.compile(r"row-\d+")
KILLS = 20


@pytest.fixture(scope="module")
def worker():
    with scorer() as process:
        yield process


def truth(name):
    return 1 + int(name[4:]) % 5


def asked(prompt):
    """The judgement that a prompt is for."""
    return f"{ROW.findall(prompt)[0]}/{'brief' if 'Brief:' in prompt else 'clear'}"


def answer(prompt):
    return {"reasoning": "Fine.", "score": truth(ROW.findall(prompt)[0])}


def stored(path):
    """Judgements with a number that are in the file, read without this package and without touching the file."""
    if not os.path.exists(path):
        return set()
    query = (
        "SELECT rows.label || '/' || metrics.name, judgements.raw FROM judgements "
        "JOIN rows ON rows.id = judgements.row JOIN metrics ON metrics.id = judgements.metric WHERE status = 0"
    )
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'judgements'").fetchall():
            return set()  # killed before there was a table
        found = connection.execute(query).fetchall()
    assert all(raw == truth(name.split("/")[0]) for name, raw in found)
    return {name for name, _ in found}


class Killer:
    """Answers, and after a given number of answers sends a signal to a process."""

    def __init__(self):
        self.lock = threading.Lock()
        self.countdown, self.pid, self.number, self.delay = 0, 0, signal.SIGKILL, 0.0
        self.sent = 0.0

    def aim(self, pid, countdown, number=signal.SIGKILL, delay=0.0):
        with self.lock:
            self.pid, self.countdown, self.number, self.delay = pid, countdown, number, delay

    def __call__(self, prompt):
        with self.lock:
            self.countdown -= 1
            if self.countdown == 0:
                threading.Timer(self.delay, self.shoot).start()
        return answer(prompt)

    def shoot(self):
        self.sent = time.time()
        os.kill(self.pid, self.number)


def task_for(server, folder, **options):
    settings = {"rows": 150, "metrics": 2, "concurrency": 8} | options
    return Task(port=server.port, store=str(folder / "s.db"), result=str(folder / "r.json"), **settings)


def result_of(task):
    with open(task.result) as file:
        return json.load(file)


def test_twenty_kills_lose_nothing_that_was_stored_and_repeat_no_more_than_was_in_flight(worker, tmp_path):
    draw, killer = random.Random(20), Killer()
    with serve(killer, delay=0.004, script=Faults(tail=2.0)) as server:
        task = task_for(server, tmp_path)
        before, lost_in_flight, killed = set(), 0, 0
        while killed < KILLS:
            seen = len(server.prompts)
            killer.aim(0, 0)
            pid = worker.start(task)
            killer.aim(pid, draw.randint(1, 20), delay=draw.choice([0.0, 0.002, 0.01]))
            assert worker.wait(pid) == -signal.SIGKILL
            killed += 1
            time.sleep(0.03)  # requests that were on their way arrive, and are seen
            sent = [asked(prompt) for prompt in server.prompts[seen:]]
            after = stored(task.store)
            assert before <= after  # nothing stored is lost
            assert not before & set(sent)  # nothing stored is asked again
            assert len(sent) == len(set(sent))
            assert after - before <= set(sent)
            assert len(sent) - len(after - before) <= task.concurrency
            lost_in_flight += len(sent) - len(after - before)
            before = after
        seen = len(server.prompts)
        pid = worker.start(task)
        assert worker.wait(pid) == 0
        last = [asked(prompt) for prompt in server.prompts[seen:]]
    result = result_of(task)
    judgements = task.rows * task.metrics
    assert 0 < len(before) < judgements  # the kills came before the end
    assert not before & set(last)
    assert result["requests"] == len(last) == judgements - len(before)
    assert result["counts"]["ok"] == judgements == len(stored(task.store))
    assert result["values"] == [truth(f"row-{row:04d}") for row in range(task.rows) for _ in range(task.metrics)]
    assert server.requests <= len(server.prompts) == judgements + lost_in_flight
    assert lost_in_flight <= KILLS * task.concurrency


def test_processes_that_start_together_make_one_store(tmp_path):
    problems = []

    def make(path, together):
        together.wait()
        try:
            Store(path).close()
        except StoreError as problem:
            problems.append(problem)

    for number in range(20):
        together = threading.Barrier(4)
        threads = [threading.Thread(target=make, args=(tmp_path / f"{number}.db", together)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not problems


def test_a_run_on_a_complete_store_asks_nothing(worker, tmp_path):
    with serve(answer) as server:
        task = task_for(server, tmp_path, rows=20)
        for requests in (40, 40):
            assert worker.wait(worker.start(task)) == 0
            assert server.requests == requests
    assert result_of(task)["counts"]["ok"] == 40
    assert result_of(task)["requests"] == 0


def test_failures_are_asked_again_by_the_next_run_and_successes_are_not(worker, tmp_path):
    plans = {f"row-{number:04d}": [Fault.REFUSAL] for number in range(0, 30, 3)}
    with serve(answer, script=Faults(script=plans)) as server:
        task = task_for(server, tmp_path, rows=30, metrics=1)
        assert worker.wait(worker.start(task)) == 0
        first = result_of(task)
        assert worker.wait(worker.start(task)) == 0
        second = result_of(task)
    assert (first["counts"]["refused"], first["counts"]["ok"], first["requests"]) == (10, 20, 30)
    assert (second["counts"]["refused"], second["counts"]["ok"], second["requests"]) == (0, 30, 10)
    assert server.requests == 40


def together(worker, folder):
    """Two processes that score the same rows on one store: their results, and what the server was asked."""
    with serve(answer, delay=0.03) as server:
        tasks = [replace(task_for(server, folder), result=str(folder / f"{number}.json")) for number in range(2)]
        pids = [worker.start(task) for task in tasks]
        assert [worker.wait(pid) for pid in pids] == [0, 0]
    return [result_of(task) for task in tasks], Counter(map(asked, server.prompts))


def test_two_processes_on_one_store_ask_for_nothing_twice(worker, tmp_path):
    results, seen = together(worker, tmp_path)
    assert set(seen.values()) == {1}
    assert len(seen) == 300 == sum(result["requests"] for result in results)
    assert results[0]["values"] == results[1]["values"]
    assert [result["counts"]["ok"] for result in results] == [300, 300]


def test_two_processes_on_one_store_share_the_work(worker, tmp_path):
    results, _ = together(worker, tmp_path)
    assert min(result["requests"] for result in results) > 30


def test_what_a_killed_process_had_claimed_is_done_by_the_other_one(worker, tmp_path):
    killer = Killer()
    with serve(killer, delay=0.005) as server:
        tasks = [replace(task_for(server, tmp_path), result=str(tmp_path / f"{number}.json")) for number in range(2)]
        started = time.perf_counter()
        pids = [worker.start(task) for task in tasks]
        killer.aim(pids[0], 40)
        assert worker.wait(pids[0]) == -signal.SIGKILL
        assert worker.wait(pids[1]) == 0
        took = time.perf_counter() - started
    judgements = tasks[0].rows * tasks[0].metrics
    assert result_of(tasks[1])["counts"]["ok"] == judgements == len(stored(tasks[1].store))
    assert judgements <= len(server.prompts) <= judgements + tasks[0].concurrency
    assert took < 15  # not a claim's whole life


@pytest.mark.parametrize("countdown", [1, 37])
def test_ctrl_c_ends_within_two_seconds_with_all_that_was_finished(worker, tmp_path, countdown):
    # Three rows hang for as long as the client would wait: what is in flight must not hold up the end.
    plans = {f"row-{number:04d}": [Fault.HANG] for number in (0, 1, 2)}
    killer = Killer()
    with serve(killer, delay=0.005, script=Faults(script=plans, hang=60.0)) as server:
        task = task_for(server, tmp_path, metrics=1, concurrency=8)
        pid = worker.start(task)
        killer.aim(pid, countdown, signal.SIGINT)
        assert worker.wait(pid) == 0
        result = result_of(task)
    counts = result["counts"]
    assert result["interrupted"]
    assert result["ended"] - killer.sent < 2.0
    served = server.statuses[200]  # an answer may have left the server and not have arrived when the signal came
    assert served - task.concurrency <= counts["ok"] <= served
    assert served >= countdown - 3
    assert counts["requested"] == task.rows == counts["ok"] + counts["skipped"]
    assert stored(task.store) == set(result["ok"])
    with serve(answer) as server:
        assert worker.wait(worker.start(replace(task, port=server.port))) == 0
    assert server.requests == task.rows - counts["ok"]


def test_claims_are_renewed_well_before_they_lapse():
    assert 2 * coordinator.RENEWAL < LEASE
