"""Lines of public MQM files, with every oddity that they have."""

from __future__ import annotations

import pytest

from metricsmith.datasets.mqm_tsv import COUNTS, MarkedRating, parse_mqm_tsv
from metricsmith.errors import DataError
from metricsmith.records import ErrorSpan
from mqm_files import CAT, CLEAN, NEW, NEW_FILE, OLD, OLD_FILE, RAIN, tsv


def message(text: str) -> str:
    with pytest.raises(DataError) as caught:
        parse_mqm_tsv("a.tsv", text)
    return str(caught.value)


def one(**changes) -> str:
    """A file of one line."""
    cells = dict(zip(OLD, ("A", "zoo", "1", "7", "r1", CAT, "Die <v>Katze</v>", "Other", "Minor", ""), strict=True))
    return tsv(OLD, [tuple((cells | changes).values())])


def test_the_older_generation():
    ratings, counts = parse_mqm_tsv("a.tsv", OLD_FILE)
    matte = '"Die Kazze sass auf der Matte.'
    assert ratings == (
        MarkedRating(
            "A", "zoo", "1", "7", "r1", CAT, matte,
            (
                ErrorSpan("minor", "Fluency/Spelling", 5, 10, "Kazze"),
                ErrorSpan("major", "Style/Awkward", 11, 15, "sass", description="why?"),
            ), slot=0,
        ),
        MarkedRating("B", "zoo", "1", "7", "r2", CAT, "Die Katze sass.", (), slot=1),
        MarkedRating(
            "B", "zoo", "2", "8", "r2", RAIN, "Es regnet",
            (
                ErrorSpan("major", "Accuracy/Omission", 3, 9, "regnet"),
                ErrorSpan("minor", "Fluency/Punctuation", 9, 9, ""),
                ErrorSpan("major", "Accuracy/Omission", 10, 18, "said Ann", side="source"),
            ), slot=0,
        ),
        MarkedRating(
            "A", "zoo", "2", "8", "r3", RAIN, "Es\u2028schneit.",
            (ErrorSpan("minor", "Fluency/Punctuation", 10, 11, "."),), slot=1,
        ),
        MarkedRating(
            "C", "zoo", "2", "8", "r3", RAIN, "xx xx",
            (ErrorSpan("major", "Non-translation!", 0, 5, "xx xx"),), slot=1,
        ),
        MarkedRating("C", "zoo", "2", "8", "r1", RAIN, "xx xx", (ErrorSpan("neutral", "Style/Awkward"),), slot=2),
    )  # fmt: skip
    assert counts == {"no_error": 1, "unclosed": 1, "clipped": 2, "trimmed": 2, "unmarked": 1}


def test_the_newer_generation():
    ratings, counts = parse_mqm_tsv("a.tsv", NEW_FILE)
    assert ratings == (
        MarkedRating(
            "A", "zoo", "1", "0", "r1", CAT, "Die Katze.",
            (ErrorSpan("critical", "Accuracy/Omission", 4, 9, "Katze", description="no mat"),), slot=0,
        ),
        MarkedRating("B", "zoo", "1", "0", "r1", CAT, "Die Matte.", (), slot=0),
        MarkedRating(
            "C", "zoo", "1", "0", "r2", "The cat", "Der Hund",
            (
                ErrorSpan("major", "accuracy/mistranslation", 4, 8, "Hund"),
                ErrorSpan("minor", "Fluency/Grammar", None, None, "Hund"),
                ErrorSpan("minor", "Other", description="nothing marked"),
            ), slot=1,
        ),
    )  # fmt: skip
    assert counts == {
        "no_error": 1, "found": 2, "missed": 1, "only_tests": 1, "metadata": 1, "contradictions": 1, "unmarked": 1,
        "both_sides": 1, "other_text": 1,
    }  # fmt: skip
    assert counts.keys() <= COUNTS.keys()


def test_a_test_line_first_takes_nothing_from_its_rating():
    lines = [("A", "zoo", "1", "0", "r", CAT, "Matte die.", "Found", "HOTW-test"),
             ("A", "zoo", "1", "0", "r", CAT, "Die <v>Matte</v>.", "Other", "Major")]  # fmt: skip
    ratings, counts = parse_mqm_tsv("a.tsv", tsv(NEW, lines))
    assert [rating.spans for rating in ratings] == [(ErrorSpan("major", "Other", 4, 9, "Matte"),)]
    assert counts == {"found": 1}


def test_line_ends_blank_lines_and_order_of_columns_do_not_matter():
    ratings, _ = parse_mqm_tsv("a.tsv", OLD_FILE)
    windows = OLD_FILE.replace("\n", "\r\n") + "\r\n"
    assert parse_mqm_tsv("a.tsv", windows)[0] == ratings
    turned = "".join("\t".join(reversed(line.split("\t"))) + "\n" for line in OLD_FILE.split("\n")[:-1])
    assert parse_mqm_tsv("a.tsv", turned)[0] == ratings


@pytest.mark.parametrize("target", ["", "  "])
def test_an_empty_translation_can_be_rated(target):
    ratings, counts = parse_mqm_tsv("a.tsv", one(target=target, category="Accuracy/Omission", severity="Major"))
    assert ratings[0].target == ""
    assert ratings[0].spans == (ErrorSpan("major", "Accuracy/Omission"),)
    assert counts["unmarked"] == 1


def test_white_space_in_front_stays_since_offsets_count_it():
    rating = parse_mqm_tsv("a.tsv", one(target="  Die <v>Katze</v> "))[0][0]
    assert rating.target == "  Die Katze"
    assert rating.spans == (ErrorSpan("minor", "Other", 6, 11, "Katze"),)


def test_a_span_that_covers_nothing_stays_a_place():
    assert parse_mqm_tsv("a.tsv", one(target="Die<v></v> Katze"))[0][0].spans[0] == ErrorSpan("minor", "Other", 3, 3)


def test_a_span_in_another_wording_of_the_source_has_no_offsets():
    place = ("A", "zoo", "1", "7", "r")
    lines = [(*place, CAT, "Die", *CLEAN), (*place, "A <v>cat</v>", "Die", "Source issue", "Minor")]
    ratings, counts = parse_mqm_tsv("a.tsv", tsv(OLD, lines))
    assert ratings[0].spans == (ErrorSpan("minor", "Source issue", None, None, "cat", side="source"),)
    assert counts == {"contradictions": 1, "other_text": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (one().replace("severity", "severty", 1), "no column 'severity' (did you mean 'severty'?)"),
        (one().split("\n")[1] + "\n", "header included"),
        ("", "no column 'system'"),
        (one() + "A\tzoo\t1\n", "a.tsv, line 3: 3 fields, seen ['A', 'zoo', '1']"),
        (one().rstrip("\n") + "\tb\tc\n", "line 2: 12 fields"),
        (one(severity="Majr"), "line 2, column 'severity': the severity 'Majr' is unknown (did you mean 'major'?)"),
        (one(severity=""), "the severity '' is unknown"),
        (one(rater=" "), "line 2, column 'rater': it is blank"),
        (one(doc=""), "line 2, column 'doc': it is blank"),
        (one(target="<v>Die</v> <v>Katze</v>"), "line 2, column 'target': the tags do not form one span"),
        (one(target="Die</v> Katze"), "tags do not form one span"),
        (one(target="<v>Die <v>Katze</v>"), "tags do not form one span"),
        (one(target="<v>Die</v> Katze</v>"), "tags do not form one span"),
        (one(source="The</v> cat"), "column 'source'"),
        (one().replace("comment", "metadata", 1)[:-1] + "{broken\n", "line 2, column 'metadata': not JSON"),
    ],
)
def test_what_is_wrong_is_one_error_that_names_the_line(text, words):
    assert words in message(text)
