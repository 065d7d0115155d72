"""The test server: what it plays follows content and attempt, and is what arrives."""

from __future__ import annotations

import http.client
import json
import math
import socket
import threading
import time
from collections import Counter
from itertools import pairwise

import pytest

from faults import CODES, Fault, Faults
from loopback import Seen, apart, serve
from metricsmith.testing import GivenAnswer


def fields(prompt):
    return {"reasoning": "Fine.", "score": 3}


def user(text):
    return {"role": "user", "content": text}


def post(port, *messages, n=None, timeout=5.0, connection=None, **settings):
    """Status, headers and body that a bare client gets."""
    body = {"model": "m", "messages": list(messages), **settings} | ({} if n is None else {"n": n})
    client = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        client.request("POST", "/v1/chat/completions", json.dumps(body))
        response = client.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        if connection is None:
            client.close()


def contents(answer):
    return [choice["message"]["content"] for choice in json.loads(answer[2])["choices"]]


def played(fault, *, n=None, **settings):
    """The fate of one request that is planned to meet `fault`."""
    with serve(fields, script=Faults(script={"": [fault]}, **settings)) as server:
        answer = post(server.port, user("q"), n=n)
    assert server.faults == {fault: 1}
    assert server.requests == 1
    return answer


def test_a_good_answer_is_in_dspys_format_and_counts_its_tokens():
    with serve(fields) as server:
        status, _, body = post(server.port, user("x" * 40))
    text = "[[ ## reasoning ## ]]\nFine.\n\n[[ ## score ## ]]\n3\n\n[[ ## completed ## ]]"
    answer = json.loads(body)
    assert (status, answer["choices"][0]["message"]["content"]) == (200, text)
    # four characters a token: 40 / 4 and 74 / 4
    assert answer["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": len(text) // 4,
        "total_tokens": 10 + len(text) // 4,
    }
    assert server.stats()["prompt_tokens"] == 10


def test_log_probabilities_come_where_they_are_asked_for_and_planned():
    def answer(prompt):
        spread = None if "plain" in prompt else {"3": 0.5, "4": 0.25, "5": 0.25}
        return GivenAnswer(fields(prompt), probabilities=spread)

    with serve(answer) as server:
        none = json.loads(post(server.port, user("q"))[2])["choices"][0]
        plain = json.loads(post(server.port, user("plain"), logprobs=True)[2])["choices"][0]
        asked = json.loads(post(server.port, user("q"), logprobs=True, top_logprobs=2)[2])["choices"][0]
    assert "logprobs" not in none
    assert plain["logprobs"] is None
    assert asked["message"] == none["message"]
    content = asked["logprobs"]["content"]
    assert "".join(token["token"] for token in content) == asked["message"]["content"]
    (score,) = [token for token in content if token["token"] == "3"]
    assert [top["token"] for top in score["top_logprobs"]] == ["3", "4"]
    assert math.exp(score["logprob"]) == pytest.approx(0.5)


def test_one_connection_carries_many_requests():
    with serve(fields) as server:
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        client.connect()
        first = client.sock
        for number in range(3):
            post(server.port, user(f"{number}"), connection=client)
        assert client.sock is first
        client.close()
    assert server.prompts == ["0", "1", "2"]


def test_a_request_in_pieces_is_put_together():
    body = json.dumps({"model": "m", "messages": [user("äöü")]}, ensure_ascii=False).encode()
    whole = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with serve(fields) as server, socket.create_connection(("127.0.0.1", server.port), 5) as client:
        for start, end in pairwise([0, 10, 30, len(whole) - 3, len(whole)]):
            client.sendall(whole[start:end])
            time.sleep(0.005)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    assert server.prompts == ["äöü"]


@pytest.mark.parametrize("fault", CODES)
def test_a_status_comes_with_the_servers_words(fault):
    code, words = CODES[fault]
    status, headers, body = played(fault, n=2, retry_after=0.25)
    assert (status, json.loads(body)["error"]["message"]) == (code, words)
    assert headers.get("retry-after") == ("0.25" if fault is Fault.RETRY_AFTER else None)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault.WRONG_NAMES, "[[ ## my_reasoning ## ]]\nFine.\n\n[[ ## my_score ## ]]\n3\n\n"),
        (Fault.WRONG_CASE, "[[ ## Reasoning ## ]]\nFine.\n\n[[ ## Score ## ]]\n3\n\n"),
        (Fault.PROSE, "Sure, here is my review.\n\n[[ ## reasoning ## ]]\nFine.\n\n[[ ## score ## ]]\n3\n\n"),
        (Fault.OUT_OF_RANGE, "[[ ## reasoning ## ]]\nFine.\n\n[[ ## score ## ]]\n9\n\n"),
        (Fault.NAN, "[[ ## reasoning ## ]]\nFine.\n\n[[ ## score ## ]]\nNaN\n\n"),
        (Fault.INFINITE, "[[ ## reasoning ## ]]\nFine.\n\n[[ ## score ## ]]\ninf\n\n"),
        (Fault.GIGANTIC_NUMBER, "[[ ## reasoning ## ]]\nFine.\n\n[[ ## score ## ]]\n" + "7" * 5000 + "\n\n"),
        (Fault.CHATTER, "I would rather talk about the weather."),
        (Fault.REFUSAL, "I'm sorry, but"),
        (Fault.EMPTY, ""),
    ],
)
def test_the_model_says_it_wrongly(fault, text):
    status, _, body = played(fault)
    (said,) = contents((status, {}, body))
    assert (status, said[: len(text)]) == (200, text)
    assert bool(said) == bool(text)


def test_a_gigantic_answer_has_two_megabytes_and_its_number():
    (said,) = contents(played(Fault.GIGANTIC))
    assert len(said) > 2_000_000
    assert said.endswith("[[ ## score ## ]]\n3\n\n[[ ## completed ## ]]")


@pytest.mark.parametrize(
    ("fault", "message", "reason"),
    [
        (Fault.NULL, {"role": "assistant", "content": None}, "stop"),
        (Fault.FILTERED, {"role": "assistant", "content": None}, "content_filter"),
        (
            Fault.REFUSAL_FIELD,
            {"role": "assistant", "content": None, "refusal": "I'm sorry, but I can't help with that request."},
            "stop",
        ),
    ],
)
def test_the_provider_marks_what_it_withholds(fault, message, reason):
    (choice,) = json.loads(played(fault)[2])["choices"]
    assert (choice["message"], choice["finish_reason"]) == (message, reason)


def test_the_body_is_not_json_though_its_length_is_right():
    assert played(Fault.EMPTY_BODY)[2] == b""
    assert played(Fault.HTML)[2].startswith(b"<html>")
    body = played(Fault.TRUNCATED)[2]
    assert body.startswith(b'{"id"')
    with pytest.raises(json.JSONDecodeError):
        json.loads(body)


def test_a_cut_within_the_body_leaves_less_than_was_promised():
    with pytest.raises(http.client.IncompleteRead) as cut:
        played(Fault.CUT_WITHIN)
    assert len(cut.value.partial) > 0


def test_a_cut_before_the_answer_leaves_nothing():
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        played(Fault.CUT_BEFORE)


def test_a_hang_outlasts_the_clients_patience_and_counts_as_a_request():
    with serve(fields, script=Faults(script={"": [Fault.HANG]}, hang=1.0)) as server:
        started = time.perf_counter()
        with pytest.raises(TimeoutError):
            post(server.port, user("q"), timeout=0.1)
        assert 0.09 < time.perf_counter() - started < 0.9
        assert post(server.port, user("q"))[0] == 200
    assert server.statuses == {0: 1, 200: 1}


def test_the_end_does_not_wait_for_what_hangs():
    started = time.perf_counter()
    with serve(fields, script=Faults(script={"": [Fault.HANG]}, hang=60.0)) as server:
        with pytest.raises(TimeoutError):
            post(server.port, user("q"), timeout=0.05)
    assert time.perf_counter() - started < 1.0
    assert not any(thread.name == "loopback" for thread in threading.enumerate())


def test_choices_are_as_many_as_asked_for_and_may_differ():
    with serve(lambda prompt, choice: {"score": choice + 1}) as server:
        said = contents(post(server.port, user("q"), n=3))
    assert [text.splitlines()[1] for text in said] == ["1", "2", "3"]
    assert server.log[0].n == 3


def test_faults_of_choices():
    assert len(contents(played(Fault.TWO_CHOICES))) == 2
    assert contents(played(Fault.TWO_CHOICES))[0].startswith("[[ ## reasoning ## ]]\nFine.")
    assert len(contents(played(Fault.FEWER_CHOICES, n=5))) == 2
    spoilt = ["weather" in text for text in contents(played(Fault.ONE_MALFORMED, n=4))]
    assert spoilt == [False, False, True, False]


def test_a_fault_of_choices_does_not_meet_a_request_for_one():
    with serve(fields, script=Faults(script={"": [Fault.FEWER_CHOICES, Fault.NO_CHOICE_OF_N]})) as server:
        assert [post(server.port, user("q"))[0] for _ in range(2)] == [200, 200]
    assert not server.faults


def test_a_plan_is_followed_attempt_by_attempt_for_each_content():
    script = Faults(script={"bad": [Fault.ERROR_500, None, Fault.THROTTLED]})
    with serve(fields, script=script) as server:
        asked = ["bad 1", "good", "bad 2", "bad 1", "bad 2", "bad 1", "bad 1"]
        statuses = [post(server.port, user(text))[0] for text in asked]
    assert statuses == [500, 200, 500, 200, 200, 429, 200]
    assert [seen.attempt for seen in server.log] == [0, 0, 0, 1, 1, 2, 3]


def test_a_repair_is_an_attempt_at_the_content_that_it_goes_on_from():
    script = Faults(script={"q1": [Fault.CHATTER, Fault.ERROR_500, None]})
    with serve(fields, script=script) as server:
        head = [{"role": "system", "content": "s"}]
        statuses = [post(server.port, *head, user("q1"))[0]]
        again = [*head, user("q1"), {"role": "assistant", "content": "?"}, user("please")]
        statuses += [post(server.port, *again)[0], post(server.port, *again)[0]]
        statuses.append(post(server.port, *head, user("q2"))[0])
    assert statuses == [200, 500, 200, 200]
    one, two, three, other = server.log
    assert one.content == two.content == three.content != other.content
    assert [seen.attempt for seen in server.log] == [0, 1, 2, 0]
    assert other == Seen(other.content, 0, None, 1)


def test_rates_give_each_content_and_attempt_the_same_fault_in_every_order():
    script = Faults({Fault.ERROR_500: 0.3, Fault.CHATTER: 0.3, Fault.SLOW: 0.1}, slow=0.001)
    asked = [f"q{number % 40}" for number in range(80)]
    seen = []
    for order in (asked, asked[::-1]):
        with serve(fields, script=script, seed=7) as server:
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            for text in order:
                post(server.port, user(text), connection=client)
            client.close()
        seen.append(Counter(server.log))
    assert seen[0] == seen[1]
    met = Counter(one.fault for one in seen[0].elements())
    # 80 draws: expected 24, 24, 8 and 24; four standard errors are 16, 16, 11 and 16
    assert 8 < met[Fault.ERROR_500] < 40
    assert 8 < met[Fault.CHATTER] < 40
    assert 0 < met[Fault.SLOW] < 19


def test_another_seed_gives_other_faults():
    picks = [[Faults({Fault.ERROR_500: 0.5}).pick(f"q{number}", 0, seed) for number in range(30)] for seed in (1, 1, 2)]
    assert picks[0] == picks[1] != picks[2]


def test_rates_above_one_in_all_are_refused():
    with pytest.raises(ValueError, match=r"add up to 1\.2"):
        Faults({Fault.ERROR_500: 0.6, Fault.CHATTER: 0.6})


def test_a_heavy_tail_follows_the_content_and_has_the_shape_of_pareto():
    script = Faults(tail=2.0)
    delays = sorted(script.delay(0.1, f"q{number}", 0, 3) for number in range(2000))
    assert delays[0] >= 0.1
    # quantiles of a Pareto distribution of shape 2: .1 / sqrt(1 - p)
    assert delays[1000] == pytest.approx(0.1 / 0.5**0.5, rel=0.05)
    assert delays[1900] == pytest.approx(0.1 / 0.05**0.5, rel=0.2)
    assert script.delay(0.1, "q", 0, 3) == script.delay(0.1, "q", 0, 3) != script.delay(0.1, "q", 1, 3)


def test_delayed_requests_are_in_flight_together():
    with serve(fields, delay=0.1) as server:
        threads = [threading.Thread(target=post, args=(server.port, user(f"{number}"))) for number in range(6)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - started
    assert server.most_in_flight == 6
    assert 0.1 <= took < 0.5


def test_what_the_tests_own_function_raises_is_kept_and_is_an_error_500():
    def broken(prompt):
        raise LookupError("no such row")

    with serve(broken) as server:
        status, _, body = post(server.port, user("q"))
    assert (status, str(server.wrong[0])) == (500, "no such row")
    assert "no such row" in body.decode()


def test_it_runs_in_a_process_of_its_own_and_tells_what_it_counted():
    with apart("--delay", "0.001", "--fault", "ERROR_500=1") as port:
        assert post(port, user("q"))[0] == 500
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        client.request("GET", "/stats")
        stats = json.loads(client.getresponse().read())
        client.close()
    assert (stats["requests"], stats["statuses"], stats["faults"]) == (1, {"500": 1}, {"500": 1})
    with pytest.raises(ConnectionRefusedError):
        post(port, user("q"))
