"""The choice among candidates: one standard error, after the luck of choosing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.optimizers.objectives import OBJECTIVES, mean_of
from metricsmith.optimizers.tuning.selection import choose
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import correlation_interval

TAU = OBJECTIVES["kendall_tau_b"]
RATINGS = np.tile(np.arange(1.0, 6.0), 8)
GROUPS = [str(row // 2) for row in range(40)]
RANDOM = np.random.default_rng(0)
NOISE = {str(number): RANDOM.permutation(RATINGS) for number in range(8)}


def chosen(before, **candidates):
    return choose(TAU, ("before", before), candidates, RATINGS, GROUPS)


def test_a_much_better_candidate_wins():
    found = chosen(NOISE["0"], good=RATINGS + 0.1, bad=-RATINGS)
    assert (found.chosen, found.replaced) == ("good", True)
    best = found.candidates[0]
    assert best.statistic == pytest.approx(1.0)
    assert best.gain == pytest.approx(1 - kendall_tau_b(NOISE["0"], RATINGS))
    assert best.low <= best.statistic <= best.high
    assert "it replaces the judge" in found.verdict
    # 1 without any group too: there is no luck in the statistic, and what there is in the gain belongs to the judge.
    assert found.after.statistic == pytest.approx(1.0)
    assert 0 < found.after.gain < best.gain
    assert 0 < found.after.gain_low < found.after.gain < found.after.gain_high < best.gain_high < 2
    assert f"about {found.after.gain:+.2f} is to be expected on other rows" in found.verdict


def test_an_equal_candidate_leaves_the_judge():
    found = chosen(NOISE["0"], same=NOISE["0"].copy())
    assert (found.chosen, found.replaced) == ("before", False)
    assert "the judge is unchanged" in found.verdict


def test_a_gain_below_one_standard_error_leaves_the_judge():
    better = NOISE["1"].copy()
    place = int(np.flatnonzero((better != RATINGS) & (np.abs(better - RATINGS) > 2))[0])
    better[place] = RATINGS[place]  # one row of forty put right
    found = chosen(NOISE["1"], better=better)
    assert found.candidates[0].gain > 0
    assert found.replaced == (found.candidates[0].gain - found.optimism >= found.candidates[0].standard_error)
    half = NOISE["1"].copy()
    half[:8], half[8:16] = RATINGS[:8], -RATINGS[8:16]  # what is won in eight rows is lost in eight others
    found = chosen(NOISE["1"], half=half)
    assert found.candidates[0].gain < found.candidates[0].standard_error
    assert not found.replaced


def test_the_optimism_of_many_grows_and_that_of_one_is_none():
    one = chosen(NOISE["0"], a=NOISE["1"])
    many = chosen(NOISE["0"], **{name: NOISE[name] for name in "1234567"})
    assert one.optimism < 0.02
    assert many.optimism > 0.1
    assert len(many.candidates) == 7


def test_noise_seldom_replaces_noise():
    random = np.random.default_rng(5)
    wins = 0
    for _ in range(60):
        pool = {str(number): random.permutation(RATINGS) for number in range(5)}
        wins += choose(TAU, ("before", pool.pop("0")), pool, RATINGS, GROUPS).replaced
    assert wins <= 12  # about nine are expected; without the optimism 23


def test_a_candidate_with_a_failed_row_is_left_out_unless_the_judge_failed_there_too():
    holed = RATINGS.copy()
    holed[3] = math.nan
    assert chosen(NOISE["0"], good=holed).candidates == ()
    before = NOISE["0"].copy()
    before[3] = math.nan
    assert chosen(before, good=holed).chosen == "good"


def test_a_judge_without_a_statistic_is_beaten_from_chance_on():
    found = chosen(np.full(40, 3.0), good=RATINGS)
    assert math.isnan(found.before.statistic)
    assert (found.chosen, found.candidates[0].gain) == ("good", pytest.approx(1.0))
    assert not chosen(np.full(40, 3.0), flat=np.full(40, 4.0)).replaced


def test_rows_of_one_group_are_left_out_together():
    # Four groups of ten rows that gain 1, 1, -1 and 0: mean .25, variance 2.75 / 3 over groups, so that the error of
    # the mean is the root of 2.75 / 12 = .479; forty rows by themselves would have .133, and it would win.
    gains = np.repeat([1.0, 1.0, -1.0, 0.0], 10)
    groups = np.repeat(list("abcd"), 10).tolist()
    found = choose(mean_of("gain"), ("before", np.zeros(40)), {"after": gains}, RATINGS, groups)
    (best,) = found.candidates
    assert best.gain == 0.25
    assert best.standard_error == pytest.approx(math.sqrt(2.75 / 12))
    assert best.low < -0.4 < 0.8 < best.high
    # 3.1824 standard errors, Student's t with 3 degrees of freedom, on either side.
    reach = 3.1824 * math.sqrt(2.75 / 12)
    assert (best.gain_low, best.gain_high) == pytest.approx((0.25 - reach, 0.25 + reach), abs=1e-4)
    assert not found.replaced


def test_without_candidates_the_judge_stays():
    found = chosen(NOISE["0"])
    assert (found.chosen, found.candidates) == ("before", ())
    assert "no candidate" in found.verdict


def test_few_rows_without_many_ratings_do_not_hide_the_optimism():
    ratings = np.array([0.0, 1.0] * 4)
    groups = [str(row) for row in range(8)]
    random = np.random.default_rng(3)
    wins = 0
    for _ in range(40):
        pool = {str(number): random.permutation(ratings) for number in range(9)}
        found = choose(TAU, ("before", pool.pop("0")), pool, ratings, groups)
        assert found.optimism > 0
        wins += found.replaced
    assert wins <= 12


def test_the_interval_is_that_of_leaving_out_groups():
    values = RATINGS + RANDOM.normal(0, 2, 40)
    (best,) = chosen(NOISE["0"], noisy=values).candidates
    interval = correlation_interval(batch_kendall_tau_b, values, RATINGS, GROUPS, batched=True)
    assert (best.low, best.high) == pytest.approx((interval.low, interval.high))


def test_the_figure_of_a_noise_that_was_chosen_is_corrected_to_about_nothing():
    """Eight candidates of noise: those that replace the judge read .22 on these rows, and 0 on any others."""
    random = np.random.default_rng(8)
    seen, corrected = [], []
    for _ in range(100):
        pool = {str(number): random.permutation(RATINGS) for number in range(9)}
        found = choose(TAU, ("before", pool.pop("0")), pool, RATINGS, GROUPS)
        if found.after is None:
            continue
        best = found.candidates[0]
        assert found.after.name == best.name == found.chosen
        assert 0 <= found.after.gain < best.gain
        assert found.after.low < found.after.statistic < found.after.high
        seen.append(best.statistic)
        corrected.append(found.after.statistic)
    assert len(seen) >= 5
    assert np.mean(seen) > 0.15
    assert abs(np.mean(corrected)) < 0.06


def test_with_two_groups_nobody_is_replaced():
    found = choose(TAU, ("before", NOISE["0"]), {"good": RATINGS}, RATINGS, ["a"] * 20 + ["b"] * 20)
    assert math.isnan(found.candidates[0].standard_error)
    assert (found.replaced, found.optimism) == (False, math.inf)
