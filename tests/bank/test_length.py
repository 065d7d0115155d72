from __future__ import annotations

import pytest

from metricsmith.bank.catalogue import family
from metricsmith.bank.length import counted_words

FAMILY = family("length")

CHARACTERS, WORDS = FAMILY.metrics()


def test_characters_are_code_points_with_white_space() -> None:
    assert CHARACTERS.score("two words\n") == 10
    assert CHARACTERS.score("猫🙂") == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two words.", ["Two", "words"]),
        ("It isn't Ann’s -- 3,000 km!", ["It", "is", "Ann", "3,000", "km"]),
        ("don’t N'T", ["do"]),
        ("well-known u.s. firms", ["well-known", "u.s", "firms"]),
        ("我喜欢 猫。", ["我", "喜", "欢", "猫"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("... ?! 🙂", []),
    ],
)
def test_words_are_what_a_person_would_count(text: str, expected: list[str]) -> None:
    assert counted_words(text) == expected
    assert WORDS.score(text) == len(expected)


def test_an_empty_output_has_length_0() -> None:
    assert (CHARACTERS.score(""), WORDS.score("")) == (0, 0)


def test_the_score_falls_with_length_and_is_half_at_the_stated_length() -> None:
    assert WORDS.output.score(100) == CHARACTERS.output.score(500) == 0.5
    assert WORDS.output.score(10) > WORDS.output.score(1000)
