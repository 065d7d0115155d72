"""Files with the scores of metrics -> long tables; of a judge's own file its runs and the errors it marked, too."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from metricsmith.datasets.cells import cell_number, cell_text, value_or
from metricsmith.datasets.labelled_scores import LongTable
from metricsmith.datasets.long_tables import JUDGED, RUNS, judge_name, score_file_metrics, table_metrics
from metricsmith.datasets.sources import RawTable, open_source
from metricsmith.errors import DataError, OptionError
from metricsmith.formats import excerpt
from metricsmith.mqm import severity_name
from metricsmith.records import ErrorSpan
from metricsmith.stats.aggregation.runs import RUN_AGGREGATES
from metricsmith.stats.correlation import FloatArray

__all__ = ["read_metrics", "distinct_metrics"]


def read_metrics(
    paths: Sequence[Path], names: Sequence[str] = (), *, but: Collection[str] = (), each_run: bool = False
) -> list[LongTable]:
    """Read the scores of metrics from tables, score files or folders of score files.

    Parameters
    ----------
    paths : sequence of path
        A table has columns of systems, segments (`ROLES`) and numbers; a score file ends in ``.seg.score``.
    names : sequence of str
        Which metrics; by default, or of several files, or with runs, all. In a table these are the columns of numbers
        that are no labels; by default that is ``raw`` in a judge's own file, under the judge's name (its column
        ``metric``), or the file's.
    but : collection of str
        Columns that are no metrics.
    each_run : bool
        Whether each run of a judge is a metric too, ``NAME-run-1`` and so on, and what combines them after the paper's
        outlier rule (`TWO_SIGMA`): ``NAME-rrwa``, ``NAME-mean``, ``NAME-max`` and ``NAME-geo``. Of a judge with one run
        there is its own score alone, which is noted.

    Returns
    -------
    list of LongTable
        By file; of ``segments.jsonl`` of `metricsmith mqm` the judge's own score comes first. NaN for a run that failed
        or was not needed; a segment without a score of the judge (which had too few runs) has its runs, and nothing
        that combines them. `LongTable.spans` are the errors that the judge marked, if it marks any.

    Raises
    ------
    DataError
        If something cannot be read, a label is blank, a metric's cell or a run is text, errors have another form, or
        there is no metric.
    OptionError
        If a file has no metric of a name, or `each_run` is given and no file has runs.
    """
    wanted = () if each_run or len(paths) > 1 else names
    tables, repeated = [], False
    for path in paths:
        if path.is_dir() or path.name.endswith(".score"):
            tables.append(score_file_metrics(path, wanted))
            continue
        raw = open_source(path)
        table = table_metrics(raw, wanted, but=but)
        if {JUDGED, RUNS} <= raw.columns.keys() - {*but}:
            repeated, table = True, _with_errors(table, raw)
            table = _with_runs(table, raw) if each_run else table
        tables.append(table)
    if each_run and not repeated:
        raise OptionError(
            f"each_run=True (--each-run) is for a judge's own file, and {paths[0]} is none: give segments.jsonl of "
            f"`metricsmith mqm`, or leave it out"
        )
    return tables


def _with_runs(table: LongTable, raw: RawTable) -> LongTable:
    """The table of a judge with its runs."""
    name, runs = judge_name(raw), _runs_of(raw)
    if runs.shape[1] < 2:
        return replace(table, notes=(*table.notes, f"{name} has one run, so there is nothing to tell apart"))
    columns = {f"{name}-run-{place}": scores for place, scores in enumerate(runs.T, 1)}
    enough = np.where(np.isnan(table.columns[name])[:, None], math.nan, runs)
    known, notes = dict(RUN_AGGREGATES), table.notes
    if np.nanmin(runs, initial=0.0) < 0 < np.nanmax(runs, initial=0.0):
        del known["geo"]
        notes = (*notes, f"{name} has numbers on both sides of zero, which have no geometric mean")
    columns |= {f"{name}-{label}": np.asarray(combine(enough)) for label, combine in known.items()}
    return replace(table, columns=table.columns | columns, notes=notes)


def _with_errors(table: LongTable, raw: RawTable) -> LongTable:
    """The table with the translations and the errors marked in them, as far as the file has them; null is no mark."""
    if "translation" not in raw.columns:
        return table
    table = replace(table, texts=tuple(map(cell_text, raw.columns["translation"])))
    marked = raw.columns.get("errors", ())
    if all(cell is None for cell in marked):
        return table
    scored = zip(marked, table.columns[next(iter(table.columns))], strict=True)
    spans = tuple(
        None if math.isnan(score) else _errors(cell, raw.place(place, "errors"))
        for place, (cell, score) in enumerate(scored)
    )
    return replace(table, spans=spans)


def _errors(cell: Any, place: str) -> tuple[ErrorSpan, ...]:
    names = [field.name for field in fields(ErrorSpan)]
    try:
        given = [{name: error[name] for name in names if name in error} for error in cell]
        return tuple(ErrorSpan(**one | {"severity": severity_name(one["severity"])}) for one in given)
    except (AttributeError, TypeError, KeyError, DataError) as problem:
        raise DataError(
            f"{place}: errors are a list of objects with severity, start, end, text and side, seen "
            f"{excerpt(repr(cell), 60)}: give the file as `metricsmith mqm` wrote it"
        ) from problem


def distinct_metrics(tables: Sequence[LongTable]) -> list[LongTable]:
    """The tables, with the name of its folder before each metric of a file that has a name of another one.

    Raises
    ------
    DataError
        If folders do not tell them apart.
    """
    times = Counter(name for table in tables for name in table.columns)
    named = []
    for table in tables:
        if any(times[name] > 1 for name in table.columns):
            folder = Path(table.name).resolve().parent.name
            table = replace(table, columns={f"{folder}-{name}": cells for name, cells in table.columns.items()})
        named.append(table)
    for name, number in Counter(name for table in named for name in table.columns).items():
        if number > 1:
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
