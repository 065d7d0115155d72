"""Whatever a server sends, a call ends in a status, after as many requests as the table in the module says."""

from __future__ import annotations

import json
from dataclasses import replace

import dspy
import pytest
from dspy.utils.exceptions import LMRateLimitError, LMServerError, LMUnsupportedFeatureError

from metricsmith.errors import ModelFailure
from metricsmith.model_calls import calls
from metricsmith.model_calls.calls import model_call, model_calls
from metricsmith.model_calls.failures import delay, error_text, refusal, short_line
from metricsmith.model_calls.limits import Budget, Concurrency
from metricsmith.model_calls.rate_limiter import RateLimiter, use
from metricsmith.records import Status
from sockets import GOOD, completion, http, sockets

BODY = json.dumps(completion()).encode()
PAGE = b"<html><body>Please sign in</body></html>"
NO = "I'm sorry, but I can't help with that."


class Ask(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int")

    def forward(self, question):
        return self.ask(question=question)


def call_on(*payloads, **settings):
    with sockets(*payloads) as server:
        options = {"api_key": "sk-1234567890abcdef", "cache": False, "timeout": 5, **settings}
        lm = dspy.LM("openai/m", api_base=f"http://127.0.0.1:{server.port}/v1", **options)
        with dspy.context(lm=lm):
            return model_call(Ask(), question="q"), server


def error(status, **details):
    return http({"error": {"message": f"words {status}", "type": "t", "code": "c", **details}}, f"{status} X")


BROKEN = {
    "cut before the head": b"",
    "cut within the head": b"HTTP/1.1 200 OK\r\ncontent-ty",
    "cut within the body": http(BODY[:60], length=len(BODY)),
    "no HTTP": b"hello\r\n\r\n",
    "truncated": http(BODY[:60]),
    "empty body": http(b""),
    "a page": http(PAGE, kind="text/html"),
    "a page with 502": http(PAGE, "502 Bad Gateway", "text/html"),
    "a list": http([]),
    "null": http(b"null"),
    "nested too deeply": http(b"[" * 100_000),
    "no UTF-8": http(BODY.replace(b"3", b"\xff\xfe")),
    "bad gzip": http(b"0123456789").replace(b"connection", b"content-encoding: gzip\r\nconnection"),
    "an error with 200": http({"error": {"message": "overloaded", "code": "x"}}),
    "no content": b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
    **{str(status): error(status) for status in (408, 425, 429, 500, 501, 503, 504, 529)},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_may_pass_is_asked_again_until_it_has_passed_or_five_requests_have_failed(name):
    call, server = call_on(BROKEN[name])
    assert (call.status, call.usage.requests, server.requests) == (Status.TRANSPORT, 5, 5)
    assert 0 < len(call.error) <= 300
    assert "\n" not in call.error
    call, server = call_on(BROKEN[name], BROKEN[name], http(completion()))
    assert (call.status, call.prediction.answer, call.usage.requests, server.requests) == (Status.OK, 3, 3, 3)


def test_silence_ends_with_the_models_time_out():
    call, server = call_on(None, http(completion()), timeout=0.1)
    assert (call.status, server.requests) == (Status.OK, 2)
    assert 0.1 <= call.usage.seconds < 5


@pytest.mark.parametrize("status", [400, 405, 409, 413, 422, 451])
def test_what_is_refused_for_good_is_not_asked_again(status):
    call, server = call_on(error(status))
    assert (call.status, call.usage.requests, server.requests) == (Status.TRANSPORT, 1, 1)
    assert f"words {status}" in call.error


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_what_no_request_can_mend_stops_a_call_outside_a_run(status):
    with pytest.raises(ModelFailure, match=f"words {status}"):
        call_on(error(status))


def test_an_exhausted_quota_is_no_throttling():
    with pytest.raises(ModelFailure, match="words 429"):
        call_on(error(429, type="insufficient_quota", code="insufficient_quota"))


@pytest.mark.parametrize(
    "payload",
    [
        http(completion(None, "content_filter")),
        http(completion("The ans", "content_filter")),
        http(completion(GOOD, "content_filter")),
        http(completion(None, refusal=NO)),
        http(completion(NO)),
        error(400, code="content_filter"),
        error(400, code="content_policy_violation"),
    ],
)
def test_a_refusal_is_neither_repaired_nor_asked_again(payload):
    call, server = call_on(payload)
    assert (call.status, call.usage.requests, server.requests) == (Status.REFUSED, 1, 1)


@pytest.mark.parametrize(
    "payload",
    [
        http(completion(GOOD, refusal=NO)),
        http(completion(NO + "\n" + GOOD)),
        http(completion([{"type": "text", "text": GOOD}])),
    ],
)
def test_an_answer_that_can_be_read_is_no_refusal(payload):
    call, _ = call_on(payload)
    assert (call.status, call.prediction.answer) == (Status.OK, 3)


@pytest.mark.parametrize(
    "payload",
    [
        http({**completion(), "choices": []}),
        http({key: value for key, value in completion().items() if key != "choices"}),
        http(completion(None)),
        http(completion("")),
        http(completion("[[ ## ans", "length")),
        http(completion("[[ ## answer ## ]]\n" + "9" * 5000)),
        http(completion("[[ ## answer ## ]]\n\ud800")),
        http(completion("x" * 3_000_000)),
    ],
)
def test_an_unusable_answer_is_repaired_once(payload):
    call, server = call_on(payload)
    assert (call.status, call.usage.requests, server.requests) == (Status.UNPARSABLE, 2, 2)
    assert call.usage.prompt_tokens == 10
    assert len(call.error) <= 300
    call, server = call_on(payload, http(completion()))
    assert (call.status, call.prediction.answer, server.requests) == (Status.OK, 3, 2)
    assert len(json.dumps(server.bodies[1])) < 20_000


CHATTER = {**completion()["choices"][0], "index": 1, "message": {"role": "assistant", "content": "so nice"}}
TWO = [*completion()["choices"], CHATTER]
# What came with a good answer, and the tokens that are known of it.
BOOKS = {
    "no usage": ({"usage": None}, 0, 0),
    "usage as a text": ({"usage": "five"}, 0, 0),
    "usage as a list": ({"usage": [5, 2]}, 0, 0),
    "words": ({"usage": {"prompt_tokens": "five", "completion_tokens": 2}}, 0, 2),
    "negative": ({"usage": {"prompt_tokens": -5, "completion_tokens": 2, "total_tokens": -3}}, 0, 2),
    "not a number": ({"usage": {"prompt_tokens": float("nan"), "completion_tokens": 2}}, 0, 2),
    "infinite": ({"usage": {"prompt_tokens": 5, "completion_tokens": float("inf")}}, 5, 0),
    "too many": ({"usage": {"prompt_tokens": 10**30, "completion_tokens": 2}}, 0, 2),
    "half a token": ({"usage": {"prompt_tokens": 5.5, "completion_tokens": 2.0}}, 0, 2),
    "true": ({"usage": {"prompt_tokens": True, "completion_tokens": 2}}, 0, 2),
    "details in words": (
        {"usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": "none"}},
        5,
        2,
    ),
    "negative details": (
        {"usage": {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": -1}}},
        5,
        2,
    ),
    "unknown fields": (
        {"usage": {"prompt_tokens": 5, "completion_tokens": 2, "mood": {"good": []}}, "mood": "good"},
        5,
        2,
    ),
    "two choices": ({"choices": TWO}, 5, 5),
    "two choices and words": ({"choices": TWO, "usage": {"prompt_tokens": "five"}}, 0, 0),
}


@pytest.mark.parametrize("name", BOOKS)
def test_a_readable_answer_is_not_lost_over_the_bookkeeping(name, caplog):
    content, asked, answered = BOOKS[name]
    with use(RateLimiter(Concurrency(1, 1))) as running:
        call, server = call_on(http({**completion(), **content}))
    assert (call.status, call.prediction.answer, server.requests) == (Status.OK, 3, 1)
    assert (call.usage.requests, call.usage.prompt_tokens, call.usage.completion_tokens) == (1, asked, answered)
    assert running.spent == replace(call.usage, seconds=0.0)
    assert running.unreported == (not asked or not answered)
    ours = [record.message for record in caplog.records if record.name.startswith("metricsmith")]
    assert [message.split(":")[0] for message in ours] == [
        "1 answers came without usable token counts"
    ] * running.unreported


def test_a_budget_in_tokens_ends_where_they_are_not_known():
    with use(RateLimiter(Concurrency(1, 1), Budget(tokens=1000))) as running:
        call_on(http(completion(usage={"prompt_tokens": -5, "completion_tokens": 2})))
    assert "the server reports no tokens" in running.stopped


def test_dspy_reads_the_bookkeeping_as_before_outside_of_a_call():
    with sockets(http({**completion(), "choices": TWO})) as server:
        lm = dspy.LM("openai/m", api_base=f"http://127.0.0.1:{server.port}/v1", api_key="none", cache=False)
        with pytest.raises(LMUnsupportedFeatureError):
            lm("q")


def test_several_choices_or_impossible_counts_from_litellm_do_no_harm(monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # its import asks the network otherwise
    several = {**completion(usage={"prompt_tokens": -5, "completion_tokens": 2, "total_tokens": 1})}
    call, server = call_on(http({**several, "choices": TWO}), engine="litellm")
    assert (call.status, call.prediction.answer, server.requests) == (Status.OK, 3, 1)
    assert (call.usage.prompt_tokens, call.usage.completion_tokens) == (0, 2)


def test_the_longest_row_of_failures_is_five_lost_requests_and_one_repair():
    lost, unusable = error(500), http(completion("three"))
    call, server = call_on(lost, lost, unusable, lost, lost, lost)
    assert (call.status, server.requests) == (Status.TRANSPORT, 6)
    call, server = call_on(lost, lost, lost, lost, unusable, unusable)
    assert (call.status, server.requests) == (Status.UNPARSABLE, 6)


def test_no_part_of_a_key_is_told():
    key = "sk-1234567890abcdef"
    call, _ = call_on(http({"error": {"message": f"{'x' * 280} {key} is wrong"}}, "400 X"), api_key=key)
    assert "sk-" not in call.error
    with pytest.raises(ModelFailure) as failed:
        call_on(http({"error": {"message": f"Incorrect API key provided: {key}."}}, "401 X"), api_key=key)
    assert "Incorrect API key provided: [key]" in str(failed.value)
    assert key not in str(failed.value)


def test_the_server_says_how_long_to_wait_and_otherwise_the_pause_doubles():
    assert delay(LMRateLimitError("slow", retry_after=0.7), 1, 0.5) == 0.7
    assert delay(LMRateLimitError("slow", retry_after=600), 1, 0.5) == 600
    for tries, most in ((1, 0.5), (2, 1.0), (5, 8.0), (7, 30.0), (50, 30.0)):
        pauses = [delay(LMServerError("down"), tries, 0.5) for _ in range(50)]
        assert most / 2 <= min(pauses) < max(pauses) <= most


def test_a_pause_is_long_enough_where_the_server_asks_for_none_by_name():
    assert delay(LMRateLimitError("slow", retry_after=0), 1, 0.5) >= 0.25


def test_retry_after_is_found_where_several_answers_are_asked_for(monkeypatch):
    pauses = []
    monkeypatch.setattr(calls.RateLimiter, "pause", lambda limiter, seconds: pauses.append(seconds) or True)
    throttled = error(429).replace(b"connection", b"retry-after: 7\r\nconnection")
    several = {**completion(), "choices": [{**completion()["choices"][0], "index": index} for index in range(2)]}
    with sockets(throttled, http(several)) as server:
        lm = dspy.LM("openai/m", api_base=f"http://127.0.0.1:{server.port}/v1", api_key="none", cache=False)
        with dspy.context(lm=lm):
            ended = model_calls(Ask(), [0, 1], question="q")
    assert ([call.status for call in ended], server.requests, pauses) == ([Status.OK, Status.OK], 2, [7.0])


@pytest.mark.parametrize(
    "text",
    [
        "I can't help with that.",
        "I can\u2019t assist with this request.",
        "I CANNOT rate this text.",
        "**I'm sorry, but I am unable to evaluate this.**",
        "Sorry, I won't provide a score.",
        "I apologize, but I cannot fulfill this request.",
        "As an AI language model, I cannot judge that.",
        "Unfortunately, I'm not able to score it.",
        "I am very sorry, but this is nothing for me.",
        "This content violates our policy.",
    ],
)
def test_refusals_are_known_by_how_they_open(text):
    assert refusal(None, 0, text, ["answer"]) == short_line(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would rather talk about the weather.",
        "I can't find a mistake: 5",
        "The author says: I can't help it.",
        "I cannot stress enough how good it is: 5",
        "Sorry for the delay. The score is 4.",
        "[[ ## answer ## ]]\nI can't help with that.",
        "I can't help with that.\n[[ ## answer ## ]]\nthree",
    ],
)
def test_other_answers_are_tries(text):
    assert refusal(None, 0, text, ["answer"]) == ""


def test_an_error_without_words_is_called_by_its_name():
    assert error_text(LMServerError(""), None) == "LMServerError"
    assert error_text(LMServerError("first\nsecond"), None) == "first"
