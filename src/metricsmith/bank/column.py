"""A metric that somebody else computed, read from a score column of the table.

People arrive with the scores of their own evaluators. A row built by the table reader carries them under
``columns``, so that such a score can stand beside bank metrics and judges among the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.metric import content_hash
from metricsmith.records import Judgement, MetricCard, Output, Status
from metricsmith.reward import DSPyCallable

__all__ = ["ColumnMetric", "column_numbers"]

_NUMBERS = frozenset({int, float, bool, type(None)})


@dataclass(frozen=True)
class ColumnMetric(DSPyCallable):
    """Reads ``row.columns[name]``.

    Parameters
    ----------
    name : str
        The column's name.
    """

    name: str
    storable: ClassVar[bool] = False  # the number is in the row: one that was stored could only be out of date

    @property
    def output(self) -> Output:
        """A number of unknown range; 0 scores .5."""
        return Output(self.name, low=None, high=None, half=1.0, description="brought along by the data")

    @property
    def card(self) -> MetricCard:
        """A card with all that is known: the name."""
        return MetricCard(
            name=self.name,
            kind="column",
            summary=f"The number that the data bring along in the column {self.name!r}.",
            formula="Whatever computed the column.",
            outputs=(self.output,),
            limits=("New rows must bring the column too; its range and direction are not known beforehand",),
            backend="the caller",
            backend_license="unknown",
        )

    def fingerprint(self) -> str:
        """A hash of the name."""
        return content_hash("column", self.name)

    def to_state(self) -> dict[str, str]:
        """The column's name."""
        return {"kind": "column", "name": self.name}

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Read the column; a row without a finite number is ``skipped``."""
        judgements = []
        for row in rows:
            cell = (row.get("columns") or {}).get(self.name)
            if isinstance(cell, int | float) and math.isfinite(cell):
                judgements.append(Judgement(self.name, float(cell), self.output.score(float(cell)), run=run))
            else:
                error = f"no number in column {self.name!r}"
                judgements.append(Judgement(self.name, status=Status.SKIPPED, error=error, run=run))
        return judgements


def column_numbers(cells: Sequence[Mapping[str, Any]], names: Sequence[str]) -> NDArray[np.float64]:
    """The named columns of rows whose ``columns`` are given, shape (m, n): NaN where there is no number."""
    table = [[own.get(name) for name in names] for own in cells]
    if not set().union(*(map(type, row) for row in table)) <= _NUMBERS:
        table = [[cell if isinstance(cell, int | float) else None for cell in row] for row in table]
    return np.array(table, dtype=float).reshape(len(cells), len(names)).T
