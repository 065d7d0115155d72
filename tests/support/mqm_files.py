"""Small MQM files of our own, in the form in which the public ones come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

OLD = ("system", "doc", "doc_id", "seg_id", "rater", "source", "target", "category", "severity", "comment")
NEW = ("system", "doc", "docSegId", "globalSegId", "rater", "source", "target", "category", "severity", "metadata",
       "comment")  # fmt: skip

CLEAN = ("No-error", "No-error")
CAT = 'The cat sat on the "mat".'
RAIN = "It rains, said Ann."


def tsv(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "".join("\t".join(cells) + "\n" for cells in (header, *lines))


OLD_FILE = tsv(
    OLD,
    [
        # A quotation mark that a CSV reader would take for the start of a quoted field.
        ("A", "zoo", "1", "7", "r1", CAT, '"Die <v>Kazze</v> sass auf der Matte.', "Fluency/Spelling", "Minor", ""),
        # Another rater of the segment stands between two lines of one rating.
        ("B", "zoo", "1", "7", "r2", CAT, "Die Katze sass.", *CLEAN, ""),
        ("A", "zoo", "1", "7", "r1", CAT, '"Die Kazze <v>sass</v> auf der Matte.', "Style/Awkward", "Major", "why?"),
        # White space at the end, inside and outside of the span.
        ("B", "zoo", "2", "8", "r2", RAIN + " ", "Es <v>regnet </v> ", "Accuracy/Omission", "Major", ""),
        ("B", "zoo", "2", "8", "r2", RAIN, "Es regnet <v> </v>", "Fluency/Punctuation", "Minor", ""),
        ("B", "zoo", "2", "8", "r2", "It rains, <v>said Ann</v>.", "Es regnet", "Accuracy/Omission", "Major", ""),
        # No closing tag; a line separator inside a text.
        ("A", "zoo", "2", "8", "r3", RAIN, "Es\u2028schneit<v>.", "Fluency/Punctuation", "Minor", ""),
        ("C", "zoo", "2", "8", "r3", RAIN, "<v>xx xx</v>", "Non-translation!", "Major", ""),
        ("C", "zoo", "2", "8", "r1", RAIN, "xx xx", "Style/Awkward", "Neutral", ""),
    ],
)

NEW_FILE = tsv(
    NEW,
    [
        ("A", "zoo", "1", "0", "r1", CAT, "Die <v>Katze</v>.", "Accuracy/Omission", "Critical", '{"note": "no mat"}'),
        ("A", "zoo", "1", "0", "r1", CAT, "Die Katze.", "Found", "HOTW-test", '{"timestamp": 1}'),
        ("B", "zoo", "1", "0", "r1", CAT, "Die Matte.", "Missed", "HOTW-test", "{}"),
        ("B", "zoo", "1", "0", "r1", CAT, "Die Matte.", *CLEAN, "{}"),
        ("B", "zoo", "1", "0", "r2", CAT, "Die Matte.", "Found", "HOTW-test", "{}"),
        ("C", "zoo", "1", "0", "r2", "The <v>cat</v>", "Der <v>Hund</v>", "accuracy/mistranslation", "major", "{}"),
        ("C", "zoo", "1", "0", "r2", "The cat", "Der Hund", "no-error", "no-error", "{}"),
        ("C", "zoo", "1", "0", "r2", "The cat", "Ein <v>Hund</v>", "Fluency/Grammar", "Minor", ""),
        ("C", "zoo", "1", "0", "r2", "The cat", "Der Hund", "Other", "Minor", "{}", "nothing marked"),
        ("C", "zoo", "1", "0", "", "The cat", "Der Hund", "", "", '{"references": {}}'),
    ],
)
