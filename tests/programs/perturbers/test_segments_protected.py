from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.programs.perturbers.builtin.segments import Protected
from perturbing import UNTOUCHABLE, prose


@pytest.mark.parametrize("kept", UNTOUCHABLE)
def test_what_must_be_left_alone_is_protected_from_end_to_end(kept):
    text = f"Before it.\n\n{kept}\n\nAfter it."
    at = text.index(kept)
    protected = Protected(text)
    assert all(protected.touches(place, place + 1) for place in range(at, at + len(kept)) if text[place] != "\n")
    assert not protected.touches(0, 7)
    assert not protected.touches(len(text) - 6, len(text))


@pytest.mark.parametrize(
    "kept",
    [
        "    indented = code", "> a quoted line", "# A heading", "$x^2 + y$", "\\(x + y\\)", "<b>", "www.example.com/x",
        "example.com", "snake_case", "and/or", "'single words'", "‘curly ones’", "«guillemets»", "„deutsch“",
    ],
)  # fmt: skip
def test_other_kinds(kept):
    text = f"Before it.\n{kept}\nAfter it."
    assert Protected(text).touches(text.index(kept.strip()), text.index(kept.strip()) + 1)


def test_a_fence_protects_all_of_its_lines_even_where_it_has_no_end():
    text = "Before.\n~~~\nfirst line\nsecond line"
    assert not Protected(text).touches(0, 7)
    assert Protected(text).touches(text.index("first"), text.index("first") + 1)
    assert Protected(text).touches(len(text) - 1, len(text))


def test_apostrophes_are_no_quotations():
    text = "The dogs' bowls and the cat's isn't 'quoted' by Jones' rule"
    spans = [text[start:end] for start, end in Protected(text).spans()]
    assert spans == ["'quoted'"]


def test_a_paragraph_with_an_odd_quotation_mark_is_protected_as_a_whole():
    text = 'Plain one.\n\nA 5" pipe and a "word".\n\nPlain two.'
    assert [text[a:b] for a, b in Protected(text).spans()] == ['A 5" pipe and a "word".']


def test_quotations_can_be_left_out():
    text = 'He said "no".'
    assert Protected(text).touches(8, 9)
    assert not Protected(text, quotations=False).touches(8, 9)


def test_an_empty_stretch_inside_a_protected_place_touches_it():
    text = "see `code here` now"
    assert Protected(text).touches(8, 8)
    assert not Protected(text).touches(2, 2)


@given(prose() | st.text(alphabet="a'\"“”`~$|<>@./_ \n"))
def test_spans_are_in_order_and_apart(text):
    spans = Protected(text).spans()
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one.end < two.start for one, two in pairwise(spans))
