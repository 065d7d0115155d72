"""Candidate columns that are the rating under another name, and those that nearly are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.datasets.combinations import combinations_of
from metricsmith.errors import DataError
from metricsmith.stats.correlation import batch_kendall_tau_b

__all__ = ["check_copies"]

FloatArray = NDArray[np.float64]

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
        Candidates by name; rows in which a column is not finite do not count for it.
    ratings : array_like, shape (n,)
        Rows without one do not count.
    target : str
        What the ratings are called, for the messages.
    allowed : collection of str
        Columns that are candidates all the same. A set of columns stops nothing if all of them are allowed.
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
    near = [f"{name!r} ({tau:+.3f})" for name, tau, doubt in zip(names, taus, doubted, strict=True)
            if doubt and abs(tau) > _NEAR]  # fmt: skip
    if near:
        shown = ", ".join(near[:_SHOWN]) + (f" and {len(near) - _SHOWN} more" if len(near) > _SHOWN else "")
        warnings.append(f"These columns agree with {target!r} as only copies of it do (tau-b): {shown}. {_IF_SO}")
    return tuple(warnings)


def _tells(ratings: FloatArray) -> bool:
    """True if so many rows with so many different ratings are ordered by a copy alone."""
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
