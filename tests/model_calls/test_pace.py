"""The number in flight follows the server."""

from __future__ import annotations

import pytest

from flows import ONE, ask, proven
from metricsmith.model_calls.limits import Concurrency, RequestEnd
from metricsmith.records import Usage


def test_a_fixed_number_never_adapts():
    flow, clock = proven(Concurrency(10, 10))
    for outcome in (RequestEnd.THROTTLED, RequestEnd.FAILED, RequestEnd.ANSWERED):
        ask(flow, clock, outcome, seconds=9.0)
    assert flow.limit == 10


def test_the_limit_starts_at_eight_and_rises_by_one_for_each_answer_while_it_is_in_use():
    flow, clock = proven(Concurrency(1, 64))
    assert flow.limit == 8  # one answer with one in flight: the limit was not in use
    tickets = [flow.enter() for _ in range(8)]
    clock.time += 0.1
    for ticket in tickets:
        flow.leave(ticket, RequestEnd.ANSWERED, ONE)
    assert flow.limit == 9  # the first of the eight left a full house, the others did not


def test_throttling_halves_the_limit_once_for_requests_that_were_out_together():
    flow, _ = proven(Concurrency(1, 64))
    tickets = [flow.enter() for _ in range(8)]
    for ticket in tickets[:3]:
        flow.leave(ticket, RequestEnd.THROTTLED, ONE)
    assert flow.limit == 4
    late = [flow.enter()] if flow.in_flight < flow.limit else []
    for ticket in tickets[3:]:
        flow.leave(ticket, RequestEnd.THROTTLED, ONE)
    assert flow.limit == 4
    late = late or [flow.enter()]
    flow.leave(late[0], RequestEnd.THROTTLED, ONE)
    assert flow.limit == 2


def test_the_limit_never_falls_below_low():
    flow, clock = proven(Concurrency(3, 64))
    for _ in range(9):
        ask(flow, clock, RequestEnd.THROTTLED)
    assert flow.limit == 3


def test_after_throttling_the_limit_rises_by_one_in_a_round_of_answers():
    flow, clock = proven(Concurrency(1, 64))
    ask(flow, clock, RequestEnd.THROTTLED)
    assert flow.limit == 4
    for _ in range(5):  # 4 + 1/4 + 1/4.25 + ... passes 5 with the fifth answer
        assert flow.limit == 4
        tickets = [flow.enter() for _ in range(4)]
        flow.leave(tickets[0], RequestEnd.ANSWERED, ONE)
        for ticket in tickets[1:]:
            flow.leave(ticket, RequestEnd.ANSWERED, Usage())  # from a cache: nothing is learned from it
    assert flow.limit == 5


@pytest.mark.parametrize("outcome", [RequestEnd.ANSWERED, RequestEnd.FAILED])  # time-outs are slow, too
def test_a_round_that_takes_more_than_twice_as_long_as_the_quickest_eases_the_limit(outcome):
    flow, clock = proven(Concurrency(1, 64))
    for _ in range(7):
        ask(flow, clock, seconds=0.1)  # with the first, a round of eight: median .1
    before = flow.limit
    for _ in range(8):
        ask(flow, clock, seconds=0.19)
    assert flow.limit == before
    for _ in range(8):
        ask(flow, clock, outcome, seconds=0.25)
    assert flow.limit == int(before * 0.8)


def test_answers_from_a_cache_say_nothing_of_how_quick_the_server_is():
    flow, clock = proven(Concurrency(1, 64))
    for _ in range(30):
        ask(flow, clock, seconds=0.001, usage=Usage())
    before = flow.limit
    for _ in range(32):
        ask(flow, clock, seconds=0.1)
    assert flow.limit == before


def simulate(flow, clock, seconds, latency, throttles=lambda in_flight: False):
    """A server whose answers take `latency(in flight)`; the mean limit and the answers in the second half."""
    out, limits, answers = [], [], 0
    while clock.time < seconds:
        while flow.in_flight < flow.limit:
            ticket = flow.enter()
            refused = throttles(flow.in_flight)
            out.append((clock.time + (0.01 if refused else latency(flow.in_flight)), ticket, refused))
        out.sort(key=lambda event: event[0])
        end, ticket, refused = out.pop(0)
        clock.time = end
        flow.leave(ticket, RequestEnd.THROTTLED if refused else RequestEnd.ANSWERED, ONE)
        if clock.time > seconds / 2:
            limits.append(flow.limit)
            answers += not refused
    return sum(limits) / len(limits), answers / (seconds / 2)


def test_under_a_server_that_throttles_above_twenty_the_limit_hovers_below():
    flow, clock = proven(Concurrency(1, 64))
    limit, answers = simulate(flow, clock, 60, lambda in_flight: 0.1, lambda in_flight: in_flight > 20)
    assert 12 <= limit <= 21
    assert answers >= 0.75 * 20 / 0.1


def test_where_more_in_flight_only_means_longer_waits_the_limit_stays_sensible():
    flow, clock = proven(Concurrency(1, 64))
    limit, answers = simulate(flow, clock, 60, lambda in_flight: 0.1 * max(1.0, in_flight / 16))
    assert 16 <= limit <= 45
    assert answers >= 0.95 * 160
