"""The number in flight follows the server; prices of requests by the list that DSPy brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest

from metricsmith.model_calls.dspy_internals import price_list
from metricsmith.model_calls.limits import Concurrency, RequestEnd, price, total_usage
from metricsmith.records import Usage
from rate_limits import ONE, ask, proven


def test_a_fixed_number_never_adapts():
    limiter, clock = proven(Concurrency(10, 10))
    for end in (RequestEnd.THROTTLED, RequestEnd.FAILED, RequestEnd.ANSWERED):
        ask(limiter, clock, end, seconds=9.0)
    assert limiter.limit == 10


def test_the_limit_starts_at_eight_and_rises_by_one_for_each_answer_while_it_is_in_use():
    limiter, clock = proven(Concurrency(1, 64))
    assert limiter.limit == 8  # one answer with one in flight: the limit was not in use
    permits = [limiter.enter() for _ in range(8)]
    clock.time += 0.1
    for permit in permits:
        limiter.leave(permit, RequestEnd.ANSWERED, ONE)
    assert limiter.limit == 9  # the first of the eight left a full house, the others did not


def test_throttling_halves_the_limit_once_for_requests_that_were_out_together():
    limiter, _ = proven(Concurrency(1, 64))
    permits = [limiter.enter() for _ in range(8)]
    for permit in permits[:3]:
        limiter.leave(permit, RequestEnd.THROTTLED, ONE)
    assert limiter.limit == 4
    late = [limiter.enter()] if limiter.in_flight < limiter.limit else []
    for permit in permits[3:]:
        limiter.leave(permit, RequestEnd.THROTTLED, ONE)
    assert limiter.limit == 4
    late = late or [limiter.enter()]
    limiter.leave(late[0], RequestEnd.THROTTLED, ONE)
    assert limiter.limit == 2


def test_the_limit_never_falls_below_low():
    limiter, clock = proven(Concurrency(3, 64))
    for _ in range(9):
        ask(limiter, clock, RequestEnd.THROTTLED)
    assert limiter.limit == 3


def test_after_throttling_the_limit_rises_by_one_in_a_round_of_answers():
    limiter, clock = proven(Concurrency(1, 64))
    ask(limiter, clock, RequestEnd.THROTTLED)
    assert limiter.limit == 4
    for _ in range(5):  # 4 + 1/4 + 1/4.25 + ... passes 5 with the fifth answer
        assert limiter.limit == 4
        permits = [limiter.enter() for _ in range(4)]
        limiter.leave(permits[0], RequestEnd.ANSWERED, ONE)
        for permit in permits[1:]:
            limiter.leave(permit, RequestEnd.ANSWERED, Usage())  # from a cache: nothing is learned from it
    assert limiter.limit == 5


@pytest.mark.parametrize("end", [RequestEnd.ANSWERED, RequestEnd.FAILED])  # time-outs are slow, too
def test_a_round_that_takes_more_than_twice_as_long_as_the_quickest_eases_the_limit(end):
    limiter, clock = proven(Concurrency(1, 64))
    for _ in range(7):
        ask(limiter, clock, seconds=0.1)  # with the first, a round of eight: median .1
    before = limiter.limit
    for _ in range(8):
        ask(limiter, clock, seconds=0.19)
    assert limiter.limit == before
    for _ in range(8):
        ask(limiter, clock, end, seconds=0.25)
    assert limiter.limit == int(before * 0.8)


def test_answers_from_a_cache_say_nothing_of_how_quick_the_server_is():
    limiter, clock = proven(Concurrency(1, 64))
    for _ in range(30):
        ask(limiter, clock, seconds=0.001, usage=Usage())
    before = limiter.limit
    for _ in range(32):
        ask(limiter, clock, seconds=0.1)
    assert limiter.limit == before


def simulate(limiter, clock, seconds, latency, throttles=lambda in_flight: False):
    """A server whose answers take `latency(in flight)`; the mean limit and the answers in the second half."""
    out, limits, answers = [], [], 0
    while clock.time < seconds:
        while limiter.in_flight < limiter.limit:
            permit = limiter.enter()
            refused = throttles(limiter.in_flight)
            out.append((clock.time + (0.01 if refused else latency(limiter.in_flight)), permit, refused))
        out.sort(key=lambda event: event[0])
        end, permit, refused = out.pop(0)
        clock.time = end
        limiter.leave(permit, RequestEnd.THROTTLED if refused else RequestEnd.ANSWERED, ONE)
        if clock.time > seconds / 2:
            limits.append(limiter.limit)
            answers += not refused
    return sum(limits) / len(limits), answers / (seconds / 2)


def test_under_a_server_that_throttles_above_twenty_the_limit_hovers_below():
    limiter, clock = proven(Concurrency(1, 64))
    limit, answers = simulate(limiter, clock, 60, lambda in_flight: 0.1, lambda in_flight: in_flight > 20)
    assert 12 <= limit <= 21
    assert answers >= 0.75 * 20 / 0.1


def test_where_more_in_flight_only_means_longer_waits_the_limit_stays_sensible():
    limiter, clock = proven(Concurrency(1, 64))
    limit, answers = simulate(limiter, clock, 60, lambda in_flight: 0.1 * max(1.0, in_flight / 16))
    assert 16 <= limit <= 45
    assert answers >= 0.95 * 160


def test_an_unknown_price_is_unknown_and_not_nothing():
    assert price("unknown/model", 1000, 1000) is None


def test_prompt_and_completion_are_paid_at_their_own_rates():
    entry = price_list()["gpt-4o-mini"]
    asked, answered = entry["input_cost_per_token"], entry["output_cost_per_token"]
    assert price("gpt-4o-mini", 1_000, 0) == pytest.approx(1_000 * asked)
    assert price("gpt-4o-mini", 0, 1_000) == pytest.approx(1_000 * answered)
    assert answered > asked > 0
    assert price("openai/gpt-4o-mini", 10, 20) == price("gpt-4o-mini", 10, 20)


def test_the_rates_are_those_of_litellm():
    # From litellm 1.106.0, model_prices_and_context_window_backup.json: $.15 and $.60 for a million tokens.
    assert price("gpt-4o-mini", 1_000_000, 0) == pytest.approx(0.15)
    assert price("gpt-4o-mini", 0, 1_000_000) == pytest.approx(0.60)


def test_a_price_loads_no_client_library():
    program = (
        "import sys; from metricsmith.model_calls.limits import price; price('openai/gpt-4o-mini', 1, 1)\n"
        "raise SystemExit(', '.join(sorted({'litellm', 'openai', 'nltk'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_sum_of_estimates_has_no_price_where_one_that_asks_has_none():
    assert total_usage([Usage(2, cost=1.0), Usage(1, cost=0.5)]) == Usage(3, cost=1.5)
    assert total_usage([Usage(2, cost=1.0), Usage(1)]) == total_usage([Usage(1), Usage(2, cost=1.0)]) == Usage(3)
    assert total_usage([Usage(2, cost=1.0), Usage()]) == Usage(2, cost=1.0)  # what asks nothing costs nothing
    assert total_usage([]) == Usage()
