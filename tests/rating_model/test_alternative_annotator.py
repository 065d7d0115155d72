"""The alternative-annotator test: by hand, against plain loops, and on judges that are known to be good or bad."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp, wilcoxon
from statsmodels.stats.multitest import multipletests

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.alternative_annotator import alternative_annotator_test
from metricsmith.rating_model.ratings import Ratings

OPTIONS = ("a", "b", "c")


def ratings_of(table, sets=False):
    """Ratings of rows by item of what each rater gave, None where there is nothing."""
    rows = [(item, rater, given) for item, row in enumerate(table) for rater, given in enumerate(row)]
    return Ratings.from_rows(rows, OPTIONS, sets=sets)


def by_loops(people, judge, epsilon):
    """P-values, shares of wins of the judge and of the rater, item by item."""

    def near(one, other):
        return len({*one} & {*other}) / len({*one} | {*other})

    p_values, wins = [], []
    for rater in range(len(people[0])):
        leads = []
        for row, samples in zip(people, judge, strict=True):
            others = [given for place, given in enumerate(row) if place != rater and given is not None]
            samples = [given for given in samples if given is not None]
            if row[rater] is None or not others or not samples:
                continue
            own = np.mean([near(row[rater], other) for other in others])
            leads.append(np.mean([near(given, other) for given in samples for other in others]) - own)
        leads = np.round(leads, 9)
        surplus = np.sign(leads) + epsilon
        if len(leads) < 2:
            p_values.append(math.nan)
        elif len(leads) >= 30 and np.ptp(surplus) > 0:
            p_values.append(ttest_1samp(surplus, 0, alternative="greater").pvalue)
        elif len(leads) >= 30:
            p_values.append(0.0 if surplus[0] > 0 else 1.0)
        else:
            p_values.append(wilcoxon(surplus, alternative="greater").pvalue if surplus.any() else 1.0)
        wins.append([(leads >= 0).mean(), (leads <= 0).mean()] if len(leads) else [math.nan] * 2)
    p_values, kept = np.array(p_values), ~np.isnan(p_values)
    p_values[kept] = multipletests(p_values[kept], method="fdr_by")[1]
    return p_values, np.array(wins)


def given_by(random, sets):
    if random.random() < 0.25:
        return None
    if not sets:
        return OPTIONS[random.integers(3)]
    return [option for option in OPTIONS if random.random() < 0.5] or ["a"]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), sets=st.booleans(), items=st.sampled_from([6, 20, 60]))
def test_equals_plain_loops_with_statsmodels_and_scipy(seed, sets, items):
    random = np.random.default_rng(seed)
    people = [[given_by(random, sets) for _ in range(4)] for _ in range(items)]
    judge = [[given_by(random, sets) for _ in range(2)] for _ in range(items)]
    people[0], judge[0] = ["a", "b", "c", "a"], ["a", "b"]
    found = alternative_annotator_test(ratings_of(people, sets), ratings_of(judge, sets), epsilon=0.15)
    p_values, wins = by_loops(people, judge, 0.15)
    np.testing.assert_allclose(found.p_values, p_values, atol=1e-12)
    np.testing.assert_allclose(np.column_stack([found.judge_wins, found.rater_wins]), wins)
    assert found.winning_rate == (p_values <= 0.05).mean()
    assert found.advantage_probability == pytest.approx(np.nanmean(wins[:, 0]))
    assert found.passed == (found.winning_rate >= 0.5)


def test_wins_by_hand():
    # The judge says a throughout. Without the third rater, who says b, it goes with both others and the rater with
    # none: it wins. In place of the first it goes with one of two like the rater it replaces: both win.
    found = alternative_annotator_test(ratings_of([["a", "a", "b"]] * 4), ratings_of([["a"]] * 4))
    assert found.judge_wins.tolist() == [1, 1, 1]
    assert found.rater_wins.tolist() == [1, 1, 0]
    assert found.items.tolist() == [4, 4, 4]
    assert found.advantage_probability == 1


def simulated(seed, accuracy, items=100, raters=5, of_raters=0.8):
    random = np.random.default_rng(seed)
    truth = random.integers(0, 3, items)

    def choices(share, count):
        wrong = (truth[:, None] + random.integers(1, 3, (items, count))) % 3
        places = np.where(random.random((items, count)) < share, truth[:, None], wrong)
        return ratings_of([[OPTIONS[place] for place in row] for row in places])

    return choices(of_raters, raters), choices(accuracy, 1)


def test_a_judge_as_good_as_a_rater_passes_and_a_poor_one_does_not():
    assert alternative_annotator_test(*simulated(0, 0.9)).winning_rate == 1
    assert alternative_annotator_test(*simulated(0, 0.8)).passed
    poor = alternative_annotator_test(*simulated(0, 0.4))
    assert (poor.winning_rate, poor.passed) == (0, False)
    assert poor.advantage_probability < 0.7


def test_without_an_allowance_an_equal_judge_is_seldom_preferred():
    rates = [alternative_annotator_test(*simulated(seed, 0.8), epsilon=0.0).winning_rate for seed in range(40)]
    assert np.mean(rates) <= 0.05


def test_a_rater_who_cannot_be_tested_is_nan_and_not_replaced():
    people = [["a", "a", None]] * 40 + [["a", None, "b"]]
    found = alternative_annotator_test(ratings_of(people), ratings_of([["a"]] * 41))
    assert found.items.tolist() == [41, 40, 1]
    assert math.isnan(found.p_values[2])
    assert found.winning_rate == pytest.approx(2 / 3)


def test_wrong_arguments_are_refused():
    people, judge = ratings_of([["a", "a", "b"]]), ratings_of([["a"]])
    with pytest.raises(DataError, match="2 raters: the test leaves one out of three at least"):
        alternative_annotator_test(ratings_of([["a", "a"]]), judge)
    with pytest.raises(DataError, match="annotator test needs to know who rated, which counts do not say"):
        alternative_annotator_test(Ratings.from_counts([[2, 1, 0]], OPTIONS), judge)
    with pytest.raises(DataError, match="no rater shares an item"):
        alternative_annotator_test(people, Ratings.from_rows([("x", 0, "a")], OPTIONS))
    with pytest.raises(DataError, match="give the same"):
        alternative_annotator_test(people, Ratings.from_rows([(0, 0, "a")], ("a", "b")))
    with pytest.raises(OptionError, match="epsilon 1"):
        alternative_annotator_test(people, judge, epsilon=1.0)
