"""A model call: every request counted, every failure a status, nothing hidden."""

from __future__ import annotations

import dspy
import pytest

from loopback import serve
from metricsmith.errors import ModelFailure, NeedsError
from metricsmith.programs import calls
from metricsmith.programs.calls import model_call
from metricsmith.records import Status


class Ask(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int")

    def forward(self, question):
        return self.ask(question=question)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.001)


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


@pytest.mark.parametrize(("status", "requests"), [(500, 3), (429, 3), (400, 1)])
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
    assert (call.status, call.usage.requests) == (Status.TRANSPORT, 3)


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
