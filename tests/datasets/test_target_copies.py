from __future__ import annotations

import numpy as np
import pytest

from metricsmith.datasets.target_copies import check_copies, combinations_of
from metricsmith.errors import DataError

RATINGS = np.array([row * 7 % 5 + 1.0 for row in range(30)])
NOISE = np.random.default_rng(0).normal(size=(6, 30))


def columns(**named):
    return {"judge a": RATINGS + 2 * NOISE[0], "judge b": RATINGS + 2 * NOISE[1]} | named


def refusal(ratings=RATINGS, **named):
    with pytest.raises(DataError) as caught:
        check_copies(columns(**named), ratings, target="stars")
    return str(caught.value)


@pytest.mark.parametrize("change", [lambda y: 2 * y, lambda y: -y, lambda y: y**3 / 7, lambda y: y + 1e-13 * NOISE[2]])
def test_a_column_in_the_order_of_the_ratings_with_their_ties_is_named(change):
    assert refusal(copy=change(RATINGS)) == (
        "candidate column 'copy' puts the rows in the order of 'stars', ties included; a metric that reads the rating "
        "proves nothing: leave it out (narrow --metric-columns), or, if nobody made it from the ratings, keep it with "
        "allow_columns=... (--allow-column 'copy')"
    )


def test_all_copies_are_named_together():
    text = refusal(one=RATINGS, two=-RATINGS)
    assert "candidate columns 'one', 'two' put the rows in the order of 'stars'" in text
    assert "--allow-column 'one' --allow-column 'two'" in text


def test_rows_without_rating_or_number_do_not_count():
    copy, ratings = RATINGS.copy(), RATINGS.copy()
    copy[:3], ratings[3:6] = [np.nan, np.inf, 9.0], np.nan
    ratings[2] = np.nan
    assert "'copy'" in refusal(ratings, copy=copy)


def test_one_tie_more_or_less_is_no_copy_but_the_first_warning():
    parted, joined = RATINGS.copy(), RATINGS.copy()
    parted[0] += 0.01
    joined[RATINGS == 5] = 4
    # Levels of 6 rows each: of 360 pairs with different ratings 36 are tied in `joined`: tau-b is sqrt(324 / 360).
    (warning,) = check_copies({"parted": parted, "joined": joined}, RATINGS, target="stars")
    assert warning.startswith("These columns agree with 'stars' as only copies of it do (tau-b): 'parted' (+.99")
    assert "joined" not in warning


def test_nineteen_rows_or_three_ratings_are_a_warning():
    assert "'copy' (+1.000)" in check_copies({"copy": RATINGS[:19]}, RATINGS[:19])[0]
    three = np.minimum(RATINGS, 3)
    assert "'copy' (\N{MINUS SIGN}1.000)" in check_copies({"copy": -three}, three)[0]
    with pytest.raises(DataError):
        check_copies({"copy": RATINGS[:20]}, RATINGS[:20])


def test_a_perfect_judge_of_thumbs_passes_with_a_warning():
    thumbs = (RATINGS > 3).astype(float)
    assert len(check_copies({"judge": thumbs}, thumbs)) == 1


def test_what_is_allowed_neither_stops_nor_warns():
    assert check_copies(columns(copy=RATINGS), RATINGS, allowed=["copy"]) == ()


@pytest.mark.parametrize(("how", "combine"), [("mean", np.mean), ("sum", np.sum), ("median", np.median)])
def test_all_columns_that_make_up_the_target_are_named(how, combine):
    raters = {f"rater {place}": np.clip(np.round(RATINGS + NOISE[place]), 1, 5) for place in range(3)}
    target = combine(list(raters.values()), axis=0)
    with pytest.raises(DataError) as caught:
        check_copies(columns(**raters), target, target="stars")
    assert str(caught.value).startswith(
        "candidate columns 'rater 0', 'rater 1', 'rater 2' make up 'stars': it is, row by row, their "
    )
    # A sum has the order of the mean, which is looked for first.
    assert f"their {'mean' if how == 'sum' else how};" in str(caught.value)
    assert check_copies(columns(**raters), target, allowed=list(raters)) == ()
    with pytest.raises(DataError):
        check_copies(columns(**raters), target, allowed=list(raters)[:2])


def test_sets_of_few_rows_are_a_warning_before_the_others():
    raters = {f"rater {place}": np.round(RATINGS[:12] + NOISE[place, :12]) for place in range(2)}
    target = np.mean(list(raters.values()), axis=0)
    warnings = check_copies({**raters, "near": target + 1e-3 * NOISE[3, :12]}, target, target="stars")
    assert warnings[0].startswith("'stars' is, row by row, the mean of 'rater 0', 'rater 1'.")
    assert "'near'" in warnings[1]


@pytest.mark.parametrize("ratings", [[], [3.0], [3.0, 3.0], [np.nan, 1.0]])
def test_ratings_that_order_nothing_have_no_copies(ratings):
    assert check_copies({"a": ratings}, ratings) == ()
    assert check_copies({}, RATINGS) == ()


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
