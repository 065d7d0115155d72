"""The look of numbers and texts."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith import formats
from metricsmith.formats import (
    clean,
    cost_stated,
    count,
    duration,
    excerpt,
    fit_columns,
    fit_middle,
    interval,
    interval_stated,
    money,
    p_stated,
    p_value,
    percent,
    points,
    rating,
    raw,
    single_line,
    statistic,
)


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(formats).failed == 0


@pytest.mark.parametrize("write", [statistic, raw, count, money, duration, percent, p_value])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_an_en_dash(write, value):
    assert write(value) == "–"


def test_points_and_intervals_without_a_number_are_an_en_dash():
    assert points(math.nan, 4) == points(None, 4) == interval(math.nan, 0.5) == interval(0.1, math.inf) == "–"


def test_a_value_that_rounds_to_zero_has_no_sign():
    assert statistic(-0.0001) == statistic(0.0001, signed=True) == ".000"
    assert points(-0.001, 4, signed=True) == "0.00"


def test_p_values_do_not_pretend():
    assert [p_value(p) for p in (0.0, 0.0009, 0.001, 0.0312, 1.0)] == [
        "< .001", "< .001", ".001", ".031", "1.000",
    ]  # fmt: skip


@pytest.mark.parametrize(("width", "expected"), [(1, "0.123"), (4, "0.12"), (10, "0.12"), (100, "0.1"), (1000, "0")])
def test_decimals_follow_the_width_of_the_scale(width, expected):
    assert points(0.12345, width) == expected


def test_a_whole_rating_stays_whole():
    assert (rating(5.0, 4), rating(3.3333, 4), rating(-2.0, 4)) == ("5", "3.33", "−2")


def test_costs_keep_what_matters_of_small_amounts():
    assert [money(m) for m in (None, 0, 0.0034567, 0.05, 0.527, 1234.5)] == [
        "–", "$0.00", "$0.0035", "$0.050", "$0.53", "$1,234.50",
    ]  # fmt: skip
    assert money(1e-9) == "below $0.000001"


def test_durations_have_two_units_at_most():
    assert [duration(s) for s in (0.42, 42.4, 59.97, 60, 341.2, 3600, 7260)] == [
        "0.4 s", "42 s", "1 min", "1 min", "5 min 41 s", "1 h", "2 h 1 min",
    ]  # fmt: skip


def test_a_share_is_not_rounded_to_nothing_or_to_all():
    shares = {0.0: "0", 0.0002: "< 0.1", 0.004: "0.4", 0.5: "50", 0.9921: "99.2", 0.9995: "> 99.9", 1.0: "100"}
    assert [percent(share) for share in shares] == [f"{written}\u00a0%" for written in shares.values()]


def test_a_p_value_and_an_interval_in_a_sentence_say_when_they_are_undefined():
    assert [p_stated(p) for p in (0.05, 0.00005, None, math.nan)] == ["p = .050", "p < .001", *["p undefined"] * 2]
    assert interval_stated(-0.5, 0.25) == "95\u00a0% interval −.50 to .25"
    assert interval_stated(0.48, 0.593, percent) == "95\u00a0% interval 48\u00a0% to 59\u00a0%"
    assert interval_stated(0.1, math.inf) == interval_stated(math.nan, 0.1, percent) == "no interval"


def test_a_price_that_is_not_known_is_no_price_of_nothing():
    assert (cost_stated(None), cost_stated(0.0), cost_stated(0.0123)) == ("price unknown", "$0.00", "$0.012")


def test_raw_numbers_have_as_many_significant_digits_as_asked():
    assert (raw(65.8907, 4), raw(-0.000123456, 2), raw(1234567.0)) == ("65.89", "−0.00012", "1.23457e+06")


def test_control_characters_become_visible_and_line_breaks_stay():
    assert clean("a\x00\x1b\tb\r\nc\x7f\x9b") == "a␀␛\tb\nc␡\N{REPLACEMENT CHARACTER}"


def test_a_lone_surrogate_cannot_break_the_encoding():
    assert clean("a\ud800b").encode("utf-8").decode() == "a\N{REPLACEMENT CHARACTER}b"


def test_one_line_drops_what_would_turn_the_text_around():
    assert single_line("a\u202eb\u2067c\n d\u200f") == "abc d\u200f"


def test_an_excerpt_ends_at_a_word_where_one_ends_near_by():
    assert excerpt("one two three four", 14) == "one two three…"
    assert excerpt("abcdefghijklmnop", 6) == "abcde…"
    assert excerpt("short", 5) == "short"


def test_wide_characters_count_twice():
    assert fit_columns("東京都庁の通知", 14) == "東京都庁の通知"
    assert fit_columns("東京都庁の通知", 13) == "東京都庁の通…"
    assert fit_middle("東京都庁の通知", 14) == "東京都庁の通知"
    assert fit_middle("東京都庁の通知", 9) == "東京…通知"


@settings(deadline=None, max_examples=50)
@given(st.text(), st.integers(2, 40))
def test_cut_texts_fit_and_print(text, length):
    line = excerpt(text, length)
    assert len(line) <= length
    assert "\n" not in line
    line.encode("utf-8")
    assert single_line(text).startswith(line.removesuffix("…"))
