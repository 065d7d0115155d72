"""Rounds under budgets, interrupts, shared stores and requests for several answers, and what is told of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter

import dspy
import numpy as np
import pytest

from loopback import serve
from metricsmith.errors import Interrupted
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.records import Status
from metricsmith.scoring import Budget, ascore, coordinator, estimate, score
from stubs import Scripted
from told_runs import EXPECTED, LEAST, MOST, NUMBERS, ROWS, Peeking, needed, repeated, scored, told


class Moody:
    """Answers each row's requests from its list, in the order in which they come."""

    def __init__(self, numbers):
        self.numbers, self.seen = numbers, Counter()

    def __call__(self, prompt, choice=0):
        text = next(text for text in sorted(self.numbers, key=len, reverse=True) if text in prompt)
        self.seen[text] += 1
        return {"reasoning": "so", "score": self.numbers[text][self.seen[text] - 1]}


JUDGE = CriterionJudge(criterion="Clear", meaning="Good.", task="Write.")
MOODS = {row.output: [3, 3, 3] if place % 2 else [1, 5, 3, 3, 3, 3, 3, 3] for place, row in enumerate(ROWS[:10])}
USED = {text: needed(numbers) for text, numbers in MOODS.items()}


def test_a_budget_leaves_the_rest_undone_and_the_next_run_finishes(tmp_path):
    with serve(Moody(MOODS)) as server:
        lm = server.lm(temperature=1.0)
        cut = score(
            [repeated(JUDGE)], ROWS[:10], lm=lm, store=tmp_path / "s.db", concurrency=1, budget=Budget(requests=16),
            progress=False,
        )  # fmt: skip
        assert server.requests == 16
        done = cut.counts()
        assert done["ok"] + done["budget"] == 10
        assert done["budget"] >= 4
        assert "16 requests is spent" in cut.judgement(9, 0).error
        whole = score([repeated(JUDGE)], ROWS[:10], lm=lm, store=tmp_path / "s.db", progress=False)
        assert server.requests == sum(USED.values())
    assert whole.counts()["ok"] == 10
    assert [f"of {USED[row.output]} runs" in whole.judgement(place, 0).feedback for place, row in enumerate(ROWS[:10])]


def test_rows_that_a_budget_cut_short_keep_what_they_have_and_finished_ones_have_needed_no_more():
    metric = Peeking(JUDGE, MOST, "mean", min_runs=LEAST, stop_when=0.1)
    moods = {ROWS[0].output: [3] * 8, ROWS[1].output: [1, 5] * 4, ROWS[2].output: [2] * 8}
    with serve(Moody(moods)) as server:
        table = score(
            [metric], ROWS[:3], lm=server.lm(temperature=1.0), budget=Budget(requests=8), concurrency=1, progress=False
        )
    assert [one.status for one in table.column(0)] == [Status.OK, Status.OK, Status.BUDGET]
    endings = []
    for row in range(3):
        table.judgement(row, 0)
        endings.append([part.status for part in metric.seen])
    assert endings[0] == [Status.OK] * 3 + [Status.SKIPPED] * 5  # not needed
    assert endings[1] == [Status.OK] * 5 + [Status.BUDGET] * 3  # left undone
    assert endings[2] == [Status.BUDGET] * 8
    assert "5 of 8 runs (3 without a number)" in table.judgement(1, 0).feedback


def test_an_interrupt_says_how_far_it_came(monkeypatch, tmp_path):
    calls = []

    def interrupting(row, run):
        calls.append(run)
        return told(row, run)

    real = coordinator.Coordinator._collect

    def collect(self):
        real(self)
        if len(calls) > 60:
            raise KeyboardInterrupt

    monkeypatch.setattr(coordinator.Coordinator, "_collect", collect)
    with pytest.raises(Interrupted, match=r"interrupted with \d+ of at most \d+ model judgements finished") as caught:
        score([repeated(Scripted(interrupting))], ROWS, concurrency=4, store=tmp_path / "s.db", progress=False)
    counts = caught.value.table.counts()
    assert counts["ok"] > 5
    assert counts["skipped"] > 5
    assert counts["ok"] + counts["skipped"] == 40
    monkeypatch.setattr(coordinator.Coordinator, "_collect", real)
    judge, table = scored(store=tmp_path / "s.db")
    assert table.counts()["ok"] == 40
    assert {key for key in judge.asked if NUMBERS[key[0]][key[1]] is not Status.UNPARSABLE} < EXPECTED
    assert len(judge.asked) < len(EXPECTED) - 40


def test_the_progress_bar_ends_full_and_grows_with_what_is_wanted(monkeypatch, tmp_path):
    bars = []

    class Bar:
        def __init__(self, total, **options):
            self.total, self.n, self.totals = total, 0, []
            bars.append(self)

        def __enter__(self):
            return self

        def __exit__(self, *problem):
            pass

        def update(self, more):
            self.n += more
            self.totals.append(self.total)

    monkeypatch.setattr(coordinator, "progress_bar", Bar)
    scored(store=tmp_path / "s.db")
    judge, _ = scored(store=tmp_path / "s.db")  # only what failed is asked again
    first, second = bars
    assert first.n == first.total == len(EXPECTED)
    assert first.totals[0] == LEAST * 40
    assert first.totals == sorted(first.totals)
    assert second.n == second.total == len(judge.asked)


def test_an_estimate_is_the_most_that_may_be_asked_and_nothing_for_rows_that_are_done(tmp_path):
    options = {"lm": dspy.LM("openai/x", temperature=1.0), "store": tmp_path / "s.db"}
    metric = repeated(JUDGE)
    assert estimate([metric], ROWS[:10], **options).requests == 80
    assert estimate([metric], ROWS[:10], batch_n=True, **options).requests == 60  # one for three runs, five for one
    with serve(Moody(MOODS)) as server:
        lm = server.lm(temperature=1.0)
        score([metric], ROWS[:4], lm=lm, store=tmp_path / "s.db", progress=False)
        assert estimate([metric], ROWS[:10], lm=lm, store=tmp_path / "s.db").requests == 48
        assert estimate([Repeated(JUDGE, MOST)], ROWS[:4], lm=lm, store=tmp_path / "s.db").requests == 4 * MOST - sum(
            USED[row.output] for row in ROWS[:4]
        )


def test_one_request_carries_a_round_where_the_provider_takes_it():
    with serve(Moody(MOODS)) as server:
        table = score([repeated(JUDGE)], ROWS[:10], lm=server.lm(temperature=1.0), batch_n=True, progress=False)
        rounds = Counter(seen.n for seen in server.log)
    assert rounds == {LEAST: 10, 1: sum(USED.values()) - LEAST * 10}
    assert table.counts()["ok"] == 10


def test_the_asynchronous_twin_asks_the_same():
    with serve(Moody(MOODS)) as server:
        lm = server.lm(temperature=1.0)
        table = asyncio.run(ascore([repeated(JUDGE)], ROWS[:10], lm=lm, progress=False))
        assert server.requests == sum(USED.values()) == table.usage.requests


def test_two_runs_on_one_store_ask_for_nothing_twice(tmp_path):
    rows = [row for row in ROWS if Status.UNPARSABLE not in NUMBERS[row.id]]
    found = [Scripted(told), Scripted(told)]

    def slowly(row, run):
        time.sleep(0.002)
        return told(row, run)

    def work(judge):
        judge.verdict = slowly
        tables.append(score([repeated(judge)], rows, store=tmp_path / "s.db", concurrency=4, progress=False))

    tables = []
    threads = [threading.Thread(target=work, args=(judge,)) for judge in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = {row.id for row in rows}
    expected = dict.fromkeys((key for key in EXPECTED if key[0] in names), 1)
    assert Counter(found[0].asked + found[1].asked) == expected
    assert min(len(judge.asked) for judge in found) > 10
    np.testing.assert_array_equal(tables[0].values, tables[1].values)


def test_a_run_that_only_waits_for_another_looks_again_when_that_one_has_finished_a_round(tmp_path):
    def slowly(row, run):
        time.sleep(0.3)
        return [1.0, 5.0][run % 2]

    def work(judge):
        tables.append(score([repeated(judge)], ROWS[:1], store=tmp_path / "s.db", progress=False))

    tables, found = [], [Scripted(slowly), Scripted(slowly)]
    threads = [threading.Thread(target=work, args=(judge,)) for judge in found]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert Counter(found[0].asked + found[1].asked) == {("0", run): 1 for run in range(MOST)}
    assert [table.values[0, 0, 0] for table in tables] == [3.0, 3.0]
    assert all("8 of 8 runs" in table.judgement(0, 0).feedback for table in tables)
