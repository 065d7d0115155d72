"""Flow: how many at once, how fast, how far."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import JudgementFailed
from metricsmith.records import Status, Usage
from metricsmith.scoring.flow import Clock, Flow, Outcome, in_force, use
from metricsmith.scoring.limits import Budget, Concurrency

ONE = Usage(1, 80, 20, 0.01)


class Hand(Clock):
    """A clock that waits by moving on; only a wait without end would block, and that is an error here."""

    def __init__(self):
        self.time = 0.0
        self.waits = 0

    def now(self):
        return self.time

    def wait(self, condition, seconds):
        assert seconds is not None, "would wait for ever"
        self.waits += 1
        self.time += seconds

    def pause(self, halted, seconds):
        self.time += seconds
        return halted.is_set()


def ask(flow, clock, outcome=Outcome.ANSWERED, seconds=0.1, usage=ONE, message=""):
    ticket = flow.enter()
    clock.time += seconds
    flow.leave(ticket, outcome, usage, message)


def proven(concurrency, budget=None):
    """A flow whose server has answered once."""
    clock = Hand()
    flow = Flow(concurrency, budget, clock=clock)
    ask(flow, clock)
    return flow, clock


def test_before_the_first_answer_four_may_ask():
    flow = Flow(Concurrency(64, 64), clock=Hand())
    tickets = [flow.enter() for _ in range(4)]
    with pytest.raises(AssertionError, match="would wait"):
        flow.enter()
    flow.leave(tickets[0], Outcome.FAILED, ONE)
    assert flow.limit == 4
    flow.leave(tickets[1], Outcome.ANSWERED, ONE)
    assert flow.limit == 64


def test_a_fixed_number_never_adapts():
    flow, clock = proven(Concurrency(10, 10))
    for outcome in (Outcome.THROTTLED, Outcome.FAILED, Outcome.ANSWERED):
        ask(flow, clock, outcome, seconds=9.0)
    assert flow.limit == 10


def test_the_limit_starts_at_eight_and_rises_by_one_for_each_answer_while_it_is_in_use():
    flow, clock = proven(Concurrency(1, 64))
    assert flow.limit == 8  # one answer with one in flight: the limit was not in use
    tickets = [flow.enter() for _ in range(8)]
    clock.time += 0.1
    for ticket in tickets:
        flow.leave(ticket, Outcome.ANSWERED, ONE)
    assert flow.limit == 9  # the first of the eight left a full house, the others did not


def test_throttling_halves_the_limit_once_for_requests_that_were_out_together():
    flow, _ = proven(Concurrency(1, 64))
    tickets = [flow.enter() for _ in range(8)]
    for ticket in tickets[:3]:
        flow.leave(ticket, Outcome.THROTTLED, ONE)
    assert flow.limit == 4
    late = [flow.enter()] if flow.in_flight < flow.limit else []
    for ticket in tickets[3:]:
        flow.leave(ticket, Outcome.THROTTLED, ONE)
    assert flow.limit == 4
    late = late or [flow.enter()]
    flow.leave(late[0], Outcome.THROTTLED, ONE)
    assert flow.limit == 2


def test_the_limit_never_falls_below_low():
    flow, clock = proven(Concurrency(3, 64))
    for _ in range(9):
        ask(flow, clock, Outcome.THROTTLED)
    assert flow.limit == 3


def test_after_throttling_the_limit_rises_by_one_in_a_round_of_answers():
    flow, clock = proven(Concurrency(1, 64))
    ask(flow, clock, Outcome.THROTTLED)
    assert flow.limit == 4
    for _ in range(5):  # 4 + 1/4 + 1/4.25 + ... passes 5 with the fifth answer
        assert flow.limit == 4
        tickets = [flow.enter() for _ in range(4)]
        flow.leave(tickets[0], Outcome.ANSWERED, ONE)
        for ticket in tickets[1:]:
            flow.leave(ticket, Outcome.ANSWERED, Usage())  # from a cache: nothing is learned from it
    assert flow.limit == 5


@pytest.mark.parametrize("outcome", [Outcome.ANSWERED, Outcome.FAILED])  # time-outs are slow, too
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


def test_requests_are_spread_evenly_under_the_ceiling():
    flow, _ = proven(Concurrency(8, 8, requests_per_minute=120))
    starts = [flow.enter().started for _ in range(5)]
    assert starts == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.5])


def test_tokens_per_minute_are_kept_by_what_requests_really_take():
    flow, _ = proven(Concurrency(8, 8, tokens_per_minute=600))  # ten tokens a second; a request takes 100
    starts = []
    for _ in range(4):
        ticket = flow.enter()
        starts.append(ticket.started)
        flow.leave(ticket, Outcome.ANSWERED, ONE)
    # The first request took 100 tokens, so the next one may start 10 s after it, and so on.
    assert starts == pytest.approx([10.0, 20.0, 30.0, 40.0], abs=0.2)


def test_a_budget_of_requests_is_never_overshot_by_threads():
    flow = Flow(Concurrency(64, 64), Budget(requests=100))
    done, spent = [], []

    def work():
        while True:
            try:
                ticket = flow.enter()
            except JudgementFailed as problem:
                spent.append(problem.status)
                return
            done.append(1)
            flow.leave(ticket, Outcome.ANSWERED, ONE)

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(done) == 100 == flow.spent.requests
    assert spent == [Status.BUDGET] * 64


@pytest.mark.parametrize(
    ("budget", "words"),
    [(Budget(tokens=250), "250 tokens"), (Budget(usd=0.025), "0.025 US dollars"), (Budget(seconds=0.25), "0.25 sec")],
)
def test_nothing_is_asked_beyond_a_budget(budget, words):
    clock = Hand()
    flow = Flow(Concurrency(8, 8), budget, clock=clock)
    for _ in range(3):  # .1 s, 100 tokens and .01 dollars each: the third passes the limit, the fourth is refused
        ask(flow, clock)
    with pytest.raises(JudgementFailed, match=words) as caught:
        flow.enter()
    assert caught.value.status is Status.BUDGET


@pytest.mark.parametrize("budget", [Budget(tokens=350), Budget(usd=0.035)])
def test_near_the_end_of_a_budget_requests_wait_for_what_the_others_cost(budget):
    flow, clock = proven(Concurrency(8, 8), budget)
    for _ in range(3):
        ask(flow, clock, usage=Usage())  # from a cache: a request costs on average what it did
    first = flow.enter()  # 100 tokens or a cent spent, as much expected
    second = flow.enter()  # as much again expected: 300 of 350
    with pytest.raises(AssertionError, match="would wait"):
        flow.enter()
    flow.leave(first, Outcome.ANSWERED, Usage(1, 20, 5, 0.0025))
    flow.leave(second, Outcome.ANSWERED, Usage(1, 20, 5, 0.0025))
    flow.enter()


def test_an_answer_from_a_cache_takes_the_request_back():
    flow, clock = proven(Concurrency(8, 8), Budget(requests=2))
    ask(flow, clock, usage=Usage())
    assert flow.spent.requests == 1
    ask(flow, clock)
    with pytest.raises(JudgementFailed):
        flow.enter()


def test_an_unknown_price_stops_a_run_with_a_budget_in_dollars():
    flow, clock = proven(Concurrency(8, 8), Budget(usd=1.0))
    ask(flow, clock, usage=Usage(1, 80, 20, None))
    assert "price of the answers is unknown" in flow.stopped


def test_answers_without_a_count_of_tokens_stop_a_run_with_a_budget_in_tokens():
    flow, clock = proven(Concurrency(8, 8), Budget(tokens=1000))
    ask(flow, clock, usage=Usage(1, 0, 0, None))
    assert "reports no tokens" in flow.stopped


def test_an_answer_from_a_cache_needs_neither_tokens_nor_a_price():
    flow, clock = proven(Concurrency(8, 8), Budget(tokens=1000, usd=1.0))
    ask(flow, clock, usage=Usage(0, 0, 0, None))
    assert flow.stopped == ""


def test_a_server_that_refuses_from_the_start_is_asked_four_times():
    clock = Hand()
    flow = Flow(Concurrency(64, 64), clock=clock)
    for number in range(4):
        assert flow.hopeless == ""
        ask(flow, clock, Outcome.HOPELESS, message=f"wrong key {number}")
    assert flow.hopeless == "wrong key 3"
    with pytest.raises(JudgementFailed, match="refuses to work: wrong key 3") as caught:
        flow.enter()
    assert caught.value.status is Status.SKIPPED


def test_a_server_that_has_answered_may_refuse_nineteen_in_a_row():
    flow, clock = proven(Concurrency(64, 64))
    for _ in range(19):
        ask(flow, clock, Outcome.HOPELESS, message="too long")
    ask(flow, clock)
    for _ in range(19):
        ask(flow, clock, Outcome.HOPELESS, message="too long")
    assert flow.hopeless == ""
    ask(flow, clock, Outcome.HOPELESS, message="expired")
    assert flow.hopeless == "expired"


def test_a_pause_stays_inside_the_time_budget():
    clock = Hand()
    flow = Flow(Concurrency(8, 8), Budget(seconds=2.0), clock=clock)
    assert flow.pause(1.5)
    assert not flow.pause(1.0)
    assert clock.time == 1.5  # the second one was not waited out


def test_stop_wakes_those_who_wait_and_those_who_pause():
    flow = Flow(Concurrency(1, 1))
    flow.enter()
    ended = []

    def wait():
        try:
            flow.enter()
        except JudgementFailed as problem:
            ended.append(str(problem))

    def pause():
        ended.append(flow.pause(60.0))

    threads = [threading.Thread(target=wait), threading.Thread(target=pause)]
    for thread in threads:
        thread.start()
    flow.stop("enough")
    for thread in threads:
        thread.join(5)
    assert sorted(map(str, ended)) == ["False", "not asked: enough"]


def test_the_flow_in_force_is_that_of_the_block():
    flow = Flow(Concurrency())
    assert in_force() is None
    with use(flow):
        assert in_force() is flow
    assert in_force() is None


@settings(max_examples=200, deadline=None)
@given(
    low=st.integers(1, 12), more=st.integers(0, 40), requests=st.integers(1, 60),
    steps=st.lists(st.tuples(st.booleans(), st.sampled_from(Outcome), st.floats(0.01, 5.0)), max_size=120),
)  # fmt: skip
def test_whatever_happens_the_bounds_are_kept_and_the_counts_add_up(low, more, requests, steps):
    clock, out, entered, left = Hand(), [], 0, 0
    flow = Flow(Concurrency(low, low + more), Budget(requests=requests), clock=clock, hopeless_in_a_row=10**9)
    answered = False
    for enters, outcome, seconds in steps:
        if enters and flow.in_flight < flow.limit and entered < requests:
            out.append(flow.enter())
            entered += 1
            assert flow.in_flight <= flow.limit
        elif out:
            clock.time += seconds
            flow.leave(out.pop(0), outcome, ONE)
            left += 1
            answered = answered or outcome is Outcome.ANSWERED
        assert (low if answered else min(low, 4)) <= flow.limit <= low + more
        assert answered or flow.limit <= 4
        assert flow.in_flight == entered - left == len(out)
        assert flow.spent.requests == entered <= requests
        assert flow.spent.prompt_tokens == 80 * left


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
        flow.leave(ticket, Outcome.THROTTLED if refused else Outcome.ANSWERED, ONE)
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
