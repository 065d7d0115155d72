"""A table of scores read back as scored rows: the columns that `ScoredRow.line` writes, undone."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metricsmith.errors import DataError, nearest
from metricsmith.metric import Part
from metricsmith.records import FAILURES, Judgement, Status
from metricsmith.report.scored.record import OWN_COLUMNS, ScoredRow, ScoredRows

__all__ = ["rows_of_scores"]

VALUE = ("prediction", "score", "status")
STATUS_NOTE = (
    "Why a component is missing is not in this table, shown as skipped: `metricsmith score --details` writes it."
)
ADDS_NOTE = "What each component adds is not in this table: `metricsmith score --details` writes it."


def rows_of_scores(columns: Mapping[str, Sequence[Any]], source: str) -> ScoredRows:
    """The scored rows in a table of scores, written with details or without.

    Without details contributions are NaN. The scale and the target's name are not in the table. The line of a
    corrected mean, which has no id, is left out.

    Parameters
    ----------
    columns : mapping of str to sequence
        Cells by column in the table's order: texts as in CSV, or texts, numbers and None as in JSON.
    source : str
        Name of the file, for errors and the page.

    Raises
    ------
    DataError
        If the columns are not those of a table of scores, or a cell has no number where one is needed.
    """
    names = list(columns)
    lacking = [name for name in ("id", "missing", "error") if name not in columns]
    if lacking:
        raise DataError(
            f"{source} is no table of scores: it has no column {lacking[0]!r}{nearest(lacking[0], names)}, seen "
            f"{', '.join(names[:8])}; `metricsmith score METRIC.json DATA --details --out scores.csv` writes one"
        )
    if None in columns["id"]:
        names = [name for name in names if name != "corrected_mean"]
    valued = all(name in columns for name in VALUE)
    first, last = names.index(VALUE[0] if valued else "missing"), names.index("error")
    cells, rest = names[1:first], names[last + 1 :]
    parts = rest[: _count(rest, valued)]
    details = len(rest) > len(parts)
    lines = ({name: columns[name][place] for name in names} for place in range(len(columns["id"])))
    rows = [
        _row(_Line(line, f"{source}, row {place}"), cells, parts, valued=valued, details=details)
        for place, line in enumerate(lines, 1)
        if line["id"] is not None
    ]
    told = all(f"{name}.status" in columns for name in parts)
    notes = [STATUS_NOTE] * (not told and any(row.missing for row in rows)) + [ADDS_NOTE] * bool(
        valued and parts and not details
    )
    return ScoredRows(rows, "prediction" if valued else "", None, ", ".join(parts), source, tuple(notes))


def _count(rest: Sequence[str], valued: bool) -> int:
    """The number of components among the columns behind the errors: with details each has three more."""
    if valued:
        return rest.index("intercept") if "intercept" in rest else len(rest)
    fourth = len(rest) // 4
    return fourth if rest[fourth::3] == [f"{name}.contribution" for name in rest[:fourth]] else len(rest)


@dataclass(frozen=True, slots=True)
class _Line:
    """A row's cells by column, and its place for errors."""

    cells: Mapping[str, Any]
    place: str

    def number(self, name: str) -> float | None:
        """The number in a cell, None for an empty one."""
        cell = self.cells.get(name)
        try:
            found = None if cell is None or cell == "" else float(cell)
        except (TypeError, ValueError):
            found = math.nan
        if found is not None and not math.isfinite(found):
            raise DataError(
                f"{self.place}: {name} is {str(cell)[:40]!r}, not a number; columns behind `error` hold numbers, or "
                "nothing where there is none: take other columns out, or put them before `prediction` or `missing`"
            )
        return found

    def text(self, name: str) -> str:
        """The text in a cell."""
        cell = self.cells.get(name)
        return "" if cell is None else str(cell)

    def value(self, details: bool) -> Judgement:
        """The row's own value."""
        raw, status = self.number("prediction"), self.text("status")
        if status not in set(Status) or (raw is None) != (status in FAILURES):
            raise DataError(
                f"{self.place}: status {status!r} with the prediction {self.text('prediction')!r}; a number goes with "
                f"ok, and nothing with {', '.join(FAILURES)}: score the row anew"
            )
        reason, error = self.text("reason") if details else "", self.text("error") if raw is None else ""
        return Judgement("prediction", raw, self.number("score"), reason, Status(status), error)


def _row(line: _Line, cells: Sequence[str], parts: Sequence[str], *, valued: bool, details: bool) -> ScoredRow:
    taken = {*OWN_COLUMNS, *cells}
    kept = {_without(name, " (data)", OWN_COLUMNS): line.text(name) for name in cells}
    plain = {name: _without(name, " (component)", taken) for name in parts}
    errors = _errors(line.text("error"), [plain[name] for name in parts if line.number(name) is None])
    made = []
    for name, own in plain.items():
        raw, adds = line.number(name), line.number(f"{name}.contribution") if details else None
        reason = line.text(f"{name}.reason") if details else ""
        said = line.text(f"{name}.status") if details else ""
        status = Status.OK if raw is not None else Status(said) if said in FAILURES else Status.SKIPPED
        judgement = Judgement(own, raw, None, reason, status, errors.get(own, ""))
        made.append(Part(own, "", math.nan, True, math.nan if adds is None else adds, math.nan, judgement))
    intercept = line.number("intercept") if details and valued else None
    value = line.value(details) if valued else None
    return ScoredRow(line.text("id"), kept, value, math.nan if intercept is None else intercept, tuple(made))


def _without(name: str, mark: str, taken: Collection[str]) -> str:
    """The name before it was marked because another column has it."""
    before = name.removesuffix(mark)
    return before if before in taken else name


def _errors(said: str, missing: Sequence[str]) -> dict[str, str]:
    """The errors of missing components by name, where they are what `said` lists."""
    listed = re.fullmatch("; ".join(f"{re.escape(name)}: (.*?)" for name in missing), said, re.DOTALL)
    return dict(zip(missing, listed.groups() if listed else [said] * len(missing), strict=True))
