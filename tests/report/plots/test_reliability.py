"""The reliability plot: bins, their intervals, and what is drawn of them."""

from __future__ import annotations

import math
import re
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.errors import DataError
from metricsmith.records import Scale
from metricsmith.report.plots.reliability import Bin, bins, reliability_plot

SCALE = Scale(1, 5, 1)


def part(prediction, rating, low, high, n=12):
    return Bin(n, n, prediction - 0.1, prediction + 0.1, prediction, rating, low, high)


def test_bins_are_of_equal_size_in_the_order_of_predictions():
    predictions = np.random.default_rng(0).permutation(60) / 12
    found = bins(predictions, predictions)
    assert [one.n for one in found] == [10] * 6
    assert [one.lowest for one in found] == pytest.approx([0, 10 / 12, 20 / 12, 30 / 12, 40 / 12, 50 / 12])
    assert all(one.rating == pytest.approx(one.prediction) for one in found)


@pytest.mark.parametrize(("rows", "number"), [(0, 0), (1, 1), (9, 1), (19, 1), (20, 2), (72, 7), (100, 10), (5000, 10)])
def test_few_rows_make_few_bins(rows, number):
    assert len(bins(np.arange(rows), np.arange(rows))) == number


def test_most_and_least_can_be_chosen():
    assert [one.n for one in bins(range(12), range(12), most=3, least=2)] == [4, 4, 4]


def test_the_interval_of_a_bin_is_students_by_hand():
    # Ratings 1, 2, 3: mean 2, s = 1, t of 2 degrees of freedom at .975 is 4.302653, half 4.302653 / sqrt 3 = 2.484138.
    (one,) = bins([3, 3, 3], [1, 2, 3])
    assert (one.n, one.groups, one.prediction, one.rating) == (3, 3, 3.0, 2.0)
    assert (one.ci_low, one.ci_high) == (pytest.approx(2 - 2.484138), pytest.approx(2 + 2.484138))


def test_rows_of_one_group_widen_the_interval():
    ratings = [1, 1, 5, 5, 2, 2, 4, 4]
    (alone,), (grouped,) = bins(range(8), ratings), bins(range(8), ratings, list("aabbccdd"))
    assert (alone.groups, grouped.groups) == (8, 4)
    assert grouped.ci_high - grouped.ci_low > 1.3 * (alone.ci_high - alone.ci_low)


@pytest.mark.parametrize(("ratings", "groups"), [([3, 3, 3], None), ([1, 2, 3], ["a", "a", "a"]), ([4], None)])
def test_ratings_that_are_alike_and_a_single_group_have_no_interval(ratings, groups):
    (one,) = bins(range(len(ratings)), ratings, groups)
    assert math.isnan(one.ci_low)
    assert math.isnan(one.ci_high)
    assert one.side == 0
    assert "no interval" in reliability_plot("k", [one], SCALE)


def test_rows_without_a_number_are_left_out_and_infinite_ones_refused():
    (one,) = bins([1, math.nan, 2, 3], [1, 2, math.nan, 4])
    assert (one.n, one.rating) == (2, 2.5)
    with pytest.raises(DataError, match="infinite; give NaN"):
        bins([1, math.inf], [1, 2])
    with pytest.raises(DataError, match="not aligned"):
        bins([1, 2], [1])
    with pytest.raises(DataError, match="one group label per row"):
        bins([1, 2], [1, 2], ["a"])


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), min_size=1, max_size=200),
    st.integers(1, 12),
    st.integers(1, 15),
)
def test_ties_are_never_parted_and_no_row_is_lost(pairs, most, least):
    predictions, ratings = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    found = bins(predictions, ratings, most=most, least=least)
    assert sum(one.n for one in found) == len(pairs)
    assert len(found) <= max(1, min(most, len(pairs) // least))
    assert all(before.highest < after.lowest for before, after in pairwise(found))
    for one in found:
        inside = (predictions >= one.lowest) & (predictions <= one.highest)
        assert inside.sum() == one.n
        assert one.rating == pytest.approx(ratings[inside].mean())
        assert one.prediction == pytest.approx(predictions[inside].mean())


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(0, 200), st.integers(0, 12))
def test_a_bin_has_half_of_an_equal_share_at_least(scattered, times, tied):
    predictions = [*scattered, *[tied] * times, 13]
    number = max(1, min(10, len(predictions) // 10))
    assert all(one.n >= len(predictions) / number / 2 for one in bins(predictions, predictions))


def test_many_rows_of_one_prediction_leave_no_slivers_behind():
    found = bins([0] * 91 + list(range(1, 10)), range(100))
    assert [one.n for one in found] == [91, 9]


def test_ties_make_no_more_bins_than_asked_for():
    assert [one.n for one in bins([0, 1, 1, 2], range(4), most=2, least=2)] == [1, 3]


def test_without_ties_sizes_differ_by_one_at_most():
    for rows in range(20, 140):
        sizes = [one.n for one in bins(range(rows), range(rows))]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("prediction", "side"), [(2.9, -1), (3.0, 0), (3.5, 0), (4.0, 0), (4.1, 1)])
def test_a_bin_is_off_where_its_prediction_leaves_the_interval(prediction, side):
    assert part(prediction, 3.5, 3.0, 4.0).side == side


def test_intervals_hold_the_true_mean_as_often_as_they_say():
    # 400 draws of 12 groups of 3 rows that share a level; 95 % of intervals hold 3, with a standard error of .011.
    random = np.random.default_rng(5)
    groups = np.repeat(np.arange(12), 3)
    held = 0
    for _ in range(400):
        ratings = 3 + np.repeat(random.normal(size=12), 3) + random.normal(size=36)
        (one,) = bins(np.zeros(36), ratings, groups)
        held += one.ci_low <= 3 <= one.ci_high
    assert 0.91 < held / 400 < 0.98


def heights(drawing, css):
    pattern = rf'<line x1="[\d.]+" x2="[\d.]+" y1="([\d.]+)" y2="([\d.]+)" class="whisker thin {css}"'
    return [(float(low), float(high)) for low, high in re.findall(pattern, drawing)]


def test_bins_that_are_off_have_another_colour_and_shape():
    drawing = reliability_plot("k", [part(2, 2.2, 1.9, 2.5), part(4, 3.2, 2.8, 3.6)], SCALE)
    assert drawing.count('class="dot main"') == drawing.count("<circle") == 1
    assert drawing.count('class="dot off"') == drawing.count("<path") == 1
    assert len(heights(drawing, "main")) == len(heights(drawing, "off")) == 1


def test_both_axes_show_one_range_so_that_equal_numbers_lie_on_the_dashed_line():
    drawing = reliability_plot("k", [part(2, 2, 1.5, 2.5), part(4, 4, 3.5, 4.5)], SCALE)
    identity = r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)" class="identity"'
    x1, y1, x2, y2 = map(float, re.search(identity, drawing).groups())
    for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawing):
        assert (float(x) - x1) / (x2 - x1) == pytest.approx((float(y) - y1) / (y2 - y1), abs=1e-3)
    (low, high), _ = heights(drawing, "main")
    assert low > high  # upwards is less


def test_counts_and_numbers_are_written():
    drawing = reliability_plot("k", [part(2, 2.2, 1.9, 2.5, n=1234)], SCALE)
    assert ">1,234</text>" in drawing
    words = "1,234 rows predicted 1.90 to 2.10, 2.00 on average: rated 2.20 (95 % interval 1.90 to 2.50)"
    assert f"<title>{words}</title>" in drawing
    assert "<desc" in drawing
    assert "1,234 rows predicted 2.00, rated 2.20 (95 % interval 1.90 to 2.50)</desc>" in drawing


def test_counts_of_neighbours_do_not_run_into_each_other():
    close = [part(2 + 0.05 * number, 3, 2, 4, n=10 + number) for number in range(5)]
    drawing = reliability_plot("k", [*close, part(4.5, 3, 2, 4, n=20)], SCALE)
    written = re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" class="text tick" text-anchor="middle">(1[0-4]|20)</text>', drawing
    )
    places = {text: (float(x), float(y)) for x, y, text in written}
    assert set(places) == {"10", "11", "12", "13", "14", "20"}
    for one, other in combinations(places.values(), 2):
        assert one[1] != other[1] or abs(one[0] - other[0]) > 14
    assert min(y for _, y in places.values()) > 320  # below the plot
    assert places["20"][1] == min(y for _, y in places.values())


def test_what_lies_far_outside_the_scale_does_not_flatten_the_rest():
    drawing = reliability_plot("k", [part(2, 2, 1.5, 2.5), part(4, 4, 3.5, 4.5), part(1000, 4, 3.5, 4.5)], SCALE)
    first, second = (float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawing))
    far = float(re.search(r'<path d="M([\d.]+)', drawing)[1])
    assert second - first > 80
    assert far <= 352


def test_equal_bins_and_a_single_point_are_drawn():
    assert "<circle" in reliability_plot("k", bins([3.0], [3.0]), SCALE)


def test_nothing_to_draw_draws_nothing():
    assert reliability_plot("k", [], SCALE) == ""
