from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.gram_numbers import number_grams

TEXTS = st.lists(st.lists(st.sampled_from(["a", "b", "a b", ""]), max_size=6), max_size=5)


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.integers(1, 5))
def test_numbers_are_equal_exactly_where_ngrams_are(texts: list[list[str]], order: int) -> None:
    found = list(number_grams(texts, order))
    assert len(found) == order
    flat = [token for text in texts for token in text]
    for length, grams in enumerate(found, 1):
        expected = [
            (owner, tuple(text[start : start + length]))
            for owner, text in enumerate(texts)
            for start in range(len(text) - length + 1)
        ]
        assert grams.owners.tolist() == [owner for owner, _ in expected]
        assert [tuple(flat[place : place + length]) for place in grams.places] == [gram for _, gram in expected]
        by_number = dict(zip(grams.numbers.tolist(), (gram for _, gram in expected), strict=True))
        assert [by_number[number] for number in grams.numbers.tolist()] == [gram for _, gram in expected]
        assert len(by_number) == len({gram for _, gram in expected})
        assert grams.different >= len(by_number)
        assert all(0 <= number < grams.different for number in by_number)
