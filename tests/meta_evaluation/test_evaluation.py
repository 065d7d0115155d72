"""Several metrics on a task: the parts are those of the functions they come from, on cells that all have."""

from __future__ import annotations

import math
import time
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import (
    MEASURES,
    SegmentAccuracy,
    SegmentCorrelation,
    SoftSystemAccuracy,
    average_tasks,
    chance_floor,
    evaluate_task,
    evaluate_tasks,
    mean_rating,
    rank_table,
    tasks_by_name,
)
from metricsmith.meta_evaluation.jackknife import measure_interval

NAN = math.nan
RANDOM = np.random.default_rng(11)
GOLD = RANDOM.integers(-4, 1, (5, 12)).astype(float)
NEAR = GOLD + RANDOM.normal(0, 0.8, GOLD.shape)
FAR = RANDOM.normal(0, 1, GOLD.shape)
GROUPS = [segment // 3 for segment in range(12)]
FEW = {"resamples": 99}


def by_name(lines):
    return {line.name: line for line in lines}


def test_every_part_is_what_its_own_function_gives():
    acc = MEASURES["acc-t"]
    result = evaluate_task("acc-t", acc, {"far": FAR, "near": NEAR}, GOLD, groups=GROUPS, seed=3, **FEW)
    table = rank_table(acc, {"far": FAR, "near": NEAR}, GOLD, seed=3, **FEW)
    assert [(line.name, line.value, line.rank) for line in result.metrics] == [
        (name, value, table.ranks[name]) for name, value in table.values.items()
    ]
    assert result.p_values[0][1] == table.p_values[0, 1]
    assert math.isnan(result.p_values[1][0])
    near = result.metrics[0]
    assert near.interval == measure_interval(acc, NEAR, GOLD, GROUPS)
    assert near.interval != measure_interval(acc, NEAR, GOLD)
    assert near.chance == chance_floor(acc, NEAR, GOLD, seed=3)
    assert near.chance != chance_floor(acc, NEAR, GOLD, seed=0)
    assert (near.epsilon, near.used, near.dropped) == (acc(NEAR, GOLD).epsilon, 12, 0)
    assert math.isnan(near.error)


class Ended(dict):
    """Kept numbers of a run that is ended after so many of them."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def __setitem__(self, key, numbers):
        if len(self) == self.most:
            raise KeyboardInterrupt
        super().__setitem__(key, numbers)


def test_what_a_run_that_was_ended_has_made_is_kept_metric_by_metric():
    acc, metrics = MEASURES["acc-t"], {"far": FAR, "near": NEAR}
    whole = evaluate_task("acc-t", acc, metrics, GOLD, kept=(kept := {}), **FEW)
    assert len(kept) == 5  # the draws of one test, two values with their intervals, two chance floors
    for most in range(5):
        ended = Ended(most)
        with pytest.raises(KeyboardInterrupt):
            evaluate_task("acc-t", acc, metrics, GOLD, kept=ended, **FEW)
        assert len(ended) == most
        again = dict(ended)
        assert repr(evaluate_task("acc-t", acc, metrics, GOLD, kept=again, **FEW)) == repr(whole)
        assert {key: numbers.tobytes() for key, numbers in again.items()} == {
            key: numbers.tobytes() for key, numbers in kept.items()
        }


def test_the_seed_reaches_the_test_of_two_metrics():
    metrics = {"near": NEAR, "also": GOLD + np.random.default_rng(2).normal(0, 0.9, GOLD.shape)}
    pearson = MEASURES["pearson"]
    found = [evaluate_task("p", pearson, metrics, GOLD, seed=seed, **FEW).p_values[0][1] for seed in (0, 3)]
    assert found == [rank_table(pearson, metrics, GOLD, seed=seed, **FEW).p_values[0, 1] for seed in (0, 3)]
    assert found[0] != found[1]


def test_details_of_measures_on_systems_come_along():
    result = evaluate_task("spa", SoftSystemAccuracy(), {"near": np.where(GROUPS, NEAR, NAN)}, GOLD, **FEW)
    (near,) = result.metrics
    assert (near.used, near.dropped) == (9, 3)
    assert 0 < near.error < 0.01
    assert math.isnan(near.epsilon)
    assert result.p_values == ((pytest.approx(NAN, nan_ok=True),),)


def test_all_metrics_are_measured_on_the_cells_that_all_have():
    holed = FAR.copy()
    holed[:, 2] = NAN
    holed[1, 7] = NAN
    result = evaluate_task("tau-b", MEASURES["tau-b"], {"near": NEAR, "far": holed}, GOLD, **FEW)
    masked = np.where(np.isnan(holed), NAN, GOLD)
    assert by_name(result.metrics)["near"].value == MEASURES["tau-b"](NEAR, masked).value
    assert by_name(result.metrics)["near"].value != MEASURES["tau-b"](NEAR, GOLD).value


def test_an_undefined_metric_comes_last_and_leaves_the_others_as_they_are():
    metrics = {"flat": np.zeros(GOLD.shape), "far": FAR, "near": NEAR}
    result = evaluate_task("tau-b", MEASURES["tau-b"], metrics, GOLD, **FEW)
    without = evaluate_task("tau-b", MEASURES["tau-b"], {"far": FAR, "near": NEAR}, GOLD, **FEW)
    assert result.metrics[:2] == without.metrics
    flat = result.metrics[2]
    assert (flat.name, flat.rank) == ("flat", None)
    for number in (flat.value, flat.interval.low, flat.chance.mean, flat.chance.p_value):
        assert math.isnan(number)
    alone = evaluate_task("tau-b", MEASURES["tau-b"], {"flat": metrics["flat"]}, GOLD, **FEW)
    assert (alone.metrics[0].rank, alone.p_values) == (None, ())


def test_a_constant_has_an_accuracy_and_is_no_better_than_chance():
    result = evaluate_task("acc-t", MEASURES["acc-t"], {"flat": np.zeros(GOLD.shape), "near": NEAR}, GOLD, **FEW)
    flat = by_name(result.metrics)["flat"]
    assert flat.value == pytest.approx(flat.chance.mean)
    assert (flat.rank, flat.chance.p_value) == (2, 1.0)


def test_a_rater_is_measured_against_the_mean_of_the_others():
    raters = {"a": GOLD, "b": NEAR, "c": FAR, "alone": np.full(GOLD.shape, NAN)}
    result = evaluate_task("pearson", MEASURES["pearson"], {"m": NEAR}, GOLD, raters=raters, groups=GROUPS, **FEW)
    assert [line.name for line in result.raters] == ["a", "b", "c"]
    assert all(line.rank is None for line in result.raters)
    a = result.raters[0]
    assert a.value == pytest.approx(np.corrcoef(GOLD.ravel(), ((NEAR + FAR) / 2).ravel())[0, 1])
    assert a.interval.low < a.value < a.interval.high
    one = evaluate_task("pearson", MEASURES["pearson"], {"m": NEAR}, GOLD, raters={"a": GOLD}, **FEW)
    assert one.raters == ()


def test_ratings_that_nobody_shares_count_for_nothing():
    left, right = np.where(GROUPS, GOLD, NAN), np.where(GROUPS, NAN, NEAR)
    result = evaluate_task("pearson", MEASURES["pearson"], {"m": NEAR}, GOLD, raters={"a": left, "b": right}, **FEW)
    assert result.raters == ()


def test_the_average_is_that_of_the_two_tasks_of_wmt24():
    metrics = {"near": NEAR, "far": FAR}
    tasks = [
        evaluate_task(name, one, metrics, GOLD, **FEW) for name, one in tasks_by_name(["spa", "acc-t", "acc"]).items()
    ]
    found = average_tasks(tasks)
    values = [by_name(task.metrics)["far"].value for task in tasks]
    assert found["far"].value == pytest.approx((values[0] + values[1]) / 2)
    assert (list(found), found["near"].rank, found["far"].rank) == (["near", "far"], 1, 2)
    assert average_tasks(tasks[:1]) == {}


def test_a_metric_that_lacks_a_task_has_no_average():
    metrics = {"near": NEAR, "flat": np.zeros(GOLD.shape)}
    tasks = [evaluate_task(name, MEASURES[name], metrics, GOLD, **FEW) for name in ("tau-b", "acc-t")]
    assert list(average_tasks(tasks, ("tau-b", "acc-t"))) == ["near"]
    flat = [evaluate_task("tau-b", MEASURES["tau-b"], {"flat": metrics["flat"]}, GOLD, **FEW)]
    assert average_tasks(flat, ("tau-b",)) == {}


def test_tasks_are_named_once_and_carry_their_options():
    assert list(tasks_by_name(())) == ["spa", "acc-t"]
    assert list(tasks_by_name(["all", "spa"])) == list(MEASURES)
    found = tasks_by_name(["spa", "acc", "acc-t", "tau-b"], seed=7, decimals=6)
    assert found == {
        "spa": SoftSystemAccuracy(seed=7),
        "acc": SegmentAccuracy(epsilon=0.0, decimals=6),
        "acc-t": SegmentAccuracy(decimals=6),
        "tau-b": SegmentCorrelation(),
    }


@given(arrays.arrays(float, (3, 2, 2), elements=st.one_of(st.just(NAN), st.integers(-250, 250).map(lambda n: n / 10))))
def test_a_mean_rating_is_the_mean_of_those_there_are(ratings):
    found = mean_rating(list(ratings))
    for place in np.ndindex(2, 2):
        given_ = [value for value in ratings[(slice(None), *place)].tolist() if not math.isnan(value)]
        expected = math.fsum(given_) / len(given_) if given_ else NAN
        assert found[place] == pytest.approx(expected, rel=1e-11, abs=1e-12, nan_ok=True)


def test_sums_of_tenths_that_are_equal_stay_equal():
    first, second = mean_rating([[[-1.1, -1.2]], [[-0.1, 0.0]]])[0]
    assert -1.1 + -0.1 != -1.2
    assert first == second == -0.6
    assert mean_rating([[[0.1, 0.1]], [[0.2, 0.2]], [[-0.3, -0.2999]]])[0].tolist() == [0, pytest.approx(1e-4 / 3)]
    assert mean_rating([[[1e-20, NAN]]])[0, 0] == 1e-20


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tasks_by_name(["acct"]), OptionError, "unknown measure 'acct' .did you mean 'acc-t'"),
        (lambda: tasks_by_name([], decimals=-1), OptionError, "decimals=-1 must be 0 or more"),
        (lambda: evaluate_task("a", MEASURES["acc"], {}, GOLD), DataError, "no metrics to evaluate"),
        (
            lambda: evaluate_task("a", MEASURES["acc"], {"a": FAR, "void": np.full(GOLD.shape, NAN)}, GOLD),
            DataError,
            "void has no score for an output",
        ),
        (lambda: evaluate_task("a", MEASURES["acc"], {"a": FAR[:2]}, GOLD), DataError, "do not match"),
        (lambda: evaluate_task("a", MEASURES["acc"], {"a": FAR, "b": NEAR}, GOLD, resamples=0), OptionError, "0"),
        (lambda: evaluate_task("a", MEASURES["acc"], {"a": FAR}, GOLD, significance=2), OptionError, "level=2"),
    ],
)
def test_what_has_no_meaning_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# Several tasks


def several(workers, names=("spa", "acc-t", "tau-b", "pearson-item"), **settings):
    measures = tasks_by_name(names, seed=3)
    return evaluate_tasks(measures, {"far": FAR, "near": NEAR}, GOLD, workers=workers, seed=3, **FEW, **settings)


def test_tasks_side_by_side_have_the_results_of_one_after_the_other():
    alone = [evaluate_task(name, one, {"far": FAR, "near": NEAR}, GOLD, seed=3, **FEW)
             for name, one in tasks_by_name(("spa", "acc-t", "tau-b", "pearson-item"), seed=3).items()]  # fmt: skip
    for workers in (1, 3, None):
        assert repr(several(workers)) == repr(tuple(alone))


def test_tasks_report_their_tests():
    told = []
    several(2, tested=lambda *told_of: told.append(told_of))
    assert sorted(told) == [(name, 1, 1) for name in ("acc-t", "pearson-item", "spa", "tau-b")]
    with pytest.raises(OptionError, match="workers=0 must be at least 1"):
        several(0)


def test_a_task_that_fails_ends_the_others_at_their_next_test():
    told, begun = [], Event()

    def fails(metric, gold):
        assert begun.wait(20)
        raise DataError("no")

    def tested(*told_of):
        told.append(told_of)
        begun.set()
        time.sleep(0.5)  # the failure is noticed meanwhile

    with pytest.raises(DataError, match="no"):
        evaluate_tasks(
            {"fails": fails, "acc": MEASURES["acc"]}, {"far": FAR, "near": NEAR, "gold": GOLD}, GOLD, tested=tested,
            workers=2,
        )  # fmt: skip
    assert told == [("acc", 1, 3)]
