"""Data in the form in which the caller has them -> a `Table`, with the notes of reading told."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from metricsmith.datasets.table import Table, read_table
from metricsmith.errors import OptionError, nearest

__all__ = ["as_table", "merged_reading"]

notes = logging.getLogger("metricsmith.notes")


def as_table(data: Any, reading: Mapping[str, Any], function: Callable[..., Any]) -> Table:
    """The table itself, or what `read_table` makes of anything else; its notes go to the logger of notes.

    Parameters
    ----------
    data : Table or any source of `read_table`
    reading : mapping
        Options of `read_table`; none for a `Table`, which is read already.
    function : callable
        The public function that got them as ``**reading``, for messages.

    Raises
    ------
    OptionError
        If an option is neither one of `read_table` nor of `function`, or there are any beside a `Table`.
    DataError
        As `read_table` raises it.
    """
    known = {*inspect.signature(read_table).parameters} - {"source"}
    for option in reading:
        if option not in known:
            own = [name for name, one in inspect.signature(function).parameters.items() if one.kind != one.VAR_KEYWORD]
            raise OptionError(
                f"{function.__name__} has no option {option}={reading[option]!r:.60}{nearest(option, [*own, *known])}; "
                f"its own are {', '.join(own)}, those of reading {', '.join(sorted(known))}: correct the name"
            )
    if isinstance(data, Table):
        if reading:
            raise OptionError(
                f"{', '.join(reading)} cannot be given beside a Table, whose columns have their roles already; options "
                "of reading go with a path, a frame or dicts: give them to read_table, or pass the data themselves"
            )
        return data
    table = read_table(data, **reading)
    for note in table.notes:
        notes.warning("%s", note)
    return table


def merged_reading(metrics: Iterable[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The options by which the metrics' training rows were read, where they have any, under those `named` now.

    Raises
    ------
    OptionError
        If two metrics read a role from different columns and none is named.
    """
    merged: dict[str, Any] = {}
    for metric in metrics:
        own = getattr(getattr(metric, "metric", metric), "reading", None)
        for option, value in own.items() if isinstance(own, Mapping) else ():
            if option == "metric_columns":
                merged[option] = [*merged.get(option, []), *value]
            elif option == "usual":
                merged[option] = {**value, **merged.get(option, {})}
            elif option not in named and merged.setdefault(option, value) != value:
                raise OptionError(
                    f"the metrics were induced from other columns: {option} is {merged[option]!r} for one and "
                    f"{value!r} for another; one table is read in one way: name its column with {option}=..."
                )
    return {**merged, **named}
