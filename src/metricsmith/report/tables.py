"""The machine-readable half of a report: ``report.json`` and ``scores.csv``."""

from __future__ import annotations

import io
import json
import math

from metricsmith.report.record import RunRecord
from metricsmith.spreadsheets import write_table

__all__ = ["ROW_COLUMNS", "render_json", "render_scores"]

ROW_COLUMNS = ("id", "group", "split", "rating", "prediction")


def render_json(record: RunRecord) -> str:
    """`RunRecord.as_dict` as indented JSON that every parser reads: no NaN, keys in the record's order."""
    return json.dumps(record.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render_scores(record: RunRecord, *, raw_csv: bool = False) -> str:
    """One line per row: `ROW_COLUMNS`, then every component's raw number.

    ``split`` is ``train``, ``test``, ``unrated`` or, where a cross-validation held the row out and predicted it, the
    number of that fold (``fold 1``). Numbers have full precision; a missing or undefined one is an empty cell. A
    component that bears the name of a leading column gets `` (component)`` behind it. Texts that a spreadsheet would
    run are marked as `metricsmith.spreadsheets.write_table` says, unless `raw_csv`.
    """
    names = [component.name for component in record.components]
    header = [*ROW_COLUMNS, *(f"{name} (component)" if name in ROW_COLUMNS else name for name in names)]
    rows = [
        (
            row.id,
            row.group,
            f"fold {row.fold}" if row.fold else row.split,
            *map(_cell, (row.rating, row.prediction, *(row.values.get(n) for n in names))),
        )
        for row in record.data
    ]
    stream = io.StringIO()
    write_table(stream, header, lambda: rows, raw=raw_csv)
    return stream.getvalue()


def _cell(value: float | None) -> str | None:
    if value is None or not math.isfinite(value):
        return None
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
