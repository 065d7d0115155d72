"""Hold-out or cross-validation: what the default takes, why, and what wins over it."""

from __future__ import annotations

import re

import pytest

from loopback import own_axes, serve
from metricsmith.errors import OptionError
from metricsmith.optimizers import splitting
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce, prepare
from metricsmith.optimizers.splitting import fold_count
from metricsmith.scoring import Budget
from owned import memory
from rated import rated_table

COLUMNS = AutoMetrics(bank="none")


@pytest.mark.parametrize(("sources", "evaluation"), [(47, "cv"), (50, "holdout")])
def test_a_hold_out_takes_fifteen_groups(sources, evaluation):
    # .3 of 47 groups of three rows are 14 groups, of 50 they are 15.
    record = induce(rated_table(sources), COLUMNS).record
    assert record.evaluation == evaluation
    assert f"leaves {14 if evaluation == 'cv' else 15} groups" in record.split


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ({"cv": 4}, "4-fold cross-validation by group"),
        ({"fraction": 0.5}, "0.5 held out by group"),
        ({"fraction": 0}, "no test rows"),
        ({"split": "holdout"}, "0.3 held out by group"),
        ({"split": "cv"}, "3-fold cross-validation by group"),
        ({"cv": 2, "split": "cv"}, "2-fold cross-validation by group"),
        ({"fraction": 0.2, "split": "holdout"}, "0.2 held out by group"),
    ],
)
def test_what_is_asked_for_wins_and_the_signature_names_it(options, how):
    record = induce(rated_table(12), COLUMNS, **options).record
    assert how in record.signature
    assert record.split == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": "cvv"}, "split='cvv' .*cv"),
        ({"split": "holdout", "cv": 3}, "--split holdout and --cv contradict"),
        ({"split": "cv", "fraction": 0.3}, "--split cv and --test contradict"),
    ],
)
def test_contradictions_are_errors(options, words):
    with pytest.raises(OptionError, match=words):
        induce(rated_table(12), COLUMNS, **options)


def test_two_groups_are_too_few_to_cross_validate():
    record = induce(rated_table(2, versions=8), COLUMNS).record
    assert record.evaluation == "holdout"
    assert record.split.endswith("there are too few groups to cross-validate.")


@pytest.mark.parametrize(
    ("groups", "asks", "count"), [(4, False, 3), (19, False, 3), (20, False, 5), (200, True, 3), (2, True, 2)]
)
def test_folds_are_three_with_a_model_and_five_where_each_has_four_groups(groups, asks, count):
    assert fold_count(groups, asks) == count


@pytest.mark.parametrize("scale", [1, 3])
def test_cross_validation_with_a_model_takes_at_most_five_hold_outs(scale):
    """Judges that learn from ratings included: the sixty rows of the case have some only in the last pass."""
    own = rated_table(10, versions=2 * scale)
    with serve(own_axes) as server:
        judges = {"criterion": 4, "rubric": 1}
        optimizer = AutoMetrics(bank="generated", generators=judges, lm=server.lm())
        line = prepare(own, optimizer).splits.split
        assert server.requests == 0
        held = induce(own, optimizer, split="holdout").record.usage["requests"]
        before = server.requests
        record = induce(own, optimizer).record
    assert record.evaluation == "cv"
    assert record.split == line
    assert "A hold-out would ask at most" in line
    assert "cross-validation at most" in line
    assert record.usage["requests"] == server.requests - before <= 5 * held


def test_the_budget_decides_and_the_first_line_says_so():
    own, budget = rated_table(10), Budget(requests=100)
    with serve(own_axes) as server:
        optimizer = AutoMetrics(bank="generated", generators={"criterion": 2}, lm=server.lm(), budget=budget)
        record = induce(own, optimizer).record
    # Three folds and the last pass ask for axes and let two judges read 30 rows: 4 * 61 at most.
    assert record.evaluation == "holdout"
    assert record.split == (
        "Hold-out, though holding out .3 of the rows leaves 3 groups to test on: the budget does not reach for 3-fold "
        "cross-validation by group: an estimate of 244 requests is more than --max-requests 100 allows. A hold-out "
        "would ask at most 61 requests, cross-validation at most 244."
    )


def test_a_budget_in_tokens_decides_too_and_one_that_reaches_does_not():
    own = rated_table(10)
    with serve(own_axes) as server:
        options = {"bank": "generated", "generators": {"criterion": 2}, "lm": server.lm()}
        small, large, time = (
            prepare(own, AutoMetrics(budget=budget, **options)).splits
            for budget in (Budget(tokens=1_000), Budget(requests=244, tokens=10**6), Budget(seconds=1))
        )
    assert (small.kind, large.kind, time.kind) == ("holdout", "cv", "cv")
    assert "tokens is more than --max-tokens 1000 allows" in small.split


def test_a_cross_validation_of_more_than_five_hold_outs_is_not_made(monkeypatch):
    monkeypatch.setattr(splitting, "MOST_TIMES", 3)
    with serve(own_axes) as server:
        optimizer = AutoMetrics(bank="generated", generators={"criterion": 2}, lm=server.lm())
        line = prepare(rated_table(10), optimizer).splits.split
    assert "would take more requests than five times the hold-out" in line


def test_a_plan_says_how_rows_are_set_aside():
    text = prepare(rated_table(10), COLUMNS).plan()
    assert "3-fold cross-validation by group: holding out .3 of the rows leaves 3 groups" in text


def test_rows_that_own_judges_have_learned_from_are_in_both_estimates():
    """The sentence on the split and the plan speak of the same run."""
    own = rated_table(10)
    judge = memory(own.rows[:3])
    with serve(own_axes) as server:
        options = {"bank": "generated", "generators": {"criterion": 2}, "lm": server.lm()}
        ready = prepare(own, AutoMetrics(metrics=[judge], **options))
    (bound,) = re.findall(r"cross-validation at most ([\d,]+)", ready.splits.split)
    assert f"at most {bound.replace(',', '')} requests" in ready.plan()
