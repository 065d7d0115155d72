"""The rows to judge, out of data in any form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import dspy

from metricsmith.datasets.given import as_table, merged_reading
from metricsmith.datasets.table import Table
from metricsmith.errors import OptionError

__all__ = ["given_rows", "checked_rows"]


def given_rows(
    data: Any, metrics: Sequence[Any], reading: Mapping[str, Any], function: Callable[..., Any]
) -> list[dspy.Example]:
    """The rows of `data`: rows as they are, unless options of reading are given; anything else by `read_table`.

    Parameters
    ----------
    data : rows, Table or any source of `read_table`
        An empty list is no rows.
    metrics : sequence
        Induced metrics among them read new data as their training rows were read.
    reading : mapping
        Options of `read_table`, which go before those of the metrics.
    function : callable
        The public function that got them, for messages.

    Raises
    ------
    OptionError
        If it is one row, rows are mixed with something else, or an option is unknown or fits no other.
    DataError
        As `read_table` raises it.
    """
    if not reading and isinstance(data, Table):
        return data.rows
    if isinstance(data, dspy.Example):
        return checked_rows(data)
    shaped = isinstance(data, str | PathLike | Mapping | Table) or hasattr(data, "to_pandas") or hasattr(data, "iloc")
    if not shaped and isinstance(data, Iterable):
        given = data if isinstance(data, list | tuple) else list(data)
        if not given or any(isinstance(row, dspy.Example) for row in given):
            rows = checked_rows(given)
            if not reading:
                return rows
            data = rows
    named = reading if isinstance(data, Table) else {"require_target": False, **merged_reading(metrics, reading)}
    return as_table(data, named, function).rows


def checked_rows(rows: Any) -> list[dspy.Example]:
    """The rows as a list.

    Raises
    ------
    OptionError
        If it is one row, or holds something else.
    """
    if isinstance(rows, dspy.Example | str) or not isinstance(rows, Iterable):
        raise OptionError(f"rows must be a list, not one {type(rows).__name__}: write [row]")
    given = list(rows)
    stranger = next((row for row in given if not isinstance(row, dspy.Example)), None)
    if stranger is not None:
        raise OptionError(f"{stranger!r} is no row; make one with metricsmith.metric.make_row(output, input=...)")
    return given
