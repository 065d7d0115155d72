"""Wordings that mean the same wherever the given pattern finds them. English."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["CONTRACTIONS", "EXPANSIONS", "PHRASES", "SPELLINGS", "Rewording"]

APOSTROPHE = "['’]"
_OPENING = r"(?:(?<=^)|(?<=[.!?]\s))"
_PRONOUNS = ("I", "you", "You", "we", "We", "they", "They", "he", "He", "she", "She", "it", "It", "there")
# After these a verb stands before its subject, or something else than a verb follows.
_INVERTED = (
    r"(?! (?:i|you|we|they|he|she|it|that|this|these|those|there|the|a|an|my|your|his|her|its|our|their|some|any|all|"
    r"many|most|no|every|each|people|everyone|everybody|anyone|someone|only|just|merely|simply|to|what|who|how|where|"
    r"when|why|because|if|but|and|or|is|are|was|were|will|does|do|did)\b)(?= [a-z])"
)


class Rewording(NamedTuple):
    """What is found, in small letters or with a first capital, and what may stand there instead."""

    pattern: re.Pattern[str]
    new: str
    statements_only: bool = False


def _rewording(pattern: str, new: str, *, statements_only: bool = False) -> Rewording:
    return Rewording(re.compile(pattern), new, statements_only)


def _after_pronoun(full: str) -> str:
    """Looks back over what was found, which is faster than looking back at every place of a text."""
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
_SPELLED = (
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
    for one, two, endings in _SPELLED
    for needed in (one[-1] in "sl",)
    for old, new in ((one, two), (two, one))
)
