"""The command `metricsmith`: its sub-commands and its exit codes, which are those of `EXIT_CODES`."""

from __future__ import annotations

import os
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

__all__ = ["EXIT_CODES", "command_line", "main"]

COMMANDS = {
    "demo": "demo:demo_command", "induce": "induce:induce_command", "compare": "compare:compare_command",
    "ablate": "ablate:ablate_command",
    "score": "score:score_command", "explain": "score:explain_command", "show": "show:show_command",
    "versus": "versus:versus_command",
    "probe": "probe:probe_command",
    "mqm": "mqm:mqm_command", "meta-eval": "meta_eval:meta_eval_command", "specialist": "specialist:specialist_app",
    "validate": "validate:validate_command", "plan": "plan:plan_command",
    "bank": "bank:bank_app", "store": "store:store_app",
}  # fmt: skip
"""Every sub-command, in the order of the help page: the file in this folder and the function (or group) in it."""

EXIT_CODES = {
    0: "done",
    1: "a crash of ours, or nobody read the output to its end (after score: 0)",
    2: "the input or the options are wrong",
    3: "the model or the network failed, or a budget was spent too early",
    4: "done, and the finding is one that --fail-if names",
    130: "interrupted by Ctrl-C; what was judged is in the store",
    143: "ended by SIGTERM, which does what Ctrl-C does",
}


def command_line(asked: Sequence[str]) -> typer.Typer:
    """The command line with the one sub-command that is asked for, else with all: no other is imported."""
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["--help", "-h"], "color": False},
        epilog=f"\b\nExit codes:\n{codes}",
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
    words = sys.argv[1:]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        with _terminable(), above_progress():
            command_line(_completed() or words)(words, prog_name="metricsmith")
    except MetricsmithError as problem:
        say(f"error: {problem}", err=True)
        raise SystemExit(2 if isinstance(problem, InputError) else 3) from None


def _completed() -> list[str]:
    """The words that a shell asks to complete, after the program's name; none where it asks nothing."""
    if "_METRICSMITH_COMPLETE" not in os.environ:
        return []
    return (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")).split()[1:]


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
