"""Small tables of scored rows: of an induced metric with two components, and of metrics beside each other."""

from __future__ import annotations

import math

from metricsmith.metric import Part
from metricsmith.records import Judgement, Scale, Status
from metricsmith.report.scored.record import ScoredRow, ScoredRows

__all__ = ["beside", "lost", "part", "row", "scored"]


def part(name: str, adds: float, raw: float, reason: str = "") -> Part:
    return Part(name, f"the number of {name}", 0.5, True, adds, 0.0, Judgement(name, raw, 0.5, reason))


def lost(name: str, status: Status = Status.TRANSPORT, error: str = "HTTP 500") -> Part:
    return Part(name, "", 0.5, True, math.nan, math.nan, Judgement(name, status=status, error=error))


def row(row_id: str, *parts: Part, **cells: str) -> ScoredRow:
    """A row whose value is 3 and what its parts add, on a scale from 1 to 5; none without a part that has a number."""
    adds = [one.contribution for one in parts if one.judgement.ok]
    raw = math.fsum([3.0, *adds])
    value = Judgement("induced", raw, (raw - 1) / 4)
    if parts and not adds:
        value = Judgement("induced", status=Status.TRANSPORT, error=f"too little to go by: {parts[0]}")
    return ScoredRow(row_id, cells, value, 3.0, parts)


def scored(*rows: ScoredRow, notes: tuple[str, ...] = ()) -> ScoredRows:
    made = rows or (
        row("r1", part("tone", 0.5, 4.0, "It is kind."), part("facts", -0.25, 2.0), output="the road is shut"),
        row("r2", part("tone", -1.0, 1.0, "Rude."), lost("facts"), output="Closed."),
        row("r10", lost("tone"), lost("facts"), output="zebra crossing"),
    )
    return ScoredRows(made, "stars", Scale(1, 5, 1), "metricsmith 1 | made up", "new.csv", notes)


def beside(*lines: tuple[str, float | None, float | None]) -> ScoredRows:
    """Rows of the metrics bleu and chrf, each as id and two numbers."""

    def one(name: str, raw: float | None) -> Part:
        if raw is None:
            return lost(name, Status.SKIPPED, "no reference")
        return Part(name, "", math.nan, True, math.nan, math.nan, Judgement(name, raw, raw))

    rows = [ScoredRow(name, {}, None, math.nan, (one("bleu", a), one("chrf", b))) for name, a, b in lines]
    return ScoredRows(rows, "", None, "bleu, chrf", "judgements.db")
