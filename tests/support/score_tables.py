"""Small tables of our own with scores and ratings of several systems."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SYSTEMS = ("ant", "bee", "cat", "dog")
DOCUMENTS = ("zoo", "farm", "yard", "wood", "lake", "moor")
LENGTH = 3  # segments by document


def outputs() -> list[dict[str, Any]]:
    """Ratings `mark`, a metric `near` them, one that is `far`, by system, document and number in the document."""
    random = np.random.default_rng(5)
    rows = []
    for place, system in enumerate(SYSTEMS):
        for doc in DOCUMENTS:
            for number in range(1, LENGTH + 1):
                mark = -int(random.integers(0, 4)) - place
                near = round(mark + float(random.normal()), 3)
                rows.append(
                    {"system": system, "doc": doc, "segment": number, "mark": mark, "near": near,
                     "far": round(float(random.normal()), 3)}
                )  # fmt: skip
    return rows


def matrix(column: str) -> np.ndarray:
    """One column of `outputs`, systems by segments."""
    return np.array([row[column] for row in outputs()], dtype=float).reshape(len(SYSTEMS), -1)


def numbered(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows without documents, with the number of the segment in the whole set."""
    changed = []
    for row in rows:
        rest = {name: value for name, value in row.items() if name != "doc"}
        changed.append({**rest, "segment": DOCUMENTS.index(row["doc"]) * LENGTH + row["segment"]})
    return changed


def write(path: Path, rows: Iterable[Mapping[str, Any]], *columns: str) -> Path:
    """Write rows as CSV; all columns by default."""
    rows = list(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns or list(rows[0]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_scores(path: Path, column: str, systems: Iterable[str] = SYSTEMS, **changes: list[str]) -> Path:
    """Write one column as a score file; `changes` are lines by system that replace the numbers."""
    lines = []
    for system in systems:
        numbers = changes.get(system) or [str(row[column]) for row in outputs() if row["system"] == system]
        lines += [f"{system}\t{number}\n" for number in numbers]
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(lines), "utf-8")
    return path
