"""The level that an answer states, and the spread of the model's probability over all levels at that place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import exp
from typing import Any

from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.dspy_internals import member
from metricsmith.records import Scale, Status

__all__ = ["LevelShares", "level_shares", "levels", "number_in", "stated_level"]

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBER = re.compile(
    r"""[\s"'*_`(\[\]{:]*(?:(-?\d{1,9})|([^\W\d_]+))(?:\.0*)?(?:\s*(?:/|\bout\sof\b)\s*(\d{0,9}))?[\s"'*_`.)\]},]*"""
)
# Where the field's value begins: in DSPy's chat form, in JSON (inside a string its quotes are escaped), or in XML.
HEADERS = (re.compile(r"^[^\S\n]*\[\[ ## score ## \]\]", re.MULTILINE), re.compile(r'"score"\s*:|<score>'))
WORD = re.compile(r"-?\d+|[^\W\d_]+")
RAW = str.maketrans({"Ġ": " ", "Ċ": "\n", "▁": " "})  # how vocabularies write blanks; some servers send that on
OTHERWISE = "use mode='sampled' with n=..., or mode='stated'"


def levels(scale: Scale) -> range:
    """The whole numbers of a scale in steps of 1."""
    return range(int(scale.low), int(scale.high) + 1)


def number_in(text: str, scale: Scale) -> int | None:
    """The one whole number that `text` consists of, on the scale or not; None if there is no such number.

    Digits or an English word up to ten; quotes, brackets, asterisks, a period and the scale's upper end
    (``4/5``, ``4 out of 5``) may stand around it. ``4/10`` on a scale up to 5 is no number, nor is 4.5.
    """
    found = NUMBER.fullmatch(text)
    if found is None or (found[3] and int(found[3]) != scale.high):
        return None
    if found[1]:
        return int(found[1])
    return WORDS.index(found[2].lower()) if found[2].lower() in WORDS else None


def stated_level(text: Any, scale: Scale) -> int:
    """The level that an answer states.

    Raises
    ------
    JudgementFailed
        If it is no whole number (``unparsable``), or none on the scale (``out_of_range``).
    """
    number = number_in(str(text), scale)
    if number is None:
        raise JudgementFailed(f"score {str(text)[:80]!r} is no whole number from {scale}", Status.UNPARSABLE)
    if number not in levels(scale):
        raise JudgementFailed(f"score {number!r} is not on the scale {scale}", Status.OUT_OF_RANGE)
    return number


@dataclass(frozen=True, slots=True)
class LevelShares:
    """The spread of the probability at the score's place.

    Parameters
    ----------
    shares : mapping of int to float
        For every level its share of the probability on levels; they add up to 1.
    covered : float
        In (0, 1]: the probability that stands on levels. The rest is on other tokens, or beyond those listed.
    """

    shares: Mapping[int, float]
    covered: float

    @property
    def mean(self) -> float:
        """The expected level."""
        return sum(level * share for level, share in self.shares.items())

    def __str__(self) -> str:
        return ", ".join(f"{level}: {share:.0%}" for level, share in self.shares.items() if share >= 0.005)


def level_shares(logprobs: Any, stated: int, scale: Scale, min_mass: float) -> LevelShares:
    """Read the spread off the token that opens the value of the field ``score``.

    Candidates that say the same level (``4``, `` 4``, ``four``, ``4/``) are added up; a level that is not
    among the candidates has probability 0, so that `min_mass` bounds the probability that was overlooked.

    Parameters
    ----------
    logprobs : object
        As DSPy's engines hand them on: ``content`` lists tokens with ``token``, ``logprob`` and
        ``top_logprobs``, as mappings or as objects; None where the server gave none.
    stated : int
        The level that was read from the answer; the token must belong to it.
    scale : Scale
        Whose levels are single digits.
    min_mass : float
        The least probability, in (0, 1], that must stand on levels.

    Raises
    ------
    JudgementFailed
        If there are no log-probabilities, the place cannot be found, or too little stands on levels. Another
        answer would not help, so that none is asked for.
    """
    tokens = list(member(logprobs, "content") or ())
    if not tokens:
        raise _failed("the answer came without log-probabilities: this model or its server gives none")
    place = _score_place([str(member(token, "token")).translate(RAW) for token in tokens], stated, scale)
    if place is None:
        raise _failed(f"the token that says {stated} cannot be found among those with log-probabilities")
    if not member(tokens[place], "top_logprobs"):
        raise _failed("the log-probabilities name no alternatives to the score's token")
    shares = dict.fromkeys(levels(scale), 0.0)
    for text, probability in _candidates(tokens[place]):
        level = number_in(text.translate(RAW), scale)
        if level in shares:
            shares[level] += probability
    covered = sum(shares.values())
    if not covered >= min_mass:
        raise _failed(
            f"{covered:.0%} of the probability at the score's token stands on the levels from {scale}, and "
            f"{min_mass:.0%} are needed"
        )
    return LevelShares({level: share / covered for level, share in shares.items()}, min(1.0, covered))


def _score_place(texts: list[str], stated: int, scale: Scale) -> int | None:
    """The place of the token in which the score's value begins.

    It is found by the field's header, since the last digit of an answer may belong to something else.
    """
    whole = "".join(texts)
    headers = next(filter(None, ([*pattern.finditer(whole)] for pattern in HEADERS)), [])
    value = WORD.search(whole, headers[-1].end()) if headers else None  # an earlier one is a draft's
    if value is None or number_in(value[0], scale) != stated:
        return None
    return bisect_right([0, *accumulate(map(len, texts))], value.start()) - 1


def _candidates(token: Any) -> Iterator[tuple[str, float]]:
    """Each token that could stand here, with its probability; the one that does may be beyond the listed ones."""
    seen = set()
    for candidate in (*member(token, "top_logprobs"), token):
        text, logprob = str(member(candidate, "token")), member(candidate, "logprob")
        if text not in seen and isinstance(logprob, int | float) and logprob == logprob:
            seen.add(text)
            yield text, exp(min(0.0, logprob))


def _failed(what: str) -> JudgementFailed:
    return JudgementFailed(f"{what}; {OTHERWISE}", Status.UNPARSABLE, repairable=False)
