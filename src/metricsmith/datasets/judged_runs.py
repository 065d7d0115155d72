"""What `metricsmith mqm` wrote on each segment -> long tables of a judge's score, its runs and what combines them."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np

from metricsmith.datasets.cells import cell_number, value_or
from metricsmith.datasets.long_tables import JUDGED, LongTable, judge_name, table_metrics
from metricsmith.datasets.sources import RawTable, open_source
from metricsmith.errors import DataError
from metricsmith.formats import excerpt
from metricsmith.stats.aggregation.runs import geometric, maximum, mean, rrwa
from metricsmith.stats.correlation import FloatArray

__all__ = ["RUN_AGGREGATES", "judged_metrics", "runs_of"]

RUNS = "runs"
RUN_AGGREGATES = {"rrwa": rrwa, "mean": mean, "max": maximum, "geo": geometric}
"""The rows of GEMBA-MQM V2, Table 1, by their names there; each leaves outlying runs out."""


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
    table, name = table_metrics(raw, [JUDGED]), judge_name(raw)
    own = table.columns[JUDGED]
    table = replace(table, columns={name: own})
    if not each_run:
        return table
    runs = runs_of(raw)
    if runs.shape[1] < 2:
        return replace(table, notes=(*table.notes, f"{name} has one run, so there is nothing to tell apart"))
    columns = {f"{name}-run-{place}": scores for place, scores in enumerate(runs.T, 1)}
    enough = np.where(np.isnan(own)[:, None], math.nan, runs)
    columns |= {f"{name}-{label}": np.asarray(combine(enough)) for label, combine in RUN_AGGREGATES.items()}
    return replace(table, columns={**table.columns, **columns})


def runs_of(raw: RawTable) -> FloatArray:
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
