"""``metricsmith induce``: from a table of rated outputs to a metric and its report."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from metricsmith.cli.endings import interruptible, tell
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
)
from metricsmith.cli.metric_file import judge_files, own_metrics
from metricsmith.cli.model import ApiBase, Model, Temperature, language_model
from metricsmith.cli.paths import check_apart, check_replaceable, check_writable
from metricsmith.cli.summary import summary
from metricsmith.cli.table import (
    AllowColumns,
    AllowMissing,
    Bank,
    Components,
    Context,
    Data,
    FullModel,
    Group,
    Id,
    Input,
    LowerIsBetter,
    MetricColumns,
    MostMetrics,
    Output,
    OwnJudges,
    PanelMode,
    PriorColumns,
    Rater,
    RaterEffects,
    Raters,
    RawCsv,
    Reference,
    Regression,
    ScaleText,
    StrictMode,
    System,
    Target,
    TaskText,
    Where,
    reading,
)
from metricsmith.cli.terminal import say
from metricsmith.errors import OptionError

__all__ = ["induce"]

FILES = ("metric.json", "report.html", "report.md", "report.json", "scores.csv")


def induce(
    data: Data,
    target: Target,
    task: TaskText = "",
    output: Output = None,
    input: Input = None,
    reference: Reference = None,
    context: Context = None,
    system: System = None,
    rater: Rater = None,
    raters: Raters = "mean",
    rater_effects: RaterEffects = "none",
    id: Id = None,
    group: Group = None,
    where: Where = None,
    metric_columns: MetricColumns = None,
    prior_columns: PriorColumns = None,
    allow_column: AllowColumns = None,
    bank: Bank = "auto",
    regression: Regression = "auto",
    n: Components = None,
    k: MostMetrics = 30,
    judge: OwnJudges = None,
    panel: PanelMode = False,
    allow_missing: AllowMissing = False,
    full: FullModel = False,
    strict: StrictMode = False,
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
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE|FRACTION", help="Test rows: a file like DATA, or a share to hold out (0.3)."),
    ] = None,
    cv: Annotated[int | None, typer.Option(metavar="K", help="Grouped K-fold cross-validation instead.")] = None,
    split: Annotated[
        str,
        typer.Option(metavar="auto|holdout|cv", help="auto: hold out if that leaves 15 groups, else cross-validate."),
    ] = "auto",
    scale: ScaleText = None,
    lower_is_better: LowerIsBetter = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Change outputs by rules and show whether the metric notices.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Decides splits, ties and resampling.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where metric and report go.")] = Path("metricsmith-out"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the metric of another run in DIR.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print plan and cost; send nothing, write nothing.")
    ] = False,
    raw_csv: RawCsv = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Induce a metric from rated outputs."""
    from metricsmith.datasets.table import read_table
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.optimizers.induce import prepare, with_probe
    from metricsmith.optimizers.splitting import Division
    from metricsmith.programs.asked_scale import asked_note
    from metricsmith.studies.probing.run import Prober

    model = language_model(lm, api_base, temperature)
    optimizer = AutoMetrics(
        metrics=own_metrics(judge, model), bank=bank, k=k, n=n, full=full, regression=regression, panel=panel,
        allow_missing=allow_missing, strict=strict, lm=model, seed=seed, progress=not quiet and not as_json,
        store=store, concurrency=concurrency(bounds, requests_per_minute, tokens_per_minute),
        budget=budget(max_requests, max_tokens, max_usd, max_seconds), allow_columns=tuple(allow_column or ()),
    )  # fmt: skip
    prober = Prober(progress=not quiet and not as_json, seed=seed) if probe else None
    if test is not None and cv is not None:
        raise OptionError("--cv and --test exclude each other: cross-validation tests on every row")
    if not dry_run:
        check_writable(out, "--out", folder=True)
        inputs = {"table": data, "test table": test, "store": store, **judge_files(judge)}
        check_apart([out / name for name in FILES], "--out", inputs)
    if store is not None:
        check_writable(store, "--store", folder=False)
    options = reading(
        target=target, task=task, output=output, input=input, reference=reference, context=context, system=system,
        rater=rater, raters=raters, rater_effects=rater_effects, id=id, group=group, where=where,
        metric_columns=metric_columns, prior_columns=prior_columns, scale=scale, lower_is_better=lower_is_better,
    )  # fmt: skip
    table = read_table(data, **options)
    fraction, test_table = _test_side(test, options)
    asks = lm is not None and bank not in ("existing", "none")
    said = asked_note(table.task.target, table.task.scale, table.ratings) if asks else ""
    if not quiet and not as_json:
        for note in (*table.notes, *([said] if said else [])):
            say(f"note: {note}", err=True)
    run = prepare(table, optimizer, Division(fraction, test_table, cv, split))
    if dry_run:
        say(run.plan(prober))
        return
    if not force:
        check_replaceable(out, run.signature.same_run, "name another folder with --out, or add --force")
    if quiet:
        logging.getLogger("metricsmith.notes").setLevel(logging.ERROR)
    if run.sides.split and not quiet and not as_json:
        say(f"note: {run.sides.split}", err=True)
    with interruptible(store), run.spending():
        done = run.induced()
        done.write(out, raw_csv=raw_csv)
        if prober is not None:
            done = with_probe(done, table, optimizer, prober)
            done.write(out, raw_csv=raw_csv)
    tell(done.record, lambda: summary(done, out), as_json=as_json, quiet=quiet)


def _test_side(test: str | None, options: dict[str, Any]) -> tuple[float | None, Any]:
    """A fraction to hold out, or a table of its own; neither where nothing is said."""
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
