"""A model call: every request counted, every failure a status, nothing hidden."""

from __future__ import annotations

import random

import dspy
import pytest
from dspy.utils import DummyLM

from loopback import serve
from metricsmith.errors import ModelFailure, NeedsError
from metricsmith.model_calls import metering
from metricsmith.model_calls.calls import model_call, private_copy
from metricsmith.model_calls.limits import Budget, Concurrency
from metricsmith.model_calls.rate_limiter import RateLimiter, use
from metricsmith.records import Status


class Ask(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int")

    def forward(self, question):
        return self.ask(question=question)


def test_a_good_call_counts_one_request_with_its_tokens():
    with serve(lambda prompt: {"answer": 3}) as server, dspy.context(lm=server.lm()):
        call = model_call(Ask(), question="q")
    assert (call.prediction.answer, call.status, call.usage.requests) == (3, Status.OK, 1)
    assert call.usage.prompt_tokens == len(server.prompts[0]) // 4
    assert server.requests == 1


def test_the_count_equals_what_the_server_saw_under_faults():
    with serve(lambda prompt: {"answer": 3}, server_errors=0.4, malformed=0.3) as server:
        with dspy.context(lm=server.lm()):
            done = [model_call(Ask(), question=f"q{number}") for number in range(60)]
    assert sum(call.usage.requests for call in done) == server.requests
    assert {call.status for call in done} >= {Status.OK, Status.TRANSPORT}
    assert all((call.prediction is None) == (call.status is not Status.OK) for call in done)


def test_an_unparsable_answer_is_asked_for_once_more_and_then_fails():
    with serve(lambda prompt: {"answer": "three"}) as server, dspy.context(lm=server.lm()):
        call = model_call(Ask(), question="q")
    assert (call.prediction, call.status, server.requests) == (None, Status.UNPARSABLE, 2)


@pytest.mark.parametrize(("status", "requests"), [(500, 5), (429, 5), (400, 1)])
def test_only_what_may_pass_is_tried_again(status, requests):
    with serve(lambda prompt: {}, always=status) as server, dspy.context(lm=server.lm()):
        call = model_call(Ask(), question="q")
    assert (call.status, server.requests, call.usage.requests) == (Status.TRANSPORT, requests, requests)
    assert f"always {status}" in call.error


def test_a_wrong_key_stops_at_once_with_the_servers_words():
    with (
        serve(lambda prompt: {}, always=401) as server,
        dspy.context(lm=server.lm()),
        pytest.raises(ModelFailure, match="always 401"),
    ):
        model_call(Ask(), question="q")
    assert server.requests == 1


def test_a_dead_server_is_a_transport_failure():
    with serve(lambda prompt: {}) as server:
        lm = server.lm()
    with dspy.context(lm=lm):
        call = model_call(Ask(), question="q")
    assert (call.status, call.usage.requests) == (Status.TRANSPORT, 5)


def test_without_a_model_the_error_says_what_to_do():
    with dspy.context(lm=None), pytest.raises(NeedsError, match=r"pass lm=dspy\.LM"):
        model_call(Ask(), question="q")


def test_the_callers_model_keeps_its_settings_and_history():
    with serve(lambda prompt: {"answer": 3}) as server:
        lm = server.lm(num_retries=7)
        with dspy.context(lm=lm):
            model_call(Ask(), question="q")
    assert lm.num_retries == 7
    assert lm.history == []


@pytest.fixture
def cached(monkeypatch):
    """DSPy's memory cache, on for one test, and a model that uses it."""
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield lambda server: dspy.LM(f"openai/c{server.port}", api_base=server.lm().kwargs["api_base"], api_key="none")
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)


def test_an_answer_from_the_cache_costs_no_request(cached):
    with serve(lambda prompt: {"answer": 3}) as server, dspy.context(lm=cached(server)):
        first, again = model_call(Ask(), question="q"), model_call(Ask(), question="q")
    assert (first.usage.requests, again.usage.requests, server.requests) == (1, 0, 1)
    assert (again.prediction.answer, again.usage.prompt_tokens) == (3, 0)


def test_every_run_has_its_own_place_in_the_cache(cached):
    with serve(lambda prompt: {"answer": 3}) as server, dspy.context(lm=cached(server)):
        counts = [model_call(Ask(), run=run, question="q").usage.requests for run in (0, 1, 1, 2, 0)]
    assert counts == [1, 1, 0, 1, 0]
    assert server.requests == 3


def test_an_unusable_answer_is_not_taken_from_the_cache_again(cached):
    answers = iter(["three", "3"])
    with serve(lambda prompt: {"answer": next(answers)}) as server, dspy.context(lm=cached(server)):
        call = model_call(Ask(), question="q")
    assert (call.status, server.requests, call.usage.requests) == (Status.OK, 2, 2)


def test_a_filtered_request_is_a_refusal_and_not_tried_again():
    def refuse(body):
        return 400, {"error": {"message": "not allowed", "type": "invalid_request_error", "code": "content_filter"}}

    with serve(lambda prompt: {}) as server, dspy.context(lm=server.lm()):
        server.respond = refuse
        call = model_call(Ask(), question="q")
    assert (call.status, call.usage.requests, server.requests) == (Status.REFUSED, 1, 1)
    assert "not allowed" in call.error


def test_pauses_double_with_jitter_up_to_a_limit_and_none_follows_the_last(monkeypatch):
    pauses = []
    monkeypatch.setattr(metering, "FIRST_PAUSE", 4.0)
    monkeypatch.setattr(RateLimiter, "pause", lambda limiter, seconds: pauses.append(seconds) or True)
    with serve(lambda prompt: {}, always=500) as server, dspy.context(lm=server.lm()):
        model_call(Ask(), tries=6, question="q")
    wanted = [4.0, 8.0, 16.0, 30.0, 30.0]
    assert len(pauses) == len(wanted)
    assert all(0.5 * most <= pause <= most for pause, most in zip(pauses, wanted, strict=True))
    assert len({pause / most for pause, most in zip(pauses, wanted, strict=True)}) > 1


def test_time_is_measured_and_cost_follows_the_models_price():
    with serve(lambda prompt: {"answer": 3}) as server:
        address = server.lm().kwargs["api_base"]
        with dspy.context(lm=dspy.LM("openai/gpt-4o-mini", api_base=address, api_key="none", cache=False)):
            priced = model_call(Ask(), question="q").usage
        with dspy.context(lm=server.lm()):
            unpriced = model_call(Ask(), question="q").usage
    assert priced.cost > 0
    assert unpriced.cost is None
    assert 0 < unpriced.seconds < 30


def test_failed_tries_count_as_requests_of_the_call_that_succeeds():
    replies = iter([500, 500, 200])
    with serve(lambda prompt: {"answer": 3}) as server, dspy.context(lm=server.lm()):
        answer = server.respond
        broken = 500, {"error": {"message": "down", "type": "server_error", "code": "x"}}
        server.respond = lambda body: answer(body) if next(replies) == 200 else broken
        call = model_call(Ask(), question="q")
    assert (call.status, call.usage.requests, server.requests) == (Status.OK, 3, 3)


def test_a_server_that_reports_no_usage_is_counted_and_a_cached_answer_is_not():
    with serve(lambda prompt: {"answer": 3}) as server:
        answer = server.respond

        def silent(body):
            status, content = answer(body)
            content.pop("usage", None)
            return status, content

        server.respond = silent
        with dspy.context(lm=server.lm()):
            call = model_call(Ask(), question="q")
    assert (call.usage.requests, call.usage.prompt_tokens, server.requests) == (1, 0, 1)


def limiter(**budget):
    return RateLimiter(Concurrency(4, 4), Budget(**budget))


def test_every_request_passes_the_flow_and_is_booked_there():
    answers = iter([500, "nine", 3, 3])
    with serve(lambda prompt: {"answer": next(given)}) as server, dspy.context(lm=server.lm()):
        given, respond = iter(["nine", 3, 3]), server.respond
        down = 500, {"error": {"message": "down", "type": "server_error", "code": "x"}}
        server.respond = lambda body: down if next(answers) == 500 else respond(body)
        with use(limiter()) as running:
            made = [model_call(Ask(), question="q") for _ in range(2)]
    assert [call.usage.requests for call in made] == [3, 1]
    assert (running.spent.requests, running.in_flight, server.requests) == (4, 0, 4)
    assert running.spent.prompt_tokens == sum(call.usage.prompt_tokens for call in made)


def test_an_answer_from_the_cache_takes_nothing_from_the_budget(cached):
    with (
        serve(lambda prompt: {"answer": 3}) as server,
        dspy.context(lm=cached(server)),
        use(limiter(requests=2)) as running,
    ):
        for _ in range(5):
            assert model_call(Ask(), question="q").status is Status.OK
    assert (running.spent.requests, server.requests) == (1, 1)


def test_a_spent_budget_and_a_stopped_run_are_statuses_and_send_nothing():
    with serve(lambda prompt: {"answer": "three"}) as server, dspy.context(lm=server.lm()):
        with use(limiter(requests=1)):
            before_repair, at_once = model_call(Ask(), question="q"), model_call(Ask(), question="q")
        with use(limiter()) as running:
            running.stop("enough")
            stopped = model_call(Ask(), question="q")
    assert [call.status for call in (before_repair, at_once, stopped)] == [Status.BUDGET, Status.BUDGET, Status.SKIPPED]
    assert [call.usage.requests for call in (before_repair, at_once, stopped)] == [1, 0, 0]
    assert "enough" in stopped.error
    assert server.requests == 1


def test_a_retry_is_not_waited_for_beyond_the_time_budget(monkeypatch):
    monkeypatch.setattr(metering, "FIRST_PAUSE", 60.0)  # at least 15 seconds with jitter
    with serve(lambda prompt: {}, always=500) as server, dspy.context(lm=server.lm()), use(limiter(seconds=10)):
        call = model_call(Ask(), question="q")
    assert (call.status, server.requests) == (Status.TRANSPORT, 1)
    assert call.usage.seconds < 5


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404])
def test_in_a_run_hopeless_errors_are_counted_by_the_flow_until_it_stops(status):
    with serve(lambda prompt: {}, always=status) as server, dspy.context(lm=server.lm()), use(limiter()) as running:
        made = [model_call(Ask(), question=f"q{number}") for number in range(6)]
    assert [call.status for call in made] == [Status.TRANSPORT] * 4 + [Status.SKIPPED] * 2
    assert f"always {status}" in running.hopeless
    assert server.requests == 4


def test_refused_and_overlong_rows_do_not_count_as_hopeless():
    codes = ["content_filter"] * 5 + ["context_length_exceeded"] * 5

    def refuse(body):
        code = codes.pop(0)
        return 400, {"error": {"message": "no", "type": "invalid_request_error", "code": code}}

    with serve(lambda prompt: {}) as server, dspy.context(lm=server.lm()), use(limiter()) as running:
        server.respond = refuse
        statuses = [model_call(Ask(), question=f"q{number}").status for number in range(10)]
    assert running.stopped == ""
    assert statuses == [Status.REFUSED] * 5 + [Status.TRANSPORT] * 5
    with serve(lambda prompt: {}, always=413) as server, dspy.context(lm=server.lm()), use(limiter()) as running:
        assert {model_call(Ask(), question=f"q{number}").status for number in range(5)} == {Status.TRANSPORT}
    assert (running.stopped, server.requests) == ("", 5)


def test_a_model_that_is_not_configured_sends_nothing_and_says_so():
    lm = dspy.LM("openai/m", engine="lm15", extra_headers={"a": "b"}, api_key="none", cache=False)
    with dspy.context(lm=lm), pytest.raises(ModelFailure, match="LiteLLM"):
        model_call(Ask(), question="q")
    with dspy.context(lm=lm), use(limiter()) as running:
        call = model_call(Ask(), question="q")
    assert (call.status, call.usage.requests, running.spent.requests, running.in_flight) == (Status.TRANSPORT, 0, 0, 0)


def test_an_error_of_the_module_itself_is_raised_and_leaves_the_flow():
    class Broken(dspy.Module):
        def forward(self):
            raise ZeroDivisionError

    with serve(lambda prompt: {}) as server, dspy.context(lm=server.lm()), use(limiter()) as running:
        with pytest.raises(ZeroDivisionError):
            model_call(Broken())
    assert (running.in_flight, running.spent.requests) == (0, 0)


def test_a_repair_is_not_taken_from_the_cache(cached):
    answers = iter(["three", "drei", "3"])
    with serve(lambda prompt: {"answer": next(answers)}) as server, dspy.context(lm=cached(server)):
        first, again = model_call(Ask(), question="q"), model_call(Ask(), question="q")
    assert [call.status for call in (first, again)] == [Status.UNPARSABLE, Status.OK]
    assert [call.usage.requests for call in (first, again)] == [2, 1]


def test_a_predictors_own_model_comes_before_the_one_in_force_and_keeps_nothing():
    with serve(lambda prompt: {"answer": 3}) as own, serve(lambda prompt: {"answer": 4}) as other:
        module = Ask()
        module.set_lm(own.lm())
        with dspy.context(lm=other.lm()):
            first = model_call(module, question="q")
        with dspy.context(lm=None):
            second = model_call(module, question="q")
    assert [call.prediction.answer for call in (first, second)] == [3, 3]
    assert (first.usage.requests, own.requests, other.requests) == (1, 2, 0)
    assert module.ask.lm.history == module.history == []


def test_retries_on_a_predictors_own_model_are_ours_alone():
    with serve(lambda prompt: {}, always=500) as server:
        module = Ask()
        module.set_lm(server.lm(num_retries=3))
        with dspy.context(lm=None):
            call = model_call(module, tries=2, question="q")
    assert (call.usage.requests, server.requests) == (2, 2)


def test_a_change_of_module_or_model_takes_effect_at_once():
    with serve(lambda prompt: {"answer": 3}) as server:
        module, seen, respond = Ask(), [], server.respond
        module.set_lm(server.lm())
        server.respond = lambda body: seen.append(body) or respond(body)
        with dspy.context(lm=None):
            model_call(module, question="q")
            module.ask.demos.append(dspy.Example(question="an example", answer=1).with_inputs("question"))
            module.ask.signature = module.ask.signature.with_instructions("Count the words.")
            model_call(module, question="q")
            module.ask.lm.kwargs["temperature"] = 0.75
            model_call(module, question="q")
    assert ["an example" in prompt for prompt in server.prompts] == [False, True, True]
    assert ["Count the words." in prompt for prompt in server.prompts] == [False, True, True]
    assert [body.get("temperature") for body in seen] == [None, None, 0.75]


def test_a_model_without_a_time_out_gets_one_and_a_custom_engine_does_not():
    assert private_copy(dspy.LM("openai/m")).kwargs["timeout"] == 120
    assert private_copy(dspy.LM("openai/m", timeout=3)).kwargs["timeout"] == 3
    engine = type("Engine", (), {"complete": lambda self, request: None})()
    assert "timeout" not in private_copy(dspy.LM("x/m", engine=engine)).kwargs
    with dspy.context(lm=DummyLM([{"answer": "3"}])):
        assert model_call(Ask(), question="q").prediction.answer == 3


def test_callers_random_numbers_are_not_touched():
    module = Ask()  # making it takes random numbers, which is DSPy's doing
    random.seed(7)
    wanted = random.random()
    random.seed(7)
    with serve(lambda prompt: {}, always=500) as server, dspy.context(lm=server.lm()):
        model_call(module, question="q")
    assert random.random() == wanted
