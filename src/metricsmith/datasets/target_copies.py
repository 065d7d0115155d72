"""Score columns that are the rating under another name, alone or as a mean, sum or median of several."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError
from metricsmith.formats import statistic
from metricsmith.stats.correlation import FloatArray, batch_kendall_tau_b

__all__ = ["Combination", "check_copies", "combinations_of"]

_ROWS, _LEVELS = 20, 4  # a perfect metric of thumbs, or on a few rows, is no wonder
_NEAR = 0.95
_SHOWN = 8  # columns in a warning
_IF_SO = "If they were made from it, or it from them, every figure here is worthless: leave them out."


def check_copies(
    columns: Mapping[str, ArrayLike],
    ratings: ArrayLike,
    *,
    target: str = "the target",
    allowed: Collection[str] = (),
    prior: Collection[str] = (),
) -> tuple[str, ...]:
    """Refuse columns of numbers that are the ratings under another name.

    A column is a copy if it orders the rows as the ratings do, with the same ties, upwards or downwards: then it is
    a function of the rating that forgets nothing. The same holds where the ratings are, row by row, the mean, sum or
    median of several columns (`combinations_of` says which sets are found).

    Parameters
    ----------
    columns : mapping of str to array_like, shape (n,)
        Score columns by name; rows in which a column is not finite do not count for it.
    ratings : array_like, shape (n,)
        Rows without one do not count.
    target : str
        What the ratings are called, for the messages.
    allowed : collection of str
        Columns that may be used all the same. A set of columns stops nothing if all of them are allowed.
    prior : collection of str
        Columns that are declared to measure the target.

    Returns
    -------
    tuple of str
        Warnings: copies on fewer than 20 rows or 4 different ratings, where a good metric may be one by chance, and
        columns whose tau-b with the ratings lies above .95 in size.

    Raises
    ------
    DataError
        If a column, or a set of columns, is a copy on 20 rows or more with 4 different ratings or more.
    """
    rated = np.isfinite(np.asarray(ratings, dtype=float))
    y = _rounded(np.asarray(ratings, dtype=float)[rated])
    if not columns or y.size < 2 or np.ptp(y) == 0:
        return ()
    names = list(columns)
    values = np.array([_rounded(np.asarray(columns[name], dtype=float)[rated]) for name in names])
    taus = batch_kendall_tau_b(values, y)
    same, doubted = np.abs(taus) > 1 - 1e-12, [name not in allowed for name in names]
    sure = [_tells(y[~np.isnan(row)]) for row in values]
    copies = [name for name, *hit in zip(names, same, doubted, sure, strict=True) if all(hit)]
    if copies:
        raise _error(copies, f"put{'s' if len(copies) == 1 else ''} the rows in the order of {target!r}, ties included")
    rest = np.isfinite(taus) & ~same
    sets = combinations_of(
        [name for name, keep in zip(names, rest, strict=True) if keep], values[rest], y, prior, by_name=not _tells(y)
    )
    made = next((one for one in sets if not set(one.names) <= set(allowed)), None)
    warnings = [f"{target!r} is, row by row, the {made.how} of {_listed(made.names)}. {_IF_SO}"] if made else []
    if made and made.rows >= _ROWS and _tells(y):
        raise _error(made.names, f"make up {target!r}: it is, row by row, their {made.how}")
    near = [f"{name!r} ({statistic(tau, signed=True)})" for name, tau, doubt in zip(names, taus, doubted, strict=True)
            if doubt and abs(tau) > _NEAR]  # fmt: skip
    if near:
        shown = ", ".join(near[:_SHOWN]) + (f" and {len(near) - _SHOWN} more" if len(near) > _SHOWN else "")
        warnings.append(f"These columns agree with {target!r} as only copies of it do (tau-b): {shown}. {_IF_SO}")
    return tuple(warnings)


def _tells(ratings: FloatArray) -> bool:
    """True for so many rows and different ratings that chance orders no column like them."""
    return ratings.size >= _ROWS and np.unique(ratings).size >= _LEVELS


def _rounded(values: FloatArray) -> FloatArray:
    """Finite numbers to nine digits of the largest, so that the last digits of a mean part no ties; others NaN."""
    known = np.where(np.isfinite(values), values, np.nan)
    largest = float(np.abs(known[~np.isnan(known)]).max(initial=0.0))
    return np.round(known / largest, 9) * largest if largest else known


def _error(names: Sequence[str], does: str) -> DataError:
    one = len(names) == 1
    return DataError(
        f"candidate column{'' if one else 's'} {_listed(names)} {does}; a metric that reads the rating proves nothing: "
        f"leave {'it' if one else 'them'} out (narrow --metric-columns), or, if nobody made {'it' if one else 'them'} "
        f"from the ratings, keep {'it' if one else 'them'} with allow_columns=... "
        f"({' '.join(f'--allow-column {name!r}' for name in names[:_SHOWN])})"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


_WHOLE_FAMILY = 6  # of at most so many columns with like names, every part is tried
_FIVE = 120  # columns, up to which any five are tried; beyond, any four
_PAIRS, _TRIPLES = 2000, 500  # columns up to which any four, and medians of any three, are tried
_STEPS = 50  # of the search for positive weights, which takes about one for each column that it needs
_CHANCE = 1e-3  # expected number of triples that chance alone would give
_EQUAL = 1e-9  # relative to the largest number


@dataclass(frozen=True)
class Combination:
    """The target is the `how` (mean, sum or median) of the columns `names`, row by row, on `rows` rows."""

    how: str
    names: tuple[str, ...]
    rows: int


def combinations_of(
    names: Sequence[str], values: FloatArray, target: FloatArray, prior: Collection[str] = (), *, by_name: bool = False
) -> Iterator[Combination]:
    """Find the sets of columns whose mean, sum or median the target is, row by row.

    Not every set of many columns can be tried. Found are

    - in the order of the target with all its ties, so that rounding and other units hide nothing, and with missing
      cells left out: the mean, sum and median of all columns, of the `prior` ones, and of columns whose names
      differ in numbers, or in their first or last word; of at most six such columns, of every part of them;
    - to the last digit, among columns without missing cells: the mean or sum of any two to four columns (five where
      there are at most 120 columns); and, also where it was rounded to two decimals or more, of up to some forty
      columns where there are more rows than columns;
    - the median of any three columns without missing cells, where rows are so many that chance gives none.

    Parameters
    ----------
    names : sequence of str, length m
    values : float array, shape (m, n)
        NaN where a cell is missing. Constant columns and columns in the target's own order should not be among them.
    target : float array, shape (n,)
        Finite, with two different numbers at least.
    prior : sequence of str
        Columns that are declared to measure the target.
    by_name : bool
        Try only the first kind, for few rows: among many sets some fit by chance.

    Yields
    ------
    Combination
        The most telling first.
    """
    search = _Search(tuple(names), values, target)
    yield from search.families(prior)
    if not by_name:
        yield from search.few()
        yield from search.any_number()
        yield from search.medians()


@dataclass(frozen=True, eq=False)
class _Search:
    names: tuple[str, ...]
    values: FloatArray
    target: FloatArray

    def families(self, prior: Collection[str]) -> Iterator[Combination]:
        """Sets of columns that belong together by name."""
        sets: dict[tuple[int, ...], None] = {}
        for family in _families(self.names, prior):
            sizes = range(len(family), 1, -1) if len(family) <= _WHOLE_FAMILY else (len(family),)
            sets.update(dict.fromkeys(chain.from_iterable(combinations(family, size) for size in sizes)))
        by_rating = np.argsort(self.target, kind="stable")
        rises = np.diff(self.target[by_rating]) > 0
        for places in sets:
            own = self.values[list(places)][:, by_rating]
            for how, combined in _combined(own):
                if _ordered(combined, rises, self.target[by_rating]):
                    yield self._found(how, places, combined)

    def few(self) -> Iterator[Combination]:
        """Any two to five columns that add up to the target.

        A random projection turns each column into one number. Only sets whose numbers add up to that of the target are
        looked at in full, and these are found by sorting the sums of pairs instead of trying every set.
        """
        whole, size = self._whole, len(self._whole)
        if size < 2 or size > _PAIRS:
            return
        weights = np.random.default_rng(0).standard_normal(self.target.size)
        codes, goal = self.values[whole] @ weights, float(self.target @ weights)
        first, second = np.triu_indices(size, 1)
        sums = codes[first] + codes[second]
        order = np.argsort(sums)
        tolerance = _EQUAL * self._largest * float(np.abs(weights).sum())

        def pairs(wanted: FloatArray) -> Iterator[tuple[int, int, int]]:
            """Places in `wanted` with the two columns that add up to them."""
            low = np.searchsorted(sums[order], wanted - tolerance)
            high = np.searchsorted(sums[order], wanted + tolerance)
            for place in np.flatnonzero(high > low):
                for hit in order[low[place] : high[place]]:
                    yield int(place), int(first[hit]), int(second[hit])

        rests: dict[int, tuple[FloatArray, list[NDArray[np.intp]]]] = {2: (np.zeros(1), [])}
        rests[3] = (codes, [np.arange(size)])
        rests[4] = (sums, [first, second])
        if size <= _FIVE:
            third = np.tile(np.arange(size), len(sums))
            rests[5] = (np.repeat(sums, size) + codes[third], [np.repeat(first, size), np.repeat(second, size), third])
        for count, (rest, members) in rests.items():
            for how, factor in (("mean", count), ("sum", 1)):
                for place, one, other in pairs(factor * goal - rest):
                    chosen = sorted({one, other, *(int(member[place]) for member in members)})
                    rest_of_all = self.values[whole[chosen]].sum(axis=0) - factor * self.target
                    adds_up = np.abs(rest_of_all).max() <= len(chosen) * _EQUAL * self._largest
                    if len(chosen) == count and adds_up:
                        yield self._found(how, whole[chosen], self.target)

    def any_number(self) -> Iterator[Combination]:
        """Columns of one positive weight in the only combination that leaves nothing over."""
        whole = self._whole
        if not 2 <= len(whole) < self.target.size:
            return
        from scipy.optimize import nnls

        try:
            weights, rest = nnls(self.values[whole].T, self.target, maxiter=_STEPS)
        except RuntimeError:  # no solution within its number of steps
            return
        chosen = whole[weights > weights.max() / 5]
        if rest > self._last_digit * math.sqrt(self.target.size) or len(chosen) < 2:
            return
        by_target = np.argsort(self.target, kind="stable")
        mean = self.values[chosen].mean(axis=0)
        if _ordered(mean[by_target], np.diff(self.target[by_target]) > 0, self.target[by_target]):
            summed = np.allclose(mean * len(chosen), self.target, atol=self._last_digit)
            yield self._found("sum" if summed else "mean", chosen, mean)

    def medians(self) -> Iterator[Combination]:
        """Any three columns whose median is the target: in no row do two lie below it, or two above it."""
        whole = self._whole
        if not 3 <= len(whole) <= _TRIPLES:
            return
        slack = _EQUAL * self._largest
        below = (self.values[whole] < self.target - slack).astype(float)
        above = (self.values[whole] > self.target + slack).astype(float)
        # The probability that a row fits, of the three best columns if they err independently, bounds that of all.
        best = np.argsort(below.mean(axis=1) + above.mean(axis=1))[:3]
        row = 1.0
        for side in (below[best].mean(axis=1), above[best].mean(axis=1)):
            a, b, c = side.tolist()
            row -= a * b + a * c + b * c - 2 * a * b * c
        if math.comb(len(whole), 3) * max(row, 0.0) ** self.target.size > _CHANCE:
            return
        fits = (below @ below.T == 0) & (above @ above.T == 0)
        np.fill_diagonal(fits, False)
        for one, other in np.argwhere(np.triu(fits & (fits.astype(float) @ fits > 0))):
            third = np.flatnonzero(fits[one] & fits[other])
            third = third[third > other]
            if len(third):
                yield self._found("median", whole[[one, other, third[0]]], self.target)

    @cached_property
    def _whole(self) -> NDArray[np.intp]:
        """Columns without a missing cell, of equal ones the first."""
        complete = np.flatnonzero(~np.isnan(self.values).any(axis=1))
        first = np.unique(self.values[complete], axis=0, return_index=True)[1] if len(complete) else complete
        return complete[np.sort(first)]

    @cached_property
    def _largest(self) -> float:
        known = self.values[~np.isnan(self.values)]
        return max(float(np.abs(known).max(initial=0.0)), float(np.abs(self.target).max()))

    @cached_property
    def _last_digit(self) -> float:
        """The most that rounding may have moved the target: half a unit of its last decimal, if it shows two to six."""
        decimals = next((d for d in range(7) if np.allclose(self.target, np.round(self.target, d), atol=1e-9)), 0)
        return 0.5 * 10.0**-decimals if decimals > 1 else 10 * _EQUAL * self._largest

    def _found(self, how: str, places: Sequence[int] | NDArray[np.intp], combined: FloatArray) -> Combination:
        names = tuple(self.names[place] for place in sorted(int(place) for place in places))
        return Combination(how, names, int((~np.isnan(combined)).sum()))


def _families(names: Sequence[str], prior: Collection[str]) -> Iterator[list[int]]:
    """Places of columns that belong together: likely raters of one kind, the declared ones, all."""
    families: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        words = re.findall(r"[^\W_]+", name.lower())
        families.setdefault("numbered " + re.sub(r"\d+", "#", name.lower()), []).append(place)
        if len(words) > 1:
            families.setdefault("first " + " ".join(words[:-1]), []).append(place)
            families.setdefault("last " + " ".join(words[1:]), []).append(place)
    families["prior"] = [place for place, name in enumerate(names) if name in prior]
    families["all"] = list(range(len(names)))
    yield from (family for family in families.values() if len(family) > 1)


def _combined(own: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Mean, sum (which differs in order only where cells are missing) and median, shape (n,)."""
    missing = np.isnan(own)
    counts = (~missing).sum(axis=0)
    totals = np.where(missing, 0.0, own).sum(axis=0)
    empty = counts == 0
    yield "mean", np.where(empty, math.nan, totals / np.maximum(counts, 1))
    if missing.any():
        yield "sum", np.where(empty, math.nan, totals)
    if len(own) > 2:
        ranked = np.sort(own, axis=0)  # missing cells last
        rows = np.arange(own.shape[1])
        middle = ranked[np.maximum(counts - 1, 0) // 2, rows] + ranked[counts // 2, rows]
        yield "median", np.where(empty, math.nan, middle / 2)


def _ordered(combined: FloatArray, rises: NDArray[np.bool_], target: FloatArray) -> bool:
    """True if numbers that stand by rising target rise and stay with it, undefined ones aside."""
    known = ~np.isnan(combined)
    if not known.all():
        combined, rises = combined[known], np.diff(target[known]) > 0
        if combined.size < 2:
            return False
    steps = np.diff(combined)
    slack = _EQUAL * max(float(np.abs(combined).max()), 1e-300)
    return bool(((steps > slack) == rises).all() and (np.abs(steps[~rises]) <= slack).all())
