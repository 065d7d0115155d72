"""The result of a run: an induced metric and its record, written, as a frame, and shown in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from metricsmith.errors import DataError
from metricsmith.formats import statistic
from metricsmith.programs.induced import InducedMetric
from metricsmith.report.induction.document import write_reports
from metricsmith.report.induction.record import RunRecord

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RunResult", "write_metric_and"]


@dataclass(frozen=True, repr=False)
class RunResult:
    """An induced metric and the record of how it came about."""

    metric: InducedMetric
    record: RunRecord

    def write(self, folder: str | PathLike[str], *, raw_csv: bool = False) -> None:
        """Write ``metric.json``, ``report.html``, ``report.md``, ``report.json`` and ``scores.csv``.

        With `raw_csv`, texts in the latter that a spreadsheet would run are not marked.

        Raises
        ------
        DataError
            If the folder cannot be written to.
        """
        write_metric_and(self.metric, folder, lambda target: write_reports(self.record, target, raw_csv=raw_csv))

    def to_pandas(self) -> pd.DataFrame:
        """One line a row: its rating, its prediction and every component's number."""
        return self.record.to_pandas()

    def _repr_html_(self) -> str:
        return self.record._repr_html_()

    def __repr__(self) -> str:
        return f"RunResult(metric={self.metric!r}, tau-b {statistic(self.record.headline.kendall_tau_b)})"


def write_metric_and(metric: InducedMetric, folder: str | PathLike[str], report: Callable[[Path], None]) -> None:
    """Write a metric as ``metric.json`` into a folder, which is made if it does not exist, and a report beside it.

    Raises
    ------
    DataError
        If the folder cannot be written to.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        metric.save(target / "metric.json")
        report(target)
    except OSError as problem:
        raise DataError(f"cannot write to {target}: {problem.strerror}; name another folder") from problem
