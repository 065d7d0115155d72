"""Facts that `model_calls/dspy_internals.py` takes for granted of DSPy below its public surface, one a test.

One that fails with a new DSPy names the place to mend: that file, and no other.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from functools import lru_cache
from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM
from dspy.utils.callback import BaseCallback

import metricsmith
from loopback import serve
from metricsmith.model_calls import dspy_internals
from metricsmith.model_calls.dspy_internals import (
    FORMS,
    AnswerTracker,
    Reader,
    came_from_cache,
    copied,
    full_evaluations,
    metered,
    openai_chat,
    price_list,
    requests_of,
    text_of,
    token_count,
    tokens_of,
    without_callbacks,
)

INNER = re.compile(
    r"model_metadata|_call_postprocess|__wrapped__|update_history|AUTO_RUN_SETTINGS|__class__ ="
    r"|dspy\._|getattr\(dspy\.\w+Adapter"
)


def test_no_other_file_reaches_below_the_public_surface():
    root = Path(metricsmith.__file__).parent
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if any(INNER.search(line) for line in path.read_text("utf-8").splitlines() if not line.lstrip().startswith("#"))
    }
    assert found == {"model_calls/dspy_internals.py"}


class Witness(BaseCallback):
    def __init__(self):
        self.told = []

    def on_adapter_format_start(self, call_id, instance, inputs):
        self.told.append(type(instance).__name__)


class Under(dspy.JSONAdapter):
    """A subclass of a subclass."""


@pytest.mark.parametrize("kind", [dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter, Under])
def test_every_subclass_of_an_adapter_gets_callbacks_around_its_methods_once_more(kind):
    inputs = {"question": "q"}
    signature = dspy.Signature("question -> answer")
    witness = Witness()
    kind(callbacks=[witness]).format(signature, [], dict(inputs))
    assert witness.told == [kind.__name__] * (len(kind.__mro__) - 2)  # itself, and all between it and dspy.Adapter
    bare, witness = without_callbacks(kind.format), Witness()
    assert bare(kind(callbacks=[witness]), signature, [], inputs)[-1]["content"]
    assert (witness.told, bare) == ([], without_callbacks(dspy.Adapter.format))


def test_decorators_of_other_people_stay_around_a_method():
    def loud(method):
        @__import__("functools").wraps(method)
        def louder(*args, **kwargs):
            return method(*args, **kwargs)

        return louder

    class Own(dspy.ChatAdapter):
        @loud
        def parse(self, signature, completion):
            return {}

    assert without_callbacks(Own.parse).__name__ == "parse"
    assert without_callbacks(Own.parse).__code__.co_name == "louder"


def test_adapters_without_a_parse_of_their_own_read_one_of_the_three_forms():
    assert len(FORMS) == 3
    assert without_callbacks(Under.parse) in FORMS


class Doubling(Reader):
    def parse(self, signature, completion):
        return {"answer": completion * 2}


def test_an_adapter_reads_each_output_by_postprocess_and_parse():
    channel = copied(dspy.JSONAdapter(), Doubling)
    signature = dspy.Signature("question -> answer")
    read = channel._call_postprocess(signature, signature, ["a", {"text": "b", "logprobs": [1]}], None, {})
    assert read == [{"answer": "aa"}, {"answer": "bb", "logprobs": [1]}]
    assert type(channel).own_parse is None
    assert isinstance(channel, dspy.JSONAdapter)
    parameters = list(inspect.signature(dspy.Adapter._call_postprocess).parameters)
    assert parameters == ["self", "processed_signature", "original_signature", "outputs", "lm", "lm_kwargs"]


def test_a_chat_adapter_falls_back_to_json_unless_told_not_to():
    answers = [{"answer": "no number"}, {"answer": "no number"}]
    for adapter, asked in ((dspy.ChatAdapter(), 2), (copied(dspy.ChatAdapter(), Plainly), 1)):
        lm = DummyLM(list(answers))
        with dspy.context(lm=lm, adapter=adapter), pytest.raises(dspy.AdapterParseError):
            dspy.Predict("question -> answer: int")(question="q")
        assert len(lm.history) == asked


class Plainly(Reader):
    def parse(self, signature, completion):
        return without_callbacks(dspy.ChatAdapter.parse)(self, signature, completion)


class Log:
    """Sends, and writes down that it did."""

    def __init__(self):
        self.sent = 0

    def send(self, lm, request):
        self.sent += 1
        return request()

    async def asend(self, lm, request):
        self.sent += 1
        return await request()


def test_a_model_may_change_its_class_and_still_sends_by_call_and_acall():
    log = Log()
    with serve(lambda prompt: {"answer": "so"}) as server:
        lm = metered(server.lm().copy(), log)
        assert lm("q")[0] == asyncio.run(lm.acall("q"))[0]
        assert lm.copy()("q")
    assert (log.sent, server.requests) == (3, 3)


def test_the_history_of_a_model_goes_where_update_history_sends_it():
    entries = []
    with serve(lambda prompt: {"answer": "so"}) as server:
        lm = server.lm()
        lm.update_history = entries.append
        lm("q")
        lm("q", n=2)
    one, two = entries
    assert lm.history == []
    assert {"response", "outputs", "usage", "cost", "messages", "model"} <= one.keys()
    assert (text_of(one), text_of(one, 1)) == (one["outputs"][0], "")
    assert tokens_of(one) == (one["usage"]["prompt_tokens"], one["usage"]["completion_tokens"])
    assert (requests_of(one), requests_of(two)) == (1, 2)  # the native client sends one for each answer


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_a_usage_tracker_is_told_of_every_answer_but_those_from_the_cache_and_before_the_history(engine, monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    try:
        with serve(lambda prompt: {"answer": "so"}) as server:
            respond = server.respond
            server.respond = lambda body: (200, {**respond(body)[1], "usage": None})
            lm, kept = server.lm(engine=engine).copy(cache=True, model=f"openai/told-{engine}"), []
            for _ in range(2):
                answers = AnswerTracker(None)
                lm.update_history = answers.record
                with dspy.context(usage_tracker=answers):
                    lm("q")
                kept += answers.entries
    finally:
        dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    assert [came_from_cache(entry) for entry in kept] == [False, True]
    assert server.requests == 1


def test_what_is_told_to_answers_reaches_the_tracker_around_them():
    with dspy.track_usage() as outer:
        answers = AnswerTracker(outer)
        answers.add_usage("m", {"prompt_tokens": 3})
    assert outer.get_total_tokens() == {"m": {"prompt_tokens": 3}}


def test_every_response_of_a_chat_server_is_read_by_one_function():
    assert openai_chat._response_from_chat_body.__module__ == "metricsmith.model_calls.dspy_internals"
    source = inspect.getsource(openai_chat.OpenAIChatLM.parse_response)
    assert "_response_from_chat_body(" in source
    with dspy.context(usage_tracker=AnswerTracker(None)):
        body = {
            "choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}],
            "usage": {"prompt_tokens": -1},
        }
        assert openai_chat.response_from_openai_chat(body, model="m").message.text == "a"
    with pytest.raises(Exception, match="the body carries 2 choices"):
        openai_chat.response_from_openai_chat(body, model="m")


@pytest.mark.parametrize(
    ("value", "count"), [(0, 0), (7, 7), (7.0, 7), (7.5, None), (-1, None), (True, None), ("7", None), (None, None),
                         (float("nan"), None), (float("inf"), None), (2**53, None)],
)  # fmt: skip
def test_a_number_of_tokens_is_a_whole_number_that_may_be_one(value, count):
    assert token_count(value) == count


def test_gepa_has_a_number_of_full_evaluations_for_each_level():
    assert [full_evaluations(level) for level in ("light", "medium", "heavy")] == [6, 12, 18]


def test_dspy_looks_an_unpriced_model_up_once_while_answers_are_collected(monkeypatch):
    searched = []

    def search(provider, model, *, namespaces):
        searched.append(model)
        return {}

    monkeypatch.setattr(dspy_internals, "_remembered_info", lru_cache(search))
    with serve(lambda prompt: {"answer": "so"}) as server:
        lm = server.lm().copy(model="openai/nobody-prices-this")
        for question in "abc":
            with dspy.context(usage_tracker=AnswerTracker(None)):
                lm(question)
    assert len(searched) == len(set(searched)) > 0
    assert set(searched) >= {"nobody-prices-this"}


def test_the_list_of_prices_has_an_entry_with_rates_for_a_known_model():
    assert {"input_cost_per_token", "output_cost_per_token"} <= price_list()["gpt-4o-mini"].keys()
