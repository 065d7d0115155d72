"""``metricsmith versus``: a second version of outputs held against a first, under one metric."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from metricsmith.cli.options import LimitOptions, ModelOptions, OutputOptions, SavedMetricOptions, takes_groups
from metricsmith.cli.running import check_places, end_unwanted, interruptible, tell, write_into
from metricsmith.cli.saved_metrics import model_for, named_metrics, single_metric
from metricsmith.cli.terminal import say
from metricsmith.errors import OptionError, nearest
from metricsmith.report.render import cost_line

__all__ = ["versus_command"]

UNWANTED = {"worse": ("worse",), "undecided": ("worse", "undecided")}


@takes_groups(
    without=("rater", "raw_csv", "id"),
    after={"other": "data"},
    helps={
        "data": "A: the outputs of the version that there was.",
        "as_json": "Print the record as JSON.",
    },
)
def versus_command(
    saved: SavedMetricOptions,
    other: Annotated[str, typer.Argument(help="B: the outputs of the version to hold against it.")],
    id: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column of both tables that pairs rows; else an id column that is guessed, else the input's text.",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COL", help="Show the difference for each value of it, too.")
    ] = None,
    group: Annotated[str | None, typer.Option(metavar="COL", help="Rows of one group are not independent.")] = None,
    fail_if: Annotated[
        str | None,
        typer.Option(
            "--fail-if", metavar="worse|undecided", help="End with 4 if B is worse, or not shown to be better."
        ),
    ] = None,
    model: ModelOptions = ModelOptions(),
    limits: LimitOptions = LimitOptions(),
    seed: Annotated[int, typer.Option(help="Decides the exchanges of the test.")] = 0,
    output: OutputOptions = OutputOptions(Path("metricsmith-versus")),
) -> None:
    """Say if a second version of outputs is better than a first."""
    from metricsmith.report.versus.document import VERSUS_FILES, VersusDocument, write_versus
    from metricsmith.scoring import estimate
    from metricsmith.scoring.explanations import scored_metrics
    from metricsmith.studies.versus import paired_versions

    if fail_if is not None and fail_if not in UNWANTED:
        raise OptionError(f"--fail-if {fail_if} must be worse or undecided{nearest(fail_if, UNWANTED)}")
    tables = {"table A": saved.data, "table B": other}
    check_places(output, VERSUS_FILES, {"metric": saved.metric, **tables, "store": limits.store})
    metric = single_metric(named_metrics(str(saved.metric), saved.local), saved.metric)
    reading = saved.reading() | ({} if group is None else {"group": group})
    pairs = paired_versions(metric, saved.data, other, by=by, id=id, reading=reading)
    with model_for(metric, model):
        if output.dry_run:
            say(cost_line("estimated", estimate(scored_metrics(metric), pairs.every, store=limits.store)))
            say("nothing was sent and nothing was written")
            return
        with interruptible(limits.store, output):
            record = pairs.judged(metric, seed=seed, progress=output.verbose, **limits.scoring())
    write_into(write_versus, record, output.out)
    tell(VersusDocument(record), output.out, output)
    if fail_if is not None and record.whole.verdict in UNWANTED[fail_if]:
        end_unwanted(f"the verdict is {record.whole.verdict}, and --fail-if {fail_if} asks for this code")
