"""Where a text names somebody or something, and where it gives a number."""

from __future__ import annotations

import re
from itertools import pairwise

from metricsmith.programs.perturbers.builtin.protected import Protected
from metricsmith.programs.perturbers.builtin.segments import Span, sentences, words

__all__ = ["names", "numbers"]

# Whole numbers, decimals, dates and times; no part of a word (v1.0, GPT-3, 5th), sign and currency stay outside.
_NUMBER = re.compile(r"(?<![\w.])(?<!\w-)[0-9]+(?:[.,:/-][0-9]+)*(?=(?:kg|km|cm|mm|m|g|s|h|k|bn|%)?(?![\w]))")
_SPELLED = re.compile(
    r"(?<![\w-])(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?![\w-])", re.IGNORECASE
)
_LIST_NUMBER = re.compile(r"(?m)^[ \t]*\(?[0-9]{1,3}[.)][ \t]")
_NO_NAMES = frozenset({
    "I", "A", "OK", "AM", "PM", "TV", "Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Sr", "Jr", "Rev", "Hon", "O",
})  # fmt: skip
_POSSESSIVE = re.compile(r"(?:['’]s|['’](?:m|d|ll|ve|re))$")
_OPENERS = ':"“„«‘'


def numbers(text: str) -> list[Span]:
    """The numbers of the text in order: in digits, and from two to twelve in letters.

    Numbers of list items and what stands in code and addresses are left out.
    """
    protected = Protected(text, quotations=False)
    listed = {match.end() for match in _LIST_NUMBER.finditer(text)}
    digits = (match.span() for match in _NUMBER.finditer(text) if match.end() + 2 not in listed)
    spelled = (match.span() for match in _SPELLED.finditer(text) if not match.group().isupper())
    return [Span(*span) for span in sorted([*digits, *spelled]) if not protected.touches(*span)]


def names(text: str) -> list[list[Span]]:
    """The names of the text in order, each with the places of its words.

    A name is a run of words that begin with a capital and do not open a sentence, a quotation or what follows a colon;
    titles do not belong to it. Where three of four words are written so, as in headings, there are none.
    """
    protected = Protected(text, quotations=False)
    runs: list[list[Span]] = []
    for sentence in sentences(text):
        found = words(text, sentence.start, sentence.end)
        capital = [place for place in found[1:] if text[place.start].isupper()]
        if not capital or 4 * len(capital) > 3 * len(found):
            continue
        for before, place in pairwise(found):
            start, end = place
            shortened = _POSSESSIVE.search(text, start, end)
            end = shortened.start() if shortened else end
            gap = text[before.end : start]
            opens = any(mark in _OPENERS for mark in gap)
            known = text[start:end] in _NO_NAMES or end - start < 2
            if not text[start].isupper() or opens or known or protected.touches(start, end):
                continue
            if runs and runs[-1][-1].end == before.end and gap == " ":
                runs[-1].append(Span(start, end))
            else:
                runs.append([Span(start, end)])
    return runs
