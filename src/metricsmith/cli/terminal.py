"""The one place that writes to the terminal: what could steer it is shown escaped, whoever printed it."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tqdm import tqdm

__all__ = ["Terminal", "above_progress", "guard_terminal", "note_line", "say"]

# Control characters but newline and tab, and what turns the direction of text; a line may end in CR and LF.
STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
UPWARD = re.compile("(?:\x1b\\[A)+")  # a progress bar goes to its line by this alone, and back by a leading CR


class Terminal:
    """A terminal's stream that shows control characters escaped; files and pipes have none of this.

    Parameters
    ----------
    stream : text stream
    progress : bool
        Whether progress bars are drawn on it: a CR at the start of a write, and moves upward alone, are theirs.
    """

    def __init__(self, stream: TextIO, *, progress: bool) -> None:
        self.stream, self.progress = stream, progress

    def write(self, text: str) -> int:
        """Write `text`, escaped."""
        if self.progress and UPWARD.fullmatch(text):
            return self.stream.write(text)
        start = "\r" if self.progress and text.startswith("\r") else ""
        self.stream.write(start + STEERING.sub(_escaped, text[len(start) :]))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write all of them, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # bytes would go past this
            raise AttributeError(name)
        return getattr(self.stream, name)


def note_line(note: str) -> str:
    """The line of a note; one that is a warning says so itself."""
    return note if note.startswith("warning: ") else f"note: {note}"


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Write to standard output, or to standard error; `typer.echo` would take what looks like colour out of a pipe."""
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{text}\n" if nl else text)
    stream.flush()


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


class _Notes(logging.Handler):
    """Shows each message of ours once on standard error, above a progress bar."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        note = record.getMessage()
        if note not in self.shown:
            self.shown.add(note)
            tqdm.write(note_line(note), file=sys.stderr)


def guard_terminal() -> None:
    """From now on, everything that this process prints to a terminal goes through a `Terminal`.

    Of the log, errors and what ``metricsmith.notes`` has to say are shown: results name every failure.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, Terminal) and stream is not None and stream.isatty():
            setattr(sys, name, Terminal(stream, progress=name == "stderr"))
    for logger in ("dspy", "metricsmith"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    notes = logging.getLogger("metricsmith.notes")
    notes.setLevel(logging.WARNING)
    notes.handlers = [*(handler for handler in notes.handlers if not isinstance(handler, _Notes)), _Notes()]


@contextmanager
def above_progress() -> Iterator[None]:
    """Let warnings and log lines of other libraries stand above a progress bar, not in it.

    Some of these libraries are imported late and bring handlers of their own, so that it is done for all handlers.
    """
    show, emit = warnings.showwarning, logging.StreamHandler.emit

    def show_above(*warning: Any, **options: Any) -> None:
        with tqdm.external_write_mode(file=sys.stderr):
            show(*warning, **options)

    def emit_above(handler: Any, record: logging.LogRecord) -> None:
        with tqdm.external_write_mode(file=sys.stderr):
            emit(handler, record)

    warnings.showwarning, logging.StreamHandler.emit = show_above, emit_above  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        warnings.showwarning, logging.StreamHandler.emit = show, emit  # type: ignore[method-assign]
