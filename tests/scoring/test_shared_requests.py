"""Several runs in one request: each choice is read on its own, and what it cost is counted once."""

from __future__ import annotations

import dspy
import pytest
from dspy import lm15

from faults import Fault, Faults
from loopback import serve
from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.calls import model_calls
from metricsmith.model_calls.limits import Budget, Concurrency
from metricsmith.model_calls.rate_limiter import RateLimiter, use
from metricsmith.records import Status, Usage


class Rate(dspy.Module):
    """A number from 1 to 5."""

    def __init__(self):
        super().__init__()
        self.rate = dspy.Predict("text -> score: int")

    def forward(self, text):
        answer = self.rate(text=text)
        if not 1 <= answer.score <= 5:
            raise JudgementFailed(f"score {answer.score} is not on the scale", Status.OUT_OF_RANGE)
        return answer


@pytest.fixture
def cached():
    """DSPy's memory cache, on for one test, and a model that uses it."""
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield lambda server: dspy.LM(f"openai/n{server.port}", api_base=server.lm().kwargs["api_base"], api_key="none")
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)


def limiter(**budget):
    return RateLimiter(Concurrency(4, 4), Budget(**budget))


def runs_on(server, runs, module=None, **settings):
    with dspy.context(lm=server.lm(temperature=1.0, **settings)):
        return model_calls(module or Rate(), runs, text="a text")


def totals(made):
    return sum((call.usage for call in made), Usage())


def test_one_request_carries_all_runs_and_its_cost_stands_in_the_first():
    with serve(lambda prompt, choice: {"score": choice + 1}) as server:
        made = runs_on(server, [0, 1, 2, 3])
    assert [call.prediction.score for call in made] == [1, 2, 3, 4]
    assert [call.usage.requests for call in made] == [1, 0, 0, 0]
    assert [seen.n for seen in server.log] == [4]
    assert totals(made).prompt_tokens == server.tokens["prompt_tokens"]
    assert totals(made).completion_tokens == server.tokens["completion_tokens"]


def test_unusable_choices_are_repaired_one_by_one_and_missing_ones_asked_for():
    scores = ["2", "four", "9", "5"]  # the last does not come
    with serve(lambda prompt, choice: {"score": scores[choice]}) as server, dspy.context(lm=server.lm(temperature=1.0)):
        respond = server.respond

        def answer(body):
            status, content = respond(body)
            content["choices"] = content["choices"][:3]
            return status, content

        server.respond = answer
        made = model_calls(Rate(), [0, 1, 2, 3], text="a text")
    assert [call.prediction.score for call in made] == [2, 2, 2, 2]  # a single answer is the first choice
    assert [call.usage.requests for call in made] == [1, 1, 1, 1]
    assert [seen.n for seen in server.log] == [4, 1, 1, 1]
    assert ["four" in prompt for prompt in server.prompts] == [False, True, False, False]
    assert ["score 9 is not on the scale" in prompt for prompt in server.prompts] == [False, False, True, False]


def test_every_choice_has_one_repair():
    with serve(lambda prompt, choice: {"score": 9}) as server:
        made = runs_on(server, [0, 1])
    assert [call.status for call in made] == [Status.OUT_OF_RANGE] * 2
    assert ([call.usage.requests for call in made], server.requests) == ([2, 1], 3)


def test_a_rejected_n_does_not_stop_the_run():
    script = Faults(script=lambda prompt: [Fault.NO_CHOICE_OF_N])
    running = RateLimiter(Concurrency(4, 4), hopeless_in_a_row=1)
    with serve(lambda prompt: {"score": 3}, script=script) as server, use(running):
        made = runs_on(server, [0, 1])
    assert ([call.status for call in made], running.stopped) == ([Status.OK] * 2, "")


@pytest.mark.parametrize(
    ("http", "code", "status"),
    [
        (400, "content_filter", Status.REFUSED),
        (400, "context_length_exceeded", Status.TRANSPORT),
        (413, "too_large", Status.TRANSPORT),
    ],
)
def test_a_shared_request_that_is_refused_for_its_text_is_not_sent_again_singly(http, code, status):
    problem = {"error": {"message": "no", "type": "invalid_request_error", "code": code}}
    with serve(lambda prompt: {"score": 3}) as server, use(limiter()) as running:
        server.respond = lambda body: (http, problem)
        made = [runs_on(server, [0, 1, 2]) for _ in range(2)]
    assert {call.status for row in made for call in row} == {status}
    assert [[call.usage.requests for call in row] for row in made] == [[1, 0, 0]] * 2
    assert (server.requests, running.stopped) == (2, "")


def test_a_refusing_choice_fails_alone():
    with serve(lambda prompt, choice: {"score": 3}) as server, dspy.context(lm=server.lm(temperature=1.0)):
        respond = server.respond

        def answer(body):
            status, content = respond(body)
            content["choices"][1]["message"] = {"role": "assistant", "content": "I can't help with that."}
            content["choices"][2] |= {
                "finish_reason": "content_filter",
                "message": {"role": "assistant", "content": ""},
            }
            return status, content

        server.respond = answer
        made = model_calls(Rate(), [0, 1, 2], text="a text")
    assert [call.status for call in made] == [Status.OK, Status.REFUSED, Status.REFUSED]
    assert server.requests == 1


def test_a_shared_request_that_is_lost_fails_all_runs_and_is_counted_once():
    with serve(lambda prompt: {}, always=500) as server:
        made = runs_on(server, [0, 1, 2])
    assert {call.status for call in made} == {Status.TRANSPORT}
    assert [call.usage.requests for call in made] == [5, 0, 0]
    assert server.requests == 5
    with serve(lambda prompt: {"score": 3}) as server, use(limiter(requests=1)):
        assert [call.status for call in runs_on(server, [0, 1])] == [Status.OK] * 2
        assert [call.status for call in runs_on(server, [0, 1])] == [Status.BUDGET] * 2


def test_a_provider_that_takes_no_n_is_asked_singly_from_then_on(caplog):
    script = Faults(script=lambda prompt: [Fault.NO_CHOICE_OF_N] * 9)
    with serve(lambda prompt: {"score": 3}, script=script) as server, use(limiter()) as running:
        with dspy.context(lm=server.lm(temperature=1.0)):
            made = [model_calls(Rate(), [0, 1, 2], text=text) for text in ("a", "b")]
    assert {call.status for call in [*made[0], *made[1]]} == {Status.OK}
    assert [[call.usage.requests for call in row] for row in made] == [[2, 1, 1], [1, 1, 1]]
    assert [seen.n for seen in server.log] == [3, 1, 1, 1, 1, 1, 1]
    assert sum("takes no n" in record.message for record in caplog.records) == 1
    assert (running.stopped, running.spent.requests) == ("", 7)


def test_different_runs_have_different_places_in_the_cache(cached):
    with serve(lambda prompt, choice: {"score": choice + 1}) as server:
        lm = cached(server).copy(temperature=1.0)
        with dspy.context(lm=lm):
            requests = [
                totals(model_calls(Rate(), runs, text="t")).requests
                for runs in ([0, 1], [0, 1], [2, 3], [2, 4], [2, 3])
            ]
    assert requests == [1, 0, 1, 1, 0]


def test_one_run_a_custom_engine_or_a_module_of_two_steps_takes_single_requests():
    class Engine:
        asked = 0

        def complete(self, request):
            Engine.asked += 1
            text = "[[ ## score ## ]]\n3\n[[ ## completed ## ]]"
            usage = lm15.Usage(input_tokens=5, output_tokens=5, total_tokens=10)
            return lm15.Response(
                id="1", model="m", message=lm15.Message.assistant(text), finish_reason="stop", usage=usage
            )

    with dspy.context(lm=dspy.LM("x/m", engine=Engine(), cache=False, temperature=1.0)):
        made = model_calls(Rate(), [0, 1, 2], text="t")
    assert ([call.prediction.score for call in made], Engine.asked, totals(made).requests) == ([3, 3, 3], 3, 3)
    with serve(lambda prompt: {"score": 3}) as server:
        assert runs_on(server, [5])[0].usage.requests == 1
    assert [seen.n for seen in server.log] == [1]


class Twice(Rate):
    """Asks twice."""

    def forward(self, text):
        return super().forward(text=f"{text} and {super().forward(text=text).score}")


def test_a_module_that_asks_twice_is_run_singly():
    with serve(lambda prompt, choice: {"score": choice + 1}) as server:
        made = runs_on(server, [0, 1], Twice())
    assert [call.prediction.score for call in made] == [1, 1]
    assert totals(made).requests == server.requests == 6
