"""A rating cell -> a number: numbers, booleans, stars and thumbs, and what a whole column writes in one form.

Such forms are shares of a whole, commas as decimal marks, and the words of a scale.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metricsmith.datasets.cells import cell_text
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import OptionError, nearest

__all__ = ["RatingForm", "as_levels", "is_word", "parse_rating"]

# Compared in lower case, with "_" and "-" as spaces and without skin tones.
_MISSING = frozenset({
    "", "nan", "null", "none", "n/a", "na", "<na>", "#n/a", "-", "?", "unrated", "not rated",
})  # fmt: skip
_POSITIVE = frozenset({
    "up", "thumbs up", "thumb up", "thumbsup", "upvote", "yes", "y", "true", "good", "like", "liked",
    "positive", "pass", "passed", "accept", "accepted", "correct", "right", "helpful", "success", "👍",
    "✅", "✔", "✓",
})  # fmt: skip
_NEGATIVE = frozenset({
    "down", "thumbs down", "thumb down", "thumbsdown", "downvote", "no", "n", "false", "bad", "dislike",
    "disliked", "negative", "fail", "failed", "reject", "rejected", "incorrect", "wrong", "unhelpful",
    "failure", "👎", "❌", "✘", "✗",
})  # fmt: skip
_STARS = re.compile(r"(\d+(?:\.\d+)?) stars?|([★⭐]+)☆*")
_DECIMAL = r"[-+]?\d+(?:[.,]\d+)?"
_SHARE = re.compile(rf"({_DECIMAL}) ?(?:(?:/|out of|of) ?({_DECIMAL})|(%))")  # 2/5, 2 of 5, 40 %
_COMMA = re.compile(r"[-+]?\d+,\d+")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_DOTTED = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?")
# Skin tones and the marker that asks for the coloured form of an emoji change nothing in the meaning.
_EMOJI_FORM = re.compile("[\U0001f3fb-\U0001f3ff\ufe0f]")


def parse_rating(cell: Any) -> float:
    """The number that a rating cell stands for.

    Parameters
    ----------
    cell : None, bool, int, float or str
        A number, a number in text form, a boolean, stars (``4 stars``, ``★★★★☆``), or a word or emoji
        for thumbs up (1) or down (0): up, yes, good, like, true, pass, correct, 👍 and their opposites,
        in any case.

    Returns
    -------
    float
        NaN for a missing rating: blank, NaN, null, none, n/a, ``-`` or ``?``.

    Raises
    ------
    ValueError
        If the cell is none of these or infinite.

    Examples
    --------
    >>> parse_rating("4.5"), parse_rating("Thumbs up"), parse_rating("👎"), parse_rating("3 stars")
    (4.5, 1.0, 0.0, 3.0)
    """
    text = _normal(cell)
    if text in _MISSING:
        return math.nan
    number = float(cell) if isinstance(cell, bool | int | float) else _number(text)
    if math.isinf(number):
        raise ValueError("an infinite rating")
    return number


@dataclass(frozen=True, slots=True)
class RatingForm:
    """The way in which one column writes its ratings.

    Parameters
    ----------
    levels : tuple of str
        Words from worst to best in normal form, which stand for 1, 2, ...; empty where ratings are no such words.
    unit : str
        What every rating is a share of: ``/5``, ``%``, or nothing.
    comma : bool
        True where a comma is the decimal mark.
    seen, grouped : str
        The first rating that shows the unit, and the first whose comma may group thousands, each with its row.
    """

    levels: tuple[str, ...] = ()
    unit: str = ""
    comma: bool = False
    seen: str = ""
    grouped: str = ""

    @classmethod
    def of(cls, raw: RawTable, column: str, levels: Sequence[str] = ()) -> RatingForm:
        """The form of a column; with `levels`, their words."""
        if levels:
            return cls(tuple(map(_normal, levels)))
        parts = [_parts(_normal(cell)) if isinstance(cell, str) else ("", "") for cell in raw.columns[column]]
        units = [place for place, (_, unit) in enumerate(parts) if unit]
        grouped = [place for place, (number, _) in enumerate(parts) if _THOUSANDS.fullmatch(number)]
        first = [
            f"row {raw.numbers[own[0]]} is {raw.columns[column][own[0]]!r}" if own else "" for own in (units, grouped)
        ]
        comma = any(_COMMA.fullmatch(number) for number, _ in parts)
        return cls((), parts[units[0]][1] if units else "", comma, *first)

    def parse(self, cell: Any) -> float:
        """The rating in a cell as `parse_rating` reads it, in this form: of ``2/5`` it is 2, of ``40%`` 40.

        Raises
        ------
        ValueError
            If the cell is no rating or of another form; the message says why.
        """
        text = _normal(cell)
        if text in self.levels:
            return 1.0 + self.levels.index(text)
        if text in _MISSING:
            return math.nan
        if self.levels:
            raise ValueError(f"it is none of the levels {', '.join(self.levels)}{nearest(text, self.levels)}")
        number, unit = _parts(text)
        if unit != self.unit:
            whole = f"out of {self.unit[1:]}" if self.unit[:1] == "/" else "in %"
            raise ValueError(f"{self.seen}, and all of a column must be {whole}")
        if "," in number and self.grouped:
            raise ValueError(f"a comma may group thousands or be the decimal mark ({self.grouped}): write none")
        if self.comma and isinstance(cell, str) and _DOTTED.fullmatch(number):
            raise ValueError("its dot may group thousands, since commas are decimal marks in this column: write none")
        if not unit and not self.comma:
            return parse_rating(cell)
        value = parse_rating(number.replace(",", "."))
        if unit[:1] == "/" and not 0 <= value <= float(unit[1:]):
            raise ValueError("it is less than nothing or more than the whole")
        return value

    def notes(self, column: str) -> tuple[str, ...]:
        """A line on what was read as what; none for plain numbers and thumbs."""
        if self.levels:
            numbered = ", ".join(f"{number} {word}" for number, word in enumerate(self.levels, 1))
            return (f"the words of {column!r} count as {numbered}",)
        marks = [f"are out of {self.unit[1:]}" if self.unit[:1] == "/" else "are percentages"] if self.unit else []
        marks += ["have a comma as their decimal mark"] if self.comma else []
        return (f"ratings of {column!r} {' and '.join(marks)}",) if marks else ()


def _parts(text: str) -> tuple[str, str]:
    """The number in a normal text, and what it is a share of: ``/5``, ``%`` or nothing."""
    share = _SHARE.fullmatch(text)
    if share is None:
        return text, ""
    return share[1], share[3] or f"/{float(share[2].replace(',', '.')):g}"


def as_levels(levels: str | Sequence[str]) -> tuple[str, ...]:
    """The words of a rating scale from worst to best, from a sequence or a text with commas between them.

    Raises
    ------
    OptionError
        Of fewer than two words, an empty one, or one that stands twice; case and blanks do not count.
    """
    words = tuple(word.strip() for word in (levels.split(",") if isinstance(levels, str) else levels))
    if words and (len(words) < 2 or len({*map(_normal, words)}) < len(words) or not all(words)):
        raise OptionError(
            f"levels {', '.join(words)!r} must be two or more different words with commas between them, from worst to "
            f"best, such as 'poor,okay,good': name each word of the rating column once"
        )
    return words


def is_word(cell: Any) -> bool:
    """True for a boolean and a word or emoji for thumbs up or down, which stand for 1 and 0."""
    return isinstance(cell, bool) or _spaced(_normal(cell)) in _POSITIVE | _NEGATIVE


def _normal(cell: Any) -> str:
    return " ".join(_EMOJI_FORM.sub("", cell_text(cell)).lower().split())


def _spaced(text: str) -> str:
    return text.replace("_", " ").replace("-", " ").strip()


def _number(text: str) -> float:
    word = _spaced(text)
    if word in _POSITIVE or word in _NEGATIVE:
        return float(word in _POSITIVE)
    stars = _STARS.fullmatch(word)
    if stars:
        return float(stars[1]) if stars[1] else float(len(stars[2]))
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)
