"""A small table of rated rows with two columns of scores, `good` and `junk`."""

from __future__ import annotations

from typing import Any

import pandas as pd

from metricsmith.datasets.table import Table, read_table
from planted import TASK, planted_rows

__all__ = ["rated_table"]


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
