"""An answer of no use is never final because DSPy's cache replays it; a good one takes its place there."""

from __future__ import annotations

import dspy
import pytest

from faults import Fault, Faults
from loopback import serve
from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.calls import model_call, model_calls
from metricsmith.model_calls.limits import Budget, Concurrency
from metricsmith.model_calls.rate_limiter import RateLimiter, use
from metricsmith.records import Status, Usage

USELESS = {
    Fault.CHATTER: Status.UNPARSABLE,
    Fault.NULL: Status.UNPARSABLE,
    Fault.CUT_OFF: Status.UNPARSABLE,
    Fault.OUT_OF_RANGE: Status.OUT_OF_RANGE,
    Fault.REFUSAL: Status.REFUSED,
    Fault.FILTERED: Status.REFUSED,
}


class Rate(dspy.Module):
    """A number from 1 to 5."""

    def __init__(self, **settings):
        super().__init__()
        self.rate = dspy.Predict("text -> score: int", **settings)

    def forward(self, text):
        answer = self.rate(text=text)
        if not 1 <= answer.score <= 5:
            raise JudgementFailed(f"score {answer.score} is not on the scale", Status.OUT_OF_RANGE)
        return answer


@pytest.fixture(autouse=True)
def restarted(tmp_path):
    """Call it for what the next process finds: DSPy's cache on the disk, and nothing in memory."""

    def restart():
        dspy.configure_cache(enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(tmp_path / "cache"))

    restart()
    yield restart
    dspy.cache.disk_cache.close()
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)


def model(server, **settings):
    address = server.lm().kwargs["api_base"]
    return dspy.LM("openai/m", api_base=address, api_key="none", **{"temperature": 1.0, "timeout": 60.0} | settings)


def asked(server, module=None, run=0, **settings):
    """Status and number of a call, and the requests it sent, by our count and by the server's."""
    before = server.requests
    with dspy.context(lm=model(server, **settings)):
        call = model_call(module or Rate(), run=run, text="a text")
    assert call.usage.requests == server.requests - before
    return call.status, call.prediction and call.prediction.score, call.usage.requests


@pytest.mark.parametrize("run", [0, 7])
@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("fault", USELESS)
def test_a_failure_is_asked_anew_by_the_next_process_and_its_answer_is_kept(restarted, fault, engine, run):
    repairs = int(USELESS[fault] is not Status.REFUSED)
    with serve(lambda prompt: {"score": 4}, script=Faults({fault: 1.0})) as server:
        assert asked(server, engine=engine, run=run) == (USELESS[fault], None, 1 + repairs)
        restarted()
        assert asked(server, engine=engine, run=run) == (USELESS[fault], None, 1 + repairs)
        server.script = Faults()
        restarted()
        assert asked(server, engine=engine, run=run) == (Status.OK, 4, 1)
        restarted()
        assert asked(server, engine=engine, run=run) == (Status.OK, 4, 0)


def test_an_old_answer_of_no_use_is_asked_for_in_the_words_of_a_first_request():
    with serve(lambda prompt: {"score": 4}, script=Faults(script={"": [Fault.CHATTER] * 3})) as server:
        asked(server)
        assert asked(server) == (Status.OK, 4, 2)  # the third answer is of no use as well, the fourth is its repair
    first, repair, anew, again = server.prompts
    assert anew == first
    assert repair == again != first


def test_a_repaired_answer_is_found_by_the_request_that_it_repairs():
    with serve(lambda prompt: {"score": 4}, script=Faults(script={"": [Fault.CHATTER]})) as server:
        assert asked(server) == (Status.OK, 4, 2)
        assert asked(server) == (Status.OK, 4, 0)
        plain = dspy.ChatAdapter(use_json_adapter_fallback=False)
        with dspy.context(lm=model(server), adapter=plain):  # DSPy itself knows key and content
            assert dspy.Predict("text -> score: int")(text="a text").score == 4
        assert server.requests == 2
        assert asked(server, temperature=0.9) == (Status.OK, 4, 1)  # another request has a place of its own
        assert asked(server, run=1) == (Status.OK, 4, 1)


def test_what_is_kept_is_what_dspy_keeps_of_such_an_answer():
    with serve(lambda prompt: {"score": 4}) as server:
        asked(server)
    (own,) = dspy.cache.memory_cache.values()
    dspy.cache.reset_memory_cache()
    dspy.cache.disk_cache.clear()
    with serve(lambda prompt: {"score": 4}, script=Faults(script={"": [Fault.REFUSAL]})) as server:
        asked(server)
        asked(server)
    (kept,) = dspy.cache.memory_cache.values()
    assert kept == own


@pytest.mark.parametrize("where", ["model", "predictor"])
def test_who_wants_no_cache_gets_none(where):
    module = Rate(**{"cache": False} if where == "predictor" else {})
    settings = {"cache": False} if where == "model" else {}
    with serve(lambda prompt: {"score": 4}, script=Faults(script={"": [Fault.CHATTER]})) as server:
        assert asked(server, module, **settings) == (Status.OK, 4, 2)
        assert asked(server, module, **settings) == (Status.OK, 4, 1)
    assert not dspy.cache.memory_cache


def test_asking_past_the_cache_is_within_the_budget():
    with serve(lambda prompt: {"score": 9}) as server:
        assert asked(server) == (Status.OUT_OF_RANGE, None, 2)
        with use(RateLimiter(Concurrency(1, 1), Budget(requests=1))):
            assert asked(server) == (Status.BUDGET, None, 1)


def runs(server, most=4):
    before = server.requests
    with dspy.context(lm=model(server)):
        made = model_calls(Rate(), range(most), text="a text")
    assert sum((call.usage for call in made), Usage()).requests == server.requests - before
    return [call.status.value for call in made], server.requests - before


def test_runs_that_one_request_carries_are_mended_one_by_one(restarted):
    wrong = {0: 9, 1: 2, 2: 9, 3: 4}
    with serve(lambda prompt, choice: {"score": wrong[choice]}) as server:
        # The repairs of the first and the third are answered by choice 0, which is off the scale as well.
        assert runs(server) == (["out_of_range", "ok", "out_of_range", "ok"], 3)
        wrong[0] = 5
        restarted()
        assert runs(server) == (["ok"] * 4, 2)
        restarted()
        assert runs(server) == (["ok"] * 4, 0)


def test_a_run_that_was_repaired_stays_so(restarted):
    # One malformed choice of four is repaired by a request of its own; the shared answer stays as it is.
    with serve(lambda prompt: {"score": 4}, script=Faults(script={"": [Fault.ONE_MALFORMED]})) as server:
        assert runs(server) == (["ok"] * 4, 2)
        restarted()
        assert runs(server) == (["ok"] * 4, 0)
