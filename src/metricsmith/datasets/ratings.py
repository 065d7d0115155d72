"""A rating column -> numbers and a scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.cells import cell_text, value_or
from metricsmith.datasets.rating_forms import RatingForm, is_word
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError, OptionError
from metricsmith.records import Scale

__all__ = ["as_scale", "check_rated", "infer_scale", "read_ratings", "seen_scale", "takes_words"]

LARGEST = 1e15  # beyond it, floats do not tell whole numbers apart, and squares end in infinity before long

# Low, high, and the number that the largest rating must exceed for the scale to be believed: scales from 0
# are told apart by their top, or three-point ratings 0, 1, 2 would be read as very bad ones out of ten.
_COMMON = ((0, 1, -1), (1, 5, 0), (1, 7, 0), (1, 10, 0), (0, 10, 5), (0, 100, 50))


def read_ratings(
    raw: RawTable, column: str, scale: Scale | None = None, form: RatingForm | None = None
) -> NDArray[np.float64]:
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
    form : RatingForm, optional
        By default that of the column.

    Raises
    ------
    DataError
        If a cell is no rating or more than 1e15 in size, words and other numbers are mixed, a rating is off the given
        scale, or one is a word and the scale is not 0 to 1; it names file, row and column.
    """
    cells, form = raw.columns[column], form or RatingForm.of(raw, column)
    ratings = np.full(len(cells), math.nan)
    for index, cell in enumerate(cells):
        try:
            ratings[index] = form.parse(cell)
        except ValueError as error:
            raise DataError(_no_rating(raw.place(index, column), cell_text(cell)[:60], str(error))) from error
        if abs(ratings[index]) > LARGEST:
            raise DataError(
                f"{raw.place(index, column)}: the rating {ratings[index]:g} is too large to reckon with; allowed are "
                f"numbers from {-LARGEST:g} to {LARGEST:g}: correct the cell, empty it, or give ratings in other units"
            )
        if scale is not None and not form.levels and not takes_words(scale) and is_word(cell):
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
    if not form.levels:
        _check_mixture(raw, column, cells, ratings)
    return ratings


def _no_rating(place: str, text: str, why: str) -> str:
    told = "" if why.startswith("could not convert") or "is not a number" in why else f": {why}"
    return (
        f"{place}: {text!r} is not a rating{told}; allowed are finite numbers, shares (2/5, 40%), true/false, stars "
        f"and thumbs words (up/down, yes/no, good/bad, 👍/👎), words named from worst to best with levels=... "
        f"(--levels), or nothing: correct the cell or empty it"
    )


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


def seen_scale(
    raw: RawTable, column: str, form: RatingForm, ratings: NDArray[np.float64]
) -> tuple[Scale, tuple[str, ...]]:
    """The scale that the ratings of a column seem to be on, and lines on it.

    That of the levels; of shares from 0, or from 1 where the whole is ten or less and none is below 1, to the whole;
    else `infer_scale`, and a few ratings that alone stretch it are warned of: at most 2 % (or one), farther from the
    others than these are from one another, without which the scale is a common one and at most half as wide. Counts and
    penalties, whose others are on no common scale, have honest outliers.
    """
    known, inferred, warned = ratings[~np.isnan(ratings)], infer_scale(ratings), list[str]()
    whole = 100.0 if form.unit == "%" else float(form.unit[1:] or "nan")
    if form.levels:
        inferred = Scale(1.0, float(len(form.levels)), 1.0)
    elif known.min() >= 0 and known.max() <= whole:
        inferred = Scale(float(1 < whole <= 10 and known.min() >= 1), whole, inferred.step)
    elif len(np.unique(known)) > 2:
        order = np.argsort(ratings)[: known.size]
        gaps = np.diff(ratings[order])
        few, rest = sorted((order[: gaps.argmax() + 1], order[gaps.argmax() + 1 :]), key=len)
        others = infer_scale(ratings[rest])
        apart = 0 < np.ptp(ratings[rest]) <= gaps.max() and 2 * others.width <= inferred.width
        usual = any((others.low, others.high) == ends[:2] for ends in _COMMON)
        if usual and apart and len(few) <= max(1, known.size // 50):
            told = [f"{raw.place(index, column)}: the rating {ratings[index]:g}" for index in sorted(few.tolist())[:3]]
            warned.append(
                f"warning: {'; '.join(told)} stretches the scale to {inferred}, the others lie on {others}: correct "
                f"or empty the cell, or give the scale with scale=... (--scale)"
            )
    step = "continuous" if inferred.step is None else f"step {inferred.step:g}"
    run = f"ratings run from {known.min():g} to {known.max():g}"
    return inferred, (f"rating scale inferred: {inferred}, {step} ({run}; give another with scale=...)", *warned)


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


def as_scale(scale: Scale | str | Mapping[str, Any]) -> Scale:
    """A `Scale` from itself, from text ``LOW:HIGH`` or ``LOW:HIGH:STEP``, or from its fields as a mapping.

    Raises
    ------
    OptionError
        If it is none of these, or the ends are not finite with low below high.
    """
    if isinstance(scale, Scale):
        return scale
    if isinstance(scale, Mapping):
        return Scale(**scale)
    numbers: list[float] = value_or(lambda text: list(map(float, str(text).split(":"))), scale, [])
    if len(numbers) not in (2, 3):
        raise OptionError(
            f"scale {scale!r} is not of the form LOW:HIGH or LOW:HIGH:STEP; allowed are numbers such as 1:5:1 or "
            f"0:100, or a Scale: write the scale that the raters saw"
        )
    return Scale(numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else None)


def _check_mixture(raw: RawTable, column: str, cells: Sequence[Any], ratings: NDArray[np.float64]) -> None:
    words = list(map(is_word, cells))
    odd = [index for index, number in enumerate(ratings) if not (math.isnan(number) or number in (0.0, 1.0))]
    if any(words) and odd:
        word = cell_text(cells[words.index(True)])
        raise DataError(
            f"{raw.place(odd[0], column)}: the rating {cell_text(cells[odd[0]])!r} stands beside words such as "
            f"{word!r}; beside words (which are 1 and 0) only 0 and 1 are allowed: use one kind of rating"
        )
