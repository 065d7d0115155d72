"""Scored rows as data: each with its texts, a metric's value, and what every component adds to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metricsmith.records import Judgement, Scale, Status

if TYPE_CHECKING:
    from metricsmith.metric import Explanation, Part

__all__ = ["OWN_COLUMNS", "ScoredRow", "ScoredRows"]

OWN_COLUMNS = ("id", "prediction", "score", "status", "missing", "error", "intercept", "reason")


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """One row with a metric's value taken apart.

    Parameters
    ----------
    id : str
    cells : mapping of str to str
        Texts of the row's table that are kept beside its scores, by column.
    prediction : Judgement or None
        The metric's value; None where several metrics stand beside each other, each of them a part.
    intercept : float
        Rating points of a row that is average in every component; ``intercept + contributions = prediction``.
    parts : tuple of Part
        The components; empty for a metric that has none. Of metrics that stand beside each other weight, contribution
        and cost are NaN.
    """

    id: str
    cells: Mapping[str, str]
    prediction: Judgement | None
    intercept: float
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, row_id: str, cells: Mapping[str, str], explanation: Explanation) -> ScoredRow:
        """The row with the explanation of its value."""
        return cls(row_id, cells, explanation.prediction, explanation.intercept, explanation.parts)

    @property
    def missing(self) -> list[Part]:
        """The components without a value."""
        return [part for part in self.parts if not part.judgement.ok]

    @property
    def error(self) -> str:
        """Why there is no value, or which components are missing in it."""
        said = "; ".join(f"{part.name}: {part.judgement.error}" for part in self.missing)
        return (self.prediction.error if self.prediction else "") or said

    def line(self, *, details: bool = False) -> dict[str, Any]:
        """The row as cells of a table: numbers, texts and None.

        Parameters
        ----------
        details : bool
            Add what each component contributes, its status, and the reasons in words.
        """
        value, parts = self.prediction, self.parts
        line: dict[str, Any] = {"id": self.id}
        line |= {name + (" (data)" if name in OWN_COLUMNS else ""): text for name, text in self.cells.items()}
        if value is not None:
            line |= {"prediction": value.raw, "score": value.score, "status": value.status.value}
        line |= {"missing": len(self.missing), "error": self.error}
        taken = {*OWN_COLUMNS, *line}
        names = [part.name + (" (component)" if part.name in taken else "") for part in parts]
        line |= {name: part.judgement.raw for name, part in zip(names, parts, strict=True)}
        if details:
            line |= {} if value is None else {"intercept": self.intercept, "reason": value.feedback}
            for name, part in zip(names, parts, strict=True):
                known = None if math.isnan(part.contribution) else part.contribution
                line |= {f"{name}.contribution": known, f"{name}.status": part.judgement.status.value}
                line |= {f"{name}.reason": part.judgement.feedback}
        return line


@dataclass(frozen=True)
class ScoredRows:
    """A table of scored rows.

    Parameters
    ----------
    rows : sequence of ScoredRow
        All with the same columns of cells and the same parts.
    target : str
        The name of what is predicted; empty where several metrics stand beside each other.
    scale : Scale or None
        Of the predictions, where it is known.
    metric : str
        What made them, in one line: a signature line, or the metrics' names.
    source : str
        Where the rows came from.
    notes : tuple of str
    """

    rows: Sequence[ScoredRow]
    target: str
    scale: Scale | None
    metric: str
    source: str
    notes: tuple[str, ...] = ()

    def counts(self) -> dict[Status, int]:
        """The number of rows by the status of their value, of those that have one."""
        ended = [row.prediction.status for row in self.rows if row.prediction is not None]
        return {status: ended.count(status) for status in Status if status in ended}

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`, with details as `ScoredRow.line` has them."""
        import pandas

        return pandas.DataFrame([row.line(details=True) for row in self.rows])
