"""Outputs that say the same in other words: contractions, forms of numbers, wordings of one meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from metricsmith.programs.perturbers.base import Perturber, Source, Strength
from metricsmith.programs.perturbers.builtin.edits import Edit, applied, one_or_all
from metricsmith.programs.perturbers.builtin.protected import Protected
from metricsmith.programs.perturbers.builtin.rewordings import (
    CONTRACTIONS,
    EXPANSIONS,
    PHRASES,
    SPELLINGS,
    Rewording,
)
from metricsmith.programs.perturbers.builtin.segments import looks_english, sentences

__all__ = ["WORDING"]

_DIGITS = ("two", "three", "four", "five", "six", "seven", "eight", "nine")
_COUNTED = (
    r"(?:people|persons|men|women|children|students|pupils|workers|employees|passengers|visitors|residents|voters|"
    r"soldiers|patients|homes|houses|families|cars|trees|copies|votes|jobs|dollars|euros|pounds|cents|hours|minutes|"
    r"days|weeks|months|years|miles|times|books|pages|words|questions|examples|reasons)"
)
_AMOUNT = "almost|nearly|some|over|under|than|least|most"  # what follows is no year
_BEFORE = (
    f"{_AMOUNT}|about|around|of|for|with|in|within|after|every|only|these|those|next|past|are|were|is|was|have|has|had|"
    "by|took|takes|take|needs|need|costs|cost"
)
_YEAR = r"[12](?:\d{3}|,\d{3})(?![\d,])"
_END = r"(?![\w,.:/–-]*\d)(?!\w)"


def _after(words: str) -> str:
    return r"(?<= )(?:" + "|".join(rf"(?<=\b{word} )" for word in words.split("|")) + ")"


_GROUPED = r"[1-9]\d{0,2}(?:,\d{3})+"
_UNGROUPED = r"[1-9]\d{3,8}"
_WITH_COMMAS, _WITHOUT = (
    re.compile(
        rf"(?=[1-9])(?:(?<=[$€£]){form}{_END}|{_after(_AMOUNT)}{form}(?= {_COUNTED}\b)"
        rf"|{_after(_BEFORE)}(?!{_YEAR}){form}(?= {_COUNTED}\b))"
    )
    for form in (_GROUPED, _UNGROUPED)
)
_SMALL = re.compile(rf"(?=[2-9]){_after(_BEFORE)}[2-9](?= {_COUNTED}\b)")
_SPELLED = re.compile(rf"(?=[tfsen]){_after(_BEFORE)}(?:{'|'.join(_DIGITS)})(?= {_COUNTED}\b)")
_PERCENT = re.compile(r"(?<=[a-z] )\d+(?:\.\d+)?%(?= [a-z]|[.,;]?(?:\s|$))")


def contractions(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    longer, shorter = (list(_reworded(text, table)) for table in (EXPANSIONS, CONTRACTIONS))
    found = longer if len(longer) >= len(shorter) else shorter
    return applied(text, one_or_all(found, strength, random))


def synonyms(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    # Where nothing has a capital, a name cannot be told from a word that has two spellings.
    table = (*PHRASES, *SPELLINGS) if text != text.lower() else PHRASES
    return applied(text, one_or_all(list(_reworded(text, table)), strength, random))


def _reworded(text: str, table: Iterable[Rewording]) -> Iterator[Edit]:
    """The changes that the table allows: outside of quotations and code, and none inside another."""
    protected = Protected(text)
    asked = [(place.start, place.end) for place in sentences(text) if "?" in text[place.start : place.end]]
    questions = {at for start, end in asked for at in range(start, end)}
    taken: set[int] = set()
    for rewording in table:
        for match in protected.free(rewording.pattern, text):
            start, end = match.span()
            if (rewording.statements_only and start in questions) or not taken.isdisjoint(range(start, end)):
                continue
            old = match.group()
            new = match.groupdict().get("kept", "") + rewording.new
            if "kept" not in match.groupdict() and old[0].isupper():
                new = new[0].upper() + new[1:]
            if _article_fits(text[max(0, start - 3) : start], old, new):
                taken.update(range(start, end))
                yield Edit(start, end, new)


def _article_fits(before: str, old: str, new: str) -> bool:
    """Whether an «a» or «an» in front can stay."""
    return not re.search(r"(?i)(?:^|\W)an? $", before) or (old[0].lower() in "aeiou") == (new[0].lower() in "aeiou")


def number_format(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    if not looks_english(text):
        return text
    found = [edit for edits in _numbers(text, Protected(text)) for edit in edits]
    return applied(text, one_or_all(found, strength, random))


def _numbers(text: str, protected: Protected) -> Iterator[list[Edit]]:
    yield [Edit(*m.span(), m.group().replace(",", "")) for m in protected.free(_WITH_COMMAS, text)]
    yield [Edit(*m.span(), f"{int(m.group()):,}") for m in protected.free(_WITHOUT, text)]
    yield [Edit(*m.span(), _DIGITS[int(m.group()) - 2]) for m in protected.free(_SMALL, text)]
    yield [Edit(*m.span(), str(_DIGITS.index(m.group()) + 2)) for m in protected.free(_SPELLED, text)]
    yield [Edit(*m.span(), f"{m.group()[:-1]} percent") for m in protected.free(_PERCENT, text)]


WORDING = (
    Perturber(
        "contractions",
        "same",
        "Writes one contraction in full (it's a, don't), or, where there are more of those, contracts a full form; if "
        "obvious, all of one direction. English.",
        "Both forms are the same words. 's and 'd stay where they could stand for several.",
        contractions,
        limits="The tone is a little more or less formal.",
    ),
    Perturber(
        "number_format",
        "same",
        "Writes one number otherwise (12,000 people or 12000 people, five days or 5 days, 3% or 3 percent); if "
        "obvious, all that allow it. English.",
        "The value is the same. Only amounts of money, percentages and what counts one of some fifty nouns are "
        "touched: no dates, versions, identifiers or measures.",
        number_format,
    ),
    Perturber(
        "synonyms",
        "same",
        "Exchanges one wording for another of the same meaning (for example, for instance; although, though) or the "
        "British spelling for the American; if obvious, all that the list knows. English.",
        "The list holds only what can be exchanged wherever its patterns match.",
        synonyms,
        limits="Spelling may become mixed.",
    ),
)
