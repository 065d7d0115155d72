"""The engine: resuming, budgets, limits, stopping, and its asynchronous twin."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

import dspy
import numpy as np
import pytest

from loopback import scripted, serve
from metricsmith.errors import JudgementFailed, NeedsError, OptionError
from metricsmith.metric import make_row
from metricsmith.model_calls.rate_limiter import in_force
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status
from metricsmith.scoring import Budget, Concurrency, ascore, estimate, score
from metricsmith.store import Store
from stubs import Scripted

ROWS = [make_row(f"some text number {i}", id=str(i)) for i in range(30)]
JUDGES = [CriterionJudge(criterion=name, meaning="Good.", task="Write.") for name in ("Clear", "Short")]


def test_what_is_in_the_store_is_not_asked_again(tmp_path):
    with serve(scripted) as server:
        first = score(JUDGES, ROWS, lm=server.lm(), store=tmp_path / "s.db", progress=False)
        again = score(JUDGES, ROWS, lm=server.lm(), store=tmp_path / "s.db", progress=False)
        assert server.requests == 60
    np.testing.assert_array_equal(first.values, again.values)
    assert (first.usage.requests, again.usage.requests) == (60, 0)
    assert [line.reused for line in again.coverage()] == [30, 30]
    assert again.flat() == first.flat()


def test_a_part_of_the_rows_pays_for_a_part_of_all(tmp_path):
    judge = Scripted()
    score([judge], ROWS[:10], store=tmp_path / "s.db", progress=False)
    score([judge], ROWS[5:20], store=tmp_path / "s.db", progress=False)
    assert len(judge.asked) == 20


def test_failures_are_stored_and_asked_again(tmp_path):
    broken = [True]
    judge = Scripted(lambda row, run: Status.TRANSPORT if broken[0] and int(row.id) < 3 else 1.0)
    score([judge], ROWS, store=tmp_path / "s.db", progress=False)
    with Store(tmp_path / "s.db") as store:
        assert store._connection.execute("SELECT count(*) FROM judgements WHERE status != 0").fetchone() == (3,)
    broken[0] = False
    table = score([judge], ROWS, store=tmp_path / "s.db", progress=False)
    assert len(judge.asked) == 33
    assert table.counts()["ok"] == 30


@pytest.mark.parametrize(
    "change",
    [
        lambda judge, lm: judge.judge.__setattr__("demos", [dspy.Example(output="o", reasoning="r", score=3)]),
        lambda judge, lm: judge.settings.values.__setitem__("meaning", "Better."),
        lambda judge, lm: judge.judge.__setattr__("signature", judge.judge.signature.with_instructions("Other.")),
        lambda judge, lm: lm.kwargs.__setitem__("temperature", 0.5),
        lambda judge, lm: lm.kwargs.__setitem__("seed", 7),
        lambda judge, lm: lm.__setattr__("model", "openai/another"),
    ],
    ids=["demos", "criterion", "instructions", "temperature", "unknown setting", "model"],
)
def test_nothing_stale_is_returned(tmp_path, change):
    with serve(scripted) as server:
        judge, lm = JUDGES[0].deepcopy(), server.lm()
        score([judge], ROWS[:3], lm=lm, store=tmp_path / "s.db", progress=False)
        change(judge, lm)
        score([judge], ROWS[:3], lm=lm, store=tmp_path / "s.db", progress=False)
        assert server.requests == 6


def test_a_changed_text_is_asked_about_and_a_changed_rating_is_not(tmp_path):
    judge = Scripted()
    for row in (
        make_row("text", id="1", rating=1),
        make_row("text", id="1", rating=2),
        make_row("text!", id="1"),
        make_row("text", context="c", id="1"),
        make_row("text", id="2"),
    ):
        score([judge], [row], store=tmp_path / "s.db", progress=False)
    assert len(judge.asked) == 4


def test_more_repetitions_add_to_those_in_the_store(tmp_path):
    judge = Scripted(lambda row, run: float(run))
    score([judge], ROWS[:2], runs=2, store=tmp_path / "s.db", progress=False)
    table = score([judge], ROWS[:2], runs=4, store=tmp_path / "s.db", progress=False)
    np.testing.assert_array_equal(table.values[1, 0], [0, 1, 2, 3])
    assert sorted(judge.asked) == [(row, run) for row in "01" for run in range(4)]


def test_repetitions_are_independent_requests():
    with serve(scripted) as server:
        table = score(JUDGES, ROWS[:3], lm=server.lm(temperature=1.0), runs=4, progress=False)
        assert server.requests == 24 == table.usage.requests
    with serve(scripted) as server:
        table = score(JUDGES, ROWS[:3], lm=server.lm(temperature=1.0), runs=4, batch_n=True, progress=False)
        assert server.requests == 6 == table.usage.requests
        assert table.values.shape == (3, 2, 4)


def test_a_budget_of_requests_is_kept_to_the_request_and_the_rest_has_status_budget():
    with serve(scripted, server_errors=0.2) as server:
        table = score(JUDGES, ROWS, lm=server.lm(), budget=Budget(requests=25), concurrency=8, progress=False)
        assert server.requests == 25 == table.usage.requests
    counts = table.counts()
    assert counts["requested"] == 60 == sum(counts[status.value] for status in Status)
    assert counts["budget"] >= 35
    assert "budget of 25 requests is spent" in table.judgement(29, 1).error


def test_a_cut_run_goes_on_where_it_stopped(tmp_path):
    with serve(scripted) as server:
        for _ in range(3):
            table = score(
                JUDGES, ROWS, lm=server.lm(), budget=Budget(requests=20), store=tmp_path / "s.db", progress=False
            )
        assert table.counts()["ok"] == 60
        assert server.requests == 60


def test_a_budget_of_tokens_is_overshot_by_no_more_than_what_is_in_flight():
    with serve(scripted, delay=0.01) as server:
        table = score(JUDGES, ROWS, lm=server.lm(), budget=Budget(tokens=6000), concurrency=4, progress=False)
    spent = table.usage.prompt_tokens + table.usage.completion_tokens
    largest = max(line.usage.prompt_tokens + line.usage.completion_tokens for line in table.flat())
    assert 0 < table.counts()["ok"] < 60
    assert spent < 6000 + 4 * largest


def test_a_budget_of_seconds_ends_the_run():
    with serve(scripted, delay=0.05) as server:
        started = time.monotonic()
        table = score(JUDGES, ROWS, lm=server.lm(), budget=Budget(seconds=0.3), concurrency=2, progress=False)
    assert time.monotonic() - started < 1.5
    assert 0 < table.counts()["ok"] < 60
    assert table.counts()["budget"] > 0


def test_a_budget_of_more_seconds_than_python_can_wait_is_kept():
    with serve(scripted, delay=0.01) as server:  # at first most workers wait, at most as long as the budget
        table = score(JUDGES, ROWS, lm=server.lm(), budget=Budget(seconds=1e300), progress=False)
    assert table.counts()["ok"] == 60


def test_dollars_need_a_price():
    with serve(scripted) as server, pytest.raises(OptionError, match=r"price of openai/loopback is unknown.*tokens"):
        score(JUDGES, ROWS, lm=server.lm(), budget=Budget(usd=1.0), progress=False)


def test_the_bounds_of_concurrency_are_kept():
    with serve(scripted, delay=0.02) as server:
        score(JUDGES, ROWS, lm=server.lm(), concurrency=Concurrency(3, 3), progress=False)
    assert server.most_in_flight <= 3


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"concurrency": "fast"}, {"max_failure_rate": 1.5}])
def test_options_without_a_meaning_are_refused(options):
    with pytest.raises(OptionError):
        score([Scripted()], ROWS, progress=False, **options)


def test_a_run_inside_a_run_shares_its_limits():
    limiters = []

    def nested(row, run):
        limiters.append(in_force.get())
        inner = score(
            [Scripted(lambda row, run: limiters.append(in_force.get()) or 1.0, name="inner")], [row], progress=False
        )
        with pytest.raises(OptionError, match="outer"):
            score([Scripted()], [row], budget=Budget(requests=1), progress=False)
        return float(inner.values[0, 0, 0])

    score([Scripted(nested)], ROWS[:3], progress=False)
    assert len(limiters) == 6
    assert len(set(map(id, limiters))) == 1


def test_each_failure_is_one_line_in_the_log_without_texts_or_keys(caplog):
    with serve(scripted, malformed=0.5) as server, caplog.at_level(logging.WARNING, "metricsmith.scoring"):
        lm = server.lm()
        table = score(JUDGES, ROWS, lm=lm, max_failure_rate=1, progress=False)
    ours = [record for record in caplog.records if record.name.startswith("metricsmith")]  # DSPy has its own lines
    assert len(ours) == table.counts()["unparsable"] > 0
    for record in ours:
        line = record.getMessage()
        assert "\n" not in line
        assert "metric clear" in line or "metric short" in line
        assert "some text number" not in line
    assert ours[0].getMessage().startswith("row ")


def test_an_error_that_is_nobodys_fault_but_the_programs_comes_through_with_the_rest_stored(tmp_path):
    def verdict(row, run):
        if row.id == "20":
            raise ZeroDivisionError("a bug")
        return 1.0

    with pytest.raises(ZeroDivisionError):
        score([Scripted(verdict)], ROWS, concurrency=1, store=tmp_path / "s.db", progress=False)
    judge = Scripted()
    score([judge], ROWS, store=tmp_path / "s.db", progress=False)
    assert len(judge.asked) == 10


def test_the_asynchronous_twin_gives_the_same_table_and_leaves_the_loop_free():
    ticks = []

    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0.01)

    async def both(lm):
        ticking = asyncio.ensure_future(tick())
        table = await ascore(JUDGES, ROWS, lm=lm, progress=False)
        ticking.cancel()
        return table

    with serve(scripted, delay=0.05) as server:
        there = asyncio.run(both(server.lm()))
        here = score(JUDGES, ROWS, lm=server.lm(), progress=False)
    np.testing.assert_array_equal(here.values, there.values)
    assert len(ticks) > 5


def test_a_cancelled_task_stops_asking_and_keeps_what_was_finished(tmp_path):
    async def cancel(lm):
        task = asyncio.ensure_future(
            ascore(JUDGES, ROWS * 10, lm=lm, concurrency=2, store=tmp_path / "s.db", progress=False)
        )
        await asyncio.sleep(0.5)
        task.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - started

    with serve(scripted, delay=0.05) as server:
        assert asyncio.run(cancel(server.lm())) < 2.5
        asked = server.requests
        time.sleep(0.2)
        assert server.requests <= asked + 2
    with Store(tmp_path / "s.db", read_only=True) as store:
        (kept,) = store._connection.execute("SELECT count(*) FROM judgements WHERE status = 0").fetchone()
    assert asked - 2 <= kept <= server.requests


def test_an_estimate_counts_what_is_left_to_ask(tmp_path):
    with serve(scripted) as server:
        lm = server.lm(temperature=1.0)
        before = estimate(JUDGES, ROWS, lm=lm)
        assert estimate(JUDGES, [*ROWS, *ROWS], lm=lm) == before  # equal rows are asked about once
        assert estimate(JUDGES, ROWS, lm=lm, runs=3).requests == 180
        assert estimate(JUDGES, ROWS, lm=lm, runs=3, batch_n=True).requests == 60
        score(JUDGES, ROWS[:10], lm=lm, store=tmp_path / "s.db", progress=False)
        left = estimate(JUDGES, ROWS, lm=lm, store=tmp_path / "s.db")
        table = score(JUDGES, ROWS, lm=lm, progress=False)
    assert (before.requests, left.requests) == (60, 40)
    assert before.requests == table.usage.requests
    assert before.prompt_tokens == pytest.approx(table.usage.prompt_tokens, rel=0.1)
    assert before.cost is None
    assert not (tmp_path / "none.db").exists()
    assert estimate(JUDGES, ROWS, lm=lm, store=tmp_path / "none.db").requests == 60
    assert not (tmp_path / "none.db").exists()


def test_an_estimate_of_a_known_model_has_a_price_and_needs_a_model():
    with dspy.context(lm=None), pytest.raises(NeedsError):
        estimate(JUDGES, ROWS)
    known = estimate(JUDGES, ROWS, lm=dspy.LM("openai/gpt-4o-mini"))
    # 0.15 and 0.60 US dollars a million tokens, the provider's list price
    assert known.cost == pytest.approx((0.15 * known.prompt_tokens + 0.6 * known.completion_tokens) / 1e6)
    dear = JUDGES[0].deepcopy()
    dear.set_lm(dspy.LM("unknown/model"))
    assert estimate([dear, JUDGES[1]], ROWS, lm=dspy.LM("openai/gpt-4o-mini")).cost is None  # of one part unknown
    assert estimate([Scripted()], ROWS).requests == 0


def test_a_judge_used_alone_inside_a_run_that_is_stopped_says_so():
    seen = []

    def verdict(row, run):
        in_force.get().stop("enough")
        with pytest.raises(JudgementFailed, match="enough"):
            in_force.get().enter()
        seen.append(row.id)
        return 1.0

    score([Scripted(verdict)], ROWS[:1], progress=False)
    assert seen == ["0"]


def test_threads_of_a_finished_run_end():
    before = threading.active_count()
    score([Scripted()], ROWS, concurrency=16, progress=False)
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before
