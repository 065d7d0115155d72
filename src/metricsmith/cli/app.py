"""The command `metricsmith`: its sub-commands and its exit codes.

Exit codes: 0 done, 2 the input or the options are wrong, 3 the model or the network failed, or a budget was spent
before there was a result, 130 interrupted, 143 ended by SIGTERM, which does what Ctrl-C does.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer

from metricsmith.cli.terminal import above_progress, guard_terminal, say
from metricsmith.errors import InputError, MetricsmithError
from metricsmith.version import __version__

__all__ = ["command_line", "main"]

COMMANDS = {
    "demo": "demo:demo_command", "induce": "induce:induce_command", "compare": "compare:compare_command",
    "score": "score:score_command", "explain": "score:explain_command", "probe": "probe:probe_command",
    "mqm": "mqm:mqm_command", "meta-eval": "meta_eval:meta_eval_command", "specialist": "specialist:specialist_app",
    "validate": "validate:validate_command", "plan": "plan:plan_command",
    "bank": "bank:bank_app", "store": "store:store_app",
}  # fmt: skip
"""Every sub-command, in the order of the help page: the file in this folder and the function (or group) in it."""


def command_line(asked: Sequence[str]) -> typer.Typer:
    """The command line with the one sub-command that is asked for, else with all: no other is imported."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @app.callback(invoke_without_command=True)
    def version(show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
        """Forge an automatic metric out of rated outputs, and find out how far it can be trusted."""
        if show:
            say(f"metricsmith {__version__}")
            raise typer.Exit

    for name in [name for name in COMMANDS if name in asked[:1]] or COMMANDS:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(f"metricsmith.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def main() -> None:
    """Run the command line."""
    guard_terminal()
    try:
        with _terminable(), above_progress():
            command_line(sys.argv[1:])()
    except MetricsmithError as problem:
        say(f"error: {problem}", err=True)
        raise SystemExit(2 if isinstance(problem, InputError) else 3) from None


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does, with an exit code of its own, by which schedulers know it."""
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
