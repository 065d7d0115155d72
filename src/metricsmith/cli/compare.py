"""``metricsmith compare``: AutoMetrics beside the baselines of its paper, on rated outputs of your own."""

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
)
from metricsmith.cli.metric_file import judge_files, own_metrics
from metricsmith.cli.model import ApiBase, Model, language_model
from metricsmith.cli.paths import check_apart, check_writable
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
    Reference,
    Regression,
    ScaleText,
    System,
    Target,
    TaskText,
    Where,
    reading,
    text_or_file,
)
from metricsmith.cli.terminal import say

if TYPE_CHECKING:
    from metricsmith.report.comparison.record import Comparison

__all__ = ["compare", "comparison_text"]

METHODS = "best_existing,metametrics,guideline_judge,dna_eval,autometrics"


def compare(
    data: Data,
    target: Target,
    task: TaskText = "",
    guideline: Annotated[
        str, typer.Option(metavar="TEXT|@FILE", help="What the raters were told, word for word; else --task.")
    ] = "",
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
    scale: ScaleText = None,
    lower_is_better: LowerIsBetter = False,
    methods: Annotated[
        str, typer.Option(metavar="A,B,...", help="What to compare; metametrics_xgboost needs the extra xgboost.")
    ] = METHODS,
    seeds: Annotated[int, typer.Option(help="How often each method is repeated.")] = 5,
    test: Annotated[float, typer.Option(metavar="FRACTION", help="Share of rated rows to test on, by group.")] = 0.3,
    validation: Annotated[
        float, typer.Option(metavar="FRACTION", help="Share to choose the best existing metric on, by group.")
    ] = 0.2,
    dimensions: Annotated[int, typer.Option(help="How many dimensions DnA-Eval judges by.")] = 3,
    bank: Bank = "auto",
    regression: Regression = "auto",
    n: Components = None,
    k: MostMetrics = 30,
    judge: OwnJudges = None,
    panel: PanelMode = False,
    allow_missing: AllowMissing = False,
    full: FullModel = False,
    lm: Model = None,
    api_base: ApiBase = None,
    temperature: Annotated[
        float, typer.Option(help="Of the model; repetitions are independent samples only above .15.")
    ] = 1.0,
    store: StoreFile = None,
    bounds: Bounds = "auto",
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    max_requests: MaxRequests = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    seed: Annotated[int, typer.Option(help="Decides splits, ties and resampling.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the comparison goes.")] = Path("metricsmith-compare"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print plan and cost; send nothing, write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Compare AutoMetrics with the baselines of its paper."""
    from metricsmith.datasets.table import read_table
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.programs.asked_scale import asked_note
    from metricsmith.report.comparison.write import COMPARISON_FILES, write_comparison
    from metricsmith.studies.comparison.run import compare as run
    from metricsmith.studies.comparison.run import compare_plan

    model = language_model(lm, api_base, temperature)
    optimizer = AutoMetrics(
        metrics=own_metrics(judge, model), bank=bank, k=k, n=n, full=full, regression=regression, panel=panel,
        allow_missing=allow_missing, lm=model, seed=seed, progress=not quiet and not as_json, store=store,
        concurrency=concurrency(bounds, requests_per_minute, tokens_per_minute),
        budget=budget(max_requests, max_tokens, max_usd, max_seconds),
        allow_columns=tuple(allow_column or ()),
    )  # fmt: skip
    if not dry_run:
        check_writable(out, "--out", folder=True)
        inputs = {"table": data, "store": store, **judge_files(judge)}
        check_apart([out / name for name in COMPARISON_FILES], "--out", inputs)
    if store is not None:
        check_writable(store, "--store", folder=False)
    columns = reading(
        target=target, task=task, output=output, input=input, reference=reference, context=context, system=system,
        rater=rater, raters=raters, rater_effects=rater_effects, id=id, group=group, where=where,
        metric_columns=metric_columns, prior_columns=prior_columns, scale=scale, lower_is_better=lower_is_better,
    )  # fmt: skip
    options: dict[str, Any] = {
        "methods": [name.strip() for name in methods.split(",") if name.strip()], "seeds": seeds, "fraction": test,
        "validation": validation, "guideline": text_or_file(guideline, "--guideline"), "dimensions": dimensions,
    }  # fmt: skip
    table = read_table(data, **columns)
    said = "" if model is None else asked_note(table.task.target, table.task.scale, table.ratings)
    if not quiet and not as_json:
        for note in (*table.notes, *([said] if said else [])):
            say(f"note: {note}", err=True)
    if dry_run:
        say(compare_plan(table, optimizer, **options))
        return
    if quiet:
        logging.getLogger("metricsmith.notes").setLevel(logging.ERROR)
    with interruptible(store):
        record = run(table, optimizer, **options)
    write_into(write_comparison, record, out)
    tell(record, lambda: comparison_text(record, out), as_json=as_json, quiet=quiet)


def comparison_text(record: Comparison, out: Path) -> str:
    """The table in the paper's layout, what was not run, costs, and where everything was written."""
    from metricsmith.report.comparison.write import ComparisonDocument
    from metricsmith.report.terminal import render_terminal

    return render_terminal(ComparisonDocument(record), out)
