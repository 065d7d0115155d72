"""The same methods on several data sets as data: a finished comparison of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metricsmith.formats import jsonable
from metricsmith.records import Usage
from metricsmith.report.comparison.record import Comparison, MethodResult
from metricsmith.report.notebook import NotebookRecord

__all__ = ["Comparisons"]

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Comparisons(NotebookRecord):
    """Methods side by side on several data sets.

    Parameters
    ----------
    sets : mapping of str to Comparison
        By the name of the data set, in the order of the table's columns; all have the same methods.
    signature : str
    usage : Usage
    warnings : tuple of str
        Those of all comparisons.
    title : str
    """

    sets: Mapping[str, Comparison]
    signature: str
    usage: Usage
    warnings: tuple[str, ...] = ()
    title: str = "Methods on several data sets"

    @classmethod
    def of(cls, sets: Mapping[str, Comparison]) -> Comparisons:
        """The comparisons together."""
        return cls(
            dict(sets),
            "\n".join(f"{name}: {one.signature}" for name, one in sets.items()),
            sum((one.usage for one in sets.values()), Usage()),
            tuple(f"{name}: {line}" for name, one in sets.items() for line in one.warnings),
        )

    @property
    def methods(self) -> dict[str, list[MethodResult]]:
        """By its label, the lines of a method, one for each data set."""
        first = next(iter(self.sets.values()))
        return {line.label: [one.method(line.key) for one in self.sets.values()] for line in first.methods}

    def as_dict(self) -> dict[str, Any]:
        """The content of ``comparisons.json``: JSON-ready, NaN as None."""
        sets = {name: one.as_dict() for name, one in self.sets.items()}
        return dict(jsonable({"schema_version": SCHEMA_VERSION, "title": self.title, "sets": sets}))
