"""``metricsmith score`` and ``metricsmith explain``: an induced metric at work on new outputs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.model import ApiBase, Model, language_model
from metricsmith.cli.paths import check_writable
from metricsmith.errors import DataError, ModelFailure, OptionError, nearest
from metricsmith.records import Status

if TYPE_CHECKING:
    from metricsmith.datasets.table import Table
    from metricsmith.programs.induced import Explanation, InducedMetric

__all__ = ["explain", "score"]

MOST_FAILED = 0.2  # share of rows that the model may fail on before the command counts as failed
OWN_COLUMNS = {"id", "prediction", "score", "status", "error"}
MetricFile = Annotated[Path, typer.Argument(metavar="METRIC.json", help="Written by `metricsmith induce`.")]
Data = Annotated[str, typer.Argument(help="A table; columns are looked for under the names they had in training.")]
Output = Annotated[str | None, typer.Option(metavar="COL", help="Column with the text to judge, if renamed.")]
Input = Annotated[list[str] | None, typer.Option(metavar="COL", help="Columns that the output answers, if renamed.")]
Reference = Annotated[list[str] | None, typer.Option(metavar="COL", help="Columns with good outputs, if renamed.")]
Id = Annotated[str | None, typer.Option(metavar="COL", help="Column with unique row ids.")]
Where = Annotated[list[str] | None, typer.Option(metavar="COL=VALUE", help="Keep rows with (COL!=VALUE: without).")]


def score(
    metric: MetricFile,
    data: Data,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write; by default printed.")] = None,
    output: Output = None,
    input: Input = None,
    reference: Reference = None,
    id: Id = None,
    where: Where = None,
    lm: Model = None,
    api_base: ApiBase = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV.")] = False,
) -> None:
    """Score every row of a table."""
    if out is not None:
        check_writable(out, "--out", folder=False)
    named = {"output": output, "inputs": input, "reference": reference, "id": id, "where": where}
    induced, table = _open(metric, data, named)
    explanations = _explain(induced, table.rows, lm, api_base, progress=out is not None)
    lines = [_line(row["id"], explanation) for row, explanation in zip(table.rows, explanations, strict=True)]
    text = _json_lines(lines) if as_json else _csv(lines)
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, "utf-8")
        missing = sum(line["prediction"] is None for line in lines)
        typer.echo(f"{len(lines)} rows scored, {missing} without a prediction: {out}", err=True)
    failed = [line for line in lines if line["status"] not in {Status.OK, Status.SKIPPED}]
    if len(failed) > MOST_FAILED * len(lines):
        raise ModelFailure(
            f"{len(failed)} of {len(lines)} rows have no prediction because the model failed, the first: "
            f"{failed[0]['error']}; the others are kept"
        )


def explain(
    metric: MetricFile,
    data: Data,
    row: Annotated[str, typer.Option(metavar="ID", help="Id of the row to explain.")],
    output: Output = None,
    input: Input = None,
    reference: Reference = None,
    id: Id = None,
    lm: Model = None,
    api_base: ApiBase = None,
) -> None:
    """Take one row's prediction apart."""
    induced, table = _open(metric, data, {"output": output, "inputs": input, "reference": reference, "id": id})
    found = [candidate for candidate in table.rows if candidate["id"] == row]
    if not found:
        raise DataError(
            f"{data} has no row with id {row!r}{nearest(row, table.ids)}; ids run from {table.ids[0]!r} to "
            f"{table.ids[-1]!r}"
        )
    (explanation,) = _explain(induced, found, lm, api_base, progress=False)
    prediction, scale = explanation.prediction, induced.task.scale
    if prediction.raw is None:
        typer.echo(f"row {row}: no prediction ({prediction.error})")
    else:
        typer.echo(f"row {row}: {prediction.raw:.3f} on {scale} (score {prediction.score:.3f})")
    typer.echo(f"{explanation.intercept:+9.3f}  a row that is average in every component")
    for part in sorted(explanation.parts, key=lambda part: -part.cost if part.judgement.ok else math.inf):
        points = f"{part.contribution:+9.3f}" if part.judgement.ok else f"{'none':>9}"
        typer.echo(f"{points}  {part}")


def _open(path: Path, data: str, named: Mapping[str, Any]) -> tuple[InducedMetric, Table]:
    """The metric, and the table read as in training except for the columns that are named now."""
    from metricsmith.datasets.table import read_table
    from metricsmith.programs.induced import InducedMetric
    from metricsmith.programs.loading import load

    metric = load(path)
    if not isinstance(metric, InducedMetric):
        raise OptionError(f"{path} holds a {metric.card.kind}, not an induced metric; induce one first")
    reading = {**metric.reading, **{role: column for role, column in named.items() if column}}
    return metric, read_table(data, require_target=False, **reading)


def _explain(
    metric: InducedMetric, rows: list[Any], lm: str | None, api_base: str | None, *, progress: bool
) -> list[Explanation]:
    import dspy

    model = language_model(lm, api_base)
    if model is None and "model" in metric.card.needs:
        raise OptionError("the metric has components that need a language model: name one with --lm MODEL")
    with dspy.context(lm=model):
        return metric.explain(rows, progress=progress)


def _line(row_id: str, explanation: Explanation) -> Mapping[str, Any]:
    """One row of the result; `error` says why there is no prediction, or which components are missing in it."""
    prediction = explanation.prediction
    missing = [f"{part.name}: {part.judgement.error}" for part in explanation.parts if not part.judgement.ok]
    return {
        "id": row_id,
        "prediction": prediction.raw,
        "score": prediction.score,
        "status": prediction.status.value,
        "error": prediction.error or "; ".join(missing),
        **{
            part.name + (" (component)" if part.name in OWN_COLUMNS else ""): part.judgement.raw
            for part in explanation.parts
        },
    }


def _json_lines(lines: list[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _csv(lines: list[Mapping[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()
