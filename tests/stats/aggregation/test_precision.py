"""The half-width of an aggregate's bootstrap interval: by hand, against scipy, and what must hold for any scores."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.aggregation import AGGREGATES, OutlierRule, half_width, mean, precision, rrwa

NAN = math.nan
TABLE_1 = [-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]
EVERY = pytest.mark.parametrize("aggregate", list(AGGREGATES.values()), ids=list(AGGREGATES))
NEGATED = st.integers(-80, 0).map(lambda number: number / 8)
HALTING = settings(max_examples=40, deadline=None)


def test_two_runs_by_hand():
    # Resamples of {0, 4}: 0 with chance 1/4, the mean 2 with 1/2, 4 with 1/4; the 2.5 % and 97.5 % points are 0 and 4.
    # The middle 40 % (from 30 % to 70 %) are all 2.
    assert half_width([0, 4], mean) == 2
    assert half_width([0, 4], mean, level=0.4) == 0


@EVERY
@pytest.mark.parametrize("row", [[-1, -2, -7], [-1, -2, -2, -9]], ids=str)
def test_against_all_resamples_written_out(aggregate, row):
    """All n^n resamples have the same chance; the middle 88 % of their aggregates lie between two of them."""
    resamples = list(itertools.product(row, repeat=len(row)))
    every = aggregate(resamples)
    low, high = np.quantile(every, [0.06, 0.94], method="inverted_cdf")
    assert half_width(row, aggregate, level=0.88, draws=20_000) == pytest.approx((high - low) / 2, rel=0.02)


def test_against_scipys_percentile_bootstrap():
    row = np.random.default_rng(9).normal(-8, 3, 10)
    theirs = stats.bootstrap(
        (row,), lambda runs, axis: mean(np.moveaxis(runs, axis, -1), outliers=None), method="percentile",
        n_resamples=20_000, rng=np.random.default_rng(5),
    ).confidence_interval  # fmt: skip
    ours = half_width(row, mean, outliers=None, draws=20_000)
    assert ours == pytest.approx((theirs.high - theirs.low) / 2, rel=0.03)


def test_the_rule_is_applied_to_each_resample_anew():
    # The lone bad run is in no resample with chance .9^10 = .35, once with .39 and more often with .26. So of the
    # middle 40 % the upper end has none and the lower end one: -6 and -11.4, or -6 twice where a lone one is left out.
    row, level = [-6] * 9 + [-60], 0.4
    assert half_width(row, mean, outliers=None, level=level) == pytest.approx(2.7)
    assert half_width(row, mean, outliers=OutlierRule(sided="high"), level=level) == pytest.approx(2.7)
    assert half_width(row, mean, outliers=OutlierRule(sided="low"), level=level) == 0
    assert half_width(row, mean, level=level) == 0


@EVERY
@pytest.mark.parametrize("number", [0.0, -0.1, -6.0, -1e300])
def test_equal_runs_have_no_width(aggregate, number):
    assert half_width([number] * 7, aggregate) == 0
    assert half_width([number, NAN, number], aggregate) == 0


@pytest.mark.parametrize("row", [[], [NAN], [3], [NAN, 3, NAN]])
def test_fewer_than_two_runs_have_none_that_is_known(row):
    assert math.isnan(half_width(row))


@EVERY
@HALTING
@given(row=st.lists(NEGATED, min_size=2, max_size=8), data=st.data())
def test_only_the_rows_own_runs_count(aggregate, row, data):
    alone = half_width(row, aggregate, draws=60)
    shuffled = data.draw(st.permutations([*row, NAN, NAN]))
    others = data.draw(st.lists(st.lists(NEGATED, min_size=len(shuffled), max_size=len(shuffled)), max_size=4))
    table = np.array([*others, shuffled, *others, row + [NAN] * 2])
    found = half_width(table, aggregate, draws=60)
    assert found[len(others)] == found[-1] == alone


@HALTING
@given(row=st.lists(NEGATED, min_size=2, max_size=8), level=st.sampled_from([0.5, 0.8, 0.95]))
def test_it_is_at_most_half_the_range_and_grows_with_the_level(row, level):
    width = half_width(row, level=level, draws=60)
    assert 0 <= width <= (max(row) - min(row)) / 2
    assert width <= half_width(row, level=0.99, draws=60)


@HALTING
@given(row=st.lists(NEGATED, min_size=2, max_size=8))
def test_it_is_in_the_units_of_the_scores(row):
    shifted = half_width(np.array(row) * 4 - 16, draws=60)
    assert shifted == pytest.approx(4 * half_width(row, draws=60), abs=1e-9)


def test_the_seed_decides_and_shapes_are_kept():
    rows = np.random.default_rng(0).normal(-5, 3, (3, 4, 6))
    assert half_width(rows).shape == (3, 4)
    np.testing.assert_array_equal(half_width(rows), half_width(rows))
    assert (half_width(rows) != half_width(rows, seed=1)).any()
    assert half_width(rows[1, 2]) == half_width(rows)[1, 2]
    assert half_width(np.empty((0, 5))).shape == (0,)
    assert np.isnan(half_width(np.empty((3, 0)))).all()


def test_huge_numbers_do_not_overflow():
    assert half_width([-1.7e308, 1.7e308], mean, outliers=None) == 1.7e308


def test_pieces_change_nothing_and_bound_the_memory(monkeypatch):
    rows = np.random.default_rng(1).normal(-5, 3, (400, 8))
    whole = half_width(rows, draws=100)
    monkeypatch.setattr(precision, "AT_A_TIME", 8_000)
    tracemalloc.start()
    np.testing.assert_array_equal(half_width(rows, draws=100), whole)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20  # 400 x 100 x 8 numbers are 2.4 MiB, and are held several times where they are held at all


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"level": 1}, OptionError, "level 1 is not a coverage"),
        ({"draws": 0}, OptionError, "0 resamples: at least 1"),
        ({"outliers": 2}, OptionError, "outliers=2 must be an OutlierRule"),
        ({"scores": [1, math.inf]}, DataError, "a score is infinite"),
        ({"scores": 3}, DataError, "give the scores of all runs"),
    ],
)
def test_what_has_no_meaning_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        half_width(**{"scores": [-1, -2], "aggregate": rrwa, **options})
