"""``metricsmith meta-eval --suite``: a whole shared task of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from metricsmith.errors import OptionError

__all__ = ["SuiteOptions", "check_mode"]


@dataclass(frozen=True)
class SuiteOptions:
    """A shared task, and the choices that only it has."""

    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            metavar="NAME|FILE.toml",
            help="A shared task, wmt23, wmt24, wmt24-on-wmt23, wmt25 or your own: SCORES is its folder, GOLD in it.",
        ),
    ] = None
    primary: Annotated[
        bool, typer.Option("--primary", help="With --suite: its primary metrics and baselines alone.")
    ] = False
    gold_name: Annotated[
        str | None, typer.Option("--gold", metavar="NAME", help="With --suite: other scores of people, such as esa.")
    ] = None
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="With --suite: leave out metrics whose files are broken, and say so.")
    ] = False
    join: Annotated[
        Path | None,
        typer.Option("--join", metavar="SUITE_JSON", help="With --suite: take what an earlier run has computed."),
    ] = None


def check_mode(suite: str | None, alone: Mapping[str, object], beside: Mapping[str, object]) -> None:
    """Refuse options of the other mode: `alone` are those of one gold file, `beside` those of a suite.

    Raises
    ------
    OptionError
        If one that is given (neither None, False nor empty) has no meaning here.
    """
    wrong = [name for name, value in (beside if suite is None else alone).items() if value]
    if wrong and suite is None:
        raise OptionError(f"{wrong[0]} has a meaning with --suite only: name a suite, or leave it out")
    if wrong:
        raise OptionError(
            f"{wrong[0]} has no meaning beside --suite {suite}, which says what is measured against what: leave it out"
        )
