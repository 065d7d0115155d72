"""The mean over folds: its interval by hand, where there is none, and what it holds in simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import stdtr, stdtrit

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.resampling import FEW_GROUPS, FoldMean, fold_mean

FIVE = [0.02, -0.04, 0.01, 0.03, -0.02]  # influences of five groups: 34 squares of .01


def test_the_interval_by_hand():
    # Two folds of five groups: 2 * (5/4 * .0034 + 5/4 * .0034) / 2^2 = .00425; 10 groups less 2 folds.
    found = fold_mean([0.3, 0.5], [FIVE, FIVE])
    error = math.sqrt(0.00425) / (1 - 0.4**2)
    half = stdtrit(8, 0.975) * error
    assert (found.value, found.folds, found.dropped) == (pytest.approx(0.4), 2, 0)
    assert found.low == pytest.approx(math.tanh(math.atanh(0.4) - half))
    assert found.high == pytest.approx(math.tanh(math.atanh(0.4) + half))
    assert found.p_value == pytest.approx(2 * stdtr(8, -math.atanh(0.4) / error))


def test_skewed_ratings_widen_it_once_more_by_the_groups_of_a_fold():
    plain, skewed = (fold_mean([0.1, -0.1], [FIVE, FIVE], skewed=skewed) for skewed in (False, True))
    assert math.atanh(skewed.high) == pytest.approx(math.atanh(plain.high) * math.sqrt(5 / 4))


def test_few_groups_are_left_out_one_by_one():
    # Three folds of two groups; the mean without a group takes that fold's value from `without`, and where that is
    # undefined the mean of the other two.
    values, without = [0.3, 0.0, 0.6], [[0.6, 0.0], [0.0, 0.3], [math.nan, 0.3]]
    found = fold_mean(values, [[0, 0]] * 3, without)
    means = [0.4, 0.2, 0.3, 0.4, 0.15, 0.2]
    error = math.sqrt(5 * np.var(means)) / (1 - 0.3**2)
    assert found.low == pytest.approx(math.tanh(math.atanh(0.3) - stdtrit(5, 0.975) * error))
    assert found.p_value == pytest.approx(2 * stdtr(5, -math.atanh(0.3) / error))


def test_a_difference_lies_on_a_scale_of_twice_the_reach():
    found = fold_mean([1.2, 1.0], [FIVE, FIVE], limit=2.0)
    assert 1.1 < found.high < 2
    assert found.low == pytest.approx(
        2 * math.tanh(math.atanh(0.55) - stdtrit(8, 0.975) * math.sqrt(0.00425) / (2 * (1 - 0.55**2)))
    )


@pytest.mark.parametrize(
    ("values", "influences", "options"),
    [
        ([0.1, 0.2], [[0.1, -0.1]] * 2, {"without": [[0.1, 0.2]] * 2}),  # four groups
        ([0.1] * 4, [[0.1, -0.1]] * 4, {"without": [[0.1, 0.2]] * 4}),  # eight groups in four folds
        ([0.1] * 3, [[0.1, -0.1]] * 3, {"without": [[0.1, 0.2]] * 3, "skewed": True}),  # six, of skewed ratings
        ([0.1] * 3, [[0.1, -0.1]] * 3, {}),  # six, none left out
        ([0.1, 0.1], [[0.0], [0.1] * 12], {}),  # a fold of one group
    ],
)
def test_what_is_too_little_has_a_value_and_no_interval(values, influences, options):
    found = fold_mean(values, influences, **options)
    assert found.value == pytest.approx(np.mean(values))
    assert all(map(math.isnan, (found.low, found.high, found.p_value)))


def test_undefined_folds_drop_out_and_are_counted():
    found = fold_mean([0.3, math.nan, 0.5], [FIVE, [math.nan] * 5, FIVE])
    assert found == FoldMean(*(getattr(fold_mean([0.3, 0.5], [FIVE, FIVE]), name) for name in (
        "value", "low", "high", "p_value", "folds"
    )), dropped=1)  # fmt: skip
    nothing = fold_mean([math.nan], [FIVE])
    assert math.isnan(nothing.value)
    assert (nothing.folds, nothing.dropped) == (0, 1)


def test_a_value_without_spread_is_its_own_interval():
    equal, perfect = fold_mean([0.0, 0.0], [[0.0] * 6] * 2), fold_mean([1.0, 1.0], [[0.0] * 6] * 2)
    assert (equal.low, equal.high, equal.p_value) == (0, 0, 1)
    assert (perfect.low, perfect.high, perfect.p_value) == (1, 1, 0)


def test_what_cannot_be_is_an_error():
    with pytest.raises(DataError, match="2 values and 1 influences"):
        fold_mean([0.1, 0.2], [FIVE])
    with pytest.raises(OptionError, match="limit=0"):
        fold_mean([0.1], [FIVE], limit=0)


def test_fits_that_learn_from_each_others_noise_double_the_variance():
    """Folds predict by the mean association of the others, as a fit of noise does: .05 are rejected, not .17."""
    random = np.random.default_rng(0)
    rejected, naive = 0, 0
    for _ in range(1000):
        x = random.normal(size=(5, 40, 12))  # folds, groups of one row, columns
        y = random.normal(size=(5, 40))
        learned = np.einsum("fgc,fg->fc", x, y)
        weights = learned.sum(axis=0) - learned
        values, influences = [], []
        for own, rated, weight in zip(x, y, weights, strict=True):
            part = (own @ (weight / np.linalg.norm(weight))) * rated / 10  # a mean of products in place of tau-b
            values.append(part.mean())
            influences.append((part - part.mean()) / part.size)
        found = fold_mean(values, influences)
        rejected += found.p_value <= 0.05
        variance = sum(float(np.dot(one, one)) * 40 / 39 for one in influences) / 25
        naive += abs(np.mean(values)) > stdtrit(195, 0.975) * math.sqrt(variance)
    assert rejected / 1000 < 0.07
    assert naive / 1000 > 0.11


def test_ten_groups_are_where_influences_begin():
    assert FEW_GROUPS == 10
    nine, ten = (fold_mean([0.1, 0.1], [FIVE, FIVE[:size]]) for size in (4, 5))
    assert math.isnan(nine.low)
    assert ten.low < 0.1
