"""The notes, costs and ends that commands share: interrupted, written, told."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from metricsmith.cli.terminal import say
from metricsmith.errors import DataError, Interrupted, MetricsmithError, ModelFailure, StoreError
from metricsmith.report.terminal import render_terminal

if TYPE_CHECKING:
    from metricsmith.cli.options import OutputOptions
    from metricsmith.datasets.table import Table
    from metricsmith.metric import Metric
    from metricsmith.report.blocks import Document
    from metricsmith.scoring import ScoreTable

__all__ = ["end_with", "interruptible", "scored", "tell", "tell_notes", "write_into"]


def tell_notes(table: Table, output: OutputOptions, *, asks: bool) -> None:
    """Print the table's notes, and for a run that `asks` a model the one on the scale that it is asked in."""
    from metricsmith.programs.asked_scale import asked_note

    asked = asked_note(table.task.target, table.task.scale, table.ratings) if asks else ""
    if output.verbose:
        for note in (*table.notes, *([asked] if asked else [])):
            say(f"note: {note}", err=True)


@contextmanager
def interruptible(store: Path | None, output: OutputOptions) -> Iterator[None]:
    """End with 130 on Ctrl-C, and say where the judgements are kept; a quiet run logs errors alone."""
    if output.quiet:
        logging.getLogger("metricsmith.notes").setLevel(logging.ERROR)
    try:
        yield
    except KeyboardInterrupt as stop:
        again = f"stands in {store}" if store is not None else "would stand in a file given by --store"
        say(
            f"error: {str(stop) or 'interrupted'}; what was judged {again}, from which the same command goes on",
            err=True,
        )
        raise typer.Exit(130) from stop


def scored(
    metrics: Sequence[Metric], rows: Sequence[Any], **options: Any
) -> tuple[ScoreTable, MetricsmithError | None]:
    """The judgements, and the error that cut the run short; what was finished by then is among the judgements."""
    from metricsmith.scoring import score

    try:
        return score(metrics, rows, **options), None
    except (ModelFailure, StoreError, Interrupted) as stop:
        if stop.table is None:
            raise
        return stop.table, stop


def end_with(problem: MetricsmithError | None, advice: str = "") -> None:
    """End with the error that cut a run short, if any: with 130 on Ctrl-C, else as `metricsmith.cli.app` says."""
    if isinstance(problem, Interrupted):
        say(f"error: {problem}{advice}", err=True)
        raise typer.Exit(130)
    if problem is not None:
        raise problem


def write_into(write: Callable[[Any, Path], None], record: Any, out: Path) -> None:
    """Write a record's files; `DataError` where the folder cannot be written."""
    try:
        write(record, out)
    except OSError as problem:
        raise DataError(f"cannot write to {out}: {problem.strerror}; name another folder") from problem


def tell(document: Document[Any], folder: Path | None, output: OutputOptions) -> None:
    """Print a document as text, or its record as JSON; a quiet run prints no text.

    The text has the main figures and warnings, costs where there are any, and the place of the files in `folder`.
    """
    if output.as_json:
        say(json.dumps(document.record.as_dict(), ensure_ascii=False, indent=1))
    elif not output.quiet:
        say(render_terminal(document, folder))
