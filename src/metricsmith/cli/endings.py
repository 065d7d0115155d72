"""How commands with a report end: interrupted, written, told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from metricsmith.cli.terminal import say
from metricsmith.errors import DataError

__all__ = ["interruptible", "tell", "write_into"]


@contextmanager
def interruptible(store: Path | None) -> Iterator[None]:
    """End with 130 on Ctrl-C, and say where what was judged is kept."""
    try:
        yield
    except KeyboardInterrupt as stop:
        again = f"stands in {store}" if store is not None else "would stand in a file given by --store"
        say(
            f"error: {str(stop) or 'interrupted'}; what was judged {again}, from which the same command goes on",
            err=True,
        )
        raise typer.Exit(130) from stop


def write_into(write: Callable[[Any, Path], None], record: Any, out: Path) -> None:
    """Write a record's files; `DataError` where the folder cannot be written."""
    try:
        write(record, out)
    except OSError as problem:
        raise DataError(f"cannot write to {out}: {problem.strerror}; name another folder") from problem


def tell(record: Any, text: Callable[[], str], *, as_json: bool, quiet: bool) -> None:
    """Print a record as JSON or as text; with `quiet`, no text."""
    if as_json:
        say(json.dumps(record.as_dict(), ensure_ascii=False, indent=1))
    elif not quiet:
        say(text())
