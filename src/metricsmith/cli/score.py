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
from metricsmith.errors import DataError, OptionError, nearest

if TYPE_CHECKING:
    from metricsmith.datasets.table import Table
    from metricsmith.programs.induced import Explanation, InducedMetric

__all__ = ["explain", "score"]

MetricFile = Annotated[Path, typer.Argument(metavar="METRIC.json", help="Written by `metricsmith induce`.")]
Data = Annotated[str, typer.Argument(help="A table with the columns that the metric was induced from.")]


def score(
    metric: MetricFile,
    data: Data,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV to write; by default printed.")] = None,
    lm: Model = None,
    api_base: ApiBase = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV.")] = False,
) -> None:
    """Score every row of a table."""
    induced, table = _open(metric, data)
    explanations = _explain(induced, table.rows, lm, api_base, progress=out is not None)
    lines = [_line(row["id"], e) for row, e in zip(table.rows, explanations, strict=True)]
    if as_json:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    else:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        text = buffer.getvalue()
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, "utf-8")
        missing = sum(line["prediction"] is None for line in lines)
        typer.echo(f"{len(lines)} rows scored, {missing} without a prediction: {out}", err=True)


def explain(
    metric: MetricFile,
    data: Data,
    row: Annotated[str, typer.Option(metavar="ID", help="Id of the row to explain.")],
    lm: Model = None,
    api_base: ApiBase = None,
) -> None:
    """Take one row's prediction apart."""
    induced, table = _open(metric, data)
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
    typer.echo(f"{explanation.intercept:+9.3f}  an average rated output")
    for part in sorted(explanation.parts, key=lambda part: -part.cost if part.cost == part.cost else math.inf):
        typer.echo(f"{part.contribution:+9.3f}  {part}")


def _open(path: Path, data: str) -> tuple[InducedMetric, Table]:
    from metricsmith.datasets.table import read_table
    from metricsmith.programs.induced import InducedMetric
    from metricsmith.programs.loading import load

    metric = load(path)
    if not isinstance(metric, InducedMetric):
        raise OptionError(f"{path} holds a {metric.card.kind}, not an induced metric; induce one first")
    return metric, read_table(data, require_target=False, **metric.reading)


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
    prediction = explanation.prediction
    return {
        "id": row_id,
        "prediction": prediction.raw,
        "score": prediction.score,
        "status": prediction.status.value,
        **{part.name: part.judgement.raw for part in explanation.parts},
    }
