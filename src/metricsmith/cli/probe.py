"""``metricsmith probe``: outputs changed on purpose, and the answer of a metric to each change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from metricsmith.cli.options import LimitOptions, ModelOptions, OutputOptions, SavedMetricOptions, takes_groups
from metricsmith.cli.running import check_places, interruptible, tell, write_into
from metricsmith.cli.saved_metrics import model_for, named_metrics, rows_for, single_metric
from metricsmith.cli.terminal import say
from metricsmith.report.render import cost_line

__all__ = ["probe_command"]


@takes_groups(without=("raw_csv",), helps={"as_json": "Print the probe as JSON."})
def probe_command(
    *,
    dimension: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[: MEANING]", help="Quality that a model is to damage; by default the target."),
    ] = None,
    perturbers: Annotated[
        str, typer.Option(metavar="builtin|generated|all", help="Who changes the outputs: rules, a model, or both.")
    ] = "builtin",
    strength: Annotated[
        list[str] | None, typer.Option(metavar="obvious|subtle", help="How much is changed; by default obvious.")
    ] = None,
    n: Annotated[int, typer.Option(help="Outputs to change, one of each group in turn.")] = 30,
    against: Annotated[
        str, typer.Option(metavar="A,B,...", help="Bank metrics to compare with; see `metricsmith bank list`.")
    ] = "",
    unit: Annotated[
        str, typer.Option(metavar="range|score", help="Sizes of changes: of each metric's range, or scores in [0, 1].")
    ] = "range",
    saved: SavedMetricOptions,
    model: ModelOptions = ModelOptions(),
    limits: LimitOptions = LimitOptions(),
    seed: Annotated[int, typer.Option(help="Decides outputs, changes, random scores and tests.")] = 0,
    output: OutputOptions = OutputOptions(Path("metricsmith-probe")),
) -> None:
    """Change outputs on purpose and see whether a metric notices."""
    from metricsmith.optimizers.spending import budget_lines
    from metricsmith.programs.induced import InducedMetric
    from metricsmith.report.probe.document import PROBE_FILES, ProbeDocument, write_probe
    from metricsmith.studies.probing.run import Prober

    check_places(output, PROBE_FILES, {"metric": saved.metric, "table": saved.data, "store": limits.store})
    metric = single_metric(named_metrics(str(saved.metric), saved.local), saved.metric)
    named = saved.reading()
    if isinstance(metric, InducedMetric):
        named["target"] = metric.task.target  # who rated tells outputs apart
    table = rows_for(metric, saved.data, named)
    options: dict[str, Any] = {"perturbers": perturbers, "unit": unit, "strengths": tuple(strength or ("obvious",))}
    prober = Prober(
        **options, dimensions=tuple(dimension or ()), n=n, against=_bank_metrics(against, table.rows),
        **limits.scoring(), progress=output.verbose, seed=seed,
    )  # fmt: skip
    with model_for(metric, model, needed=perturbers != "builtin"):
        if output.dry_run:
            expected = prober.estimate(metric, table.rows)
            say(cost_line("estimated", expected))
            for line in budget_lines(prober.budget, expected):
                say(f"budget: {line}")
            say("nothing was sent and nothing was written")
            return
        with interruptible(limits.store, output):
            record = prober.probe(metric, table)
    write_into(write_probe, record, output.out)
    tell(ProbeDocument(record), output.out, output)


def _bank_metrics(names: str, rows: Any) -> list[Any]:
    """Metrics of the bank by name, fitted where they need the whole table."""
    from metricsmith.bank.catalogue import default_bank

    bank = default_bank()
    return [bank.get(name.strip()).fit(rows) for name in names.split(",") if name.strip()]
