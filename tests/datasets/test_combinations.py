from __future__ import annotations

import numpy as np
import pytest

from metricsmith.datasets.combinations import combinations_of

N = 120
RANDOM = np.random.default_rng(3)
TRUTH = RANDOM.integers(1, 6, N).astype(float)
PEOPLE = {name: np.clip(TRUTH + RANDOM.integers(-1, 2, N), 1, 5) for name in ("anna", "ben", "chris", "dora", "emil")}
OTHERS = {f"metric {place}": TRUTH + RANDOM.normal(0, 3, N) for place in range(20)}


def found(columns, target, **options):
    names = list(columns)
    search = combinations_of(names, np.array([columns[name] for name in names]), np.asarray(target), **options)
    return next(iter(search), None)


def who(count):
    return {name: PEOPLE[name] for name in list(PEOPLE)[:count]}


@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("how", ["mean", "sum"])
def test_columns_of_any_names_that_add_up_are_found(count, how):
    own = who(count)
    hit = found(OTHERS | own, getattr(np, how)(list(own.values()), axis=0))
    assert (hit.how, hit.names, hit.rows) == (how, tuple(own), N)


def test_a_rounded_mean_of_any_number_of_columns_is_found_where_rows_are_more_than_columns():
    hit = found(OTHERS | PEOPLE, np.round(np.mean(list(PEOPLE.values()), axis=0) / 3, 3))
    assert (hit.how, hit.names) == ("mean", tuple(PEOPLE))


def test_the_median_of_any_three_is_found_where_chance_gives_none():
    own = who(3)
    target = np.median(list(own.values()), axis=0)
    assert found(OTHERS | own, target).names == tuple(own)
    # On twelve rows raters that are right in a third of them fit by chance too often.
    few = {name: values[:12] for name, values in (OTHERS | PEOPLE).items()}
    assert found(few, target[:12], by_name=True) is None


def test_raters_who_did_not_rate_every_row_are_found_by_their_names():
    raters = {f"rater_{place}": values.copy() for place, values in enumerate(who(4).values())}
    for place, values in enumerate(raters.values()):
        values[place::4] = np.nan
    target = np.nanmean(list(raters.values()), axis=0)
    hit = found(OTHERS | raters, np.round(20 * target, 1))
    assert (hit.how, hit.names) == ("mean", tuple(raters))
    summed = found(OTHERS | raters, np.nansum(list(raters.values()), axis=0) + 0.0)
    assert summed.names == tuple(raters)


def test_a_row_that_nobody_rated_does_not_count():
    raters = {"score_a": TRUTH.copy(), "score_b": PEOPLE["ben"].copy()}
    target = np.mean(list(raters.values()), axis=0)
    for values in raters.values():
        values[5] = np.nan
    assert found(OTHERS | raters, target).rows == N - 1


def test_part_of_a_family_and_the_declared_columns_are_tried():
    raters = {f"grade {place}": values for place, values in enumerate(PEOPLE.values())}
    target = np.round(np.mean([raters["grade 0"], raters["grade 2"], raters["grade 4"]], axis=0), 1)
    assert found(OTHERS | raters, target).names == ("grade 0", "grade 2", "grade 4")
    own = who(2)
    target = np.round(10 * np.mean(list(own.values()), axis=0)) ** 2
    assert found(OTHERS | own, target, by_name=True) is None
    assert found(OTHERS | own, target, prior=list(own), by_name=True).names == tuple(own)


def test_good_columns_that_make_up_nothing_are_left_alone():
    repeated = {f"judge {place}": np.clip(TRUTH + RANDOM.choice([-1, 0, 0, 0, 1], N), 1, 5) for place in range(12)}
    assert found(OTHERS | repeated, TRUTH) is None


def test_many_columns_that_make_up_nothing_are_searched_through():
    random = np.random.default_rng(1)
    assert found({f"m{place}": random.normal(size=90) for place in range(60)}, random.normal(size=90)) is None
