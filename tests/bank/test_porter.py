"""The stemmer beside the one of nltk, whose stems ROUGE and METEOR are defined on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from metricsmith.bank.porter import stem
from metricsmith.datasets import plain_notices

ENDINGS = (
    "s", "es", "ies", "sses", "ed", "ied", "eed", "ing", "y", "e", "ll", "al", "alli", "logi", "ational", "tional",
    "izer", "bli", "entli", "eli", "ousli", "ization", "ator", "alism", "iveness", "fulness", "fulli", "aliti",
    "iviti", "biliti", "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "ance", "ement", "ment", "ent",
    "ion", "sion", "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "able",
)  # fmt: skip
beginnings = st.text("abcdeiorstuvwxyz'é1", max_size=6)
endings = st.sampled_from(("", *ENDINGS))


@given(beginnings, endings, endings)
def test_equals_nltk(beginning: str, middle: str, end: str) -> None:
    word = beginning + middle + end
    assert stem(word) == PorterStemmer().stem(word)


def test_equals_nltk_on_the_words_of_the_notices() -> None:
    words = set(plain_notices.path().read_text("utf-8").lower().split())
    oracle = PorterStemmer()
    assert len(words) > 500
    assert [(word, stem(word)) for word in words] == [(word, oracle.stem(word)) for word in words]


@pytest.mark.parametrize(
    ("word", "expected"),
    # Porter (1980), section 3: the examples of the steps, followed through all of them.
    [
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("agreed", "agre"), ("plastered", "plaster"),
        ("sing", "sing"), ("motoring", "motor"), ("conflated", "conflat"), ("hopping", "hop"), ("falling", "fall"),
        ("filing", "file"), ("happy", "happi"), ("relational", "relat"), ("vietnamization", "vietnam"),
        ("hopefulness", "hope"), ("electricity", "electr"), ("adoption", "adopt"), ("probate", "probat"),
        ("controlling", "control"), ("rolling", "roll"),
    ],
)  # fmt: skip
def test_follows_the_paper(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize("word", ["", "a", "is", "as"])
def test_short_words_stay_as_they_are(word: str) -> None:
    assert stem(word) == word
