"""Predictions of the metric and of its rivals, and how far they hang on the rows that were drawn."""

from __future__ import annotations

import numpy as np
import pytest

from metricsmith.metric import make_row
from metricsmith.optimizers.induce import run_pass
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.passes import METRIC, Trial, best_single, learning_points, predictions, selected_shares
from metricsmith.optimizers.splits import RatedRows
from metricsmith.records import Scale, Task
from metricsmith.stats.correlation import kendall_tau_b

TASK = Task("Rewrite.", "rating", Scale(1, 5))
ERRORS = Task("Count errors.", "rating", Scale(1, 5, higher_is_better=False))


def rows(sizes, seed=0, sign=1):
    """Groups of the given sizes; `bad` falls with the rating, `weak` hardly rises; outputs grow as ratings fall."""
    random = np.random.default_rng(seed)
    made = []
    for group, size in enumerate(sizes):
        for _ in range(size):
            quality = random.uniform(-2, 2)
            columns = {"bad": -quality + random.normal(0, 0.3), "weak": quality + random.normal(0, 8)}
            columns |= {f"junk{number}": random.normal() for number in range(4)}
            text = "word " * round(20 - 4 * quality + random.normal())
            made.append(make_row(text, rating=3 + sign * quality, group=f"g{group}", columns=columns))
    return made


def induction(train, others=(), task=TASK, options=None, prior=()):
    names = list(train[0]["columns"])
    options = options or Options(bank="none", columns=names, prior_columns=prior)
    return run_pass(RatedRows.of(train, "rating"), others, task, options)


def test_the_metric_comes_first_and_predicts_as_it_does_for_anybody():
    train, others = rows([3] * 12), rows([3] * 4, seed=1)
    done = induction(train, others)
    found = predictions(done, done.other_values, others)
    assert next(iter(found)) == METRIC
    np.testing.assert_array_equal(found[METRIC], [judgement.raw for judgement in done.metric().judge_batch(others)])


def test_the_best_single_candidate_is_the_strongest_in_either_direction_turned_to_point_up():
    train, others = rows([3] * 12), rows([3] * 4, seed=1)
    done = induction(train, others)
    found = predictions(done, done.other_values, others)["best single candidate"]
    np.testing.assert_array_equal(found, [-row["columns"]["bad"] for row in others])


def test_length_points_the_way_it_did_on_the_training_rows():
    train = rows([3] * 12)
    others = [make_row("one two three", columns=train[0]["columns"]), make_row("one", columns=train[0]["columns"])]
    done = induction(train, others)
    np.testing.assert_array_equal(predictions(done, done.other_values, others)["output length in words"], [-3, -1])


def test_where_words_have_no_spaces_between_them_length_is_counted_in_characters():
    train = [row.copy(output="雨" * (3 + place)) for place, row in enumerate(rows([3] * 12))]
    others = [make_row("今日は雨", columns=train[0]["columns"]), make_row("雪", columns=train[0]["columns"])]
    done = induction(train, others)
    found = predictions(done, done.other_values, others)
    np.testing.assert_array_equal(np.abs(found["output length in characters"]), [4, 1])
    assert "output length in words" not in found


def test_without_output_texts_there_is_no_length():
    train = [row.copy(output="") for row in rows([3] * 12)]
    done = induction(train, train)
    assert "output length in words" not in predictions(done, done.other_values, train)


def test_candidates_that_never_vary_leave_no_best_one():
    train = [row.copy(columns={"flat": 1.0}) for row in rows([3] * 12)]
    done = induction(train, train)
    assert "best single candidate" not in predictions(done, done.other_values, train)


def test_shares_are_seeded_and_name_every_component():
    options = Options(bank="none", columns=["bad", "weak", "junk0", "junk1"], n=3)
    done = induction(rows([1] * 20), options=options)
    shares = [selected_shares(done, options.fit, seed) for seed in (0, 0, 1, 2)]
    assert set(shares[0]) == set(done.fitted.small.names)
    assert shares[0] == shares[1]
    assert len({tuple(share.values()) for share in shares}) > 1
    assert all(0 <= value <= 1 for value in shares[0].values())


def test_one_group_can_only_be_drawn_whole():
    # Resampled by group, a single group always gives the rows of the fit itself: every component is chosen again.
    # Resampled by row it would not, as twenty groups of one row show.
    names = ["bad", "weak", "junk0", "junk1", "junk2", "junk3"]
    options = Options(bank="none", columns=names, n=3)
    whole, apart = induction(rows([20]), options=options), induction(rows([1] * 20), options=options)
    assert set(selected_shares(whole, options.fit, 0).values()) == {1.0}
    assert min(selected_shares(apart, options.fit, 0).values()) < 1.0


def test_the_learning_curve_draws_whole_groups_and_ends_at_the_fit_itself():
    # Eight groups, seven of one row and one of 29. Two groups hold 2 or 30 rows, so five draws have a mean of
    # 2 + 28 j / 5; a quarter of the rows, 9, is none of those. Four groups hold 4 or 32, six 6 or 34.
    train, others = rows([1, 1, 1, 29, 1, 1, 1, 1]), rows([3] * 6, seed=1)
    done = induction(train, others)
    points = learning_points([Trial(done, RatedRows.of(others, "rating"), done.other_values)], done.fit, 0)
    assert len(points) == 4
    for point, least in zip(points[:3], (2, 4, 6), strict=True):
        assert point.rows in {round(least + 28 * j / 5) for j in range(6)}
        assert point.low - 1e-12 <= point.kendall_tau_b <= point.high + 1e-12
    last = points[3]
    held_out = predictions(done, done.other_values, others)[METRIC]
    assert last.rows == 36
    assert last.low == last.high == kendall_tau_b(held_out, [row["rating"] for row in others])


def test_the_learning_curve_keeps_the_ratings_direction():
    # Few rows and a prior: if "bad" were taken to rise with the rating, the last point would leave the fit.
    train, others = rows([1] * 8, sign=-1), rows([1] * 30, seed=1, sign=-1)
    done = induction(train, others, ERRORS, prior=("weak", "junk0"))
    (*_, last) = learning_points([Trial(done, RatedRows.of(others, "rating"), done.other_values)], done.fit, 0)
    held_out = predictions(done, done.other_values, others)[METRIC]
    assert last.kendall_tau_b == kendall_tau_b(held_out, [row["rating"] for row in others])


def test_the_learning_curve_is_seeded():
    train, others = rows([2] * 12), rows([3] * 6, seed=1)
    done = induction(train, others)
    curves = [
        learning_points([Trial(done, RatedRows.of(others, "rating"), done.other_values)], done.fit, seed)
        for seed in (0, 0, 1)
    ]
    assert curves[0] == curves[1] != curves[2]


@pytest.mark.parametrize(("groups", "points"), [(7, 0), (8, 4)])
def test_a_learning_curve_takes_eight_groups(groups, points):
    train, others = rows([3] * groups), rows([3] * 6, seed=1)
    done = induction(train, others)
    test = RatedRows.of(others, "rating")
    assert len(learning_points([Trial(done, test, done.other_values)], done.fit, 0)) == points


def test_a_candidate_with_a_few_values_cannot_be_the_best_single_one_by_luck():
    train = rows([3] * 12)
    for number, row in enumerate(train):
        row["columns"]["lucky"] = row["rating"] if number < 3 else float("nan")
    done = induction(train)
    position, sign = best_single(done)
    assert (done.table.names[position], sign) == ("bad", -1.0)


def test_a_missing_score_of_the_best_single_candidate_counts_as_average():
    train = rows([3] * 12)
    train[0]["columns"]["bad"] = float("nan")
    done = induction(train)
    found = predictions(done, done.train_values, train)["best single candidate"]
    known = [-row["columns"]["bad"] for row in train[1:]]
    assert found[0] == pytest.approx(np.median(known))


def test_a_missing_score_of_an_unseen_row_counts_as_average_among_the_training_rows():
    train, others = rows([3] * 12), rows([3] * 4, seed=1)
    done = induction(train, others)
    values = done.other_values + 100  # the median of the unseen rows lies far from that of the training rows
    values[0] = np.nan
    found = predictions(done, values, others)["best single candidate"]
    assert found[0] == np.median([-row["columns"]["bad"] for row in train])
    assert (found[1:] < -90).all()


def test_rows_that_the_metric_declines_have_no_prediction():
    train, others = rows([3] * 12), rows([3] * 4, seed=1)
    done = induction(train, others)
    values = done.other_values.copy()
    values[0] = np.nan
    found = predictions(done, values, others)
    assert np.isnan(found[METRIC][0])
    assert np.isfinite(found[METRIC][1:]).all()


def test_refits_see_the_unrated_rows_that_the_fit_saw():
    train, test = rows([3] * 12), rows([3] * 6, seed=1)
    unrated = [row.without("rating") for row in rows([1] * 40, seed=2)]
    names = list(train[0]["columns"])
    options = Options(bank="none", columns=names)
    done = run_pass(RatedRows.of(train, "rating"), test, TASK, options, unrated)
    points = learning_points([Trial(done, RatedRows.of(test, "rating"), done.other_values)], done.fit, 0)
    whole = kendall_tau_b(predictions(done, done.other_values, test)[METRIC], [row["rating"] for row in test])
    assert points[-1].kendall_tau_b == pytest.approx(whole)


def test_where_all_candidates_are_kept_none_is_chosen():
    options = Options(bank="none", columns=["bad", "weak"], full=True)
    done = induction(rows([1] * 20), options=options)
    assert selected_shares(done, done.fit, 0) == {}
