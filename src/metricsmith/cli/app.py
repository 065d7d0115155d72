"""The command `metricsmith`: its sub-commands and its exit codes.

Exit codes: 0 done, 2 the input or the options are wrong, 3 the model or the network failed, 130 interrupted, 143
ended by SIGTERM, which does what Ctrl-C does.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from metricsmith.cli.bank import bank_app
from metricsmith.cli.compare import compare
from metricsmith.cli.demo import demo
from metricsmith.cli.induce import induce
from metricsmith.cli.meta_eval import meta_eval
from metricsmith.cli.mqm import mqm
from metricsmith.cli.probe import probe
from metricsmith.cli.score import explain, score
from metricsmith.cli.store import store_app
from metricsmith.errors import InputError, MetricsmithError
from metricsmith.version import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Forge an automatic metric out of rated outputs, and find out how far it can be trusted."""
    if show:
        typer.echo(f"metricsmith {__version__}")
        raise typer.Exit


app.command()(demo)
app.command()(induce)
app.command()(compare)
app.command()(score)
app.command()(explain)
app.command()(probe)
app.command()(mqm)
app.command()(meta_eval)
app.add_typer(bank_app, name="bank")
app.add_typer(store_app, name="store")


def main() -> None:
    """Run the command line."""
    for name in ("dspy", "metricsmith"):  # their lines would break the progress bar; results name every failure
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with _terminable(), _above_progress():
            app()
    except InputError as problem:
        _fail(problem, 2)
    except MetricsmithError as problem:
        _fail(problem, 3)


def _fail(problem: MetricsmithError, code: int) -> None:
    sys.stderr.write(f"error: {problem}\n")
    raise SystemExit(code) from None


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does, with a code of its own: schedulers look at who ended a job."""
    if threading.current_thread() is not threading.main_thread():  # only that one hears signals
        yield
        return
    ended = False

    def end(*_: Any) -> None:
        nonlocal ended
        ended = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except SystemExit as stop:
        if ended and stop.code == 130:
            raise SystemExit(128 + signal.SIGTERM) from stop
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _above_progress() -> Iterator[None]:
    """Let warnings and log lines of other libraries stand above a progress bar, not in it.

    Some of these libraries are imported late and bring handlers of their own, so that it is done for all handlers.
    """
    from tqdm import tqdm

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
