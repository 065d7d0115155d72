"""Estimates and budget of a run: counted by hand, and held against what a run sends."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace

import dspy
import numpy as np
import pandas as pd
import pytest
from dspy.utils import DummyLM

from loopback import own_axes, scripted, serve
from metricsmith import score
from metricsmith.datasets.table import read_table
from metricsmith.errors import ModelFailure, OptionError
from metricsmith.model_calls import metering
from metricsmith.model_calls.calls import model_call
from metricsmith.model_calls.limits import estimate_tokens, price
from metricsmith.model_calls.rate_limiter import RateLimiter, spanning, use
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce, prepare
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.spending import PassRows, budget_lines, estimate_passes, spending
from metricsmith.optimizers.splits import RatedRows
from metricsmith.optimizers.splitting import Division
from metricsmith.programs.generators.axes import contrast
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status, Usage
from metricsmith.scoring import Budget, Concurrency
from metricsmith.store import Store
from metricsmith.studies.comparison.run import compare, compare_plan
from metricsmith.studies.probing.run import Prober
from metricsmith.testing import GivenModel
from planted import TASK, WORDS, planted_rows
from rated import rated_table

ROWS = planted_rows(sources=4)
FURTHER = planted_rows(sources=5, seed=1, first=50)
COUNTS = {"criterion": 2, "rubric": 1}


def passing(others=0, held_out=0, unrated=0, rows=ROWS):
    taken = [FURTHER[:others], FURTHER[others : others + held_out], FURTHER[others + held_out :][:unrated]]
    return PassRows(RatedRows.of(rows, "rating"), *taken)


def estimated(*passes, counts=COUNTS, model="unknown/model", panel=False, most=False, bank="generated", n=None):
    sources = Options(bank=bank, generators=counts, panel=panel, k=30)
    options = replace(sources, lm=dspy.LM(model), n=n)
    return estimate_passes(passes, TASK, options, most=most)


@pytest.mark.parametrize(
    ("passes", "requests"),
    [
        # Every pass: one request for all axes and one per rubric. Every row that all judges read: one per judge.
        ([passing()], 1 + 1 + 12 * 3),
        ([passing(others=3)], 1 + 1 + 15 * 3),
        # A fold needs between the best judge with the paper's five and all, so that all three are needed here.
        ([passing(held_out=2), passing(held_out=4), passing()], 3 * (1 + 1 + 12 * 3) + 6 * 3),
        # Between one judge and three become components: two of three on six unrated rows.
        ([passing(unrated=6)], 1 + 1 + 12 * 3 + 6 * 2),
    ],
)
def test_requests_are_axes_rubrics_and_judgements(passes, requests):
    assert estimated(*passes).requests == requests


def test_a_fold_needs_the_middle_between_six_judges_and_all_on_its_held_out_rows():
    # Of ten judges 6 to 10, 8 in the middle; at most all ten.
    counts = {"criterion": 10}
    assert estimated(passing(held_out=5), passing(), counts=counts).requests == 2 * (1 + 120) + 5 * 8
    assert estimated(passing(held_out=5), passing(), counts=counts, most=True).requests == 2 * (1 + 120) + 5 * 10


def test_a_given_number_of_components_bounds_what_unrated_rows_cost():
    # One component of three judges, whichever; at most each of the three, for no bound rests on what the fit keeps.
    assert estimated(passing(unrated=6), n=1).requests == 1 + 1 + 36 + 6
    assert estimated(passing(unrated=6), n=1, most=True).requests == 1 + 1 + 36 + 18


def test_rows_with_equal_texts_count_once():
    again = passing(rows=[*ROWS, *ROWS[:5]])
    assert estimated(again).requests == estimated(passing()).requests


def test_a_ranking_of_more_cards_than_are_kept_is_one_request_more_a_pass():
    # 33 judges of which 30 are kept.
    many = {"criterion": 33}
    assert estimated(passing(), passing(), counts=many).requests == 2 * (1 + 1 + 12 * 30)


def test_judges_that_cannot_learn_from_so_few_rows_do_not_count():
    # Four groups in two halves are fewer than the four groups that a half needs.
    learning = {"criterion": 1, "examples": 1, "tuned": 1}
    assert estimated(passing(), counts=learning) == estimated(passing(), counts={"criterion": 1})


def test_judges_that_learn_ask_what_their_search_does():
    rows = planted_rows(sources=12, seed=3)
    assert len({row.output for row in rows}) == 36
    alone = estimated(passing(rows=rows), counts={"criterion": 1})
    # Four draws, of which the judge itself shows the first, on half of the rows, which select; then all rows.
    shown = estimated(passing(rows=rows), counts={"criterion": 1, "examples": 1})
    assert shown.requests - alone.requests == 4 * 18 + 36
    tuned = estimated(passing(rows=rows), counts={"criterion": 1, "tuned": 1})
    most = estimated(passing(rows=rows), counts={"criterion": 1, "tuned": 1}, most=True)
    # The judge itself and at least two of MIPROv2's candidates on the selection rows, and the learning rows once.
    assert 4 * 18 + 36 < tuned.requests - alone.requests < most.requests - alone.requests


def test_criterion_judges_take_no_request_of_their_own():
    assert estimated(passing(), counts={"criterion": 7}).requests == 1 + 7 * 12
    assert estimated(passing(), counts={"rubric": 7}).requests == 8 + 7 * 12


def test_rubrics_from_examples_take_the_requests_of_rubrics_and_the_tokens_of_the_examples():
    plain, shown = (estimated(passing(), counts={name: 2}) for name in ("rubric", "rubric_examples"))
    assert shown.requests == plain.requests
    examples = contrast(ROWS, TASK)
    more = shown.prompt_tokens - plain.prompt_tokens
    longer_name = 2  # tokens of the judge that stands in, in each of its 2 x 12 prompts
    assert more == 2 * estimate_tokens(examples.liked + examples.disliked) + 24 * longer_name
    seated = [estimated(passing(), counts={name: 2}, panel=True).requests for name in ("rubric", "rubric_examples")]
    assert seated == [1 + 2 + 12] * 2


def test_geval_judges_take_one_request_each_for_their_steps_and_no_seat_on_a_panel():
    assert estimated(passing(), counts={"geval": 2}).requests == 1 + 2 + 24
    # One for the axes, one for the rubric, two for steps; twelve rows on the panel, and twelve for each G-Eval judge.
    mixed = {"criterion": 2, "rubric": 1, "geval": 2}
    assert estimated(passing(), counts=mixed, panel=True).requests == 1 + 1 + 2 + 12 + 24
    assert estimated(passing(), counts={"criterion": 2, "geval": 0}, panel=True).requests == 1 + 12
    plain, described = (estimated(passing(), counts={name: 1}, panel=True) for name in ("criterion", "rubric"))
    assert described.prompt_tokens > plain.prompt_tokens + 12 * 80  # every row's prompt holds the rubric
    alone = estimated(passing(), counts={"geval": 2})
    assert estimated(passing(), counts={"geval": 2}, panel=True) == alone


def test_tokens_grow_with_passes_rows_and_length():
    base = estimated(passing())
    double = estimated(passing(), passing())
    assert double.prompt_tokens == pytest.approx(2 * base.prompt_tokens, abs=2)
    assert double.completion_tokens == 2 * base.completion_tokens
    assert estimated(passing(others=1)).prompt_tokens > base.prompt_tokens
    long = [row.copy(output=row.output * 9) for row in ROWS]
    assert estimated(passing(rows=long)).prompt_tokens > base.prompt_tokens


def test_an_unknown_price_is_unknown_and_not_nothing():
    assert estimated(passing()).cost is None


def test_the_price_of_a_judge_of_the_callers_own_is_unknown_where_no_row_is_unrated_too():
    judge = CriterionJudge(criterion="Clear", meaning="Good.", task="Write.")
    judge.set_lm(dspy.LM("unknown/model"))
    usage = estimate_passes([passing()], TASK, Options(bank="existing", metrics=(judge,)))
    assert (usage.requests, usage.cost) == (12, None)


def test_the_cost_is_that_of_the_estimated_tokens():
    usage = estimated(passing(), model="openai/gpt-4o-mini")
    assert usage.cost == price("gpt-4o-mini", usage.prompt_tokens, usage.completion_tokens)


def frame(prompts=14, raters=(), twins=0.0, seed=0):
    """Two outputs for each prompt; `twins` of all rows repeat the output before them; a row for each rater."""
    random, rows = np.random.default_rng(seed), []
    for prompt in range(prompts):
        words = [*random.permutation(WORDS)[:14], f"source{prompt}"]
        texts = [" ".join(words[random.integers(0, 5) :]), " ".join(words[random.integers(5, 10) :])]
        texts = [texts[0]] * 2 if prompt < 2 * twins * prompts else texts
        for text in texts:
            level = 1 + len(text.split()) / 4
            for rater in raters or [""]:
                rating = float(np.clip(np.round(level + random.normal(0, 0.5)), 1, 5))
                rows.append({"prompt": " ".join(words[::-1]), "answer": text, "rater": rater, "rating": rating})
    return pd.DataFrame(rows).drop(columns=[] if raters else ["rater"])


def written(prompt):
    """Answers as `own_axes`, with instructions of its own for other demonstrations and tips."""
    found = own_axes(prompt)
    if "proposed_instruction" in found:
        found["proposed_instruction"] += f" Variant {hashlib.sha256(prompt.encode()).hexdigest()[:6]}."
    return found


OWN = [CriterionJudge(criterion=f"Own {number}", meaning="It keeps all facts.", task="Rewrite.") for number in (1, 2)]


@pytest.mark.parametrize(
    ("data", "own", "half", "split", "answer"),
    [
        (frame(), [], False, "holdout", own_axes),
        (frame(), [], False, "holdout", written),
        (frame(raters=("ann", "bob")), [], False, "holdout", own_axes),
        (frame(twins=1 / 3), [], False, "holdout", own_axes),
        (frame(), OWN[:1], False, "holdout", own_axes),
        (frame(), OWN, True, "holdout", own_axes),
        (frame(prompts=8), [], False, "cv", own_axes),
    ],
    ids=[
        "one rater",
        "other instructions",
        "two raters",
        "a third repeated",
        "own judge",
        "store half full",
        "cross-validation",
    ],
)
def test_the_estimate_is_within_fifteen_per_cent_of_what_is_sent(data, own, half, split, answer, tmp_path):
    table = read_table(data, target="rating")
    with GivenModel(answer) as server:
        store = tmp_path / "store.sqlite" if half else None
        optimizer = AutoMetrics(lm=server.lm(), metrics=own or None, store=store)
        if half:  # both own judges on every second row
            score(own, table.rows[::2], lm=server.lm(), store=store)
        before = server.requests
        said = prepare(table, optimizer, Division(split=split)).plan()
        assert server.requests == before
        record = induce(table, optimizer, split=split).record
        sent = server.requests - before
    found = record.usage["estimated"]["requests"]
    assert f"requests: {found:,}, " in said
    assert ("the store may hold a part of that" in said) is half
    assert abs(found - sent) <= 0.15 * sent
    assert record.evaluation == split


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
