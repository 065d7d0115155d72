"""Flow: how many at once, how fast, how far."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.limits import Budget, Concurrency, RequestEnd
from metricsmith.model_calls.rate_limiter import Clock, RateLimiter, in_force, span, spanning, use
from metricsmith.records import Status, Usage
from rate_limits import ONE, Hand, ask, proven


def test_before_the_first_answer_four_may_ask():
    limiter = RateLimiter(Concurrency(64, 64), clock=Hand())
    permits = [limiter.enter() for _ in range(4)]
    with pytest.raises(AssertionError, match="would wait"):
        limiter.enter()
    limiter.leave(permits[0], RequestEnd.FAILED, ONE)
    assert limiter.limit == 4
    limiter.leave(permits[1], RequestEnd.ANSWERED, ONE)
    assert limiter.limit == 64


def test_requests_are_spread_evenly_under_the_ceiling():
    limiter, _ = proven(Concurrency(8, 8, requests_per_minute=120))
    starts = [limiter.enter().started for _ in range(5)]
    assert starts == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.5])


def test_tokens_per_minute_are_kept_by_what_requests_really_take():
    limiter, _ = proven(Concurrency(8, 8, tokens_per_minute=600))  # ten tokens a second; a request takes 100
    starts = []
    for _ in range(4):
        permit = limiter.enter()
        starts.append(permit.started)
        limiter.leave(permit, RequestEnd.ANSWERED, ONE)
    # The first request took 100 tokens, so the next one may start 10 s after it, and so on.
    assert starts == pytest.approx([10.0, 20.0, 30.0, 40.0], abs=0.2)


def test_a_budget_of_requests_is_never_overshot_by_threads():
    limiter = RateLimiter(Concurrency(64, 64), Budget(requests=100))
    done, spent = [], []

    def work():
        while True:
            try:
                permit = limiter.enter()
            except JudgementFailed as problem:
                spent.append(problem.status)
                return
            done.append(1)
            limiter.leave(permit, RequestEnd.ANSWERED, ONE)

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(done) == 100 == limiter.spent.requests
    assert spent == [Status.BUDGET] * 64


@pytest.mark.parametrize(
    ("budget", "words"),
    [(Budget(tokens=250), "250 tokens"), (Budget(usd=0.025), "0.025 US dollars"), (Budget(seconds=0.25), "0.25 sec")],
)
def test_nothing_is_asked_beyond_a_budget(budget, words):
    clock = Hand()
    limiter = RateLimiter(Concurrency(8, 8), budget, clock=clock)
    for _ in range(3):  # .1 s, 100 tokens and .01 dollars each: the third passes the limit, the fourth is refused
        ask(limiter, clock)
    with pytest.raises(JudgementFailed, match=words) as caught:
        limiter.enter()
    assert caught.value.status is Status.BUDGET


@pytest.mark.parametrize("budget", [Budget(tokens=350), Budget(usd=0.035)])
def test_near_the_end_of_a_budget_requests_wait_for_what_the_others_cost(budget):
    limiter, clock = proven(Concurrency(8, 8), budget)
    for _ in range(3):
        ask(limiter, clock, usage=Usage())  # from a cache: a request costs on average what it did
    first = limiter.enter()  # 100 tokens or a cent spent, as much expected
    second = limiter.enter()  # as much again expected: 300 of 350
    with pytest.raises(AssertionError, match="would wait"):
        limiter.enter()
    limiter.leave(first, RequestEnd.ANSWERED, Usage(1, 20, 5, 0.0025))
    limiter.leave(second, RequestEnd.ANSWERED, Usage(1, 20, 5, 0.0025))
    limiter.enter()


def test_an_answer_from_a_cache_takes_the_request_back():
    limiter, clock = proven(Concurrency(8, 8), Budget(requests=2))
    ask(limiter, clock, usage=Usage())
    assert limiter.spent.requests == 1
    ask(limiter, clock)
    with pytest.raises(JudgementFailed):
        limiter.enter()


def test_an_unknown_price_stops_a_run_with_a_budget_in_dollars():
    limiter, clock = proven(Concurrency(8, 8), Budget(usd=1.0))
    ask(limiter, clock, usage=Usage(1, 80, 20, None))
    assert "price of the answers is unknown" in limiter.stopped


def test_answers_without_a_count_of_tokens_stop_a_run_with_a_budget_in_tokens():
    limiter, clock = proven(Concurrency(8, 8), Budget(tokens=1000))
    ask(limiter, clock, usage=Usage(1, 0, 0, None))
    assert "reports no tokens" in limiter.stopped


def test_an_answer_from_a_cache_needs_neither_tokens_nor_a_price():
    limiter, clock = proven(Concurrency(8, 8), Budget(tokens=1000, usd=1.0))
    ask(limiter, clock, usage=Usage(0, 0, 0, None))
    assert limiter.stopped == ""


def test_a_server_that_refuses_from_the_start_is_asked_four_times():
    clock = Hand()
    limiter = RateLimiter(Concurrency(64, 64), clock=clock)
    for number in range(4):
        assert limiter.hopeless == ""
        ask(limiter, clock, RequestEnd.HOPELESS, message=f"wrong key {number}")
    assert limiter.hopeless == "wrong key 3"
    with pytest.raises(JudgementFailed, match="refuses to work: wrong key 3") as caught:
        limiter.enter()
    assert caught.value.status is Status.SKIPPED


def test_a_server_that_has_answered_may_refuse_nineteen_in_a_row():
    limiter, clock = proven(Concurrency(64, 64))
    for _ in range(19):
        ask(limiter, clock, RequestEnd.HOPELESS, message="too long")
    ask(limiter, clock)
    for _ in range(19):
        ask(limiter, clock, RequestEnd.HOPELESS, message="too long")
    assert limiter.hopeless == ""
    ask(limiter, clock, RequestEnd.HOPELESS, message="expired")
    assert limiter.hopeless == "expired"


def test_a_pause_stays_inside_the_time_budget():
    clock = Hand()
    limiter = RateLimiter(Concurrency(8, 8), Budget(seconds=2.0), clock=clock)
    assert limiter.pause(1.5)
    assert not limiter.pause(1.0)
    assert clock.time == 1.5  # the second one was not waited out


def test_stop_wakes_those_who_wait_and_those_who_pause():
    limiter = RateLimiter(Concurrency(1, 1))
    limiter.enter()
    ended = []

    def wait():
        try:
            limiter.enter()
        except JudgementFailed as problem:
            ended.append(str(problem))

    def pause():
        ended.append(limiter.pause(60.0))

    threads = [threading.Thread(target=wait), threading.Thread(target=pause)]
    for thread in threads:
        thread.start()
    limiter.stop("enough")
    for thread in threads:
        thread.join(5)
    assert sorted(map(str, ended)) == ["False", "not asked: enough"]


def test_the_flow_in_force_is_that_of_the_block():
    limiter = RateLimiter(Concurrency())
    assert in_force.get() is None
    with use(limiter):
        assert in_force.get() is limiter
    assert in_force.get() is None


@settings(max_examples=200, deadline=None)
@given(
    low=st.integers(1, 12), more=st.integers(0, 40), requests=st.integers(1, 60),
    steps=st.lists(st.tuples(st.booleans(), st.sampled_from(RequestEnd), st.floats(0.01, 5.0)), max_size=120),
)  # fmt: skip
def test_whatever_happens_the_bounds_are_kept_and_the_counts_add_up(low, more, requests, steps):
    clock, out, entered, left = Hand(), [], 0, 0
    limiter = RateLimiter(Concurrency(low, low + more), Budget(requests=requests), clock=clock, hopeless_in_a_row=10**9)
    answered = False
    for enters, end, seconds in steps:
        if enters and limiter.in_flight < limiter.limit and entered < requests:
            out.append(limiter.enter())
            entered += 1
            assert limiter.in_flight <= limiter.limit
        elif out:
            clock.time += seconds
            limiter.leave(out.pop(0), end, ONE)
            left += 1
            answered = answered or end is RequestEnd.ANSWERED
        assert (low if answered else min(low, 4)) <= limiter.limit <= low + more
        assert answered or limiter.limit <= 4
        assert limiter.in_flight == entered - left == len(out)
        assert limiter.spent.requests == entered <= requests
        assert limiter.spent.prompt_tokens == 80 * left


def spanned(concurrency=None, budget=None, count=2):
    """A limiter around others, which are made inside its span and have the same clock."""
    clock = Hand()
    around = RateLimiter(concurrency or Concurrency(64, 64), budget, clock=clock)
    with span(around):
        assert spanning.get() is around
        inner = [RateLimiter(Concurrency(), clock=clock) for _ in range(count)]
    assert spanning.get() is None
    return around, inner, clock


def test_the_flows_of_a_span_share_its_budget_and_each_counts_its_own():
    around, (first, second), clock = spanned(budget=Budget(requests=3))
    ask(first, clock)
    ask(second, clock)
    ask(second, clock)
    for limiter in (first, second):
        with pytest.raises(JudgementFailed, match="the budget of 3 requests is spent") as stop:
            limiter.enter()
        assert stop.value.status == Status.BUDGET
        assert limiter.refused == around.refused == "the budget of 3 requests is spent"
    assert (around.spent.requests, first.spent.requests, second.spent.requests) == (3, 1, 2)
    assert around.spent.prompt_tokens == 240
    assert around.in_flight == first.in_flight == second.in_flight == 0


def test_the_flows_of_a_span_share_its_rate():
    """A request every six seconds, whichever limiter sends it: the fourth goes after eighteen."""
    _, (first, second), clock = spanned(Concurrency(64, 64, requests_per_minute=10))
    for limiter in (first, second, second, first):
        limiter.enter()
    assert clock.time == 18


def test_an_inner_flow_that_is_stopped_lets_nobody_wait_outside():
    around, (first, second), _ = spanned(Concurrency(1, 1))
    first.enter()
    failed = []

    def ask_second():
        try:
            second.enter()
        except JudgementFailed as problem:
            failed.append(problem)

    for limiter in (around, second):
        limiter._clock = Clock()
    thread = threading.Thread(target=ask_second, daemon=True)
    thread.start()
    while second.in_flight == 0:
        threading.Event().wait(0.001)
    second.stop("enough")
    thread.join(5)
    assert [problem.status for problem in failed] == [Status.SKIPPED]
    assert (around.in_flight, second.in_flight) == (1, 0)


def test_the_end_of_a_span_ends_its_flows_and_no_retry_waits_past_its_time():
    around, (first, second), _ = spanned(budget=Budget(seconds=10))
    assert first.pause(9)
    assert first.refused == ""
    assert not first.pause(9)
    assert first.refused == around.refused == "the budget of 10 seconds is spent"
    around.stop("the run has ended")
    with pytest.raises(JudgementFailed, match="the run has ended"):
        second.enter()
    assert second.stopped == "the run has ended"


def test_a_request_whose_time_is_over_while_it_waits_outside_is_not_admitted():
    """The next request may start after sixty seconds, and the inner limiter has ten."""
    around, (first, _), clock = spanned(Concurrency(1, 1, requests_per_minute=1))
    with span(around):
        hasty = RateLimiter(Concurrency(), Budget(seconds=10), clock=clock)
    ask(first, clock)
    with pytest.raises(JudgementFailed, match="the budget of 10 seconds is spent") as stop:
        hasty.enter()
    assert stop.value.status == Status.BUDGET
    assert clock.time < 20
    assert (hasty.refused, around.refused) == ("the budget of 10 seconds is spent", "")
    assert (around.in_flight, hasty.in_flight, hasty.spent.requests) == (0, 0, 0)


def test_everybody_who_waits_for_a_turn_inside_is_told_that_nothing_is_left_outside():
    """One of them finds it out, and tells the next, who goes without asking: the others would wait for ever."""
    around = RateLimiter(Concurrency(64, 64), Budget(requests=1))
    with span(around):
        narrow = RateLimiter(Concurrency(1, 1))
    permit, failed = narrow.enter(), []

    def wait_for_a_turn():
        try:
            narrow.enter()
        except JudgementFailed as problem:
            failed.append(problem.status)

    threads = [threading.Thread(target=wait_for_a_turn, daemon=True) for _ in range(5)]
    for thread in threads:
        thread.start()
    while len(narrow._condition._waiters) < 5:
        threading.Event().wait(0.001)
    narrow.leave(permit, RequestEnd.ANSWERED, ONE)
    for thread in threads:
        thread.join(2)
    assert failed == [Status.BUDGET] * 5


@pytest.mark.parametrize("budget", [Budget(seconds=10), Budget(requests=1)])
def test_nobody_waits_for_a_turn_inside_once_nothing_is_left_outside(budget):
    """The next request of the inner limiter may start after sixty seconds."""
    around, _, clock = spanned(budget=budget)
    with span(around):
        slow, other = (RateLimiter(Concurrency(requests_per_minute=1), clock=clock) for _ in range(2))
    ask(slow, clock)
    if budget.requests:
        with pytest.raises(JudgementFailed):
            other.enter()
    with pytest.raises(JudgementFailed, match=r"the budget of 1 ?\d? (seconds|requests) is spent") as stop:
        slow.enter()
    assert stop.value.status == Status.BUDGET
    assert clock.time <= 10
    assert slow.refused == around.refused != ""


def test_an_answer_that_cannot_be_counted_stops_the_span():
    around, (first, second), clock = spanned(budget=Budget(tokens=1000))
    ask(first, clock, usage=Usage(1))
    with pytest.raises(JudgementFailed, match="the server reports no tokens") as stop:
        second.enter()
    assert stop.value.status == Status.SKIPPED
    assert "reports no tokens" in around.refused
