"""Score files as mt-metrics-eval reads them: one line for each system and segment, in the order of the segments."""

from __future__ import annotations

import io
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.datasets.formats import decode
from metricsmith.datasets.sources import read_bytes
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.stats.correlation import FloatArray

__all__ = [
    "by_system", "check_free", "check_name", "check_scores", "check_sizes", "gold_name", "numbered", "pivot",
    "read_documents", "read_lines", "read_scores", "write_scores",
]  # fmt: skip

GREATEST = 1e100  # squares of scores are added up


def read_scores(
    path: str | os.PathLike[str],
    *,
    length: int | None = None,
    systems: Sequence[str] | Mapping[str, Any] = (),
    gaps: bool = True,
) -> dict[str, FloatArray]:
    """Read a score file by segment, document or system.

    Parameters
    ----------
    path : path
        Lines of system and score, separated by white space; the lines of one system follow the order of the segments.
    length : int, optional
        How many scores each system must have; by default as many as the first has.
    systems : sequence or mapping of str
        Which systems are known; by default any are.
    gaps : bool
        Whether None is allowed, as it is in people's scores.

    Returns
    -------
    dict of str to float array, shape (n,)
        In the order of the file; NaN where the file says None.

    Raises
    ------
    DataError
        If the file is absent, empty or not UTF-8, a line has another form, a score is no finite number, the counts
        differ or a system is unknown.
    """
    path = Path(path)
    columns: dict[str, list[float]] = {}
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split()
        if len(cells) != 2:
            raise DataError(
                f"{path}, line {number}: {len(cells)} fields, seen {line[:40]!r}; a system and a score are needed "
                f"(files by domain are not read): correct the line"
            )
        try:
            score = math.nan if cells[1] == "None" else float(cells[1])
        except ValueError:
            score = math.inf
        if not math.isfinite(score) and cells[1] != "None":
            raise DataError(
                f"{path}, line {number}: the score {cells[1]!r} is no finite number; allowed are numbers and None: "
                f"correct it"
            )
        if score != score and not gaps:
            raise DataError(
                f"{path}, line {number}: the score is None; only people's scores may have gaps: score it again"
            )
        if cells[0] not in columns:
            _check_known(f"{path}, line {number}", cells[0], systems)
            columns[cells[0]] = []
        columns[cells[0]].append(score)
    if not columns:
        raise DataError(f"{path} is empty; lines of system and score are needed: check the file")
    scores = {system: np.array(values, dtype=float) for system, values in columns.items()}
    check_scores(str(path), scores, length or len(next(iter(columns.values()))), systems)
    return scores


def write_scores(path: str | os.PathLike[str], scores: Mapping[str, ArrayLike], *, overwrite: bool = False) -> None:
    """Write a score file, folders included; what is read back is equal to the last bit.

    Parameters
    ----------
    path : path
    scores : mapping of str to array_like, shape (n,)
        By system. NaN becomes None, which the tool takes in people's scores only: `EvalSet.write_metric` refuses it.
    overwrite : bool
        Whether a file that exists may be replaced.

    Raises
    ------
    DataError
        If there is no score, the counts differ, a score is infinite, or the file exists and `overwrite` is False.
    OptionError
        If a system's name has white space in it.
    """
    path = Path(path)
    arrays = {system: np.atleast_1d(np.asarray(values, dtype=float)) for system, values in scores.items()}
    if not any(values.size for values in arrays.values()):
        raise DataError(f"{path}: there is no score to write; give at least one system with scores")
    check_scores(str(path), arrays, len(next(iter(arrays.values()))), ())
    for system, values in arrays.items():
        check_name(system)
        if np.isinf(values).any():
            raise DataError(f"{path}, system {system!r}: an infinite score; allowed are finite numbers and NaN")
    check_free(path, overwrite)
    lines = [
        f"{system}\t{'None' if math.isnan(value) else repr(value)}\n"
        for system, values in arrays.items()
        for value in values.tolist()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def by_system(
    rows: Sequence[Mapping[str, Any]], values: Sequence[float | None] | FloatArray, segments: Sequence[str]
) -> dict[str, FloatArray]:
    """Numbers of rows as one array for each system, as a score file holds them.

    Several numbers of one segment, such as those of several raters, become their mean.

    Parameters
    ----------
    rows : sequence of mapping, length n
        Their ``system`` and ``group`` say where a number belongs.
    values : sequence of float or None, shape (n,)
        NaN and None are missing and left out of means.
    segments : sequence of str, length k
        Groups in the order of the test set, as in `EvalSet.segments`.

    Returns
    -------
    dict of str to float array, shape (k,)
        NaN where a system has no number.

    Raises
    ------
    DataError
        If rows and values differ in number, or a row's group is none of `segments`.
    """
    if len(rows) != len(values):
        raise DataError(f"{len(values)} values for {len(rows)} rows: give one by row, NaN where there is none")
    groups, names = ([str(row[label]) for row in rows] for label in ("group", "system"))
    order = dict.fromkeys(segments)
    for group in groups:
        if group not in order:
            raise DataError(
                f"the segment {group!r} is not in the test set{nearest(group, order)}: give rows of this test set, or "
                f"its segments"
            )
    systems = list(dict.fromkeys(names))
    return dict(zip(systems, pivot(names, groups, values, systems, order), strict=True))


def pivot(
    systems: Sequence[str],
    segments: Sequence[str],
    values: Sequence[float | None] | FloatArray,
    of_systems: Iterable[str],
    of_segments: Iterable[str],
) -> FloatArray:
    """Lay a long table out as a matrix, systems by segments.

    Parameters
    ----------
    systems, segments : sequence of str, length n
        The place of each number.
    values : sequence of float or None, shape (n,)
        NaN and None are missing.
    of_systems, of_segments : iterable of str, lengths k and m
        The rows and columns of the matrix, in order, without repetition. Numbers of others are left out.

    Returns
    -------
    float array, shape (k, m)
        The mean of the numbers of each cell, NaN where there is none.
    """
    row_of, column_of = ({name: place for place, name in enumerate(names)} for names in (of_systems, of_segments))
    cells: dict[tuple[int, int], list[float]] = {}
    for system, segment, value in zip(systems, segments, values, strict=True):
        if value is not None and not math.isnan(value) and system in row_of and segment in column_of:
            cells.setdefault((row_of[system], column_of[segment]), []).append(float(value))
    matrix = np.full((len(row_of), len(column_of)), math.nan)
    for place, numbers in cells.items():
        matrix[place] = math.fsum(numbers) / len(numbers)
    return matrix


def gold_name(path: Path) -> str:
    """The NAME of a file of people's scores called ``SRC-TGT.NAME.LEVEL.score`` or ``.rating``.

    The pair runs to the first dot, the level is the last part but one, and NAME may hold dots and dashes. A file that
    is called otherwise has its name without the last two parts.

    Examples
    --------
    >>> [gold_name(Path(name)) for name in ("en-de.da-sqm.seg.score", "en-de.mqm.rater1.seg.rating", "gold.seg.score")]
    ['da-sqm', 'mqm.rater1', 'gold']
    """
    parts = path.name.split(".")[:-2]
    return ".".join(parts[1:] if len(parts) > 1 and "-" in parts[0] else parts)


def read_lines(path: Path, count: int | None = None) -> tuple[str, ...]:
    """Lines of a text file as the tool sees them: every kind of line end, white space at the end removed.

    Raises
    ------
    DataError
        If the file is absent or not UTF-8, or has another number of lines than `count`.
    """
    lines = tuple(line.rstrip() for line in io.StringIO(decode(path, read_bytes(path)), newline=None))
    if count is not None and len(lines) != count:
        raise DataError(
            f"{path} has {len(lines)} lines, the source has {count}; line i of every file belongs to segment i: "
            f"restore the missing lines, blank where there is no text"
        )
    return lines


def read_documents(path: Path, count: int) -> tuple[str, ...]:
    """The document of each of `count` segments, from lines of a domain, perhaps, and a document; empty if blank.

    What follows the last white space counts, unless two different lines would then name one document.

    Raises
    ------
    DataError
        As `read_lines`.
    """
    lines = [line.split() for line in read_lines(path, count)]
    whole, last = ([" ".join(words[start:]) for words in lines] for start in (0, -1))
    return tuple(last if len(set(last)) == len(set(whole)) else whole)


def numbered(documents: Iterable[str]) -> list[tuple[str, int]]:
    """The document of each segment, and the segment's number in it, from 1."""
    seen: Counter[str] = Counter()
    places = []
    for document in documents:
        seen[document] += 1
        places.append((document, seen[document]))
    return places


def check_scores(
    what: str, scores: Mapping[str, FloatArray], length: int, systems: Sequence[str] | Mapping[str, Any]
) -> None:
    """Refuse systems that are unknown (where any are known) and arrays of another length, with a `DataError`."""
    for system, values in scores.items():
        _check_known(what, system, systems)
        if values.shape != (length,):
            raise DataError(
                f"{what}: system {system!r} has {values.size} scores, {length} are needed: one for each segment "
                f"(document, system), in order and of shape ({length},)"
            )


def check_sizes(what: str, scores: Mapping[str, FloatArray]) -> None:
    """Refuse, with a `DataError`, scores whose squares cannot be added up."""
    for system, values in scores.items():
        if (np.abs(values) > GREATEST).any():
            raise DataError(f"{what}: system {system!r} has a score beyond {GREATEST:g}: correct it")


def _check_known(what: str, system: str, systems: Sequence[str] | Mapping[str, Any]) -> None:
    if systems and system not in systems:
        raise DataError(
            f"{what}: no system {system!r}{nearest(system, systems)}; the test set has {', '.join(systems)[:200]}: "
            f"correct the name, or leave it out"
        )


def check_name(name: str) -> None:
    """Refuse, with an `OptionError`, a text that cannot be the name of a system or metric."""
    if not name or any(char.isspace() or char == "/" for char in name):
        raise OptionError(f"the name {name!r} cannot stand in a score file: no white space or slashes, and not empty")


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse a path that is taken, with a `DataError`, unless it may be replaced."""
    if path.exists() and not overwrite:
        raise DataError(f"{path} exists; it may hold somebody's scores: choose another name, or pass overwrite=True")
