"""Columns of the table that are scores already: chosen by glob patterns, read as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.cells import cell_number, cell_text
from metricsmith.datasets.columns import SYNONYMS, normal_name
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError, OptionError, nearest

__all__ = ["ScoreColumns", "match_columns", "read_numbers"]

# Words in the names of columns that people wrote. What they wrote is no score column by accident.
_PEOPLE = frozenset({"rater", "human", "annotator", "raters", "humans", "annotators"})
_GOLD = frozenset({"gold", "golden"})

CORRECT_THE_CELL = (
    "a metric column may hold numbers, true/false and blank cells: correct the cell, or narrow the pattern of "
    "metric_columns (--metric-columns)"
)


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """The columns of a table that are scores already.

    Parameters
    ----------
    names : tuple of str
        All of them, in the order of the table; those of `prior` are among them.
    prior : tuple of str
        Those that are declared to measure the target.
    notes : tuple of str
        One line per pattern with the number of columns it matched, and which it passed over.
    """

    names: tuple[str, ...] = ()
    prior: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def match_columns(
    raw: RawTable,
    metric_columns: Sequence[str] = (),
    prior_columns: Sequence[str] = (),
    target: str | None = None,
) -> ScoreColumns:
    """Find the score columns that the patterns mean.

    Parameters
    ----------
    raw : RawTable
        The table.
    metric_columns, prior_columns : sequence of str
        Case-sensitive glob patterns (``*``, ``?``, ``[abc]``, ``[!abc]``) or exact names. Prior columns
        are score columns too. A column whose name says that people wrote it (rater, human, annotator, gold) is
        taken by its exact name only, never by a pattern.
    target : str, optional
        The rating column, which no pattern may match.

    Raises
    ------
    OptionError
        If a pattern matches no column or matches the target.
    """
    options = {"metric_columns": metric_columns, "prior_columns": prior_columns}
    found: dict[str, set[str]] = {option: set() for option in options}
    notes = []
    for option, patterns in options.items():
        for pattern in patterns:
            exact = {name for name in raw.columns if pattern in (name, escape(name))}
            fitting = [name for name in raw.columns if name in exact or fnmatchcase(name, pattern)]
            names = [name for name in fitting if name in exact or name == target or not _by_people(name)]
            over = [name for name in fitting if name not in names]
            _check_match(raw, pattern, names, f"{option} (--{option.replace('_', '-')})", target, over)
            found[option].update(names)
            note = f"; {', '.join(map(repr, over))} passed over: people wrote it, and only its exact name takes it"
            notes.append(
                f"{option} pattern {pattern!r} matches {len(names)} of {len(raw.columns)} columns{note if over else ''}"
            )
    every = found["metric_columns"] | found["prior_columns"]
    return ScoreColumns(
        names=tuple(name for name in raw.columns if name in every),
        prior=tuple(name for name in raw.columns if name in found["prior_columns"]),
        notes=tuple(notes),
    )


def read_numbers(
    raw: RawTable, names: Sequence[str], advice: str = CORRECT_THE_CELL, *, finite: bool = False
) -> dict[str, NDArray[np.float64]]:
    """The numbers of each column, shape (n rows,): NaN where the cell is blank.

    Parameters
    ----------
    raw : RawTable
    names : sequence of str
        The columns.
    advice : str
        The end of the error for a cell that is no number: what is allowed, and what to do.
    finite : bool
        Refuse infinities, which are kept otherwise.

    Raises
    ------
    DataError
        If a cell is neither a number nor blank; it names row and column.
    """
    return {name: _numbers(raw, name, advice, finite) for name in names}


def _numbers(raw: RawTable, column: str, advice: str, finite: bool) -> NDArray[np.float64]:
    cells = raw.columns[column]
    if not any(isinstance(cell, str) and "_" in cell for cell in cells):
        with suppress(TypeError, ValueError, OverflowError):  # blank cells or words, which are read one by one
            values = np.array(cells, dtype=float)
            if values.shape == (len(raw),) and not (finite and np.isinf(values).any()):
                return values
    values = np.empty(len(raw))
    for index, cell in enumerate(cells):
        try:
            values[index] = cell_number(cell)
        except ValueError as error:
            raise DataError(
                f"{raw.place(index, column)}: {cell_text(cell)[:60]!r} is not a number; {advice}"
            ) from error
        if finite and math.isinf(values[index]):
            raise DataError(f"{raw.place(index, column)}: an infinite score; leave the cell blank if there is none")
    return values


def _by_people(name: str) -> bool:
    normal = normal_name(name)
    words = re.split(r"[_\d]+", normal)
    # A metric may be called after the gold texts that it is given ("SUPERT-Golden"); what begins with the word, or has
    # it beside a rating's usual names only ("score_gold"), is gold itself.
    gold = words[0] in _GOLD or (not _GOLD.isdisjoint(words) and {*words} <= {*SYNONYMS["target"], *_GOLD, ""})
    return normal in SYNONYMS["rater"] or not _PEOPLE.isdisjoint(words) or gold


def _check_match(
    raw: RawTable, pattern: str, names: Sequence[str], option: str, target: str | None, over: Sequence[str]
) -> None:
    if not names and over:
        raise OptionError(
            f"{raw.name}: the pattern {pattern!r} of {option} matches only columns that people wrote "
            f"({', '.join(over[:12])}{', ...' if len(over) > 12 else ''}), which a pattern never takes: give the exact "
            f"name of each that is meant as a score"
        )
    if not names:
        raise OptionError(
            f"{raw.name}: the pattern {pattern!r} of {option} matches none of the {len(raw.columns)} "
            f"columns{nearest(pattern, raw.columns)}; patterns are case-sensitive and must fit the whole name, "
            f"columns are {', '.join(list(raw.columns)[:12])}{', ...' if len(raw.columns) > 12 else ''}: change the "
            f"pattern"
        )
    if target is not None and target in names:
        raise OptionError(
            f"{raw.name}: the pattern {pattern!r} of {option} matches the target column {target!r}; a rating cannot "
            f"predict itself: narrow the pattern so that it matches scores only"
        )
