"""``metricsmith compare``: AutoMetrics beside the baselines of its paper, on rated outputs of your own."""

from __future__ import annotations

from dataclasses import dataclass
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
from metricsmith.cli.saved_metrics import auto_metrics, finetuned, known_columns
from metricsmith.cli.settings import text_or_file
from metricsmith.cli.terminal import say
from metricsmith.errors import OptionError, nearest

if TYPE_CHECKING:
    from metricsmith.datasets.table import Table

__all__ = ["compare_command"]

METHODS = "best_existing,metametrics,guideline_judge,dna_eval,autometrics"

PRESETS = ("table2",)


@dataclass(frozen=True)
class ComparedOptions(TableOptions):
    """A table of rated outputs, or with ``--preset`` the paper's data sets."""

    data: Annotated[  # type: ignore[assignment]
        list[str], typer.Argument(metavar="DATA", help="A table as for induce; with --preset NAME[=FILE]...")
    ]


@takes_groups(
    without=("strict", "raw_csv"),
    after={"guideline": "task"},
    helps={
        "temperature": "Of the model; repetitions are independent samples only above .15.",
        "out": "Where the comparison goes.",
        "dry_run": "Print plan and cost; send nothing, write nothing.",
        "as_json": "Print the comparison as JSON.",
    },
)
def compare_command(
    table: ComparedOptions,
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="table2", help="The paper's settings on its data sets, which DATA names."),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="With --preset: load data sets without a file from the hub.")
    ] = False,
    guideline: Annotated[
        str, typer.Option(metavar="TEXT|@FILE", help="What the raters were told, word for word; else --task.")
    ] = "",
    methods: Annotated[
        str, typer.Option(metavar="A,B,...", help="What to compare; metametrics_xgboost needs the extra xgboost.")
    ] = METHODS,
    seeds: Annotated[int, typer.Option(help="How often each method is repeated.")] = 5,
    test: Annotated[float, typer.Option(metavar="FRACTION", help="Share of rated rows to test on, by group.")] = 0.3,
    validation: Annotated[
        float, typer.Option(metavar="FRACTION", help="Share to choose the best existing metric on, by group.")
    ] = 0.2,
    dimensions: Annotated[int, typer.Option(help="How many dimensions DnA-Eval judges by.")] = 3,
    finetune: Annotated[
        str | None, typer.Option(metavar="NAME[=FOLDER]", help="Encoder of the methods finetuned and finetuned_paper.")
    ] = None,
    candidates: CandidateOptions = CandidateOptions(),
    model: ModelOptions = ModelOptions(temperature=1.0),
    limits: LimitOptions = LimitOptions(),
    seed: Annotated[int, typer.Option(help="Decides splits, ties and resampling.")] = 0,
    output: OutputOptions = OutputOptions(Path("metricsmith-compare")),
) -> None:
    """Compare AutoMetrics with the baselines of its paper."""
    from metricsmith.report.comparison.document import COMPARISON_FILES, ComparisonDocument, write_comparison
    from metricsmith.report.comparisons.document import COMPARISONS_FILES, ComparisonsDocument, write_comparisons
    from metricsmith.studies.comparison.run import compare_plan
    from metricsmith.studies.comparison.sets import compare_sets, sets_plan

    if finetune is not None and "finetuned" not in methods:
        raise OptionError(
            f"--finetune {finetune} is for the methods finetuned and finetuned_paper, of which --methods names none: "
            "add one to --methods, or leave --finetune out"
        )
    lm = model.language_model()
    _check_mode(table, preset, download)
    options: dict[str, Any] = {
        "methods": [name.strip() for name in methods.split(",") if name.strip()], "seeds": seeds, "fraction": test,
        "validation": validation, "guideline": text_or_file(guideline, "--guideline"), "dimensions": dimensions,
    }  # fmt: skip
    optimizer = auto_metrics(
        candidates, table, lm, limits, paper=preset is not None, progress=output.verbose, seed=seed
    )
    files = _named(table.data) if preset else {"": table.data[0]}  # a table alone has no name and no folder of its own
    written = [str(Path(name, file)) for name in files for file in COMPARISON_FILES]
    read = {**{name or "table": file for name, file in files.items()}, **candidates.judge_files()}
    check_places(output, [*written, *(COMPARISONS_FILES if preset else ())], {**read, "store": limits.store})
    sets = {name: _read(name, file, table, output, download) for name, file in files.items()}
    for name, (rated, _) in sets.items():
        tell_notes(rated, output, asks=lm is not None, name=name)
    options["finetuned"] = finetuned(finetune, rated.task)
    if output.dry_run:
        say(sets_plan(sets, optimizer, **options) if preset else compare_plan(rated, optimizer, **options))
        return
    with interruptible(limits.store, output):
        record = compare_sets(
            sets, optimizer, lambda name, made: write_into(write_comparison, made, output.out / name), **options
        )
    if preset is None:
        tell(ComparisonDocument(record.sets[""]), output.out, output)
        return
    write_into(write_comparisons, record, output.out)
    tell(ComparisonsDocument(record), output.out, output)


def _check_mode(table: ComparedOptions, preset: str | None, download: bool) -> None:
    """Refuse an unknown preset, options of a preset without one, and several tables."""
    if preset is not None and preset not in PRESETS:
        raise OptionError(f"--preset {preset!r}{nearest(preset, PRESETS)} is not known; there is {', '.join(PRESETS)}")
    if preset is None and download:
        raise OptionError("--download is for --preset table2; a hub id owner/name as DATA is loaded without it")
    if preset is None and len(table.data) > 1:
        raise OptionError(
            f"one table is compared on, and {len(table.data)} are named ({', '.join(table.data)}): name one, or the "
            "paper's data sets with --preset table2"
        )


def _named(data: list[str]) -> dict[str, str | None]:
    """The files of ``NAME[=FILE]...`` by data set, None for one to download; `OptionError` for an unknown or double."""
    from metricsmith.datasets.rated_sets import rated_set

    files: dict[str, str | None] = {}
    for one in data:
        name, _, file = one.partition("=")
        entry = rated_set(name.strip())
        if entry.name in files:
            raise OptionError(f"DATA names {entry.name} twice; name each data set once")
        files[entry.name] = file or None
    return files


def _read(
    name: str, file: str | None, table: ComparedOptions, output: OutputOptions, download: bool
) -> tuple[Table, Table | None]:
    """A table; or a data set of this name and its own test rows, with columns of its own."""
    from metricsmith.datasets.rated_sets import rated_set, read_rated_split
    from metricsmith.datasets.table import read_table

    if not name:
        return read_table(file, **table.reading()), None
    return read_rated_split(name, file, download=download, **known_columns(rated_set(name), table, output))
