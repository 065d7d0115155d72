"""The machine-readable half of a report: ``report.json`` and ``scores.csv``."""

from __future__ import annotations

import csv
import io
import json
import math

from metricsmith.report.record import RunRecord

__all__ = ["ROW_COLUMNS", "render_json", "render_scores"]

ROW_COLUMNS = ("id", "group", "split", "rating", "prediction")


def render_json(record: RunRecord) -> str:
    """`RunRecord.as_dict` as indented JSON that every parser reads: no NaN, keys in the record's order."""
    return json.dumps(record.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render_scores(record: RunRecord) -> str:
    """One line per row: `ROW_COLUMNS`, then every component's raw number.

    Numbers have full precision; a missing or undefined one is an empty cell. A component that bears the
    name of a leading column gets `` (component)`` behind it.
    """
    names = [component.name for component in record.components]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*ROW_COLUMNS, *(f"{name} (component)" if name in ROW_COLUMNS else name for name in names)])
    for row in record.data:
        numbers = [row.rating, row.prediction, *(row.values.get(name) for name in names)]
        writer.writerow([row.id, row.group, row.split, *map(_cell, numbers)])
    return stream.getvalue()


def _cell(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return ""
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
