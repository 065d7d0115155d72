"""Prediction-powered means and Rogan and Gladen's prevalence: golden values, refits, invariances, fall-backs.

Golden values are those of ppi-python 0.2.3 and of a formula of five lines (`golden/ppi_and_budget.json`).
"""

from __future__ import annotations

import json
import math
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark import loaded
from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.corrected import PRIOR_GROUPS, prediction_powered_mean, rogan_gladen
from metricsmith.rating_model.labelled_sample import LabelledSample
from metricsmith.stats.resampling import group_mean_interval

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "ppi_and_budget.json").read_text("utf-8"))
Y, F, X = (np.array(GOLDEN[name]) for name in ("Y", "Yhat", "Yhat_unlabeled"))


@pytest.fixture(scope="module")
def benchmark():
    return loaded("corrected_means")


def grouped(seed: int, shared: int = 0) -> LabelledSample:
    """Nine uneven labelled groups, 25 unlabelled ones of which so many are labelled too."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(9), random.integers(1, 7, 9))
    others = np.repeat(np.arange(9 - shared, 34 - shared), 4)
    level = random.normal(size=40)
    y = level[groups] + random.normal(size=groups.size)
    f = 3 * level[groups] + random.normal(size=groups.size)
    x = 3 * level[others] + random.normal(size=others.size)
    return LabelledSample.of(y, f, x, groups=groups, unlabelled_groups=others)


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_a_given_lambda_gives_the_golden_estimate(lam):
    found = prediction_powered_mean(LabelledSample.of(Y, F, X), lam=lam, level=0.9)
    assert found.estimate == pytest.approx(GOLDEN[f"ppi_py_lam={lam:g}"]["point"], abs=1e-12)
    assert (found.method, found.lam, found.labelled, found.unlabelled) == ("ppi", lam, 40, X.size)
    # Student's t and the skewness of the rows in place of normal quantiles move the ends by a few hundredths.
    assert (found.low, found.high) == pytest.approx(GOLDEN[f"ppi_py_lam={lam:g}"]["ci90"], abs=0.02)


def test_the_tuned_lambda_lies_beside_the_golden_ones():
    found = prediction_powered_mean(LabelledSample.of(Y, F, X), level=0.9)
    assert found.lam == pytest.approx(GOLDEN["own_lam_star"], abs=0.02)  # left out one by one, other variances
    assert found.estimate == pytest.approx(GOLDEN["ppi_py_lam=None"]["point"], abs=1e-3)


@pytest.mark.parametrize("lam", ["0", "1", "None"])
def test_the_plain_interval_of_the_benchmark_is_that_of_ppi_python(benchmark, lam):
    golden = GOLDEN[f"ppi_py_lam={lam}"]
    estimate, *ends = benchmark.plain_ppi(Y, F, X, None if lam == "None" else float(lam), level=0.9)
    assert estimate == pytest.approx(golden["point"], abs=1e-12)
    assert ends == pytest.approx(golden["ci90"], abs=1e-12)


@pytest.mark.parametrize("shared", [0, 4])
def test_each_lambda_is_that_of_a_refit_without_the_group(shared):
    sample = grouped(3, shared)
    y, f, x = sample.ratings, sample.predictions, sample.unlabelled - sample.unlabelled.mean()
    terms = []
    for group in np.unique(sample.groups):
        kept = sample.groups != group
        part, size = kept.sum() / y.size, 1 + max(sample.groups.max(), sample.unlabelled_groups.max())
        up, across = (side[kept] - side[kept].mean() for side in (y, f))
        by_y, by_f = (np.bincount(sample.groups[kept], side, size) / y.size for side in (up, across))
        by_x = np.bincount(sample.unlabelled_groups, x, size) / x.size
        here, alone = np.isin(np.arange(size), sample.groups[kept]), ~np.isin(np.arange(size), sample.groups)
        off = (by_f - by_x) * here
        groups = (by_y @ off) / (off @ off + part * (by_x[alone] @ by_x[alone]))
        rows = (up @ across / y.size**2) / (across @ across / y.size**2 + part * (x @ x) / x.size**2)
        lam = (8 * groups + PRIOR_GROUPS * rows) / (8 + PRIOR_GROUPS)
        terms.append((y - lam * (f - sample.unlabelled.mean()))[~kept])
    assert prediction_powered_mean(sample).estimate == pytest.approx(np.concatenate(terms).mean(), abs=1e-12)


def test_with_lambda_0_the_interval_is_that_of_the_ratings():
    sample = grouped(1)
    found, alone = prediction_powered_mean(sample, lam=0.0), group_mean_interval(sample.ratings, sample.groups)
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high), abs=1e-12)
    assert (found.classical_low, found.classical_high) == (alone.low, alone.high)


numbers = st.floats(-5, 5).filter(lambda value: abs(value) > 0.1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 50), st.integers(0, 5), numbers, numbers, st.randoms(use_true_random=False))
def test_scale_and_direction_of_the_judge_and_the_order_of_rows_change_nothing(seed, shared, factor, shift, shuffler):
    sample = grouped(seed, shared)
    found = prediction_powered_mean(sample)
    order = list(range(sample.ratings.size))
    shuffler.shuffle(order)
    other = replace(
        sample, ratings=sample.ratings[order] + shift, predictions=factor * sample.predictions[order] + shift,
        groups=sample.groups[order], strata=sample.strata[order], unlabelled=factor * sample.unlabelled + shift,
    )  # fmt: skip
    again = prediction_powered_mean(other)
    assert (again.estimate, again.low, again.high) == pytest.approx(
        (found.estimate + shift, found.low + shift, found.high + shift), rel=1e-6, abs=1e-6
    )
    assert again.lam == pytest.approx(found.lam / factor, rel=1e-6)


def test_fewer_than_five_groups_with_the_rarer_value_give_the_classical_interval_and_the_reason():
    y = np.r_[np.ones(8), np.zeros(52)]
    found = prediction_powered_mean(LabelledSample.of(y, y, X, groups=np.arange(60) // 2))  # in 4 of 30 groups
    alone = group_mean_interval(y, np.arange(60) // 2, bounds=(0, 1))
    assert (found.method, found.lam, found.estimate) == ("classical", 0.0, y.mean())
    assert (found.low, found.high) == (alone.low, alone.high)
    assert found.note.startswith("4 of 30 labelled groups hold a rating other than 0, and 5 are needed")
    y[8] = 1  # a fifth group
    assert prediction_powered_mean(LabelledSample.of(y, y, X, groups=np.arange(60) // 2)).method == "ppi++"


def test_ratings_turned_round_fall_back_alike_where_both_are_as_frequent():
    y = np.r_[np.ones(24), np.zeros(24)]  # the ones in three groups, the zeros in eight
    groups = np.r_[np.repeat(np.arange(3), 8), np.repeat(np.arange(3, 11), 3)]
    found = [prediction_powered_mean(LabelledSample.of(one, one, X, groups=groups)) for one in (y, 1 - y)]
    assert [one.method for one in found] == ["classical", "classical"]
    assert [one.note.split(", ")[0] for one in found] == [
        f"3 of 11 labelled groups hold a rating other than {usual}" for usual in (0, 1)
    ]


def test_few_unlabelled_groups_give_the_classical_interval_too():
    found = prediction_powered_mean(LabelledSample.of(Y, F, X, unlabelled_groups=np.arange(X.size) % 4))
    assert found.method == "classical"
    assert found.note.startswith("the unlabelled rows form 4 groups")


def test_a_judge_without_an_error_keeps_the_width_of_the_ratings_alone():
    found = prediction_powered_mean(LabelledSample.of(Y, Y, X), lam=1.0)
    assert found.estimate == pytest.approx(X.mean())
    assert found.high - found.low > 0.99 * (found.classical_high - found.classical_low)


def test_strata_count_by_their_share_of_the_unlabelled_rows():
    y, f = np.arange(12.0), np.r_[np.zeros(6), np.ones(6)]
    strata = ["a"] * 6 + ["b"] * 6
    sample = LabelledSample.of(
        y, f, np.r_[np.zeros(30), np.ones(10)], strata=strata, unlabelled_strata=["a"] * 30 + ["b"] * 10
    )
    # 3/4 of 2.5 and 1/4 of 8.5; within strata the judge says nothing
    assert prediction_powered_mean(sample).estimate == pytest.approx(4.0)


def test_a_difference_is_first_less_second_and_leaves_other_strata_out():
    y = np.r_[np.arange(6.0), np.array([3.0, 1, 5, 4, 6, 8]), [9, 9, 9]]
    strata = ["b"] * 6 + ["a"] * 6 + ["c"] * 3
    groups = [*range(6), *range(6), *range(3)]
    sample = LabelledSample.of(
        y, y, np.tile([1.0, 2, 3, 9], 10), groups=groups, unlabelled_groups=list(range(100, 140)), strata=strata,
        unlabelled_strata=["a", "b"] * 20, difference=("a", "b"),
    )  # fmt: skip
    found = prediction_powered_mean(sample, lam=1.0)
    # the judge is right, and its means are (1 + 3) / 2 and (2 + 9) / 2
    assert found.estimate == pytest.approx(2 - 5.5)
    assert found.classical == pytest.approx(2.0)
    assert (found.labelled, found.unlabelled, found.missing) == (12, 40, 0)
    # of the ratings alone: the interval of the mean of six paired differences
    pairs = group_mean_interval(y[6:12] - y[:6])
    assert (found.classical_low, found.classical_high) == pytest.approx((pairs.low, pairs.high))


def test_rogan_and_gladen_take_both_kinds_of_error_out():
    y = np.r_[np.ones(40), np.zeros(60)]
    f = np.r_[np.ones(32), np.zeros(8), np.ones(6), np.zeros(54)]  # sensitivity .8, specificity .9
    found = rogan_gladen(LabelledSample.of(y, f, np.r_[np.ones(240), np.zeros(760)]))
    assert found.estimate == pytest.approx((0.24 - 0.1) / 0.7)
    assert found.low < 0.2 < found.high
    assert math.isnan(found.lam)
    assert (found.method, found.plain) == ("rogan-gladen", 0.24)
    # delta method by hand, with what Agresti and Coull's variances have more: close to the interval by groups
    p, parts = found.estimate, [(0.1, 60, 0.8), (0.8, 40, 0.2)]
    variance = 0.24 * 0.76 / 1000
    for rate, n, weight in parts:
        smooth = (rate * n + 2) / (n + 4)
        variance += weight**2 * max(rate * (1 - rate) / n, smooth * (1 - smooth) / (n + 4))
    half = 1.984 * math.sqrt(variance) / 0.7
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.06)
    assert p == pytest.approx(0.2)


def test_few_negatives_leave_room_for_false_alarms_that_they_do_not_show():
    y, f = np.repeat([1.0, 0], [40, 20]), np.repeat([1.0, 0, 1, 0], [32, 8, 1, 19])
    found = rogan_gladen(LabelledSample.of(y, f, np.r_[np.ones(240), np.zeros(760)]))
    # 1 of 20 counts as 3 of 24: variance .00456 and not .00238, with weight (1 - .253)^2; hits .8 * .2 / 40
    variance = 0.747**2 * 0.125 * 0.875 / 24 + 0.253**2 * 0.004 + 0.24 * 0.76 / 1000
    assert (found.high - found.low) / 2 == pytest.approx(2.0 * math.sqrt(variance) / 0.75, rel=0.07)


def test_rogan_and_gladen_refuse_a_judge_that_is_hardly_better_than_chance():
    y, f = np.tile([1.0, 0, 1, 0, 0], 12), np.tile([1.0, 0, 0, 1, 0], 12)
    with pytest.raises(DataError, match=r"specificity - 1 is 0\.17, and its interval begins at .* use ppi"):
        rogan_gladen(LabelledSample.of(y, f, X))
    with pytest.raises(DataError, match=r"0\.5 is neither 0 nor 1"):
        rogan_gladen(LabelledSample.of(y, f / 2, X))


def test_rogan_and_gladen_want_groups_enough_of_a_judge_without_an_error_too():
    # No error in g groups may hide a share of 3.84 / (g + 3.84): 1 - 2 * .43 with five, 1 - 2 * .28 with ten.
    y, groups = np.tile([1.0, 0], 5), np.repeat(np.arange(5), 2)
    with pytest.raises(DataError, match=r"specificity - 1 is 1\.00, and its interval begins at 0\.13"):
        rogan_gladen(LabelledSample.of(y, y, np.round(X), groups=groups))
    assert rogan_gladen(LabelledSample.of(y, y, np.round(X))).method == "rogan-gladen"


def test_an_estimate_does_not_leave_the_bounds_of_ratings():
    found = prediction_powered_mean(LabelledSample.of(Y, np.ones_like(Y), np.zeros_like(X)), lam=1.0)
    assert (found.estimate, found.low) == (0.0, 0.0)  # the mean of the ratings less 1
    free = prediction_powered_mean(LabelledSample.of(Y, np.ones_like(Y), np.zeros_like(X)), lam=1.0, bounds=(-9, 9))
    assert free.low < free.estimate == pytest.approx(Y.mean() - 1)


def test_a_lambda_or_bounds_without_meaning_are_refused():
    sample = LabelledSample.of(Y, F, X)
    with pytest.raises(OptionError, match="lam=nan must be a finite number"):
        prediction_powered_mean(sample, lam=math.nan)
    with pytest.raises(DataError, match=r"lies outside \[0.5, 1\]"):
        prediction_powered_mean(sample, bounds=(0.5, 1))


def test_the_record_says_everything_in_words_and_in_json():
    found = rogan_gladen(LabelledSample.of([*Y, math.nan], [*Y, 1], X))
    first, second, third, fourth = str(found).splitlines()
    assert first.endswith(f"; rogan-gladen), {X.size} rows corrected by 40 ratings in 40 groups")
    assert second.endswith("by the ratings alone")
    assert third == f"{X.mean():.3f} by the metric alone"
    assert fourth == "1 labelled and 0 other rows without a number are left out"
    assert json.loads(json.dumps(found.as_dict()))["lam"] is None
    assert len(astuple(found)) == len(found.as_dict())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prevalence", "correlation", "rows", "widest"),
    [(None, 0.0, 6, 1.06), (0.3, 0.7, 1, 0.9), (0.5, 0.7, 6, 0.9), (0.05, 0.7, 6, 1.06)],
)
def test_intervals_hold_the_truth_and_are_narrow_where_the_judge_knows_something(
    benchmark, prevalence, correlation, rows, widest
):
    _, found = benchmark.line(benchmark.Cell("mean", prevalence, correlation, 60, rows), 600, 1)
    assert found.corrected > 0.92
    assert found.width < widest
