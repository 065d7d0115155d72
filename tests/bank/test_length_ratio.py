from __future__ import annotations

import math

import pytest

from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import family

FAMILY = family("length_ratio")

(METRIC,) = FAMILY.metrics()


@pytest.mark.parametrize(
    ("output", "source", "ratio"),
    [
        ("One word less.", "There is one word more.", 3 / 5),
        ("a b c d", "a b", 2),
        ("same, same", "Same same!", 1),
        ("", "a b", 0),
        ("猫狗", "猫", 2),
    ],
)
def test_ratio_by_hand(output: str, source: str, ratio: float) -> None:
    assert METRIC.score(output, input=source) == pytest.approx(ratio)


def test_an_input_without_words_gives_no_number() -> None:
    assert math.isnan(METRIC.score("a b", input="?!"))
    assert math.isnan(METRIC.score("a b"))


def test_a_batch_reads_each_rows_own_input() -> None:
    found = FAMILY.compute(TextBatch(["a", "a", "a"], ["a", "a b", "a"], [(), (), ()]), ["length_ratio"])
    assert found["length_ratio"].tolist() == [1.0, 0.5, 1.0]
