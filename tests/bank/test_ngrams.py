"""None"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank import ngrams
from metricsmith.bank.ngrams import ngram_totals, number_grams, shared_ngrams, symbols

TEXTS = st.text(alphabet=st.sampled_from("ab c\0é猫🙂"), max_size=12)
ROWS = st.lists(st.lists(TEXTS, min_size=2, max_size=4), min_size=1, max_size=6)


def counted_by_hand(row: list[str], order: int) -> list[int]:
    """The definition, gram by gram: an oracle that shares no code with the sorted one."""
    matches = []
    for length in range(1, order + 1):
        grams = [[text[i : i + length] for i in range(len(text) - length + 1)] for text in row]
        candidate = Counter(grams[0])
        matches.append(sum(min(n, max(other.count(gram) for other in grams[1:])) for gram, n in candidate.items()))
    return matches


@settings(deadline=None, max_examples=50)
@given(ROWS, st.integers(1, 6))
def test_shared_ngrams_equal_the_definition(rows: list[list[str]], order: int) -> None:
    assert shared_ngrams(rows, order).tolist() == [counted_by_hand(row, order) for row in rows]


def test_a_row_counts_the_same_alone_and_in_company() -> None:
    rows = [["abcab", "abc"], ["", "x"], ["猫猫", "猫", "猫猫猫"]]
    together = shared_ngrams(rows, 3)
    assert together.tolist() == [shared_ngrams([row], 3)[0].tolist() for row in rows]
    assert together.tolist() == [[3, 2, 1], [0, 0, 0], [2, 1, 0]]


def test_rows_with_too_many_symbols_for_one_key_are_counted_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = ["".join(map(chr, range(0x4E00, 0x4E00 + 3000))), "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))]
    assert shared_ngrams([row, ["ab", "ab"]], 6).tolist() == [
        [2000 - k for k in range(6)],
        [2, 1, 0, 0, 0, 0],
    ]


def test_chunks_do_not_change_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["abc" * k, "cab" * 3] for k in range(1, 9)]
    whole = shared_ngrams(rows, 4).tolist()
    monkeypatch.setattr(ngrams, "_CHUNK", 3)
    assert shared_ngrams(rows, 4).tolist() == whole


def test_no_rows_give_no_counts() -> None:
    assert shared_ngrams([], 2).shape == (0, 2)


def test_totals_never_fall_below_zero() -> None:
    assert ngram_totals([5, 1, 0], 3).tolist() == [[5, 4, 3], [1, 0, 0], [0, 0, 0]]


def test_symbols_are_equal_exactly_where_tokens_are() -> None:
    left, right = symbols(["the", "cat", "the"], ["cat", "sat"])
    assert left[0] == left[2] != left[1] == right[0] != right[1]


GRAM_NUMBERS_TEXTS = st.lists(st.lists(st.sampled_from(["a", "b", "a b", ""]), max_size=6), max_size=5)


@settings(deadline=None, max_examples=50)
@given(GRAM_NUMBERS_TEXTS, st.integers(1, 5))
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
