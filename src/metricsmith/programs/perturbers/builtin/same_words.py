"""Outputs that say the same in other words: contractions, forms of numbers, wordings of one meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from metricsmith.programs.perturbers.base import Perturber, Source, Strength
from metricsmith.programs.perturbers.builtin.segments import (
    Edit,
    Protected,
    applied,
    looks_english,
    pick_one_or_all,
    sentence_places,
)

__all__ = ["CONTRACTIONS", "EXPANSIONS", "PHRASES", "Rewording", "SPELLINGS", "WORDING"]

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
APOSTROPHE = "['’]"
_OPENING = r"(?:(?<=^)|(?<=[.!?]\s))"
_PRONOUNS = ("I", "you", "You", "we", "We", "they", "They", "he", "He", "she", "She", "it", "It", "there")
# After these a verb stands before its subject, or something else than a verb follows.
_INVERTED = (
    r"(?! (?:i|you|we|they|he|she|it|that|this|these|those|there|the|a|an|my|your|his|her|its|our|their|some|any|all|"
    r"many|most|no|every|each|people|everyone|everybody|anyone|someone|only|just|merely|simply|to|what|who|how|where|"
    r"when|why|because|if|but|and|or|is|are|was|were|will|does|do|did)\b)(?= [a-z])"
)


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
    return applied(text, pick_one_or_all(found, strength, random))


def synonyms(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    # Where nothing has a capital, a name cannot be told from a word that has two spellings.
    table = (*PHRASES, *SPELLINGS) if text != text.lower() else PHRASES
    return applied(text, pick_one_or_all(list(_reworded(text, table)), strength, random))


def _reworded(text: str, table: Iterable[Rewording]) -> Iterator[Edit]:
    """Yields the changes that the table allows: outside of quotations and code, and none inside another."""
    protected = Protected(text)
    asked = [(place.start, place.end) for place in sentence_places(text) if "?" in text[place.start : place.end]]
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
            article = re.search(r"(?i)(?:^|\W)an? $", text[max(0, start - 3) : start])
            if not article or (old[0].lower() in "aeiou") == (new[0].lower() in "aeiou"):
                taken.update(range(start, end))
                yield Edit(start, end, new)


def number_format(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    if not looks_english(text):
        return text
    found = [edit for edits in _numbers(text, Protected(text)) for edit in edits]
    return applied(text, pick_one_or_all(found, strength, random))


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


class Rewording(NamedTuple):
    """A pattern to find, in small letters or with a first capital, and the wording that may stand there instead."""

    pattern: re.Pattern[str]
    new: str
    statements_only: bool = False


def _rewording(pattern: str, new: str, *, statements_only: bool = False) -> Rewording:
    return Rewording(re.compile(pattern), new, statements_only)


def _after_pronoun(full: str) -> str:
    """Returns a pattern that looks back over a match, which is faster than looking back at every place of a text."""
    return "(?:" + "|".join(rf"(?<=\b{pronoun} {full})" for pronoun in _PRONOUNS) + ")"


_NOT = {
    "do not": "don't", "does not": "doesn't", "did not": "didn't", "is not": "isn't", "are not": "aren't",
    "was not": "wasn't", "were not": "weren't", "could not": "couldn't", "would not": "wouldn't",
    "should not": "shouldn't", "has not": "hasn't", "have not": "haven't", "had not": "hadn't", "will not": "won't",
}  # fmt: skip


# What is left of a verb, the subjects it joins, and what may follow where it is cut.
_VERBS = {
    "am": ("m", "I", "a|an|the|not|going|very"),
    "are": ("re", "[Yy]ou|[Ww]e|[Tt]hey", "a|an|the|not|going|very"),
    "have": ("ve", "I|[Yy]ou|[Ww]e|[Tt]hey", "been|seen|had|made|found"),
    "will": ("ll", "I|[Yy]ou|[Ww]e|[Tt]hey|[Hh]e|[Ss]he|[Ii]t", "be|have|need|get|find|see|make"),
}


# A verb that is cut to n't may stand before its subject (isn't it?), which the full form may not.
EXPANSIONS: tuple[Rewording, ...] = (
    *(
        _rewording(rf"{short}\b(?<=[a-zI] {short}){_INVERTED}", full, statements_only=True)
        for full, short in (
            (full, short.replace("'", APOSTROPHE)) for full, short in (*_NOT.items(), ("cannot", "can't"))
        )
    ),
    *(
        _rewording(rf"\b(?P<kept>{subjects}){APOSTROPHE}{short}\b(?= [a-z])", f" {verb}")
        for verb, (short, subjects, _) in _VERBS.items()
    ),
    _rewording(rf"\b(?P<kept>[Ii]t|[Tt]hat|[Tt]here){APOSTROPHE}s\b(?= (?:a|an|the) [a-z])", " is"),
)


# Only after a pronoun or at the start of a sentence, where nothing can stand between verb and negation.
CONTRACTIONS: tuple[Rewording, ...] = (
    *(
        _rewording(rf"{full}\b{_after_pronoun(full)}{_INVERTED}", short, statements_only=True)
        for full, short in _NOT.items()
    ),
    _rewording(rf"cannot\b(?<=[a-zI] cannot){_INVERTED}", "can't", statements_only=True),
    *(
        _rewording(rf"{_OPENING}(?P<kept>{subjects}) {verb}\b(?= (?:{after}) [a-z])", f"'{short}")
        for verb, (short, subjects, after) in _VERBS.items()
    ),
    _rewording(rf"{_OPENING}(?P<kept>It|That|There) is\b(?= (?:a|an|the) [a-z])", "'s"),
)


# Not before a noun: «each other member», «gave one another chance».
_MUTUAL = r"(?=[.,;!?]|$| (?:and|in|on|at|to|for|with|by|as|when|while|because|but|until|before|after|from|than)\b)"


_BOTH_WAYS = (
    (r"for example(?=[,:;.)])", r"for instance(?=[,:;.)])"), (rf"each other{_MUTUAL}", rf"one another{_MUTUAL}"),
    (r"in spite of", r"despite(?! of\b)"), (r"regardless of", r"irrespective of"), (r"everyone", r"everybody"),
    (r"anyone", r"anybody"), (r"moreover", r"furthermore"), (r"towards", r"toward"), (r"afterwards", r"afterward"),
    (r"(?<=\d )percent", r"(?<=\d )per cent"), (r"approximately(?= \d)", r"roughly(?= \d)"),
)  # fmt: skip


_ONE_WAY = (
    (r"in spite of the fact that", "although"), (r"despite the fact that", "although"),
    (r"due to the fact that", "because"), (r"owing to the fact that", "because"), (r"at this point in time", "now"),
    (r"prior to(?= (?:the|a|an|this|that|his|her|its|their|our|your) )", "before"), (r"although", "though"),
    (r"whilst", "while"), (r"amongst", "among"), (r"maybe", "perhaps"), (r"someone", "somebody"),
    (r"began to", "started to"), (r"with regard to", "regarding"), (r"frequently", "often"),
    (r"rapidly", "quickly"), (r"television", "TV"), (r"vs\.(?= [a-z])", "versus"),
    (r"(?<=[ (])e\.g\.,?(?= [a-z])", "for example,"), (r"(?<=[ (])i\.e\.,?(?= [a-z])", "that is,"),
)  # fmt: skip


def _phrase(pattern: str, new: str) -> Rewording:
    first = re.search(r"(?:^|\))([a-z])", pattern)
    at = first.start(1) if first else 0
    cased = f"{pattern[:at]}[{pattern[at]}{pattern[at].upper()}]{pattern[at + 1 :]}"
    return _rewording(rf"(?<![\w'’-]){cased}(?![\w'’-])", new)


def _plain(pattern: str) -> str:
    """The words of a pattern, without its conditions."""
    return re.sub(r"\(\?.*?\)(?=$|[a-z])", "", pattern)


PHRASES: tuple[Rewording, ...] = tuple(
    _phrase(old, new)
    for old, new in (
        *_ONE_WAY,
        *((one, _plain(two)) for one, two in _BOTH_WAYS),
        *((two, _plain(one)) for one, two in _BOTH_WAYS),
    )
)


# British, American, and the endings that both take.
_SPELLING_PAIRS = (
    ("colour", "color", "s|ed|ing|ful"), ("favourite", "favorite", "s"), ("neighbour", "neighbor", "s|ing|hood"),
    ("behaviour", "behavior", "s"), ("honour", "honor", "s|ed|ing"), ("labour", "labor", "s|ed|ing|ers?"),
    ("flavour", "flavor", "s|ed|ing"), ("harbour", "harbor", "s|ed|ing"), ("centre", "center", "s"),
    ("theatre", "theater", "s"), ("defence", "defense", "s"), ("judgement", "judgment", "s"),
    ("organis", "organiz", "e|es|ed|ing|ers?|ations?"), ("realis", "realiz", "e|es|ed|ing"),
    ("recognis", "recogniz", "e|es|ed|ing"), ("apologis", "apologiz", "e|es|ed|ing"),
    ("travell", "travel", "ed|ing|ers?"), ("cancell", "cancel", "ed|ing"),
)  # fmt: skip


SPELLINGS: tuple[Rewording, ...] = tuple(
    _rewording(rf"(?<![\w'’-]){old}(?={'(?:' if needed else '(?:|'}{endings})(?![\w'’-]))", new)
    for one, two, endings in _SPELLING_PAIRS
    for needed in (one[-1] in "sl",)
    for old, new in ((one, two), (two, one))
)
