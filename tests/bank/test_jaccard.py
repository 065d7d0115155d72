from __future__ import annotations

import pytest

from metricsmith.bank.catalogue import family

FAMILY = family("jaccard")


(METRIC,) = FAMILY.metrics()


def test_the_share_of_words_that_only_one_text_uses() -> None:
    # by hand: {a, b, c} and {b, c, d, e}: 2 of 5 shared
    assert METRIC.score("a b c b", references="b c d e") == pytest.approx(3 / 5)


def test_order_and_repetition_do_not_count_but_case_and_marks_do() -> None:
    assert METRIC.score("b a a", references="a b") == 0.0
    assert METRIC.score("A b.", references="a b") == 1.0


def test_an_empty_output_shares_nothing() -> None:
    assert METRIC.score(" ", references="a b") == 1.0


def test_the_closest_reference_counts() -> None:
    assert METRIC.score("a b", references=["x", "a b c", "a"]) == pytest.approx(1 / 3)
