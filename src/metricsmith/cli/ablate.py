"""``metricsmith ablate``: what each option of an induction is worth, on rated outputs of your own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.options import (
    CandidateOptions,
    LimitOptions,
    ModelOptions,
    OutputOptions,
    TableOptions,
    takes_groups,
)
from metricsmith.cli.running import check_places, interruptible, tell, tell_notes, write_into
from metricsmith.cli.saved_metrics import auto_metrics, known_columns
from metricsmith.cli.terminal import say
from metricsmith.errors import OptionError, nearest

if TYPE_CHECKING:
    from metricsmith.datasets.rated_set import RatedSet
    from metricsmith.datasets.table import Table

__all__ = ["ablate_command"]


@takes_groups(
    without=("data", "raw_csv", "bank", "regression", "n", "k", "full", "panel", "generators", "strict"),
    helps={
        "target": "Column with the human rating, of data sets for which the grid names none.",
        "out": "Where cells and report go; an unfinished grid goes on from there.",
        "dry_run": "Print cells and cost; send nothing, write nothing.",
    },
)
def ablate_command(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="[GRID.toml] DATA...",
            help="A grid (or --preset), then tables as FILE or NAME=FILE.",
            show_default=False,
        ),
    ],
    table: TableOptions,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="A grid of the paper: table3, table6, table8 or figure4.")
    ] = None,
    candidates: CandidateOptions = CandidateOptions(),
    model: ModelOptions = ModelOptions(),
    limits: LimitOptions = LimitOptions(),
    seed: Annotated[int, typer.Option(help="The first seed; the others follow it.")] = 0,
    output: OutputOptions = OutputOptions(Path("metricsmith-ablate")),
    force: Annotated[
        bool, typer.Option("--force", help="Begin anew, whatever cells DIR holds; judgements stay.")
    ] = False,
) -> None:
    """Run a grid of inductions and compare its settings."""
    from metricsmith.report.ablation.document import ABLATION_FILES, AblationDocument, write_ablation
    from metricsmith.studies.ablation.grid import preset as named_grid
    from metricsmith.studies.ablation.grid import read_grid
    from metricsmith.studies.ablation.journal import JOURNAL
    from metricsmith.studies.ablation.plan import ablation_plan
    from metricsmith.studies.ablation.run import JUDGEMENTS, ablate

    path, *data = given if given[0].lower().endswith(".toml") else ["", *given]
    if bool(path) == (preset is not None):
        raise OptionError(
            f"{path} and --preset {preset} are two grids: leave one of them out" if path
            else "there is no grid: name a file GRID.toml before the data, or a grid of the paper with --preset"
        )  # fmt: skip
    grid = read_grid(path) if path else named_grid(preset or "")
    sources = _named(data)
    lm = model.language_model()
    optimizer = auto_metrics(candidates, table, lm, limits, progress=output.verbose, seed=seed)
    written = (*ABLATION_FILES, JOURNAL, *([] if limits.store else [JUDGEMENTS]))
    read = {f"table {name}": source for name, (source, _) in sources.items()}
    check_places(output, written, {**read, "grid": path or None, "store": limits.store, **candidates.judge_files()})
    tables = {name: _read(*found, grid.data.get(name, {}), table, output) for name, found in sources.items()}
    for name, one in tables.items():
        tell_notes(one, output, asks=lm is not None, name=name)
    for name in grid.data.keys() - tables.keys() if output.verbose else ():
        say(f"note: the grid names columns of {name!r}{nearest(name, tables)}, which is no table here", err=True)
    if output.dry_run:
        say(ablation_plan(tables, grid, optimizer))
        return
    kept = limits.store or output.out / (JUDGEMENTS if lm is not None else JOURNAL)
    with interruptible(kept, output):
        record = ablate(tables, grid, optimizer, folder=output.out, force=force)
    write_into(write_ablation, record, output.out)
    tell(AblationDocument(record), output.out, output)


def _named(data: list[str]) -> dict[str, tuple[str, RatedSet | None]]:
    """The tables of ``FILE`` and ``NAME=FILE`` by their names; a file without one has that of its file.

    One of the paper's data sets is only known by NAME: a file of that name is a table of one's own.
    """
    from metricsmith.datasets.rated_sets import known_set

    if not data:
        raise OptionError("there is no table: name one or more, as FILE or NAME=FILE")
    found: dict[str, tuple[str, RatedSet | None]] = {}
    for one in data:
        name, parted, source = one.partition("=")
        entry = known_set(name)
        if not parted or os.path.lexists(one):
            name, source, entry = Path(one).name.split(".")[0], one, None
        if not (name and source):
            raise OptionError(f"{one} must be FILE or NAME=FILE, such as notices=rated.csv")
        if name in found:
            raise OptionError(f"{found[name][0]} and {source} are both called {name}: name one of them with NAME=FILE")
        found[name] = source, entry
    return found


def _read(
    source: str, entry: RatedSet | None, own: Mapping[str, Any], table: TableOptions, output: OutputOptions
) -> Table:
    """A table, with the columns that the grid names for it before those of the command line."""
    from metricsmith.datasets.rated_sets import read_rated_set
    from metricsmith.datasets.table import read_table

    if entry is not None:
        return read_rated_set(entry.name, source, **{**known_columns(entry, table, output), **own})
    return read_table(source, **{**replace(table, target=str(own.get("target", table.target))).reading(), **own})
