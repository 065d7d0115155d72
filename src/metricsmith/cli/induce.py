"""``metricsmith induce``: from a table of rated outputs to a metric and its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from metricsmith.cli.limits import Bounds, StoreFile, concurrency
from metricsmith.cli.model import ApiBase, Model, language_model
from metricsmith.cli.paths import check_apart, check_writable
from metricsmith.cli.summary import summary
from metricsmith.errors import DataError, OptionError

__all__ = ["induce"]

FILES = ("metric.json", "report.html", "report.md", "report.json", "scores.csv")


def induce(
    data: Annotated[str, typer.Argument(help="CSV, TSV, JSONL or Parquet file, or a Hugging Face data set id.")],
    target: Annotated[str, typer.Option(metavar="COL", help="Column with the human rating.")],
    task: Annotated[
        str, typer.Option(metavar="TEXT|@FILE", help="What the outputs are for and what makes a good one.")
    ] = "",
    output: Annotated[str | None, typer.Option(metavar="COL", help="Column with the text to judge.")] = None,
    input: Annotated[list[str] | None, typer.Option(metavar="COL", help="Column that the output answers.")] = None,
    reference: Annotated[list[str] | None, typer.Option(metavar="COL", help="Column with good outputs.")] = None,
    id: Annotated[str | None, typer.Option(metavar="COL", help="Column with unique row ids.")] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Rows of one group never stand on both sides of a split."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="COL=VALUE", help="Keep rows with (COL!=VALUE: without) a value."),
    ] = None,
    metric_columns: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Columns of scores to take as candidates.")
    ] = None,
    prior_columns: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Those that measure the target itself.")
    ] = None,
    bank: Annotated[str, typer.Option(help="auto, all, existing, generated or none.")] = "auto",
    regression: Annotated[str, typer.Option(help="auto (PriorRidge) or pls (the paper's).")] = "auto",
    n: Annotated[int | None, typer.Option("--n", help="How many components; by default as many as are needed.")] = None,
    k: Annotated[int, typer.Option("--k", help="How many metrics retrieval keeps.")] = 30,
    panel: Annotated[
        bool, typer.Option("--panel", help="Ask all generated judges in one request a row, which is cheaper.")
    ] = False,
    lm: Model = None,
    api_base: ApiBase = None,
    store: StoreFile = None,
    bounds: Bounds = "auto",
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE|FRACTION", help="Test rows: a file like DATA, or a share to hold out (0.3)."),
    ] = None,
    cv: Annotated[int | None, typer.Option(metavar="K", help="Grouped K-fold cross-validation instead.")] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="LOW:HIGH[:STEP]", help="The rating scale; by default inferred.")
    ] = None,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="The rating counts something bad, such as errors.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Decides splits, ties and resampling.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where metric and report go.")] = Path("metricsmith-out"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print plan and cost; send nothing, write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Induce a metric from rated outputs."""
    from metricsmith.datasets.table import read_table
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.optimizers.induce import induce as run
    from metricsmith.optimizers.induce import plan

    optimizer = AutoMetrics(
        bank=bank, k=k, n=n, regression=regression, panel=panel, lm=language_model(lm, api_base), seed=seed,
        progress=not quiet and not as_json, store=store, concurrency=concurrency(bounds, None, None),
    )  # fmt: skip
    if test is not None and cv is not None:
        raise OptionError("--cv and --test exclude each other: cross-validation tests on every row")
    if not dry_run:
        check_writable(out, "--out", folder=True)
        check_apart([out / name for name in FILES], "--out", {"table": data, "test table": test, "store": store})
    if store is not None:
        check_writable(store, "--store", folder=False)
    reading: dict[str, Any] = {
        "target": target, "task": _text(task), "output": output, "inputs": input or (), "reference": reference or (),
        "id": id, "group": group, "where": where or (), "metric_columns": metric_columns or (),
        "prior_columns": prior_columns or (), "scale": scale, "higher_is_better": False if lower_is_better else None,
    }  # fmt: skip
    table = read_table(data, **reading)
    fraction, test_table = _test_side(test, reading)
    if not quiet and not as_json:
        for note in table.notes:
            typer.echo(f"note: {note}", err=True)
    if dry_run:
        typer.echo(plan(table, optimizer, fraction=fraction, test=test_table, cv=cv))
        return
    try:
        done = run(table, optimizer, fraction=fraction, test=test_table, cv=cv)
    except KeyboardInterrupt as stop:
        again = f"stands in {store}" if store is not None else "would stand in a file given by --store"
        typer.echo(
            f"error: {str(stop) or 'interrupted'}; what was judged {again}, from which the same command goes on",
            err=True,
        )
        raise typer.Exit(130) from stop
    done.write(out)
    if as_json:
        typer.echo(json.dumps(done.record.as_dict(), ensure_ascii=False, indent=1))
    elif not quiet:
        typer.echo(summary(done, out))


def _text(value: str) -> str:
    """The text itself, or the content of the file after an ``@``."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(
            f"--task {value} cannot be read as UTF-8 text: {_reason(problem)}; name a text file"
        ) from problem


def _reason(problem: OSError | UnicodeDecodeError) -> str:
    return (problem.strerror if isinstance(problem, OSError) else problem.reason) or str(problem)


def _test_side(test: str | None, reading: dict[str, Any]) -> tuple[float, Any]:
    """A fraction to hold out, or a table of its own."""
    from metricsmith.datasets.table import read_table

    if test is None:
        return 0.3, None
    try:
        fraction = float(test)
    except ValueError:
        return 0.0, read_table(test, **{**reading, "min_rated": 2})
    if not 0 <= fraction < 1:
        raise OptionError(f"--test {test} must be a file, or a share from 0 (no test) to below 1, such as 0.3")
    return fraction, None
