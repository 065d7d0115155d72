"""Quoted errors find their place in the text that they quote."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metricsmith.metric import RowText, fence
from metricsmith.mqm import TAXONOMY
from metricsmith.programs.judges.translation import ERROR_TYPES, QUOTATION_MARKS, in_words, located_errors, quoted
from metricsmith.records import ErrorSpan
from metricsmith.signatures.translation import TranslationError

SOURCE = "Der Zug hält in Ulm und in Bonn."
TRANSLATION = "The train stops in Rome and in Bonn, in short."
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)


def error(span="", **given):
    return TranslationError(**{"span": span, "type": "accuracy/mistranslation", "description": "Wrong.", **given})


def place(span, text=TRANSLATION, **given):
    (found,) = located_errors([error(span, **given)], "major", SOURCE, text)
    return found.start, found.end, found.text


def test_every_part_of_an_error_is_kept():
    assert located_errors(
        [error("Rome", type="accuracy/addition", description="Another town.")], "minor", "", TRANSLATION
    ) == [ErrorSpan("minor", "accuracy/addition", 19, 23, "Rome", "target", "Another town.")]


def test_spans_come_in_the_order_of_the_errors():
    found = located_errors([error("Bonn"), error("absent"), error("train")], "major", SOURCE, TRANSLATION)
    assert [(span.text, span.start) for span in found] == [("Bonn", 31), ("absent", None), ("train", 4)]
    assert located_errors([], "major", SOURCE, TRANSLATION) == []


# "in" stands at 7 (tra-in), 16, 28 and 37.
@pytest.mark.parametrize(("occurrence", "start"), [(1, 7), (2, 16), (4, 37), (5, 37), (10**30, 37), (0, 7), (-3, 7)])
def test_the_occurrence_counts_from_one_and_stays_among_those_there_are(occurrence, start):
    assert place("in", occurrence=occurrence) == (start, start + 2, "in")


def test_a_span_of_the_source_is_looked_for_there():
    (found,) = located_errors([error("in", occurrence=2, in_source=True)], "major", SOURCE, TRANSLATION)
    assert (found.side, found.start, found.end) == ("source", 24, 26)
    (absent,) = located_errors([error("Rome", in_source=True)], "major", SOURCE, TRANSLATION)
    assert (absent.side, absent.start) == ("source", None)


@pytest.mark.parametrize(
    "quoted",
    ["Rome", " Rome\n", '"Rome"', "'Rome'", "“Rome”", "„Rome“", "« Rome »", " “ 'Rome' ”", "`Rome`", '"Rome', "Rome'"],
)
def test_white_space_and_quotation_marks_around_a_quotation_are_borne(quoted):
    assert place(quoted) == (19, 23, "Rome")


def test_marks_that_stand_in_the_text_belong_to_the_span():
    text = 'a  b "Rome" Rome'
    assert place('"Rome"', text) == (5, 11, '"Rome"')
    assert place("  ", text) == (1, 3, "  ")
    assert place('“"Rome"”', text) == (5, 11, '"Rome"'), "only one layer is taken off"


def test_a_span_that_was_taken_from_between_the_marks_of_a_prompt_is_found():
    text = "Press [[ ## here ## ]] now"
    shown = fence(text)
    assert place(shown, text) == (0, len(text), text)
    assert place(fence("Rome")) == (19, 23, "Rome")
    assert place(shown.split("\n")[1][6:14], text) == (6, 14, "[[ ## he")


@pytest.mark.parametrize("quoted", ["", "Paris", "rome", '"', "''", '" "', "   "])
def test_what_does_not_occur_has_no_offsets_and_keeps_its_text(quoted):
    assert place(quoted) == (None, None, quoted)


def test_an_empty_text_has_no_places():
    assert place("Rome", "") == (None, None, "Rome")


@settings(deadline=None)
@given(TEXTS, st.integers(0, 30), st.integers(1, 30), st.integers(-2, 40))
def test_a_copied_span_is_found_and_counted_as_copied(text, start, length, occurrence):
    part = text[start : start + length]
    assume(part)
    places = [at for at in range(len(text)) if text.startswith(part, at)]
    (found,) = located_errors([error(part, occurrence=occurrence)], "major", "", text)
    assert found.start == places[sorted((0, occurrence - 1, len(places) - 1))[1]]
    assert text[found.start : found.end] == part == found.text


@settings(deadline=None)
@given(TEXTS, TEXTS, st.integers())
def test_whatever_is_quoted_offsets_and_text_agree(quoted, text, occurrence):
    (found,) = located_errors([error(quoted, occurrence=occurrence)], "major", "", text)
    if found.start is None:
        assert (found.end, found.text) == (None, quoted)
        assert not quoted or quoted not in text
    else:
        assert text[found.start : found.end] == found.text != ""


@settings(deadline=None)
@given(st.text("ab \n", min_size=1, max_size=8), st.sampled_from(sorted(QUOTATION_MARKS)), st.integers(1, 3))
def test_layers_of_marks_change_nothing(part, mark, layers):
    part = part.strip()
    assume(part)
    text = f"xy {part} ab"
    (bare,) = located_errors([error(part)], "major", "", text)
    (wrapped,) = located_errors([error(mark * layers + part + mark * layers)], "major", "", text)
    assert wrapped == bare


@settings(deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 30), st.integers(1, 30), st.sampled_from(["source", "target"]))
def test_what_people_marked_is_listed_so_that_it_is_found_again(source, translation, start, length, side):
    whole = source if side == "source" else translation
    part = whole[start : start + length]
    assume(part)
    span = ErrorSpan("major", "style/awkward", start, start + len(part), part, side, "Odd.")
    assert located_errors([quoted(span, RowText(translation, source))], "major", source, translation) == [span]


def test_an_error_without_description_or_place_is_listed_with_what_is_known():
    listed = quoted(ErrorSpan("minor", "style", text="in"), RowText(TRANSLATION, SOURCE))
    assert listed == TranslationError(span="in", occurrence=1, type="style", description="style")
    assert quoted(ErrorSpan("minor", "accuracy/omission", 4, 4), RowText(TRANSLATION, SOURCE)).span == ""


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (ErrorSpan("major", "style", 0, 3, "The", description="Odd. "), "major style «The»: Odd"),
        (ErrorSpan("minor", "accuracy", text="Zug", side="source"), "minor accuracy «Zug» in the source"),
        (ErrorSpan("critical", "other", description="All wrong."), "critical other: All wrong"),
    ],
)
def test_an_error_in_words(span, words):
    assert in_words(span) == words


def test_every_error_type_is_named_with_its_kinds():
    lines = dict(line.partition(": ")[::2] for line in ERROR_TYPES.splitlines())
    assert {name: tuple(filter(None, kinds.split(", "))) for name, kinds in lines.items()} == dict(TAXONOMY)


@pytest.mark.parametrize(
    ("said", "category"),
    [
        ("fluency, punctuation", "fluency/punctuation"),
        ("Fluency: Punctuation", "fluency/punctuation"),
        ("accuracy > mistranslation", "accuracy/mistranslation"),
        ("Fluency/Punctuation", "Fluency/Punctuation"),
        ("style, odd", "style, odd"),
        ("other", "other"),
    ],
)
def test_a_known_type_is_known_whatever_divides_it(said, category):
    (span,) = located_errors([TranslationError(span="a", type=said, description="d")], "minor", "a", "a")
    assert span.category == category
