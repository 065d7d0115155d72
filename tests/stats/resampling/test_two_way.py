"""Pairs of rows that count, values without each group, and the interval of rows that are grouped in two ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling import jackknife_interval, two_way
from metricsmith.stats.resampling.two_way import pair_tau, two_way_interval, two_way_variance

NAN = math.nan
ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=25
)


def columns(rows):
    x, y, first, second = np.array(rows).T
    return x.astype(float), y.astype(float), first, second


@settings(deadline=None)
@given(ROWS)
def test_over_all_pairs_it_is_tau_b_also_without_each_group(rows):
    x, y, groups, _ = columns(rows)
    found = pair_tau(x, y, groupings=[groups, np.arange(x.size)])
    assert found.value == pytest.approx(kendall_tau_b(x, y), nan_ok=True)
    assert found.pairs == x.size * (x.size - 1) // 2
    for codes, values in zip((groups, np.arange(x.size)), found.without, strict=True):
        expected = [kendall_tau_b(x[codes != code], y[codes != code]) for code in range(values.size)]
        np.testing.assert_allclose(values, expected, atol=1e-12)


def test_pairs_that_do_not_count_say_nothing():
    # Inside systems: (1, 2) concordant; (3, 4) tied in prediction, rating differs; (5, 6) discordant.
    # (1 - 1) / sqrt(2 * 3) = 0; without the last system 1 / sqrt(1 * 2).
    found = pair_tau(
        [1, 2, 9, 9, 4, 3], [1, 2, 1, 2, 1, 2], only=[np.repeat([0, 1, 2], 2)], groupings=[np.repeat([0, 1, 2], 2)]
    )
    assert (found.value, found.pairs) == (0, 3)
    np.testing.assert_allclose(found.without[0], [-1 / math.sqrt(2), 0, 1 / math.sqrt(2)])


def test_every_pair_is_ranked_by_the_predictions_for_its_kinds():
    # Rows 0 and 1 are of kind 0, row 2 of kind 1. Beside kind 0 the predictions are 1, 2, 0, beside kind 1 they are
    # 5, 3, 9. Pair (0, 1): 1 < 2. Pair (0, 2): row 0 beside kind 1 is 5, row 2 beside kind 0 is 0, so 5 > 0. Pair
    # (1, 2): 3 > 0. Ratings 1, 2, 3: one concordant, two discordant of three untied.
    found = pair_tau([[1, 2, 0], [5, 3, 9]], [1, 2, 3], kinds=np.array([0, 0, 1]))
    assert found.value == pytest.approx(-1 / 3)


@settings(deadline=None)
@given(ROWS, st.integers(1, 60))
def test_pieces_of_the_matrix_of_pairs_change_nothing(rows, cells):
    x, y, first, second = columns(rows)
    whole = pair_tau(np.stack([x, -x, y]), y, kinds=second, only=[first], groupings=[second])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_way, "_CELLS", cells)
        pieces = pair_tau(np.stack([x, -x, y]), y, kinds=second, only=[first], groupings=[second])
    np.testing.assert_equal((pieces.value, pieces.pairs, pieces.without), (whole.value, whole.pairs, whole.without))


@pytest.mark.parametrize("predictions", [[1, NAN, 3], [1, 2]])
def test_rows_without_a_prediction_are_refused(predictions):
    with pytest.raises(DataError, match="leave rows out"):
        pair_tau(predictions, [1, 2, 3])


def test_the_variance_by_hand():
    # A jackknife variance is (g - 1) times the mean square: first (.1, .2, .3): 2 * .02 / 3; second (0, .2, .4, .2):
    # 3 * .08 / 4; cells (.1, .3): 1 * .01. Together .04 / 3 + .06 - .01.
    first, second, cells = np.array([0.1, 0.2, 0.3]), np.array([0, 0.2, 0.4, 0.2]), np.array([0.1, 0.3])
    assert two_way_variance(first, second, cells, None) == pytest.approx(0.04 / 3 + 0.05)
    # With refitted (0, .3, .6), variance 2 * .06 = .12 and n = 3, the second is .06 + 1/5 (.12 - .06) = .072.
    refitted = np.array([0, 0.3, 0.6])
    assert two_way_variance(first, second, cells, refitted) == pytest.approx(0.04 / 3 + 0.062)


def test_the_variance_is_at_least_that_of_either_way():
    small, large, cells = np.array([0.1, 0.1, 0.1]), np.array([0.0, 0.3, 0.6]), np.array([0.0, 1.0, 0.0, 1.0])
    assert two_way_variance(small, large, cells, None) == pytest.approx(0.12)
    assert two_way_variance(large, small, cells, None) == pytest.approx(0.12)


@pytest.mark.parametrize("n", [6, 9])
def test_what_two_groups_contribute_together_is_counted_once(n):
    """The mean of q over ordered pairs of n groups, one to judge and one to learn from: variance 2 / (n (n - 1))."""
    q = np.random.default_rng(0).normal(size=(20_000, n, n))
    q = (q + q.transpose(0, 2, 1)) / math.sqrt(2)
    q[:, range(n), range(n)] = 0
    rows, total = q.sum(axis=2), q.sum(axis=(1, 2))[:, None]
    judged = (total - rows) / (n - 1) ** 2
    refitted = (total - 2 * rows) / ((n - 1) * (n - 2))
    none = np.zeros(3)
    found = np.mean([two_way_variance(none, *pair) for pair in zip(judged, [none] * len(q), refitted, strict=True)])
    assert found == pytest.approx(2 / (n * (n - 1)), rel=0.02)


def test_the_interval_is_students_on_fishers_scale_with_satterthwaites_degrees_of_freedom():
    first, second, cells = [0.1, 0.2, 0.3], [0, 0.2, 0.4, 0.2], [0.1, 0.2, 0.3]
    refitted = [0, 0.3, 0.6]
    variance = two_way_variance(*map(np.array, (first, second, cells, refitted)))
    # Of the variance .072 (see above) is of the second kind, with 2 degrees of freedom for 3 values in `refitted`; what
    # first and cells, which are alike, add to it is nothing.
    assert variance == pytest.approx(0.072)
    z, reach = math.atanh(0.5), t.ppf(0.975, 2) * math.sqrt(variance) / (1 - 0.5**2)
    found = two_way_interval(0.5, first, second, cells, refitted=refitted)
    assert (found.low, found.high) == pytest.approx((math.tanh(z - reach), math.tanh(z + reach)))
    assert found.draws == 3
    # Five values of the first kind with the variance 4 * .4 / 5 = .32, and cells that have none: .392 in all, of which
    # .072 with 2 and .32 with 4 degrees of freedom: .392^2 / (.072^2 / 2 + .32^2 / 4) = 5.4510.
    first, cells = [-0.4, -0.2, 0, 0.2, 0.4], [0.2, 0.2, 0.2]
    reach = t.ppf(0.975, 0.392**2 / (0.072**2 / 2 + 0.32**2 / 4)) * math.sqrt(0.392) / (1 - 0.5**2)
    found = two_way_interval(0.5, first, second, cells, refitted=refitted)
    assert (found.low, found.high) == pytest.approx((math.tanh(z - reach), math.tanh(z + reach)))
    assert found.draws == 3


@pytest.mark.parametrize("unit", [1e-170, 1e-100, 1e120])
def test_the_degrees_of_freedom_are_the_same_in_any_unit(unit):
    parts = [np.array(values) for values in ([-0.4, -0.2, 0, 0.2, 0.4], [0, 0.2, 0.4, 0.2], [0.2, 0.2, 0.2])]
    plain = two_way_interval(0.0, *parts, bounds=None)
    found = two_way_interval(0.0, *(unit * values for values in parts), bounds=None)
    # The smallest unit's variance rounds to 0, and the interval to its middle.
    assert found.high == pytest.approx(unit * plain.high if unit > 1e-150 else 0.0)


def test_one_way_alone_is_the_jackknife():
    values = [0.1, 0.5, 0.3, 0.2]
    same = jackknife_interval(0.3, values, bounds=(-1, 1))
    assert two_way_interval(0.3, values, values, values) == same


@pytest.mark.parametrize(
    ("estimate", "first", "refitted", "undefined"),
    [(NAN, [0.1, 0.2, 0.3], None, 0), (0.1, [0.1, NAN, 0.3], None, 1), (0.1, [0.1, 0.2], None, 0),
     (0.1, [0.1, 0.2, 0.3], [NAN, NAN, 0.1], 2)],
)  # fmt: skip
def test_without_all_values_there_is_no_interval(estimate, first, refitted, undefined):
    found = two_way_interval(estimate, first, [0.1, 0.2, 0.3], [0.1, 0.2, 0.3], refitted=refitted)
    assert math.isnan(found.low)
    assert found.undefined == undefined


def test_a_level_that_is_none_is_refused():
    with pytest.raises(OptionError, match="level"):
        two_way_interval(0.1, [0.1] * 3, [0.1] * 3, [0.1] * 3, level=1)
