"""A small table of rated rows with two columns of scores, `good` and `junk`."""

from __future__ import annotations

from typing import Any

import dspy
import pandas as pd

from metricsmith.datasets.table import Table, read_table
from planted import TASK, planted_rows

__all__ = ["as_table", "rated_table"]


def rated_table(sources: int = 20, task: str = TASK.description, versions: int = 3, **changes: Any) -> Table:
    rows = planted_rows(sources=sources, versions=versions)
    frame = pd.DataFrame(
        {
            "id": [row.id for row in rows],
            "group": [row.group for row in rows],
            "input": [row.input for row in rows],
            "output": [row.output for row in rows],
            "reference": [row.references[0] for row in rows],
            "rating": [row["rating"] for row in rows],
            "good": [row["columns"]["good"] for row in rows],
            "junk": [row["columns"]["junk"] for row in rows],
        }
    )
    options = {"target": "rating", "scale": "1:5", "metric_columns": ["good", "junk"], **changes}
    return read_table(frame, task=task, **options)


def as_table(rows: list[dspy.Example], **changes: Any) -> Table:
    """The texts and ratings of these rows as a table without scores."""
    frame = pd.DataFrame(
        {
            "id": [row.id for row in rows],
            "group": [row.group for row in rows],
            "input": [row.input for row in rows],
            "output": [row.output for row in rows],
            "reference": [(row.get("references") or [None])[0] for row in rows],
            "rating": [row.get("rating") for row in rows],
        }
    )
    options = {"target": "rating", "scale": "1:5", **changes}
    return read_table(frame, task=TASK.description, **options)
