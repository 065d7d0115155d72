"""Segments as `metricsmith mqm` judged them -> long tables of a judge's score, its runs and what combines them."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from metricsmith.datasets.cells import cell_number, cell_text, value_or
from metricsmith.datasets.long_tables import (
    BY_DOCUMENT,
    BY_POSITION,
    BY_SEGMENT,
    JUDGED,
    LongTable,
    check_metrics,
    judge_name,
    read_metrics,
    table_metrics,
)
from metricsmith.datasets.sources import RawTable, open_source
from metricsmith.errors import DataError, OptionError
from metricsmith.formats import excerpt
from metricsmith.mqm import severity_name
from metricsmith.records import ErrorSpan
from metricsmith.stats.aggregation.runs import RUN_AGGREGATES
from metricsmith.stats.correlation import FloatArray

__all__ = ["join_tables", "judged_metrics", "read_judges"]

RUNS = "runs"


def judged_metrics(path: str | os.PathLike[str], *, each_run: bool = False) -> LongTable:
    """Read a judge's scores of segments, and perhaps its single runs, as metrics.

    Parameters
    ----------
    path : path
        ``segments.jsonl`` of `metricsmith mqm`.
    each_run : bool
        Whether each run is a metric too, ``NAME-run-1`` and so on, and what combines them after the paper's outlier
        rule (`TWO_SIGMA`): ``NAME-rrwa``, ``NAME-mean``, ``NAME-max`` and ``NAME-geo``. Of a judge with one run there
        is its own score alone, which is noted.

    Returns
    -------
    LongTable
        The judge's own score comes first, under its name in the column ``metric`` or else that of the file. NaN for a
        run that failed or was not needed; a segment without a score of the judge (which had too few runs) has its
        runs, and nothing that combines them.

    Raises
    ------
    DataError
        If the file cannot be read, has no judge's scores (or runs), or a cell of them is no number.
    """
    raw = open_source(os.fspath(path))
    needed = [JUDGED, *([RUNS] if each_run else [])]
    raw.require_all(needed, "a judge's scores of segments", "give segments.jsonl of `metricsmith mqm`")
    return _of_judge(raw, table_metrics(raw, [JUDGED]), each_run)


def read_judges(
    scores: Path, added: Sequence[Path] = (), names: Sequence[str] = (), *, but: Collection[str] = (),
    each_run: bool = False,
) -> list[LongTable]:  # fmt: skip
    """Read the scores of metrics as `read_metrics` does, and judges' own files beside them.

    Parameters
    ----------
    scores : path
    added : sequence of path
        Further files of the same kinds.
    names, but
        As for `read_metrics`; with several files or runs all metrics are read, and names are for `join_tables`.
    each_run : bool
        As for `judged_metrics`, for each file that has runs.

    Returns
    -------
    list of LongTable
        By file, no name of a metric twice: where two files have one name, that of the folder stands before it. Files
        with errors in the translations have them as `LongTable.spans`.

    Raises
    ------
    DataError
        As `read_metrics` and `judged_metrics`; also if folders do not tell names apart.
    OptionError
        If one file has no metric of a name, or `each_run` is given and no file has runs.
    """
    several, tables, repeated = bool(added) or each_run, [], False
    for path in (scores, *added):
        if path.is_dir() or path.name.endswith(".score"):
            tables.append(read_metrics(path, () if several else names))
            continue
        raw = open_source(path)
        table = table_metrics(raw, () if several else names, but=but)
        judged = {JUDGED, RUNS} <= raw.columns.keys()
        repeated = repeated or judged
        if several and judged:
            own = _of_judge(raw, table_metrics(raw, [JUDGED]), each_run)
            own.columns.update(
                (name, cells) for name, cells in table.columns.items() if name not in {JUDGED, *own.columns}
            )
            table = own
        elif judged:
            table = _with_errors(table, raw)
        tables.append(table)
    if each_run and not repeated:
        raise OptionError(
            f"each_run=True (--each-run) is for a judge's own file, and {scores} is none: give segments.jsonl of "
            f"`metricsmith mqm`, or leave it out"
        )
    return _told_apart(tables)


def join_tables(tables: Sequence[LongTable], names: Sequence[str] = ()) -> LongTable:
    """One table of several, with the metrics of all, or those named, and one row by output.

    Systems that one of them lacks are left out, which is noted; an output that one of them lacks has a gap there. Two
    rows of an output in one table stay two.

    Raises
    ------
    DataError
        If segments are labelled in ways that have nothing in common.
    OptionError
        If there is no metric of a name.
    """
    known = [name for table in tables for name in table.columns]
    check_metrics(names, known, "the files with scores")
    wanted = list(names) or known
    if len(tables) == 1:
        return replace(tables[0], columns={name: tables[0].columns[name] for name in wanted})
    kinds = [kind for kind in tables[0].segments if all(kind in table.segments for table in tables)]
    if not kinds:
        seen = "; ".join(f"{table.name}: by {', '.join(table.segments) or 'nothing'}" for table in tables)
        raise DataError(
            f"files with scores label segments differently ({seen}): give tables that have the same columns of "
            f"documents and segments"
        )
    kind = max(kinds, key=[BY_SEGMENT, BY_DOCUMENT].index) if BY_POSITION not in kinds else BY_POSITION
    shared = set.intersection(*(set(table.systems) for table in tables))
    rows: dict[tuple[str, str, int], tuple[LongTable, int]] = {}
    places: list[list[tuple[str, str, int]]] = []
    for table in tables:
        seen_here: Counter[tuple[str, str]] = Counter()
        places.append([])
        for index, output in enumerate(zip(table.systems, table.segments[kind], strict=True)):
            key = (*output, seen_here[output])
            seen_here[output] += 1
            places[-1].append(key)
            if output[0] in shared:
                rows.setdefault(key, (table, index))
    order = {key: place for place, key in enumerate(rows)}
    columns = {name: np.full(len(rows), math.nan) for name in wanted}
    for table, keys in zip(tables, places, strict=True):
        own = [index for index, key in enumerate(keys) if key in order]
        at = [order[keys[index]] for index in own]
        for name in columns.keys() & table.columns.keys():
            columns[name][at] = table.columns[name][own]
    lacking = sorted({system for table in tables for system in table.systems} - shared)
    notes = [f"systems left out, without scores in each file: {', '.join(lacking)}"] if lacking else []
    first = list(rows.values())
    return LongTable(
        ", ".join(table.name for table in tables), tables[0].checksum, columns,
        tuple(table.systems[index] for table, index in first),
        {one: tuple(table.segments[one][index] for table, index in first) for one in kinds},
        tuple(table.documents[index] for table, index in first), tuple(table.raters[index] for table, index in first),
        tuple(table.places[index] for table, index in first),
        tuple(dict.fromkeys([*(note for table in tables for note in table.notes), *notes])),
    )  # fmt: skip


def _of_judge(raw: RawTable, table: LongTable, each_run: bool) -> LongTable:
    """The table of one column `JUDGED` under the judge's name, with its errors, perhaps with its runs."""
    name, own = judge_name(raw), table.columns[JUDGED]
    table = _with_errors(replace(table, columns={name: own}), raw)
    if not each_run:
        return table
    runs = _runs_of(raw)
    if runs.shape[1] < 2:
        return replace(table, notes=(*table.notes, f"{name} has one run, so there is nothing to tell apart"))
    columns = {f"{name}-run-{place}": scores for place, scores in enumerate(runs.T, 1)}
    enough = np.where(np.isnan(own)[:, None], math.nan, runs)
    known, notes = dict(RUN_AGGREGATES), table.notes
    if np.nanmin(runs, initial=0.0) < 0 < np.nanmax(runs, initial=0.0):
        del known["geo"]
        notes = (*notes, f"{name} has numbers on both sides of zero, which have no geometric mean")
    columns |= {f"{name}-{label}": np.asarray(combine(enough)) for label, combine in known.items()}
    return replace(table, columns={**table.columns, **columns}, notes=notes)


def _with_errors(table: LongTable, raw: RawTable) -> LongTable:
    """The table with the translations, and the errors marked in them, where the file has both."""
    if not {"errors", "translation"} <= raw.columns.keys():
        return table
    scored = zip(raw.columns["errors"], table.columns[next(iter(table.columns))], strict=True)
    spans = tuple(
        None if math.isnan(score) else _errors(cell, raw.place(place, "errors"))
        for place, (cell, score) in enumerate(scored)
    )
    return replace(table, texts=tuple(map(cell_text, raw.columns["translation"])), spans=spans)


def _errors(cell: Any, place: str) -> tuple[ErrorSpan, ...]:
    known = {field.name for field in fields(ErrorSpan)}
    try:
        return tuple(
            ErrorSpan(
                **{name: value for name, value in error.items() if name in known}
                | {"severity": severity_name(error["severity"])}
            )
            for error in cell
        )
    except (AttributeError, TypeError, KeyError, DataError) as problem:
        raise DataError(
            f"{place}: errors are a list of objects with severity, start, end, text and side, seen "
            f"{excerpt(repr(cell), 60)}: give the file as `metricsmith mqm` wrote it"
        ) from problem


def _told_apart(tables: Sequence[LongTable]) -> list[LongTable]:
    """The tables, with the name of its folder before each metric of a file that has a name of another one."""
    times = Counter(name for table in tables for name in table.columns)
    named = [
        replace(
            table,
            columns={
                f"{Path(table.name).resolve().parent.name}-{name}": cells for name, cells in table.columns.items()
            },
        )
        if any(times[name] > 1 for name in table.columns)
        else table
        for table in tables
    ]
    again = Counter(name for table in named for name in table.columns)
    name = next((name for name, number in again.items() if number > 1), None)
    if name is not None:
        both = " and ".join(table.name for table in named if name in table.columns)
        raise DataError(
            f"two metrics are called {name!r}, in {both}: name one of the files once, and give files of different "
            f"judges in folders of different names"
        )
    return named


def _runs_of(raw: RawTable) -> FloatArray:
    """The runs of each row, shape (n, runs); NaN for one that failed, was not needed or never was."""
    rows = [_numbers(cell, raw.place(place, RUNS)) for place, cell in enumerate(raw.columns[RUNS])]
    runs = np.full((len(rows), max(map(len, rows))), math.nan)
    for row, numbers in zip(runs, rows, strict=True):
        row[: len(numbers)] = numbers
    return runs


def _numbers(cell: Any, place: str) -> list[float]:
    if isinstance(cell, list):
        numbers = [math.nan if number is None else value_or(cell_number, number, math.inf) for number in cell]
        if not any(map(math.isinf, numbers)):
            return numbers
    raise DataError(
        f"{place}: runs are a list of numbers, null where one failed, seen {excerpt(repr(cell), 60)}: give the file as "
        f"`metricsmith mqm` wrote it"
    )
