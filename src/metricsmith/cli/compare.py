"""``metricsmith compare``: AutoMetrics beside the baselines of its paper, on rated outputs of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
from metricsmith.cli.saved_metrics import auto_metrics, finetuned
from metricsmith.cli.settings import text_or_file
from metricsmith.cli.terminal import say
from metricsmith.errors import OptionError

__all__ = ["compare_command"]

METHODS = "best_existing,metametrics,guideline_judge,dna_eval,autometrics"


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
    table: TableOptions,
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
    from metricsmith.datasets.table import read_table
    from metricsmith.report.comparison.document import COMPARISON_FILES, ComparisonDocument, write_comparison
    from metricsmith.studies.comparison.run import compare, compare_plan

    if finetune is not None and "finetuned" not in methods:
        raise OptionError(
            f"--finetune {finetune} is for the methods finetuned and finetuned_paper, of which --methods names none: "
            "add one to --methods, or leave --finetune out"
        )
    lm = model.language_model()
    optimizer = auto_metrics(candidates, table, lm, limits, progress=output.verbose, seed=seed)
    check_places(
        output, COMPARISON_FILES, {"table": table.data, "store": limits.store, **candidates.judge_files()}
    )  # fmt: skip
    reading = table.reading()
    options: dict[str, Any] = {
        "methods": [name.strip() for name in methods.split(",") if name.strip()], "seeds": seeds, "fraction": test,
        "validation": validation, "guideline": text_or_file(guideline, "--guideline"), "dimensions": dimensions,
    }  # fmt: skip
    rated = read_table(table.data, **reading)
    options["finetuned"] = finetuned(finetune, rated.task)
    tell_notes(rated, output, asks=lm is not None)
    if output.dry_run:
        say(compare_plan(rated, optimizer, **options))
        return
    with interruptible(limits.store, output):
        record = compare(rated, optimizer, **options)
    write_into(write_comparison, record, output.out)
    tell(ComparisonDocument(record), output.out, output)
