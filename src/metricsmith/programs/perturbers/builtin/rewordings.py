"""Wordings that mean the same wherever the given pattern finds them. English."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["CONTRACTIONS", "EXPANSIONS", "PHRASES", "SPELLINGS", "Rewording"]

_OPENING = r"(?:(?<=^)|(?<=[.!?]\s))"
# After these a verb stands before its subject, or something else than a verb follows.
_INVERTED = (
    r"(?! (?:i|you|we|they|he|she|it|that|this|these|those|there|the|a|an|my|your|his|her|its|our|their|some|any|all|"
    r"many|most|no|every|each|people|everyone|everybody|anyone|someone|only|just|merely|simply|to|what|who|how|where|"
    r"when|why|because|if|but|and|or)\b)(?= [a-z])"
)


class Rewording(NamedTuple):
    """What is found, in small letters or with a first capital, and what may stand there instead."""

    pattern: re.Pattern[str]
    new: str
    statements_only: bool = False


def _rewording(pattern: str, new: str, *, statements_only: bool = False) -> Rewording:
    return Rewording(re.compile(pattern), new, statements_only)


_NOT = {
    "do": "don't", "does": "doesn't", "did": "didn't", "is": "isn't", "are": "aren't", "was": "wasn't",
    "were": "weren't", "could": "couldn't", "would": "wouldn't", "should": "shouldn't", "has": "hasn't",
    "have": "haven't", "had": "hadn't",
}  # fmt: skip
_VERBS = {
    "am": ("I",), "are": ("[Yy]ou", "[Ww]e", "[Tt]hey"), "have": ("I", "[Yy]ou", "[Ww]e", "[Tt]hey"),
    "will": ("I", "[Yy]ou", "[Ww]e", "[Tt]hey", "[Hh]e", "[Ss]he", "[Ii]t"),
}  # fmt: skip
_SHORT = {"am": "m", "are": "re", "have": "ve", "will": "ll"}
_AFTER = {
    "am": "a|an|the|not|going|very",
    "are": "a|an|the|not|going|very",
    "have": "been|seen|had|made|found",
    "will": "be|have|need|get|find|see|make",
}

# A verb that is cut to n't may stand before its subject (isn't it?), which the full form may not.
EXPANSIONS: tuple[Rewording, ...] = (
    *(_rewording(rf"(?<=[a-z] ){verb}n['’]t\b{_INVERTED}", f"{verb} not", statements_only=True) for verb in _NOT),
    _rewording(rf"(?<=[a-z] )can['’]t\b{_INVERTED}", "cannot", statements_only=True),
    _rewording(rf"(?<=[a-z] )won['’]t\b{_INVERTED}", "will not", statements_only=True),
    *(
        _rewording(rf"\b(?P<kept>{subject})['’]{_SHORT[verb]}\b(?= [a-z])", f" {verb}")
        for verb, subjects in _VERBS.items()
        for subject in subjects
    ),
    _rewording(r"\b(?P<kept>[Ii]t|[Tt]hat|[Tt]here)['’]s\b(?= (?:a|an|the) [a-z])", " is"),
)

# Only at the start of a sentence, or after the subject, where nothing can stand between verb and negation.
CONTRACTIONS: tuple[Rewording, ...] = (
    *(
        _rewording(rf"(?i:(?<=\b{subject} )){verb} not\b{_INVERTED}", short, statements_only=True)
        for verb, short in _NOT.items()
        for subject in ("you", "we", "they", "he", "she", "it", "there")
    ),
    *(
        _rewording(rf"(?<=[a-z] ){full}\b{_INVERTED}", short, statements_only=True)
        for full, short in (("cannot", "can't"), ("will not", "won't"))
    ),
    *(
        _rewording(rf"{_OPENING}(?P<kept>{subject}) {verb}\b(?= (?:{_AFTER[verb]}) [a-z])", f"'{_SHORT[verb]}")
        for verb, subjects in _VERBS.items()
        for subject in subjects
    ),
    _rewording(rf"{_OPENING}(?P<kept>It|That|There) is\b(?= (?:a|an|the) [a-z])", "'s"),
)

_BOTH_WAYS = (
    ("for example", "for instance"), ("each other", "one another"), ("in spite of", "despite"),
    ("regardless of", "irrespective of"), ("everyone", "everybody"), ("anyone", "anybody"),
    ("moreover", "furthermore"), ("towards", "toward"), ("afterwards", "afterward"), ("percent", "per cent"),
)  # fmt: skip
_ONE_WAY = (
    ("although", "though"), ("whilst", "while"), ("amongst", "among"), ("maybe", "perhaps"), ("someone", "somebody"),
    ("in the event that", "if"), ("in spite of the fact that", "although"), ("despite the fact that", "although"),
    ("due to the fact that", "because"), ("owing to the fact that", "because"), ("at this point in time", "now"),
    ("began to", "started to"), ("with regard to", "regarding"), ("frequently", "often"), ("rapidly", "quickly"),
    ("television", "TV"),
)  # fmt: skip
_CONDITIONED = (
    (r"(?<![\w-])prior to\b(?= (?:the|a|an|this|that|his|her|its|their|our|your) )", "before"),
    (r"(?<![\w-])approximately(?= \d)", "roughly"),
    (r"(?<![\w-])roughly(?= \d)", "approximately"),
    (r"(?<=[ (])e\.g\.,?(?= [a-z])", "for example,"),
    (r"(?<=[ (])i\.e\.,?(?= [a-z])", "that is,"),
    (r"(?<=[a-z] )vs\.(?= [a-z])", "versus"),
    (r"(?<=\b(?:is|am) )able to\b(?= [a-z])", "in a position to"),
)
PHRASES: tuple[Rewording, ...] = (
    *(_rewording(pattern, new) for pattern, new in _CONDITIONED),
    *(
        _rewording(rf"(?<![\w'’-])(?:{old[0]}|{old[0].upper()}){old[1:]}(?![\w'’-])", new)
        for old, new in sorted((*_BOTH_WAYS, *((b, a) for a, b in _BOTH_WAYS), *_ONE_WAY), key=lambda p: -len(p[0]))
    ),
)

_SPELLED = (
    ("colour", "color"), ("favourite", "favorite"), ("neighbour", "neighbor"), ("behaviour", "behavior"),
    ("honour", "honor"), ("labour", "labor"), ("flavour", "flavor"), ("harbour", "harbor"), ("centre", "center"),
    ("theatre", "theater"), ("grey", "gray"), ("organise", "organize"), ("realise", "realize"),
    ("recognise", "recognize"), ("apologise", "apologize"), ("organisation", "organization"),
    ("travelling", "traveling"), ("travelled", "traveled"), ("cancelled", "canceled"), ("defence", "defense"),
    ("judgement", "judgment"), ("email", "e-mail"),
)  # fmt: skip
SPELLINGS: tuple[Rewording, ...] = tuple(
    _rewording(rf"(?<![\w'’-]){old}(?=(?:s|d|ed|rs?)?(?![\w'’-]))", new)
    for one, two in _SPELLED
    for old, new in ((one, two), (two, one))
)
