from __future__ import annotations

from metricsmith.bank.catalogue import family

FAMILY = family("hamming")


(METRIC,) = FAMILY.metrics()


def test_differing_places_are_counted() -> None:
    assert METRIC.score("karolin", references="kathrin") == 3  # by hand: r/t, o/h, l/r


def test_what_one_text_has_beyond_the_other_differs() -> None:
    assert METRIC.score("abc", references="abcde") == 2
    assert METRIC.score("", references="abcde") == 5


def test_one_leading_space_moves_everything() -> None:
    assert METRIC.score(" abcd", references="abcd") == 5


def test_the_smallest_distance_over_the_references_counts() -> None:
    assert METRIC.score("abc", references=["xyz", "", "abd"]) == 1
