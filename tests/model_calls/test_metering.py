"""Every request of a module is admitted by itself, whoever sends it and however often."""

from __future__ import annotations

import asyncio
import copy
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

import dspy
import pytest
from dspy.utils.exceptions import LMRateLimitError

from loopback import scripted, serve
from metricsmith.errors import JudgementFailed, ModelFailure
from metricsmith.metric import make_row
from metricsmith.model_calls.calls import model_call
from metricsmith.model_calls.dspy_internals import entry_usage, metered
from metricsmith.model_calls.limits import Budget, Concurrency
from metricsmith.model_calls.metering import LONGEST_WISH, RequestMeter
from metricsmith.model_calls.rate_limiter import RateLimiter, use
from metricsmith.optimizers.tuning.student import Meter
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status, Usage
from metricsmith.scoring import score


class Twice(dspy.Module):
    """One answer after the other, as modules with several predictors do."""

    def __init__(self):
        super().__init__()
        self.first, self.second = dspy.Predict("question -> answer: int"), dspy.Predict("question -> answer: int")

    def forward(self, question):
        self.first(question=f"{question}, first")
        return self.second(question=f"{question}, second")


class Direct(dspy.Module):
    """Asks the model past all predictors."""

    def forward(self, question):
        return dspy.Prediction(answer=dspy.settings.lm(question)[0])


def limiter(high=4, **budget):
    return RateLimiter(Concurrency(1, high), Budget(**budget))


def test_each_request_of_a_module_is_admitted_and_paid():
    with (
        serve(lambda prompt: {"answer": 3}) as server,
        dspy.context(lm=server.lm()),
        use(limiter(requests=5)) as running,
    ):
        calls = [model_call(Twice(), question=f"q{number}") for number in range(3)]
    assert [call.status for call in calls] == [Status.OK, Status.OK, Status.BUDGET]
    assert [call.usage.requests for call in calls] == [2, 2, 1]  # the last one paid for its first answer
    assert running.spent.requests == server.requests == 5
    assert running.in_flight == 0


def test_modules_that_ask_twice_do_not_wait_for_each_other():
    with serve(lambda prompt: {"answer": 3}) as server, dspy.context(lm=server.lm()), use(limiter(high=1)):
        assert model_call(Twice(), question="q").status is Status.OK
    assert server.requests == 2


def test_a_model_called_directly_is_admitted_too():
    with (
        serve(lambda prompt: {"answer": 3}) as server,
        dspy.context(lm=server.lm()),
        use(limiter(requests=1)) as running,
    ):
        statuses = [model_call(Direct(), question=f"q{number}").status for number in range(2)]
    assert statuses == [Status.OK, Status.BUDGET]
    assert running.spent.requests == server.requests == 1


def test_a_call_within_a_call_is_admitted_once():
    class Outer(dspy.Module):
        def forward(self, question):
            return model_call(Twice(), question=question).result()

    with serve(lambda prompt: {"answer": 3}) as server, dspy.context(lm=server.lm()), use(limiter(high=1)) as running:
        assert model_call(Outer(), question="q").status is Status.OK
    assert running.spent.requests == server.requests == 2


@pytest.mark.parametrize("swallow", [Exception, JudgementFailed])
def test_a_module_that_swallows_the_end_of_the_budget_has_no_answer(swallow):
    class Stubborn(Twice):
        def forward(self, question):
            try:
                return super().forward(question)
            except swallow:
                return dspy.Prediction(answer=7)

    with serve(lambda prompt: {"answer": 3}) as server, dspy.context(lm=server.lm()), use(limiter(requests=1)):
        call = model_call(Stubborn(), question="q")
    assert (call.status, call.prediction, call.usage.requests, server.requests) == (Status.BUDGET, None, 1, 1)


class Threads(dspy.Module):
    """Asks its predictor four times at once."""

    def __init__(self):
        super().__init__()
        self.rate = dspy.Predict("question -> answer: int")

    def forward(self, question):
        with ThreadPoolExecutor(4) as pool:
            asks = [pool.submit(copy_context().run, partial(self.rate, question=f"{question} {n}")) for n in range(4)]
            return [ask.result() for ask in asks][-1]


class Tasks(Threads):
    """The same on an event loop."""

    def forward(self, question):
        async def ask():
            return await asyncio.gather(*(self.rate.acall(question=f"{question} {n}") for n in range(4)))

        return asyncio.run(ask())[-1]


@pytest.mark.parametrize("module", [Threads, Tasks])
def test_requests_that_are_under_way_together_are_each_booked_once(module):
    with serve(lambda prompt: {"answer": 3}) as server, dspy.context(lm=server.lm()), use(limiter(high=2)) as running:
        calls = [model_call(module(), question=f"q{number}") for number in range(2)]
    assert [call.status for call in calls] == [Status.OK] * 2
    assert running.spent.requests == server.requests == 8
    assert (
        running.spent.prompt_tokens == server.tokens["prompt_tokens"] == sum(one.usage.prompt_tokens for one in calls)
    )
    assert server.most_in_flight <= 2
    assert running.in_flight == 0


@pytest.mark.parametrize("module", [Threads, Tasks])
def test_requests_that_are_under_way_together_keep_the_budget(module):
    with (
        serve(lambda prompt: {"answer": 3}) as server,
        dspy.context(lm=server.lm()),
        use(limiter(requests=6)) as running,
    ):
        statuses = [model_call(module(), question=f"q{number}").status for number in range(2)]
    assert statuses == [Status.OK, Status.BUDGET]
    assert server.requests <= running.spent.requests == 6  # what a task was cancelled in counts, sent or not


def test_a_model_may_be_copied_deeply_in_a_module():
    class Copying(Twice):
        def forward(self, question):
            with dspy.context(lm=copy.deepcopy(dspy.settings.lm)):
                return super().forward(question)

    with serve(lambda prompt: {"answer": 3}) as server, dspy.context(lm=server.lm()), use(limiter()) as running:
        assert model_call(Copying(), question="q").status is Status.OK
    assert running.spent.requests == server.requests == 2


def test_an_answer_without_a_history_entry_is_still_one_request():
    gate = RequestMeter(limiter())
    assert gate.send(None, lambda: "answer") == "answer"
    assert gate.limiter.spent.requests == 1
    gate = RequestMeter(limiter())
    gate.send(None, lambda: gate.record({"usage": {"prompt_tokens": 5, "completion_tokens": 1}}))
    assert gate.limiter.spent == Usage(1, 5, 1)


def test_an_error_of_the_senders_own_is_booked_as_one_request():
    gate = RequestMeter(limiter())
    with pytest.raises(ZeroDivisionError):
        gate.send(None, lambda: 1 / 0)
    assert (gate.limiter.spent, gate.limiter.in_flight) == (Usage(requests=1), 0)
    assert gate.usage == Usage()


def test_a_gated_model_is_still_what_it_was():
    with serve(lambda prompt: {"answer": 3}) as server:
        plain = server.lm()
        lm = metered(plain.copy())
        again = metered(lm.copy())
    assert isinstance(lm, dspy.LM)
    assert type(again) is type(lm) is not type(plain)
    assert type(lm).__name__ == "LM"
    assert lm.model == plain.model


def test_answers_from_the_cache_cost_nothing():
    class Response:
        cache_hit = True

    assert entry_usage({"usage": {}, "response": Response()}) == Usage()
    assert entry_usage({"usage": {"prompt_tokens": 7, "completion_tokens": 2}, "cost": 0.5}) == Usage(1, 7, 2, 0.5)


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_a_traceback_does_not_show_the_key_that_the_server_repeats(engine):
    key = "0f9e8d7c6b5a49382716aabbccddeeff"  # made up
    with serve(scripted) as server:
        server.respond = lambda body: (401, {"error": {"message": f"no use for {key}", "type": "t", "code": "401"}})
        lm = server.lm(engine=engine).copy(api_key=key)
        with dspy.context(lm=lm), pytest.raises(ModelFailure, match="no use for") as refused:
            model_call(dspy.Predict("question -> answer"), question="?")
    shown = "".join(traceback.format_exception(refused.value))
    assert "AuthError" in shown
    assert key not in shown


@pytest.fixture
def cached():
    """DSPy's memory cache, on for one test."""
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)


def silent(server):
    """`server`, which reports no usage from now on."""
    respond = server.respond
    server.respond = lambda body: (200, {**respond(body)[1], "usage": None})
    return server


@pytest.mark.parametrize("reports", [True, False])
@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_answers_from_the_cache_are_no_requests_whatever_the_server_reports(cached, reports, engine, monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with serve(lambda prompt: {"answer": 3, "reasoning": "Fine.", "score": 4}) as server:
        server = server if reports else silent(server)
        lm = server.lm(engine=engine).copy(cache=True, model=f"openai/{engine}-{reports}")
        with dspy.context(lm=lm), use(limiter(requests=2)) as running, dspy.track_usage() as told:
            calls = [model_call(Twice(), question="q") for _ in range(3)]
        table = score([Judge()], ROWS, lm=lm, progress=False)
        again = score([Judge()], ROWS, lm=lm, budget=Budget(requests=1), concurrency=4, progress=False)
    assert [call.usage.requests for call in calls] == [2, 0, 0]
    assert running.spent.requests == 2
    assert (table.usage.requests, again.usage.requests, again.counts()["ok"]) == (5, 0, 5)
    assert server.requests == 7
    tokens = told.get_total_tokens().get(lm.model, {}).get("prompt_tokens") or 0
    assert tokens == running.spent.prompt_tokens == sum(call.usage.prompt_tokens for call in calls)
    assert (tokens > 0) is reports


class Judge(CriterionJudge):
    def __init__(self, **settings):
        super().__init__(**({"criterion": "Clear", "meaning": "Good.", "task": "Write."} | settings))


ROWS = [make_row(f"some text number {number}", id=str(number)) for number in range(5)]


@pytest.mark.parametrize("place", ["model", "model of the judge", "judge"])
def test_a_models_own_n_is_not_used(place):
    with serve(lambda prompt: {"reasoning": "Fine.", "score": 4}) as server:
        lm, judge = server.lm(n=5 if place != "judge" else None, temperature=0.9), Judge()
        if place == "judge":
            judge.judge.config["n"] = 5
        elif place == "model of the judge":
            judge.set_lm(lm)
        table = score(
            [judge], ROWS, lm=server.lm() if judge.judge.lm else lm, budget=Budget(requests=4), progress=False
        )
        assert table.counts()["ok"] == server.requests == table.usage.requests == 4
        assert {seen.n for seen in server.log} == {1}
        assert lm.kwargs["n"] == (5 if place != "judge" else None)
        meter = Meter(limiter(requests=9))
        assert len(meter.wrap(server.lm(n=5))("Say it.")) == 1
        assert meter.limiter.spent.requests == server.requests - 4 == 1


def test_several_requests_for_several_answers_are_counted_as_that():
    with serve(lambda prompt: {"answer": 3}) as server:
        meter = Meter(limiter())
        assert len(meter.wrap(server.lm())("Say it.", n=3)) == 3
    assert meter.limiter.spent.requests == server.requests == 3


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("wish", "pauses"), [(LONGEST_WISH, [LONGEST_WISH] * 2), (LONGEST_WISH + 1, [])])
def test_who_writes_instructions_waits_as_a_server_wishes_but_for_days(wish, pauses, asynchronous, monkeypatch):
    seen, sent = [], []
    monkeypatch.setattr(RateLimiter, "pause", lambda limiter, seconds: seen.append(seconds) or True)

    def request():
        sent.append(1)
        raise LMRateLimitError("later", retry_after=wish)

    async def awaited():
        request()

    meter = Meter(limiter())
    with pytest.raises(LMRateLimitError):
        asyncio.run(meter.asend(None, awaited)) if asynchronous else meter.send(None, request)
    assert (seen, len(sent)) == (pauses, len(pauses) + 1)
    assert meter.limiter.spent.requests == len(sent)


def test_an_error_of_our_own_is_not_the_models_answer():
    class Broken(RateLimiter):
        def enter(self):
            raise OverflowError("timestamp out of range for platform time_t")

    with (
        serve(lambda prompt: {"answer": 3}) as server,
        dspy.context(lm=server.lm()),
        use(Broken(Concurrency(1, 4))),
        pytest.raises(OverflowError, match="timestamp"),
    ):
        model_call(Twice(), question="q")
    assert server.requests == 0


def test_one_meter_of_requests_side_by_side_loses_no_cost():
    meter = RequestMeter(RateLimiter(Concurrency(100, 100)))
    entry = {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "cost": 0.0, "response": {}, "outputs": ["x"]}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: [meter.record(entry) for _ in range(1000)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert (meter.usage.prompt_tokens, len(meter.entries)) == (8000, 8000)
