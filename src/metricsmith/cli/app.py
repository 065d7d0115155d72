"""The command `metricsmith`: its sub-commands and its exit codes.

Exit codes: 0 done, 2 the input or the options are wrong, 3 the model or the network failed, 130 interrupted.
"""

from __future__ import annotations

from typing import Annotated

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
from metricsmith.cli.terminal import guard_terminal, say
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
        say(f"metricsmith {__version__}")
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
    guard_terminal()
    try:
        app()
    except InputError as problem:
        _fail(problem, 2)
    except MetricsmithError as problem:
        _fail(problem, 3)


def _fail(problem: MetricsmithError, code: int) -> None:
    say(f"error: {problem}", err=True)
    raise SystemExit(code) from None
