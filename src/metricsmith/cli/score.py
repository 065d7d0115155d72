"""``metricsmith score`` and ``metricsmith explain``: an induced metric at work on new outputs."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.options import LimitOptions, ModelOptions, RawCsv, SavedMetricOptions, takes_groups
from metricsmith.cli.running import check_apart, check_writable, end_with, scored, write
from metricsmith.cli.saved_metrics import induced_metric, model_for, rows_for
from metricsmith.cli.terminal import say
from metricsmith.errors import (
    DataError,
    MetricsmithError,
    ModelFailure,
    OptionError,
    nearest,
)
from metricsmith.records import Judgement, Status
from metricsmith.report.render import cost_line
from metricsmith.spreadsheets import write_table

if TYPE_CHECKING:
    from metricsmith.programs.induced import Explanation, InducedMetric
    from metricsmith.scoring import ScoreTable

__all__ = ["explain_command", "score_command"]

MOST_FAILED = 0.2  # share of model judgements that may fail before the command counts as failed
NO_FAILURES = {Status.OK, Status.SKIPPED, Status.BUDGET}
OWN_COLUMNS = {"id", "prediction", "score", "status", "missing", "error"}


@takes_groups(after={"out": "data"})
def score_command(
    saved: SavedMetricOptions,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write; by default printed.")] = None,
    model: ModelOptions = ModelOptions(),
    limits: LimitOptions = LimitOptions(),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it will cost; send nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV.")] = False,
    raw_csv: RawCsv = False,
    labelled: Annotated[
        str | None,
        typer.Option(metavar="RATED", help="Rated rows of the same kind: print the mean rating of the table by both."),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="COL", help="Their column with the rating, if renamed.")] = None,
) -> None:
    """Score every row of a table."""
    if target is not None and labelled is None:
        raise OptionError("--target names the rating of the rated rows: give their table with --labelled RATED, too")
    if out is not None:
        check_writable(out, "--out", folder=False)
        tables = {"table": saved.data, "rated table": labelled}
        check_apart([out], "--out", {"metric": saved.metric, **tables, "store": limits.store})
    if limits.store is not None:
        check_writable(limits.store, "--store", folder=False)
    options = limits.scoring()
    metric = induced_metric(saved.metric, saved.local)
    table = rows_for(metric, saved.data, saved.reading())
    rows, correction = table.rows, None
    if labelled is not None:
        from metricsmith.studies.correction import CorrectionRows

        own = {"target": target or metric.task.target, "scale": metric.task.scale}
        rated = rows_for(metric, labelled, {**saved.reading(), **own}, of="rated table: ")
        rows, correction = [*rated.rows, *table.rows], CorrectionRows.of(rated, table, metric=metric)
    with model_for(metric, model):
        if dry_run:
            say(_estimated(metric, rows, limits.store))
            return
        judged, problem = _judge(metric, rows, progress=out is not None, **options)
    explained = metric.combine(judged)
    lines = [_line(row["id"], part) for row, part in zip(rows, explained, strict=True)][len(rows) - len(table) :]
    found = None
    if correction is not None and problem is None:
        import numpy as np

        raw = np.array([part.prediction.raw for part in explained], dtype=float)
        try:
            found = correction.corrected(raw[correction.places])
        except DataError as refusal:
            problem = refusal  # told when the scores are written
    more = [] if found is None or not as_json else [{"corrected_mean": found.as_dict()}]
    text = _written([*lines, *more], as_json=as_json, raw_csv=raw_csv)
    if out is None:
        say(text, nl=False)
    else:
        write(out, text)
    without = sum(line["prediction"] is None for line in lines)
    partly = sum(line["prediction"] is not None and line["missing"] > 0 for line in lines)
    lack = f", {partly} with components missing (columns missing and error)" if partly else ""
    place = "" if out is None else f": {out}"
    say(f"{len(lines)} rows scored, {without} without a prediction{lack}{place}", err=True)
    end_with(problem)
    if found is not None:
        say(f"mean {metric.task.target}: {found}", err=True)
    _check_failures(metric, [judged.column(place) for place in range(len(metric.components))])


@takes_groups(without=("system", "rater", "where", "temperature"), after={"row": "data"})
def explain_command(
    saved: SavedMetricOptions,
    row: Annotated[str, typer.Option(metavar="ID", help="Id of the row to explain.")],
    model: ModelOptions = ModelOptions(),
) -> None:
    """Take one row's prediction apart."""
    metric = induced_metric(saved.metric, saved.local)
    table = rows_for(metric, saved.data, saved.reading())
    found = [candidate for candidate in table.rows if candidate["id"] == row]
    if not found:
        raise DataError(
            f"{saved.data} has no row with id {row!r}{nearest(row, table.ids)}; ids run from {table.ids[0]!r} to "
            f"{table.ids[-1]!r}"
        )
    with model_for(metric, model):
        (explanation,) = metric.explain(found)
    prediction, scale = explanation.prediction, metric.task.scale
    if prediction.raw is None:
        say(f"row {row}: no prediction ({prediction.error})")
    else:
        say(f"row {row}: {prediction.raw:.3f} on {scale} (score {prediction.score:.3f})")
    say(f"{explanation.intercept:+9.3f}  a row that is average in every component")
    for part in sorted(explanation.parts, key=lambda part: -part.cost if part.judgement.ok else math.inf):
        points = f"{part.contribution:+9.3f}" if part.judgement.ok else f"{'none':>9}"
        say(f"{points}  {part}")
    _check_failures(metric, [[part.judgement] for part in explanation.parts])


def _written(lines: Sequence[Mapping[str, Any]], *, as_json: bool, raw_csv: bool) -> str:
    """The lines as JSON or CSV."""
    text = io.StringIO()
    if as_json:
        text.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    else:
        write_table(text, list(lines[0]), lambda: [list(line.values()) for line in lines], raw=raw_csv)
    return text.getvalue()


def _estimated(metric: InducedMetric, rows: Sequence[Any], store: Path | None) -> str:
    """The line of the requests that are left to send."""
    from metricsmith.scoring import estimate

    return cost_line("estimated", estimate(metric.components, rows, store=store))


def _judge(metric: InducedMetric, rows: Sequence[Any], **options: Any) -> tuple[ScoreTable, MetricsmithError | None]:
    """The components' judgements, and the error that cut the run short; prints the cost where a model is asked."""
    asks = "model" in metric.card.needs
    if asks:
        say(_estimated(metric, rows, options["store"]), err=True)
    table, problem = scored(metric.components, rows, max_failure_rate=1.0, **options)
    if asks:
        say(cost_line("actual", table.usage), err=True)
    left = table.counts()["budget"]
    if left:
        say(f"{left} judgements were left undone; run the command again with a larger budget", err=True)
    return table, problem


def _check_failures(metric: InducedMetric, columns: Sequence[Sequence[Judgement]]) -> None:
    """Fail the command where a model failed on too many judgements, though other components may predict the row.

    The model that is asked answers for all its components together, each network of this machine for its own.
    """
    costs = [component.card.cost for component in metric.components]
    asked = [one for cost, column in zip(costs, columns, strict=True) if cost == "model" for one in column]
    for judgements in (asked, *(column for cost, column in zip(costs, columns, strict=True) if cost == "local")):
        _check_share(judgements)


def _check_share(judgements: Sequence[Judgement]) -> None:
    failed = [judgement for judgement in judgements if judgement.status not in NO_FAILURES]
    if len(failed) > MOST_FAILED * len(judgements):
        counts = Counter(judgement.status.value for judgement in failed)
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
        raise ModelFailure(
            f"{len(failed)} of {len(judgements)} model judgements failed ({kinds}), the first: {failed[0].metric}: "
            f"{failed[0].error}; what there is was kept"
        )


def _line(row_id: str, explanation: Explanation) -> Mapping[str, Any]:
    """One row of the result; `error` says why there is no prediction, or which components are missing in it."""
    prediction = explanation.prediction
    missing = [f"{part.name}: {part.judgement.error}" for part in explanation.parts if not part.judgement.ok]
    return {
        "id": row_id,
        "prediction": prediction.raw,
        "score": prediction.score,
        "status": prediction.status.value,
        "missing": len(missing),
        "error": prediction.error or "; ".join(missing),
        **{
            part.name + (" (component)" if part.name in OWN_COLUMNS else ""): part.judgement.raw
            for part in explanation.parts
        },
    }
