"""Promises that take an unusual run to be broken: slow claims, shared stores, impatience, other people's errors."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import dspy
import numpy as np
import pytest

from faults import Fault, Faults
from loopback import scripted, serve
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import ModelFailure, OptionError, StoreError
from metricsmith.metric import content_key, make_row
from metricsmith.model_calls.models import identity
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.panel import Panel
from metricsmith.records import Status
from metricsmith.scoring import Budget, Concurrency, ascore, coordinator, estimate, score
from metricsmith.scoring.plan import scoring_plan
from metricsmith.store import Store
from metricsmith.store import database as claiming
from panels import panelled
from stubs import Scripted

ROWS = [make_row(f"some text number {i}", id=str(i)) for i in range(30)]
JUDGE = CriterionJudge(criterion="Clear", meaning="Good.", task="Write.")
CRITERIA = [CriterionJudge(criterion=name, meaning="Good.", task="Write.") for name in ("Clear", "Short", "True")]


def test_rows_that_say_the_same_count_towards_the_gate():
    rows = [make_row("the same text", id=str(number)) for number in range(10)]
    judge = Scripted(lambda row, run: Status.UNPARSABLE)
    with pytest.raises(ModelFailure, match="10 of 10 judgements failed") as caught:
        score([judge], rows, progress=False)
    assert caught.value.table.counts()["unparsable"] == 10
    assert len(judge.asked) == 1


def test_failures_on_this_machine_do_not_count_as_the_models():
    class Local(Scripted):
        @property
        def card(self):
            return replace(super().card, cost="free")

    good = Scripted()
    table = score([Local(lambda row, run: Status.UNPARSABLE, name="local"), good], ROWS, progress=False)
    assert table.counts()["unparsable"] == 30
    assert len(good.asked) == 30


def test_claims_are_renewed_while_other_judgements_come_in(tmp_path, monkeypatch):
    monkeypatch.setattr(claiming, "LEASE", 0.6)
    monkeypatch.setattr(coordinator, "RENEWAL", 0.1)
    slow = threading.Event()

    def verdict(row, run):
        if row.id == "0":
            slow.set()
            time.sleep(1.5)
        else:
            time.sleep(0.05)
        return 1.0

    first, second = Scripted(verdict), Scripted(lambda row, run: 2.0)
    thread = threading.Thread(
        target=score, args=([first], ROWS), kwargs={"concurrency": 2, "store": tmp_path / "s.db", "progress": False}
    )
    thread.start()
    slow.wait()
    time.sleep(1.0)  # longer than a lease, with judgements stored all the time
    score([second], ROWS[:1], store=tmp_path / "s.db", progress=False)
    thread.join()
    assert second.asked == []


def test_two_runs_with_one_store_object_ask_for_nothing_twice(tmp_path):
    async def both(lm, store):
        return await asyncio.gather(
            *(ascore([JUDGE], ROWS, lm=lm, store=store, concurrency=4, progress=False) for _ in range(2))
        )

    with serve(scripted, delay=0.02) as server, Store(tmp_path / "s.db") as store:
        one, other = asyncio.run(both(server.lm(), store))
        assert server.requests == 30 == one.usage.requests + other.usage.requests
        np.testing.assert_array_equal(one.values, other.values)
        assert len(store.read(next(iter(stored_keys(tmp_path / "s.db"))))) == 1  # the caller's own is still open


def stored_keys(path):
    with closing(sqlite3.connect(path)) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM rows")]


def test_two_panels_of_the_same_criteria_in_another_order_share_their_claims(tmp_path):
    members = Panel(CRITERIA).members()

    async def both(lm):
        return await asyncio.gather(
            *(
                ascore(chosen, ROWS, lm=lm, store=tmp_path / "s.db", concurrency=4, progress=False)
                for chosen in (members, members[::-1])
            )
        )

    with serve(panelled, delay=0.03) as server:
        one, other = asyncio.run(both(server.lm()))
    assert server.requests == 30
    np.testing.assert_array_equal(one.values, other.values[:, ::-1])


@pytest.mark.parametrize(
    "change",
    [
        lambda judge: judge.judge.config.__setitem__("temperature", 0.9),
        lambda judge: judge.__setattr__("__class__", Louder),
    ],
    ids=["setting of the predictor", "class of the user's"],
)
def test_what_changes_the_prompt_changes_the_fingerprint(change):
    judge = CriterionJudge(criterion="Clear", meaning="Good.", task="Write.")
    before = judge.fingerprint()
    change(judge)
    assert judge.fingerprint() != before


class Louder(CriterionJudge):
    """Asks the same in other words."""

    def question(self):
        return {name: text.upper() for name, text in super().question().items()}


def test_a_judges_own_model_counts_by_what_it_is_not_by_where_it_is():
    def fingerprint(base, temperature=0.5):
        judge = CriterionJudge(criterion="Clear", meaning="Good.", task="Write.")
        judge.set_lm(dspy.LM("openai/m", api_base=base, api_key="none", temperature=temperature))
        return scoring_plan([judge]).metric_runs[0].fingerprint

    assert fingerprint("http://here/v1") == fingerprint("http://there/v1")
    assert fingerprint("http://here/v1") != fingerprint("http://here/v1", 0.7)


def test_settings_that_look_like_secrets_and_are_none_count():
    assert identity(dspy.LM("openai/m", stop_token="A")) != identity(dspy.LM("openai/m", stop_token="B"))
    assert identity(dspy.LM("openai/m", aws_session_token="A")) == identity(dspy.LM("openai/m", aws_session_token="B"))
    assert identity(dspy.LM("openai/m", use_developer_role=True)) != identity(dspy.LM("openai/m"))


def test_a_number_that_the_data_bring_along_is_never_taken_from_the_store(tmp_path):
    for number in (1.0, 2.0):
        row = make_row("the same text", id="1", columns={"given": number})
        table = score([ColumnMetric("given")], [row], store=tmp_path / "s.db", progress=False)
        assert table.values.tolist() == [[[number]]]


def test_references_are_not_run_together():
    keys = {content_key(make_row("o", references=references)) for references in (["ab"], ["a", "b"], ["b", "a"], [])}
    assert len(keys) == 4


def test_functions_see_every_element_of_a_large_array():
    arrays = np.zeros((2, 2000))
    arrays[1, 1000] = 7.0
    rows = [make_row("text", id="1", signal=array) for array in arrays]
    table = score([lambda example, pred: float(example.signal[1000])], rows, progress=False)
    assert table.values[:, 0, 0].tolist() == [0.0, 7.0]


def test_a_bug_in_one_judgement_leaves_those_in_flight_in_the_store(tmp_path):
    def verdict(row, run):
        if row.id == "3":
            raise ZeroDivisionError("a bug")
        time.sleep(0.2)
        return 1.0

    judge = Scripted(verdict)
    with pytest.raises(ZeroDivisionError):
        score([judge], ROWS, concurrency=16, store=tmp_path / "s.db", progress=False)
    assert 4 <= len(judge.asked) <= 16
    again = Scripted()
    score([again], ROWS, store=tmp_path / "s.db", progress=False)
    assert len(again.asked) == 30 - (len(judge.asked) - 1)


class Flaky(dspy.BaseLM):
    """A model class that lets its client's errors through."""

    def __init__(self, fails):
        super().__init__("flaky")
        self.fails, self.asked = fails, 0

    def forward(self, prompt=None, messages=None, **kwargs):
        self.asked += 1
        if self.asked <= self.fails:
            raise ConnectionError("the line is dead")
        text = "[[ ## reasoning ## ]]\nFine.\n\n[[ ## score ## ]]\n4\n\n[[ ## completed ## ]]"
        choice = SimpleNamespace(message=SimpleNamespace(content=text), finish_reason="stop")
        return SimpleNamespace(choices=[choice], usage={}, model="flaky")


@pytest.mark.filterwarnings("ignore:Implementing custom LMs:DeprecationWarning")
@pytest.mark.parametrize(("fails", "status"), [(2, Status.OK), (99, Status.TRANSPORT)])
def test_errors_of_the_network_are_tried_again_whoever_raises_them(fails, status):
    lm = Flaky(fails)
    table = score([JUDGE], ROWS[:1], lm=lm, max_failure_rate=1.0, progress=False)
    judgement = table.judgement(0, 0)
    assert (judgement.status, judgement.usage.requests) == (status, min(fails, 4) + 1)
    assert status is Status.OK or "the line is dead" in judgement.error


def test_a_server_that_asks_for_a_pause_of_years_is_not_waited_for():
    script = Faults(script=lambda prompt: [Fault.RETRY_AFTER] * 9, retry_after=1e11)
    with serve(scripted, script=script) as server:
        started = time.monotonic()
        table = score([JUDGE], ROWS[:1], lm=server.lm(), max_failure_rate=1.0, progress=False)
    assert time.monotonic() - started < 5
    assert (table.counts()["transport"], server.requests) == (1, 1)


def test_whoever_loses_patience_while_a_failed_run_winds_up_still_gets_the_table(tmp_path, monkeypatch):
    waits = []

    def impatient(self, until):
        waits.append(until - time.monotonic())
        if len(waits) == 1:
            raise KeyboardInterrupt
        return patient(self, until)

    patient = coordinator.Coordinator._await
    monkeypatch.setattr(coordinator.Coordinator, "_await", impatient)
    judge = Scripted(lambda row, run: Status.UNPARSABLE if int(row.id) < 20 else 1.0)
    with pytest.raises(ModelFailure) as caught:
        score([judge], ROWS, concurrency=4, store=tmp_path / "s.db", progress=False)
    assert caught.value.table.counts()["unparsable"] > 6
    assert waits[0] > 50
    assert waits[1] <= coordinator.HASTE


def test_a_store_that_another_process_holds_is_waited_for_as_long_as_there_is_patience(tmp_path):
    with Store(tmp_path / "s.db") as store, closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.patience = 0.3
        started = time.monotonic()
        with pytest.raises(StoreError, match="another process holds it"):
            store.metric("f", "clarity")
        assert 0.25 < time.monotonic() - started < 1.5


def test_what_a_panel_is_not_wanted_for_is_estimated_because_it_is_asked_for():
    members = Panel(CRITERIA).members()
    with dspy.context(lm=dspy.LM("openai/gpt-4o-mini")):
        assert estimate(members[:1], ROWS) == estimate(members, ROWS)
        assert estimate(members, ROWS).completion_tokens == 3 * estimate(CRITERIA[:1], ROWS).completion_tokens


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: score([JUDGE], ROWS, lm="openai/gpt-4o-mini"), r"dspy\.LM\('openai/gpt-4o-mini'\)"),
        (lambda: estimate([JUDGE], ROWS, lm=3), "no model"),
        (lambda: score([JUDGE], ROWS[0]), r"write \[row\]"),
        (lambda: score([JUDGE], [ROWS[0], "b"]), "'b' is no row"),
        (lambda: score([Scripted()], ROWS, budget=5), "must be a Budget"),
        (lambda: score([Scripted()], ROWS, store=5), "must be a path or a Store"),
        (lambda: score([Scripted()], ROWS, first_run=1.5), "first_run=1.5"),
        (lambda: score([Scripted()], ROWS, max_failure_rate=None), "share from 0 to 1"),
        (lambda: Budget(requests="5"), "whole number"),
        (lambda: Budget(requests=2.5), "whole number"),
        (lambda: Budget(tokens=True), "whole number"),
        (lambda: Budget(usd=float("nan")), "no meaning"),
        (lambda: Budget(seconds=float("inf")), "a budget of inf seconds has no meaning"),
        (lambda: Budget(requests=0), "whole number above 0"),
        (lambda: Budget(seconds=0.0), "number above 0, or None"),
        (lambda: Concurrency(tokens_per_minute=float("inf")), "--tokens-per-minute"),
        (lambda: Concurrency(1.5, 4.5), "whole numbers"),
        (lambda: Concurrency("1", "4"), "whole numbers"),
        (lambda: Concurrency(requests_per_minute=0), "--requests-per-minute"),
        (lambda: score([JUDGE.as_metric(output="answer")], ROWS), "names of fields"),
        (lambda: score([JUDGE.as_metric(lm=dspy.utils.DummyLM([]))], ROWS), "or a model"),
        (lambda: score([Scripted()], ROWS, progress=False).select("scripted"), r"write \['scripted'\]"),
    ],
)
def test_wrong_arguments_are_named(call, says):
    with dspy.context(lm=dspy.utils.DummyLM([])), pytest.raises(OptionError, match=says):
        call()


def test_what_an_answer_cost_is_booked_also_where_part_of_it_was_known(tmp_path):
    members = Panel(CRITERIA).members()
    with serve(panelled) as server:
        options = {"lm": server.lm(temperature=1.0), "store": tmp_path / "s.db", "progress": False}
        score(members[:1], ROWS[:3], **options)
        assert server.requests == 3
        table = score(members, ROWS[:3], runs=2, batch_n=True, **options)
        assert table.usage.requests == server.requests - 3 > 0
        assert table.usage.prompt_tokens > 0
        assert table.counts()["ok"] == 18


def test_a_row_that_lacks_what_a_metric_needs_is_not_asked_about_by_the_next_run(tmp_path):
    judge = Scripted(lambda row, run: Status.SKIPPED if row.id == "1" else 1.0)
    for _ in range(2):
        table = score([judge], ROWS[:3], store=tmp_path / "s.db", progress=False)
        assert (table.counts()["skipped"], table.counts()["ok"]) == (1, 2)
    assert len(judge.asked) == 3


def test_a_cancelled_run_does_not_wait_for_answers_that_do_not_come(tmp_path):
    released = threading.Event()

    async def cancel():
        task = asyncio.ensure_future(
            ascore([Scripted(lambda row, run: released.wait(8) and 1.0)], ROWS, concurrency=2, progress=False)
        )
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    started = time.monotonic()
    asyncio.run(cancel())  # which waits for the thread of the run, too
    assert time.monotonic() - started < 3
    released.set()


def test_the_event_loop_is_free_while_a_store_is_opened(tmp_path):
    gaps = []

    async def tick():
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - before)

    async def both():
        ticking = asyncio.ensure_future(tick())
        await asyncio.sleep(0.05)
        await ascore([Scripted()], ROWS[:2], store=tmp_path / "s.db", progress=False)
        ticking.cancel()

    Store(tmp_path / "s.db").close()
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(1.0, other.execute, ("ROLLBACK",))
        timer.start()
        asyncio.run(both())
        timer.join()
    assert max(gaps) < 0.5
