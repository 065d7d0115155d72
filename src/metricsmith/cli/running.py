"""The beginning and the end of a command: places checked before any work, notes, interruptions, and results written."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from metricsmith.cli.terminal import note_line, say
from metricsmith.errors import DataError, Interrupted, MetricsmithError, ModelFailure, OptionError, StoreError
from metricsmith.report.render import render_terminal, replace_file

if TYPE_CHECKING:
    from metricsmith.cli.options import OutputOptions
    from metricsmith.datasets.table import Table
    from metricsmith.metric import Metric
    from metricsmith.report.blocks import Document
    from metricsmith.scoring import ScoreTable

__all__ = [
    "bar_of_tests", "check_apart", "check_places", "check_replaceable", "check_writable", "end_unwanted", "end_with",
    "interruptible", "scored", "tell", "tell_notes", "write", "write_into",
]  # fmt: skip


def check_writable(path: Path, option: str, *, folder: bool) -> None:
    """Refuse a place that cannot be written to.

    Parameters
    ----------
    path : Path
        A folder (made if it is not there) or a file.
    option : str
        What the caller called it, for the error.
    folder : bool
        Whether `path` is meant to be a folder.

    Raises
    ------
    OptionError
        If it is of the wrong kind, it or the nearest existing folder above it is not writable, or a folder is a link
        that leads nowhere.
    """
    if path.exists() and path.is_dir() != folder:
        raise OptionError(
            f"{option} {path} is a {'file' if folder else 'folder'}; name a {'folder' if folder else 'file'}"
        )
    above = path if folder else path.parent
    while not above.exists():
        if above.is_symlink():
            raise OptionError(f"{option} {path} cannot be written: {above} is a link to nothing; name another place")
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise OptionError(f"{option} {path} cannot be written: {above} is not a writable folder; name another place")
    if path.is_file() and not os.access(path, os.W_OK):
        raise OptionError(f"{option} {path} may not be written to; name another file, or make it writable")
    if not folder and not path.parent.exists():
        raise OptionError(f"{option} {path} cannot be written: there is no folder {path.parent}; make it first")


def check_apart(written: Iterable[Path], option: str, read: Mapping[str, Path | str | None]) -> None:
    """Refuse to write over what is read.

    Parameters
    ----------
    written : iterable of Path
        Files that the command is going to write.
    option : str
        What the caller called them, for the error.
    read : mapping of str to path
        What each file is to the caller, and where it is; a store's side files count with it.

    Raises
    ------
    OptionError
        If one of the first is one of the second.
    """
    kept = {
        os.path.realpath(f"{path}{ending}"): what  # follows links as far as it can, where some lead in a circle
        for what, path in read.items()
        if path is not None
        for ending in ("", "-wal", "-shm")
    }
    for path in written:
        what = kept.get(os.path.realpath(path))
        if what is not None:
            raise OptionError(f"{option} {path} is the {what}, which would be lost; name another file")


def check_places(output: OutputOptions, files: Iterable[str], read: Mapping[str, Path | str | None]) -> None:
    """Refuse a folder or a store that cannot be written to, and a file to write that is read; a dry run writes none.

    Parameters
    ----------
    output : OutputOptions
    files : iterable of str
        Names of the files that the command is going to write.
    read : mapping of str to path
        As for `check_apart`, the store under ``store``.

    Raises
    ------
    OptionError
        As `check_writable` and `check_apart` do.
    """
    if not output.dry_run:
        check_writable(output.out, "--out", folder=True)
        check_apart([output.out / name for name in files], "--out", read)
    store = read.get("store")
    if store is not None:
        check_writable(Path(store), "--store", folder=False)


def check_replaceable(folder: Path, ours: Callable[[str], bool], way_out: str) -> None:
    """Refuse to write over a metric of another run.

    A folder without a ``metric.json``, or with one that is no metric's, such as a part of one, holds none.

    A file that is JSON and names a kind counts as a metric even if it cannot be loaded: it may be of a newer version,
    or changed by hand. Commands that write reports alone need no such check, since they make these anew.

    Parameters
    ----------
    folder : Path
    ours : callable
        From the metric's signature line: True if the run that is to come is the same and may write it anew.
    way_out : str
        What the caller can do about it, for the error.

    Raises
    ------
    OptionError
        If the metric there is of another run.
    """
    path = folder / "metric.json"
    try:
        content = json.loads(path.read_text("utf-8"))
        written = datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    except (OSError, ValueError, RecursionError):
        return
    if not isinstance(content, dict) or "kind" not in content:
        return
    line = str(content.get("signature") or "")
    if not ours(line):
        raise OptionError(
            f"{folder} holds a metric of another run, which would be lost ({line or 'without a signature'}; written "
            f"{written:%Y-%m-%d %H:%M}); {way_out}"
        )


def tell_notes(table: Table, output: OutputOptions, *, asks: bool, name: str = "") -> None:
    """Print the table's notes, and for a run that `asks` a model the one on the scale that it is asked in.

    Among several tables each note begins with the `name` of its own.
    """
    from metricsmith.programs.asked_scale import asked_note

    asked = asked_note(table.task.target, table.task.scale, table.ratings) if asks else ""
    if output.verbose:
        for note in (*table.notes, *([asked] if asked else [])):
            say(note_line(f"{name}: {note}" if name else note), err=True)


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


@contextmanager
def bar_of_tests(output: OutputOptions) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for the tests of several tasks: a function to call with a task, its tests done, and of how many."""
    from tqdm import tqdm

    tests = dict[str, tuple[int, int]]()
    with tqdm(total=0, unit="test", disable=True if output.quiet else None, leave=False) as bar:

        def tested(name: str, done: int, total: int) -> None:
            tests[name] = done, total
            bar.set_description(name, refresh=False)
            bar.n, bar.total = map(sum, zip(*tests.values(), strict=True))
            bar.refresh()

        yield tested


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


def end_unwanted(finding: str) -> None:
    """End with 4: everything was done, and the finding is one of which the caller asked to be told by the code."""
    say(f"exit code 4: {finding}", err=True)
    raise typer.Exit(4)


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises
    ------
    DataError
        If that is not possible.
    """
    try:
        replace_file(path, text)
    except OSError as problem:
        raise DataError(
            f"cannot write {path}: {problem.strerror or problem}; with --store, nothing that was paid for is lost"
        ) from problem


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
