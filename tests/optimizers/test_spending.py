"""One budget for a whole run: never overshot, never spent on half a result, and what was paid for is kept."""

from __future__ import annotations

import logging

import dspy
import pytest
from dspy.utils import DummyLM

from loopback import own_axes, scripted, serve
from metricsmith.errors import ModelFailure, OptionError
from metricsmith.model_calls import metering
from metricsmith.model_calls.calls import model_call
from metricsmith.model_calls.rate_limiter import RateLimiter, spanning, use
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce, prepare
from metricsmith.optimizers.spending import budget_lines, spending
from metricsmith.optimizers.splitting import Division
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status, Usage
from metricsmith.scoring import Budget, Concurrency
from metricsmith.store import Store
from metricsmith.studies.comparison.run import compare, compare_plan
from metricsmith.studies.probing.run import Prober
from rated import rated_table

JUDGE = CriterionJudge(criterion="Plain words", meaning="Short.", task="Write.")
POOL = {"criterion": 2, "rubric": 1, "examples": 1, "tuned": 1}


@pytest.fixture
def server():
    with serve(own_axes) as running:
        yield running


def optimizer(server, **options):
    return AutoMetrics(**{"bank": "generated", "generators": POOL, "lm": server.lm(), **options})


# A fold's first requests write axes and levels, the next hundreds tune, then twenty rows are judged by each judge.
@pytest.mark.parametrize(("judges", "most"), [(POOL, 1), (POOL, 2), (POOL, 60), ({"criterion": 2, "examples": 1}, 250)])
def test_a_budget_of_requests_is_never_overshot_by_generation_tuning_scoring_and_folds(server, judges, most):
    own = rated_table(10, versions=4)
    with pytest.raises(ModelFailure, match=f"the budget of {most} requests is spent before") as stop:
        induce(own, optimizer(server, generators=judges, budget=Budget(requests=most)), cv=2)
    assert server.requests == most
    assert stop.value.status == Status.BUDGET
    assert stop.value.usage.requests == most
    assert "the estimate for all was" in str(stop.value)
    assert "--store FILE" in str(stop.value)


def test_a_run_that_its_budget_covers_is_the_run_without_one(server):
    own, judges = rated_table(10), {"criterion": 2}
    free = induce(own, optimizer(server, generators=judges), split="holdout")
    asked = server.requests
    bounded = induce(own, optimizer(server, generators=judges, budget=Budget(requests=asked)), split="holdout")
    assert server.requests == 2 * asked
    assert bounded.record.signature == free.record.signature


def test_what_was_judged_is_in_the_store_and_the_next_run_asks_only_the_rest(server, tmp_path):
    own, judges, store = rated_table(10), {"criterion": 2}, tmp_path / "s.db"
    whole = optimizer(server, generators=judges, store=store)
    with pytest.raises(ModelFailure, match=r"\(30 of 60 model judgements of this step were known\)") as stop:
        induce(own, optimizer(server, generators=judges, store=store, budget=Budget(requests=31)), fraction=0)
    assert f"what was judged stands in {store}" in str(stop.value)
    with Store(store) as kept:
        assert kept.info().judgements == 30  # the first request is for axes
    induce(own, whole, fraction=0)
    assert server.requests == 31 + 1 + 30  # without DSPy's cache, axes are asked for again


def test_the_budget_counts_cards_that_a_model_ranks(server):
    with pytest.raises(ModelFailure, match="the budget of 1 requests is spent"):
        induce(rated_table(10), optimizer(server, generators={"criterion": 4}, k=2, budget=Budget(requests=1)))
    assert server.requests == 1


def test_a_run_whose_estimate_is_above_its_budget_says_so_before_the_first_request(server, caplog):
    small = optimizer(server, generators={"criterion": 2}, budget=Budget(requests=5, tokens=10**9, seconds=600))
    run = prepare(rated_table(10), small, Division(split="holdout"))
    assert "the price is unknown, so that --max-usd 2 cannot be kept" in "".join(
        budget_lines(Budget(usd=2), run.estimated)
    )
    assert "budget: an estimate of 61 requests is more than --max-requests 5 allows" in run.plan()
    assert "within --max-tokens 1000000000" in run.plan()
    with caplog.at_level(logging.WARNING, "metricsmith.notes"), pytest.raises(ModelFailure):
        run.induced()
    said = [record.getMessage() for record in caplog.records if record.name == "metricsmith.notes"]
    assert said == ["an estimate of 61 requests is more than --max-requests 5 allows; the run stops when that is spent"]


def test_a_comparison_has_one_budget_for_all_methods_and_seeds(server):
    own, budget = rated_table(10), Budget(requests=30)
    runner = optimizer(server, generators={"criterion": 1}, budget=budget, lm=server.lm(temperature=1.0))
    methods = ["guideline_judge", "autometrics"]
    assert "is more than --max-requests 30 allows" in compare_plan(own, runner, methods=methods, seeds=2)
    with pytest.raises(ModelFailure, match="the budget of 30 requests is spent"):
        compare(own, runner, methods=methods, seeds=2)
    assert server.requests == 30


@pytest.mark.parametrize("most", [1, 5, 12])
def test_a_probe_has_one_budget_for_changing_and_judging(most):
    with serve(scripted) as server:
        prober = Prober("generated", n=3, lm=server.lm(), budget=Budget(requests=most))
        with pytest.raises(ModelFailure, match=f"the budget of {most} requests is spent"):
            prober.probe(JUDGE, rated_table(10).rows)
    assert server.requests == most


def test_a_probe_for_which_nothing_is_left_is_a_warning_and_the_metric_stays(server):
    own, judges = rated_table(10, metric_columns=[]), {"criterion": 1}
    induce(own, optimizer(server, generators=judges), split="holdout")
    asked = server.requests
    runner = optimizer(server, generators=judges, budget=Budget(requests=asked + 3))
    done = induce(own, runner, split="holdout", prober=Prober(n=5))
    assert server.requests == 2 * asked + 3
    assert done.record.probe is None
    assert "there is no probe, since the budget did not reach for it: the budget of" in done.record.warnings[-1]


def test_a_budget_in_dollars_needs_a_price_before_anything_is_asked(server):
    with pytest.raises(OptionError, match=r"the price of openai/loopback is unknown.*--max-requests"):
        induce(rated_table(10), optimizer(server, generators={"criterion": 2}, budget=Budget(usd=1.0)))
    assert server.requests == 0


def test_a_model_that_is_not_asked_needs_no_price(server):
    done = induce(rated_table(10), AutoMetrics(bank="existing", lm=server.lm(), budget=Budget(usd=1.0)), cv=2)
    assert (server.requests, done.record.usage["requests"]) == (0, 0)


def test_answers_that_cannot_be_counted_end_a_run_with_a_budget_in_tokens():
    model, budget = DummyLM([{"axes": "none"}] * 9), Budget(tokens=10_000)
    with pytest.raises(ModelFailure, match="the server reports no tokens, so that a budget in tokens") as stop:
        induce(rated_table(10), AutoMetrics(bank="generated", generators={"criterion": 2}, lm=model, budget=budget))
    assert stop.value.status == Status.SKIPPED
    assert stop.value.usage.requests == 1


def ask(*outputs, **limits):
    """The statuses of calls, of which none raises, under a budget."""
    with spending(Budget(**limits), "auto", expected=Usage(requests=7)):
        return [model_call(JUDGE, output=output).status for output in outputs]


def test_a_refusal_that_a_part_swallows_ends_the_run_all_the_same(server):
    with dspy.context(lm=server.lm()), pytest.raises(ModelFailure, match="the budget of 1 requests is spent") as stop:
        ask("a", "b", requests=1)
    assert server.requests == 1
    assert "the estimate for all was 7 requests" in str(stop.value)


def test_a_retry_for_which_no_time_is_left_ends_the_run_instead_of_a_missing_row(monkeypatch):
    monkeypatch.setattr(metering, "FIRST_PAUSE", 0.5)
    with serve(own_axes) as busy, dspy.context(lm=busy.lm()):
        model_call(JUDGE, output="a")  # the first request of a process takes longer
        busy.always = 503
        with pytest.raises(ModelFailure, match=r"the budget of 0\.2 seconds is spent") as stop:
            ask("b", seconds=0.2)
    assert busy.requests <= 2
    assert stop.value.status == Status.BUDGET


def test_a_part_with_a_budget_of_its_own_counts_for_both_and_its_end_is_its_own(server):
    with dspy.context(lm=server.lm()), spending(Budget(requests=3), "auto", expected=Usage()):
        with pytest.raises(ModelFailure, match="the budget of 1 requests is spent"):
            ask("a", "b", requests=1)
        assert ask("c", "d", requests=3) == [Status.OK] * 2  # the same budget is this one
        assert spanning.get().spent.requests == server.requests == 3


def test_a_budget_inside_a_run_whose_limits_all_requests_pass_is_refused(server):
    with use(RateLimiter(Concurrency())), pytest.raises(OptionError, match="give budget= to the outer one alone"):
        induce(rated_table(10), optimizer(server, generators={"criterion": 2}, budget=Budget(requests=5)))
    assert server.requests == 0


@pytest.mark.parametrize("budget", [100, {"requests": 5}, "5"])
def test_something_else_than_a_budget_is_refused(budget):
    with pytest.raises(OptionError, match="must be a Budget"):
        AutoMetrics(budget=budget)
    with pytest.raises(OptionError, match="must be a Budget"):
        Prober(budget=budget)
