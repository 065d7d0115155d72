"""The lines of scored rows, and the counts of what came of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from metricsmith.errors import ModelFailure
from metricsmith.records import Judgement, Status
from metricsmith.report.scored.record import ScoredRow
from metricsmith.spreadsheets import MARK, is_formula, tell_marks, write_line

if TYPE_CHECKING:
    from metricsmith.datasets.streamed import StreamedTable
    from metricsmith.metric import Metric

__all__ = ["Lines", "Tally"]

MOST_FAILED = 0.2  # share of model judgements that may fail before the command counts as failed
NO_FAILURES = {Status.OK, Status.SKIPPED, Status.BUDGET}


@dataclass(frozen=True)
class Lines:
    """Scored rows as lines of a file, after a header in CSV."""

    as_json: bool
    details: bool
    marked: bool

    @classmethod
    def of(cls, metrics: Sequence[Metric], table: StreamedTable, *, as_json: bool, details: bool, raw: bool) -> Lines:
        """Decide on marks before there is a line: by the table, and wherever a model's own words may be written."""
        free = "model" in metrics[0].card.needs and (details or not hasattr(metrics[0], "components"))
        parts = getattr(metrics[0], "components", metrics)
        names = [*table.keep, *(metric.name for metric in parts)]
        marked = not (raw or as_json) and (table.formulas or free or any(map(is_formula, names)))
        if marked:
            tell_marks()
        return cls(as_json, details, marked)

    def header(self, row: ScoredRow) -> str:
        """The first line, empty in JSON."""
        names = list(row.line(details=self.details))
        return "" if self.as_json else write_line([*names, *([MARK] if self.marked else ())], self.marked)

    def text(self, row: ScoredRow) -> str:
        """The line of one row."""
        line = row.line(details=self.details)
        if self.as_json:
            return json.dumps(line, ensure_ascii=False) + "\n"
        return write_line([*line.values(), *([""] if self.marked else ())], self.marked)


@dataclass
class Tally:
    """Counts of rows and judgements; those that failed by who made them: the model, or a network of this machine."""

    rows: int = 0
    without: int = 0
    partly: int = 0
    left: int = 0
    judged: dict[str, int] = field(default_factory=dict)
    failed: dict[str, dict[str, int]] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, row: ScoredRow, metrics: Sequence[Metric], *, own: bool = True) -> None:
        """Count the judgements of these metrics on a row, and the row itself if it is the table's `own`."""
        judgements: list[Judgement] = [part.judgement for part in row.parts]
        value = any(one.ok for one in judgements) if row.prediction is None else row.prediction.ok
        if own:
            self.rows += 1
            self.without += not value
            self.partly += value and bool(row.missing)
        if not judgements and row.prediction is not None:
            judgements = [row.prediction]
        for judgement, metric in zip(judgements, metrics, strict=False):
            self.left += judgement.status is Status.BUDGET
            who = {"model": "model", "local": f"local {metric.name}"}.get(metric.card.cost)
            if who is not None:
                self.judged[who] = self.judged.get(who, 0) + 1
            if who is not None and judgement.status not in NO_FAILURES:
                counts, kind = self.failed.setdefault(who, {}), judgement.status.value
                counts[kind] = counts.get(kind, 0) + 1
                self.first.setdefault(who, f"{judgement.metric}: {judgement.error}")

    def check_failures(self) -> None:
        """Fail the command where a model failed on too many judgements, though other components may predict the row.

        The model that is asked answers for all its components together, each network of this machine for its own.
        """
        for who, counts in self.failed.items():
            if sum(counts.values()) > MOST_FAILED * self.judged[who]:
                kinds = ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts, key=lambda kind: -counts[kind]))
                raise ModelFailure(
                    f"{sum(counts.values())} of {self.judged[who]} model judgements failed ({kinds}), the first: "
                    f"{self.first[who]}; what there is was kept"
                )

    def __str__(self) -> str:
        lack = f", {self.partly} with components missing (columns missing and error)" if self.partly else ""
        return f"{self.rows} rows scored, {self.without} without a prediction{lack}"
