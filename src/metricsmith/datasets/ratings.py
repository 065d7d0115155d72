"""Cells of a rating column -> numbers and a scale: numbers, booleans, stars and thumbs words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.cells import cell_text, value_or
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError, OptionError
from metricsmith.records import Scale

__all__ = ["as_scale", "check_rated", "infer_scale", "is_word", "parse_rating", "read_ratings", "takes_words"]

LARGEST = 1e15  # beyond it, floats do not tell whole numbers apart, and squares end in infinity before long

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
# Skin tones and the marker that asks for the coloured form of an emoji change nothing in the meaning.
_EMOJI_FORM = re.compile("[\U0001f3fb-\U0001f3ff\ufe0f]")

# Low, high, and the number that the largest rating must exceed for the scale to be believed: scales from 0
# are told apart by their top, or three-point ratings 0, 1, 2 would be read as very bad ones out of ten.
_COMMON = ((0, 1, -1), (1, 5, 0), (1, 7, 0), (1, 10, 0), (0, 10, 5), (0, 100, 50))


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


def read_ratings(raw: RawTable, column: str, scale: Scale | None = None) -> NDArray[np.float64]:
    """Every row's rating, NaN where there is none.

    Words (thumbs, yes and no) become 1 and 0. Beside words, numbers must be 0 or 1.

    Parameters
    ----------
    raw : RawTable
        Shape (n rows).
    column : str
        The rating column.
    scale : Scale, optional
        If given, ratings must lie on it.

    Raises
    ------
    DataError
        If a cell is no rating or more than 1e15 in size, words and other numbers are mixed, a rating is off the given
        scale, or one is a word and the scale is not 0 to 1; it names file, row and column.
    """
    cells = raw.columns[column]
    ratings = np.full(len(cells), math.nan)
    for index, cell in enumerate(cells):
        try:
            ratings[index] = parse_rating(cell)
        except ValueError as error:
            raise DataError(
                f"{raw.place(index, column)}: {cell_text(cell)[:60]!r} is not a rating; allowed are finite numbers, "
                f"true/false, stars and thumbs words (up/down, yes/no, good/bad, 👍/👎), or nothing: correct the cell "
                f"or empty it"
            ) from error
        if abs(ratings[index]) > LARGEST:
            raise DataError(
                f"{raw.place(index, column)}: the rating {ratings[index]:g} is too large to reckon with; allowed are "
                f"numbers from {-LARGEST:g} to {LARGEST:g}: correct the cell, empty it, or give ratings in other units"
            )
        if scale is not None and not takes_words(scale) and is_word(cell):
            raise DataError(
                f"{raw.place(index, column)}: {cell_text(cell)!r} is a verdict (good is 1, bad is 0), and the ratings "
                f"are numbers from {scale}: give the number, or empty the cell"
            )
        if scale is not None and not (math.isnan(ratings[index]) or scale.contains(ratings[index])):
            raise DataError(
                f"{raw.place(index, column)}: the rating {cell_text(cell)!r} is outside the scale {scale}; ratings "
                f"must be {scale.low:g} or more and {scale.high:g} or less: correct it, or give the scale that was "
                f"used"
            )
    _check_mixture(raw, column, cells, ratings)
    return ratings


def is_word(cell: Any) -> bool:
    """True for a boolean and a word or emoji for thumbs up or down, which stand for 1 and 0."""
    return isinstance(cell, bool) or _spaced(_normal(cell)) in _POSITIVE | _NEGATIVE


def takes_words(scale: Scale) -> bool:
    """True for a scale from 0 to 1; on any other one the 1 and 0 of words mean something else."""
    return (scale.low, scale.high) == (0, 1)


def infer_scale(ratings: Sequence[float] | NDArray[np.float64]) -> Scale:
    """The scale that ratings seem to be on; higher is taken to be better.

    The narrowest of 0-1, 1-5, 1-7, 1-10, 0-10 and 0-100 that holds all ratings; 0-10 and 0-100 only if
    the largest rating lies in their upper half. Otherwise the smallest and largest rating are the ends.
    The step is 1 if all ratings are whole numbers, else None (continuous, for example means of raters).

    Parameters
    ----------
    ratings : sequence of float, shape (n,)
        NaN is skipped.

    Returns
    -------
    Scale
        0-1 without step if there is no rating at all; if all ratings are equal and on no common scale,
        one unit to each side of them.

    Examples
    --------
    >>> infer_scale([1, 0, 1]), infer_scale([2, 5, 3]).high, str(infer_scale([36.7, 99.3]))
    (Scale(low=0.0, high=1.0, step=1.0, higher_is_better=True), 5.0, '0 to 100')
    """
    known = np.asarray(ratings, dtype=float)
    known = known[~np.isnan(known)]
    if not known.size:
        return Scale(0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    step = 1.0 if bool(np.all(known == np.round(known))) else None
    for start, end, reach in _COMMON:
        if start <= low and reach < high <= end:
            return Scale(float(start), float(end), step)
    return Scale(low, high, step) if low < high else Scale(low - 1, high + 1, step)


def check_rated(raw: RawTable, column: str | None, ratings: NDArray[np.float64], min_rated: int) -> tuple[str, ...]:
    """A line on rows without a rating; with `min_rated`, an error where too few have one or all have the same."""
    known = ratings[~np.isnan(ratings)]
    if min_rated and known.size < min_rated:
        raise DataError(
            f"{raw.name}, column {column!r}: {known.size} of {len(ratings)} rows have a rating; at least {min_rated} "
            f"are needed to fit and check a metric: rate more rows, or name another column with target=... (--target)"
        )
    if min_rated and known.min() == known.max():
        raise DataError(
            f"{raw.name}, column {column!r}: all {known.size} ratings are {known[0]:g} (first: "
            f"{raw.place(int(np.flatnonzero(~np.isnan(ratings))[0]))}); ratings must differ for a metric to be "
            f"learned: rate better and worse outputs too, or name another column with target=... (--target)"
        )
    if column is None or known.size == len(ratings):
        return ()
    return (
        f"{len(ratings) - known.size} of {len(ratings)} rows have no rating: they are kept for scoring and left out of "
        f"fitting",
    )


def as_scale(scale: Scale | str) -> Scale:
    """A `Scale` from itself or from text ``LOW:HIGH`` or ``LOW:HIGH:STEP``.

    Raises
    ------
    OptionError
        If the text has another form, or the ends are not finite with low below high.
    """
    if isinstance(scale, Scale):
        return scale
    numbers: list[float] = value_or(lambda text: list(map(float, text.split(":"))), scale, [])
    if len(numbers) not in (2, 3):
        raise OptionError(
            f"scale {scale!r} is not of the form LOW:HIGH or LOW:HIGH:STEP; allowed are numbers such as 1:5:1 or "
            f"0:100: write the scale that the raters saw"
        )
    return Scale(numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else None)


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


def _check_mixture(raw: RawTable, column: str, cells: Sequence[Any], ratings: NDArray[np.float64]) -> None:
    words = list(map(is_word, cells))
    odd = [index for index, number in enumerate(ratings) if not (math.isnan(number) or number in (0.0, 1.0))]
    if any(words) and odd:
        word = cell_text(cells[words.index(True)])
        raise DataError(
            f"{raw.place(odd[0], column)}: the rating {cell_text(cells[odd[0]])!r} stands beside words such as "
            f"{word!r}; beside words (which are 1 and 0) only 0 and 1 are allowed: use one kind of rating"
        )
