"""``metricsmith induce``: from a table of rated outputs to a metric and its report."""

from __future__ import annotations

from dataclasses import replace
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
from metricsmith.cli.running import check_places, check_replaceable, interruptible, tell, tell_notes
from metricsmith.cli.saved_metrics import auto_metrics, finetuned
from metricsmith.cli.terminal import say
from metricsmith.errors import NeedsError, OptionError
from metricsmith.report.induction.document import RunDocument

__all__ = ["induce_command"]

FILES = ("metric.json", "report.html", "report.md", "report.json", "scores.csv")


@takes_groups(
    after={"scale": "split", "lower_is_better": "scale", "force": "out"},
    helps={"out": "Where metric and report go.", "dry_run": "Print plan and cost; send nothing, write nothing."},
)
def induce_command(
    table: TableOptions,
    candidates: CandidateOptions = CandidateOptions(),
    model: ModelOptions = ModelOptions(),
    limits: LimitOptions = LimitOptions(),
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE|FRACTION", help="Test rows: a file like DATA, or a share to hold out (0.3)."),
    ] = None,
    cv: Annotated[int | None, typer.Option(metavar="K", help="Grouped K-fold cross-validation instead.")] = None,
    split: Annotated[
        str,
        typer.Option(metavar="auto|holdout|cv", help="auto: hold out if that leaves 15 groups, else cross-validate."),
    ] = "auto",
    probe: Annotated[
        bool, typer.Option("--probe", help="Change outputs by rules and show whether the metric notices.")
    ] = False,
    finetune: Annotated[
        str | None,
        typer.Option(metavar="NAME[=FOLDER]", help="Train a metric on this encoder in each pass, as a candidate."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides splits, ties and resampling.")] = 0,
    output: OutputOptions = OutputOptions(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the metric of another run in DIR.")] = False,
) -> None:
    """Induce a metric from rated outputs."""
    from metricsmith.datasets.table import read_table
    from metricsmith.optimizers.induce import prepare
    from metricsmith.optimizers.own import not_here
    from metricsmith.optimizers.probed import with_probe
    from metricsmith.optimizers.splitting import Division
    from metricsmith.studies.probing.run import Prober

    lm = model.language_model()
    optimizer = auto_metrics(candidates, table, lm, limits, progress=output.verbose, seed=seed)
    prober = Prober(progress=output.verbose, seed=seed) if probe else None
    if test is not None and cv is not None:
        raise OptionError("--cv and --test exclude each other: cross-validation tests on every row")
    read = {"table": table.data, "test table": test, "store": limits.store, **candidates.judge_files()}
    check_places(output, FILES, read)
    reading = table.reading()
    rated = read_table(table.data, **reading)
    fraction, test_table = _test_rows(test, reading)
    if trained := finetuned(finetune, rated.task):
        if why := not_here(trained):
            raise NeedsError(f"--finetune {finetune}: {why}")
        optimizer = replace(optimizer, metrics=[*optimizer.own, trained])
    tell_notes(rated, output, asks=lm is not None and candidates.bank not in ("existing", "none"))
    run = prepare(rated, optimizer, Division(fraction, test_table, cv, split))
    if output.dry_run:
        say(run.plan(prober))
        return
    if not force:
        check_replaceable(output.out, run.signature.same_run, "name another folder with --out, or add --force")
    if run.splits.split and output.verbose:
        say(f"note: {run.splits.split}", err=True)
    with interruptible(limits.store, output), run.spending():
        done = run.induced()
        done.write(output.out, raw_csv=output.raw_csv)
        if prober is not None:
            done = with_probe(done, rated, optimizer, prober)
            done.write(output.out, raw_csv=output.raw_csv)
    tell(RunDocument(done.record), output.out, output)


def _test_rows(test: str | None, options: dict[str, Any]) -> tuple[float | None, Any]:
    """The fraction to hold out, or the table of test rows; neither without ``--test``."""
    from metricsmith.datasets.table import read_table

    if test is None:
        return None, None
    try:
        fraction = float(test)
    except ValueError:
        return None, read_table(test, **{**options, "min_rated": 2})
    if not 0 <= fraction < 1:
        raise OptionError(f"--test {test} must be a file, or a share from 0 (no test) to below 1, such as 0.3")
    return fraction, None
