"""The text in the terminal after an induction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from metricsmith.report.induction.document import RunDocument
from metricsmith.report.render import render_terminal

if TYPE_CHECKING:
    from metricsmith.optimizers.recording import RunResult

__all__ = ["summary"]


def summary(done: RunResult, out: Path) -> str:
    """Components, agreement beside the baselines, warnings, and where everything was written."""
    return render_terminal(RunDocument(done.record), out)
