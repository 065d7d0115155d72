"""The form of numbers and texts wherever people read them: one rule each, for terminal, pages, Markdown, plots, notes.

- A statistic (a correlation, a share as a figure, a difference of two) has no zero before the point: ``.412``.
- Tables give three decimals, sentences two; an interval has as many as its estimate: ``.30 (.16 to .43)``.
- A p-value has three decimals, and ``< .001`` below; in a sentence ``p = .024``, ``p < .001``.
- A number on a rating scale keeps its zero and has the decimals that the scale's width deserves: ``0.31``, ``61.3``.
- Shares of rows are whole per cent. A minus is U+2212; a plus stands before differences and weights alone.
- Undefined is an en dash in a table, and said in a sentence; it is never 0.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from typing import Any, Concatenate, ParamSpec

__all__ = [
    "MISSING", "clean", "cost_stated", "count", "duration", "ends", "enumerated", "excerpt", "fit_columns",
    "fit_middle", "interval", "interval_stated", "jsonable", "money", "p_stated", "p_value", "percent", "points",
    "rating", "raw", "single_line", "statistic", "visible",
]  # fmt: skip

MISSING = "–"
MINUS = "\N{MINUS SIGN}"
NARROW = "\N{NO-BREAK SPACE}"
ELLIPSIS = "…"

# Embeddings, overrides and isolates: they could turn the text around them. The plain marks stay.
_BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
P = ParamSpec("P")


def _dash_without_number(write: Callable[Concatenate[float, P], str]) -> Callable[Concatenate[float | None, P], str]:
    """An en dash where there is no number, or one that is not finite."""

    @wraps(write)
    def written(value: float | None, /, *args: P.args, **options: P.kwargs) -> str:
        return MISSING if value is None or not math.isfinite(value) else write(value, *args, **options)

    return written


@_dash_without_number
def statistic(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """A number in [-1, 1] without its leading zero; an en dash if it is undefined.

    Examples
    --------
    >>> statistic(0.4123), statistic(-0.5, 2), statistic(1.0, 2), statistic(float("nan"))
    ('.412', '−.50', '1.00', '–')
    """
    text = f"{abs(value):.{digits}f}"
    sign = "" if float(text) == 0.0 else MINUS if value < 0 else "+" if signed else ""
    return sign + text.removeprefix("0")


@_dash_without_number
def points(value: float, width: float, *, signed: bool = False) -> str:
    """A number on a rating scale that is `width` wide, with the decimals that the width deserves.

    Examples
    --------
    >>> points(3.14159, 4), points(61.27, 100), points(-0.31, 4, signed=True)
    ('3.14', '61.3', '−0.31')
    """
    digits = min(6, max(0, 2 - math.floor(math.log10(width / 4)))) if width > 0 else 2
    text = f"{abs(value):.{digits}f}"
    sign = "" if float(text) == 0.0 else MINUS if value < 0 else "+" if signed else ""
    return sign + text


def rating(value: float, width: float) -> str:
    """A rater's number: whole as it was given, otherwise as `points` writes it."""
    return raw(value) if math.isfinite(value) and float(value).is_integer() else points(value, width)


@_dash_without_number
def raw(value: float, digits: int = 6) -> str:
    """A number of unknown range, to so many significant digits; an en dash if there is none.

    Examples
    --------
    >>> raw(-0.25), raw(12), raw(65.8907, 4), raw(None)
    ('−0.25', '12', '65.89', '–')
    """
    return (MINUS if value < 0 else "") + f"{abs(value):.{digits}g}"


def interval(low: float, high: float, digits: int = 3, write: Callable[[float], str] | None = None) -> str:
    """Two statistics, or numbers as `write` has them, with "to" between them; an en dash if either is undefined."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return MISSING
    first, last = ((statistic(end, digits) if write is None else write(end)) for end in (low, high))
    return f"{first} to {last}"


def interval_stated(low: float, high: float, write: Callable[[float], str] | None = None) -> str:
    """A 95 % interval in a sentence, its ends as statistics of two decimals or as `write` has them.

    Examples
    --------
    >>> interval_stated(0.157, 0.43).replace(NARROW, " "), interval_stated(float("nan"), 1.0)
    ('95 % interval .16 to .43', 'no interval')
    """
    text = interval(low, high, 2, write)
    return "no interval" if text == MISSING else f"95{NARROW}% interval {text}"


@_dash_without_number
def p_value(value: float) -> str:
    """Three decimals, ``< .001`` below; an en dash if undefined."""
    return "< .001" if value < 0.001 else statistic(value, 3)


def p_stated(value: float) -> str:
    """A p-value in a sentence.

    Examples
    --------
    >>> p_stated(0.0241), p_stated(0.0004), p_stated(float("nan"))
    ('p = .024', 'p < .001', 'p undefined')
    """
    text = p_value(value)
    return "p undefined" if text == MISSING else f"p {text}" if text.startswith("<") else f"p = {text}"


@_dash_without_number
def percent(share: float) -> str:
    """A share in [0, 1] as whole per cent, one decimal below 1 % and above 99 %; an en dash if undefined."""
    if 0 < share < 0.0005:
        return f"< 0.1{NARROW}%"
    if 0.9995 <= share < 1:
        return f"> 99.9{NARROW}%"
    digits = 1 if 0 < share < 0.01 or 0.99 < share < 1 else 0
    return f"{100 * share:.{digits}f}{NARROW}%"


@_dash_without_number
def count(value: float, noun: str = "") -> str:
    """A whole number with thousands separated, and `noun` in the singular or plural behind it.

    Examples
    --------
    >>> count(1), count(1234, "row"), count(1, "row"), count(None)
    ('1', '1,234 rows', '1 row', '–')
    """
    number = f"{round(value):,}"
    return f"{number} {noun if round(value) == 1 else noun + 's'}" if noun else number


@_dash_without_number
def money(value: float) -> str:
    """US dollars: cents, or two significant digits below ten cents; an en dash if the price is unknown."""
    if value == 0 or value >= 0.1:
        return f"${value:,.2f}"
    digits = min(6, 1 - math.floor(math.log10(value)))
    return "below $0.000001" if value < 1e-6 else f"${value:.{digits}f}"


def cost_stated(cost: float | None) -> str:
    """`money` in a sentence."""
    return "price unknown" if cost is None else money(cost)


@_dash_without_number
def duration(seconds: float) -> str:
    """Seconds, minutes or hours, two units at most; an en dash if unknown."""
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def clean(text: str) -> str:
    r"""Make control characters visible and lone surrogates harmless; line breaks and tabs stay.

    Examples
    --------
    >>> clean("a\x00b\r\nc")
    'a␀b\nc'
    """
    return _UNPRINTABLE.sub(_visible, text.replace("\r\n", "\n").replace("\r", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\N{REPLACEMENT CHARACTER}"


def visible(text: str) -> str:
    r"""Source text with an escape for each character that is not seen, or that turns the text around it.

    Examples
    --------
    >>> visible("a = '\u202e\u200b'\r\n\tb\x1b")
    "a = '\\u202e\\u200b'\n\tb\\x1b"
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode("ascii") for one in lines
    )


def single_line(text: str) -> str:
    """`clean`, white space collapsed, bidirectional controls dropped: for labels, tables and Markdown."""
    return " ".join(_BIDI_CONTROLS.sub("", clean(text)).split())


def excerpt(text: str, length: int) -> str:
    """The first `length` characters of `single_line`, cut at a word where one ends near by."""
    return _cut(single_line(text), length, len)


def fit_columns(text: str, columns: int) -> str:
    """An `excerpt` counted in columns as a terminal counts them: an East Asian wide character takes two."""
    return _cut(single_line(text), columns, _columns)


def fit_middle(text: str, columns: int) -> str:
    """`text` on one line, cut inside to so many columns: two thirds are its end, where names mostly differ.

    Examples
    --------
    >>> fit_middle("Mistral-7B-Instruct-v0.2", 11), fit_middle("atlas", 11)
    ('Mis…ct-v0.2', 'atlas')
    """
    line = single_line(text)
    if _columns(line) <= columns:
        return line
    first, last = line[: (columns - 1) // 3], line
    while _columns(first + last) > columns - 1:
        last = last[1:]
    return first + ELLIPSIS + last


def _columns(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    marks = sum(unicodedata.combining(character) > 0 for character in text)
    return len(text) + wide - marks


def _cut(line: str, length: int, measure: Callable[[str], int]) -> str:
    if measure(line) <= length:
        return line
    kept = line[:length]
    while kept and measure(kept) > length - 1:
        kept = kept[:-1]
    at_word = kept.rfind(" ")
    if at_word > len(kept) * 3 // 4:
        kept = kept[:at_word]
    return kept.rstrip() + ELLIPSIS


def enumerated(names: Sequence[str], most: int | None = None) -> str:
    """Names in a sentence, "and" before the last; of more than `most` the first so many, and the number of the others.

    Examples
    --------
    >>> enumerated(["a"]), enumerated(["a", "b", "c"]), enumerated(["a", "b", "c"], 1)
    ('a', 'a, b and c', 'a and 2 more')
    """
    if most is not None and len(names) > most:
        names = [", ".join(names[:most]), f"{len(names) - most} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def ends(found: Any, digits: int = 3) -> str:
    """Both ends of a `metricsmith.stats.resampling.Interval`."""
    return interval(found.low, found.high, digits)


def jsonable(value: Any) -> Any:
    """Make `value` JSON-ready all the way down: NaN and infinities become None, numpy's numbers and arrays Python's."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return value
