"""``metricsmith probe``: outputs changed on purpose, and whether a metric notices."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.endings import interruptible, tell, write_into
from metricsmith.cli.limits import (
    Bounds,
    MaxRequests,
    MaxSeconds,
    MaxTokens,
    MaxUsd,
    RequestsPerMinute,
    StoreFile,
    TokensPerMinute,
    budget,
    concurrency,
    cost_line,
)
from metricsmith.cli.metric_file import (
    Data,
    Id,
    Input,
    MetricFile,
    Output,
    Reference,
    Where,
    any_metric,
    model_for,
    rows_for,
)
from metricsmith.cli.model import ApiBase, Model, Temperature
from metricsmith.cli.paths import check_apart, check_writable
from metricsmith.cli.table import Context, Rater, System
from metricsmith.cli.terminal import say

if TYPE_CHECKING:
    from metricsmith.report.probe.record import ProbeRecord

__all__ = ["probe", "probe_text"]


def probe(
    metric: MetricFile,
    data: Data,
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
    output: Output = None,
    input: Input = None,
    reference: Reference = None,
    context: Context = None,
    system: System = None,
    rater: Rater = None,
    id: Id = None,
    where: Where = None,
    lm: Model = None,
    api_base: ApiBase = None,
    temperature: Temperature = None,
    store: StoreFile = None,
    bounds: Bounds = "auto",
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    max_requests: MaxRequests = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    seed: Annotated[int, typer.Option(help="Decides outputs, changes, random scores and tests.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the report goes.")] = Path("metricsmith-probe"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what it will cost; send nothing, write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the probe as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Change outputs on purpose and see whether a metric notices."""
    from metricsmith.optimizers.spending import budget_lines
    from metricsmith.programs.induced import InducedMetric
    from metricsmith.report.probe.write import PROBE_FILES, write_probe
    from metricsmith.studies.probing.run import Prober

    if not dry_run:
        check_writable(out, "--out", folder=True)
        files: dict[str, Path | str | None] = {"metric": metric, "table": data, "store": store}
        check_apart([out / name for name in PROBE_FILES], "--out", files)
    if store is not None:
        check_writable(store, "--store", folder=False)
    named = {
        "output": output, "inputs": input, "reference": reference, "context": context, "system": system,
        "rater": rater, "id": id, "where": where,
    }  # fmt: skip
    loaded = any_metric(metric)
    named["target"] = loaded.task.target if isinstance(loaded, InducedMetric) else None  # who rated tells outputs apart
    table = rows_for(loaded, data, named)
    options: dict[str, Any] = {"perturbers": perturbers, "unit": unit, "strengths": tuple(strength or ("obvious",))}
    prober = Prober(
        **options, dimensions=tuple(dimension or ()), n=n, against=_bank_metrics(against, table.rows), store=store,
        concurrency=concurrency(bounds, requests_per_minute, tokens_per_minute),
        budget=budget(max_requests, max_tokens, max_usd, max_seconds), progress=not quiet and not as_json, seed=seed,
    )  # fmt: skip
    with model_for(loaded, lm, api_base, temperature, needed=perturbers != "builtin"):
        if dry_run:
            expected = prober.estimate(loaded, table.rows)
            say(cost_line("estimated", expected))
            for line in budget_lines(prober.budget, expected):
                say(f"budget: {line}")
            say("nothing was sent and nothing was written")
            return
        if quiet:
            logging.getLogger("metricsmith.notes").setLevel(logging.ERROR)
        with interruptible(store):
            record = prober.probe(loaded, table)
    write_into(write_probe, record, out)
    tell(record, lambda: probe_text(record, out), as_json=as_json, quiet=quiet)


def probe_text(record: ProbeRecord, out: Path) -> str:
    """The tables, what must not be overlooked, costs, and where everything was written."""
    from metricsmith.report.probe.write import ProbeDocument
    from metricsmith.report.terminal import render_terminal

    return render_terminal(ProbeDocument(record), out)


def _bank_metrics(names: str, rows: Any) -> list[Any]:
    """Metrics of the bank by name, fitted where they need the whole table."""
    from metricsmith.bank.catalogue import default_bank

    bank = default_bank()
    return [bank.get(name.strip()).fit(rows) for name in names.split(",") if name.strip()]
