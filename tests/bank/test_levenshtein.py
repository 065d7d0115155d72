from __future__ import annotations

import math

import pytest

from metricsmith.bank.catalogue import family

FAMILY = family("levenshtein")


DISTANCE, RATIO, INDEL = FAMILY.metrics()


def test_kitten_becomes_sitting_by_three_edits() -> None:
    # by hand: k -> s, e -> i, + g; the longer word has 7 letters
    assert DISTANCE.score("kitten", references="sitting") == 3
    assert RATIO.score("kitten", references="sitting") == pytest.approx(1 - 3 / 7)
    # insertions and deletions only: 2 + 2 + 1 of 13 letters
    assert INDEL.score("kitten", references="sitting") == pytest.approx(1 - 5 / 13)


def test_the_closest_reference_counts_for_each_number_by_itself() -> None:
    references = ["abcdefgh", "xy"]
    assert DISTANCE.score("abxy", references=references) == 2
    assert RATIO.score("abxy", references=references) == 0.5
    # indel: 'ab' of 'abcdefgh' keeps 2 of 4 + 8, 'xy' keeps 2 of 4 + 2
    assert INDEL.score("abxy", references=references) == pytest.approx(4 / 6)


def test_an_empty_output_is_as_far_away_as_the_reference_is_long() -> None:
    assert DISTANCE.score("", references="four") == 4
    assert RATIO.score("", references="four") == 0.0
    assert INDEL.score("", references="four") == 0.0


def test_only_what_is_asked_for_is_returned_for_the_indel_ratio() -> None:
    from metricsmith.bank.base import TextBatch

    assert set(FAMILY.compute(TextBatch(["a"], [""], [["a"]]), ["indel_ratio"])) == {"indel_ratio"}


def test_half_of_the_distance_scale_is_a_hundred_edits() -> None:
    assert DISTANCE.output.score(100.0) == 0.5
    assert DISTANCE.output.score(0.0) == 1.0
    assert math.isclose(DISTANCE.output.score(300.0), 0.25)
