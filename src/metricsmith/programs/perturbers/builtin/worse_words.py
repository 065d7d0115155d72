"""Outputs made worse word by word: order, facts, spelling and letter case."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from metricsmith.programs.perturbers.base import Perturber, Source, Strength
from metricsmith.programs.perturbers.builtin.segments import (
    Edit,
    Protected,
    Span,
    applied,
    pick_one,
    pick_one_or_all,
    pick_share,
    sentence_places,
    word_places,
)

__all__ = ["WORDS", "name_places", "number_places"]

# Made up for this purpose.
NAMES = (
    "Varnholt", "Ostrell", "Pellwick", "Tamarro", "Quenby", "Lorvane", "Brishaw", "Dunmerry", "Kestrin", "Adlow",
    "Mirovec", "Sandiver", "Thessaly", "Wrexby", "Zellany", "Corvendale",
)  # fmt: skip

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_SPELLED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEGATED = re.compile(
    r"\b(is|are|was|were|will|can|could|should|would|must|may|might|do|does|did|has|have|had)"
    r"(?: not\b(?! only| just| to\b)|not\b|n['’]t\b)|\b(ca|wo)n['’]t\b",
)
_CLAIM = re.compile(
    r"(?<=[\w,)] )(?:is|are|was|were|will|can|could|should|would|must|may|might)\b"
    r"(?= (?!(?:not|never|no|none|nothing|nobody|only|i|you|he|she|it|we|they|there|if|that|"
    r"is|are|was|were|has|had|have|do|does)\b)[a-z])"
)
_NO_SUBJECT = frozenset({
    "the", "a", "an", "his", "her", "its", "their", "my", "your", "our", "this", "these", "those", "any", "some",
    "no", "of", "in", "on", "at", "for", "with", "and", "or", "as", "than", "not", "never", "what",
})  # fmt: skip
# Whole numbers, decimals, dates and times; no part of a word (v1.0, GPT-3, 5th), sign and currency stay outside.
_DIGITS = re.compile(r"(?<![\w.])(?<!\w-)[0-9]+(?:[.,:/-][0-9]+)*(?=(?:kg|km|cm|mm|m|g|s|h|k|bn|%)?(?![\w]))")
_SPELLED_NUMBER = re.compile(
    r"(?<![\w-])(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?![\w-])", re.IGNORECASE
)
_LIST_NUMBER = re.compile(r"(?m)^[ \t]*\(?[0-9]{1,3}[.)][ \t]")
_NO_NAMES = frozenset({
    "I", "A", "OK", "AM", "PM", "TV", "Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Sr", "Jr", "Rev", "Hon", "O",
})  # fmt: skip
_POSSESSIVE = re.compile(r"(?:['’]s|['’](?:m|d|ll|ve|re))$")
_OPENERS = ':"“„«‘'


def shuffle_words(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    edits: list[Edit] = []
    pairs: list[list[Edit]] = []
    for sentence in sentence_places(text):
        found = word_places(text, sentence.start, sentence.end)
        told = [text[start:end] for start, end in found]
        edits += [Edit(*place, told[int(k)]) for place, k in zip(found, random.permutation(len(found)), strict=True)]
        pairs += [
            [Edit(*found[k], told[k + 1]), Edit(*found[k + 1], told[k])]
            for k in range(0, len(found) - 1, 2)
            if told[k] != told[k + 1]
        ]
    if len(edits) < 3 or not pairs:
        return text
    if strength == "subtle":
        edits = [edit for pair in pick_share(pairs, 0.15, random) for edit in pair]
    return applied(text, edits)


def corrupt_numbers(source: Source, strength: Strength, random: np.random.Generator) -> str:
    found = pick_one_or_all(number_places(source.output), strength, random)
    return applied(
        source.output, [Edit(*place, _other_number(source.output[slice(*place)], strength, random)) for place in found]
    )


def _other_number(number: str, strength: Strength, random: np.random.Generator) -> str:
    if number.lower() in _SPELLED:
        other = pick_one([word for word in _SPELLED if word != number.lower()], random)
        return other if number.islower() else other.capitalize()
    if re.fullmatch(r"\d{4}-\d\d-\d\d", number):
        return number[:-2] + pick_one([day for day in map("{:02}".format, range(1, 29)) if day != number[-2:]], random)
    first = strength == "obvious" and not re.search(r"[:/-]", number)
    place = 0 if first else len(number) - 1
    digits = "123456789" if place == 0 else "0123456789"
    value = str(int(number[place]))
    return number[:place] + pick_one([digit for digit in digits if digit != value], random) + number[place + 1 :]


def corrupt_names(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    runs = pick_one_or_all(name_places(text), strength, random)
    order = [NAMES[int(place)] for place in random.permutation(len(NAMES))]
    others: dict[str, str] = {}
    edits = []
    for place in (place for run in runs for place in run):
        name = text[place.start : place.end]
        if name not in others:
            calendar = next((words for words in (_DAYS, _MONTHS) if name in words), None)
            pool = [other for other in calendar or order if other != name]
            others[name] = pick_one(pool, random) if calendar else pool[len(others) % len(pool)]
        edits.append(Edit(*place, others[name]))
    return applied(text, edits)


def negate(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    found = [edit for sentence in sentence_places(text) if (edit := _contrary(text, sentence.start, sentence.end))]
    return applied(text, pick_one_or_all(found, strength, random))


def _contrary(text: str, start: int, end: int) -> Edit | None:
    """Returns the change that turns the first claim between two places into its contrary, if one can be found."""
    if "?" in text[start:end]:
        return None
    if negated := _NEGATED.search(text, start, end):
        return Edit(*negated.span(), negated[1] or {"ca": "can", "wo": "will"}[negated[2]])
    for claim in _CLAIM.finditer(text, start, end):
        before = text[max(start, claim.start() - 20) : claim.start()].split()
        if before and before[-1].lower() not in _NO_SUBJECT:
            return Edit(*claim.span(), "cannot" if claim.group() == "can" else claim.group() + " not")
    return None


def typos(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    found = [place for place in word_places(text) if place.end - place.start >= 4 and text[slice(*place)].isalpha()]
    if not found:
        return text
    hit = pick_share(found, 0.08 if strength == "subtle" else 0.4, random)
    return applied(text, [Edit(*place, _misspelt(text[slice(*place)], random)) for place in hit])


def _misspelt(word: str, random: np.random.Generator) -> str:
    """Returns the word with one slip behind its first letter: two letters exchanged, one lost, doubled or mistaken."""
    place = int(random.integers(1, len(word) - 1))
    head, letter, after, tail = word[:place], word[place], word[place + 1], word[place + 2 :]
    slips = [head + letter + letter + after + tail, head + after + tail]
    if letter != after:
        slips.append(head + after + letter + tail)
    row = next((row for row in _KEYS if letter in row), "")
    if row:
        at = row.index(letter)
        slips.append(head + row[at - 1 if at else 1] + after + tail)
    return pick_one(slips, random)


def wrong_casing(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    found = [place for place in word_places(text) if text[slice(*place)].swapcase() != text[slice(*place)]]
    if strength == "subtle" and found:
        found = pick_share(found, 0.15, random)
    return applied(text, [Edit(*place, text[slice(*place)].swapcase()) for place in found])


WORDS = (
    Perturber(
        "shuffle_words",
        "worse",
        "Exchanges neighbouring words, one pair in seven; if obvious, shuffles all words of every sentence.",
        "Grammar breaks, and with it the meaning.",
        shuffle_words,
    ),
    Perturber(
        "corrupt_numbers",
        "worse",
        "Changes the last digit of one number; if obvious, the first digit of all. Dates and times stay possible, "
        "and two to twelve in letters become another of these.",
        "A figure that was right is wrong.",
        corrupt_numbers,
        limits="A figure that was wrong already can hardly become worse.",
    ),
    Perturber(
        "corrupt_names",
        "worse",
        "Puts an invented name in place of one name; if obvious, of all. A day or month becomes another one.",
        "What is said is now said of something else.",
        corrupt_names,
        limits="A name is known by its capital inside a sentence; German nouns pass as names.",
    ),
    Perturber(
        "negate",
        "worse",
        "Turns the first claim of one sentence into its contrary; if obvious, of every sentence where it can. English.",
        "A claim that was right is wrong.",
        negate,
        limits="A claim that was wrong becomes right: choose outputs that were rated well.",
    ),
    Perturber(
        "typos",
        "worse",
        "Misspells one in twelve words of four letters or more; if obvious, two in five.",
        "The text is harder to read and looks careless.",
        typos,
    ),
    Perturber(
        "wrong_casing",
        "worse",
        "Exchanges capitals and small letters in one word in seven; if obvious, in all.",
        "Letter case is wrong wherever it was right.",
        wrong_casing,
        limits="Nothing in scripts without letter case.",
    ),
)


def number_places(text: str) -> list[Span]:
    """Returns the numbers of the text in order: in digits, and from two to twelve in letters.

    Numbers of list items, and those in code and addresses, are left out.
    """
    protected = Protected(text, quotations=False)
    listed = {match.end() for match in _LIST_NUMBER.finditer(text)}
    digits = (match.span() for match in _DIGITS.finditer(text) if match.end() + 2 not in listed)
    spelled = (match.span() for match in _SPELLED_NUMBER.finditer(text) if not match.group().isupper())
    return [Span(*span) for span in sorted([*digits, *spelled]) if not protected.touches(*span)]


def name_places(text: str) -> list[list[Span]]:
    """Returns the names of the text in order, each with the places of its words.

    A name is a run of words that begin with a capital and open no sentence, quotation or text after a colon;
    titles do not belong to it. Where three of four words are written so, as in headings, there are none.
    """
    protected = Protected(text, quotations=False)
    runs: list[list[Span]] = []
    for sentence in sentence_places(text):
        found = word_places(text, sentence.start, sentence.end)
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
