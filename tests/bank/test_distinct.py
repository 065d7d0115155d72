from __future__ import annotations

import math

import pytest

from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import family

FAMILY = family("distinct")

NAMES = [output.name for output in FAMILY.card.outputs]


def scores(output: str) -> list[float]:
    found = FAMILY.compute(TextBatch([output], [""], [()]), NAMES)
    return [float(found[name][0]) for name in NAMES]


def test_values_by_hand() -> None:
    # the bus, the bus, the bus: 2 of 6 words, pairs 'the bus' 'bus the' of 5, triples 2 of 4, quadruples 2 of 3
    assert scores("the bus the bus the bus") == pytest.approx([2 / 6, 2 / 5, 2 / 4, 2 / 3])


def test_a_text_that_repeats_nothing_scores_1() -> None:
    assert scores("no word comes back here") == [1, 1, 1, 1]


def test_case_does_not_make_a_word_new_and_marks_are_tokens() -> None:
    assert scores("The the, a, b")[0] == pytest.approx(4 / 6)


def test_a_text_shorter_than_n_has_no_number() -> None:
    found = scores("two words")
    assert found[:2] == [1, 1]
    assert all(map(math.isnan, found[2:]))
    assert all(map(math.isnan, scores("")))


def test_signs_of_scripts_without_spaces_are_tokens() -> None:
    assert scores("猫猫狗")[:2] == pytest.approx([2 / 3, 1])
