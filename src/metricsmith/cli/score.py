"""``metricsmith score`` and ``metricsmith explain``: metrics at work on new outputs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metricsmith.cli.options import LimitOptions, ModelOptions, RawCsv, SavedMetricOptions, takes_groups
from metricsmith.cli.running import check_apart, check_writable
from metricsmith.cli.saved_metrics import model_for, named_metrics, rows_for, single_metric, stream_for
from metricsmith.cli.score_lines import Lines, Tally
from metricsmith.cli.scores_file import Printed, ScoresFile
from metricsmith.cli.show import read_scored, texts_of, write_shown
from metricsmith.cli.terminal import say
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.formats import excerpt, points, raw, statistic
from metricsmith.records import Task, Usage
from metricsmith.report.render import cost_line
from metricsmith.report.scored.record import ScoredRow, ScoredRows
from metricsmith.version import __version__

if TYPE_CHECKING:
    import dspy

    from metricsmith.datasets.streamed import KeptRow, StreamedTable
    from metricsmith.metric import Explanation, Metric
    from metricsmith.rating_model.corrected import CorrectedMean
    from metricsmith.scoring.streaming import ScoringStream
    from metricsmith.studies.correction import CorrectionRows

__all__ = ["explain_command", "score_command"]

ROWS_AT_A_TIME = 1_000  # that are judged before the next ones are begun: what waits holds up no more, a kill loses it


@takes_groups(after={"out": "data"})
def score_command(
    saved: SavedMetricOptions,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write; by default printed.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="Column of the table to write beside the scores.")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Write contributions, statuses and reasons of components, too.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page of the rows, too, which then fill memory.")
    ] = None,
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
    """Score every row of a table; the same command goes on where it was stopped."""
    if target is not None and labelled is None:
        raise OptionError("--target names the rating of the rated rows: give their table with --labelled RATED, too")
    written = [] if out is None else [out, *ScoresFile.beside(out)]
    read: dict[str, Path | str | None] = {
        "metric": saved.metric, "table": saved.data, "rated table": labelled, "store": limits.store,
    }  # fmt: skip
    if out is not None:
        check_writable(out, "--out", folder=False)
        check_apart(written, "--out", read)
    if html is not None:
        check_writable(html, "--html", folder=False)
        own = dict(zip(("scores", "unfinished scores", "note on them"), written, strict=False))
        check_apart([html], "--html", {**read, **own})
    if limits.store is not None:
        check_writable(limits.store, "--store", folder=False)
    with Printed() as printed:
        options = limits.scoring()
        metrics = named_metrics(str(saved.metric), saved.local)
        table = stream_for(metrics, saved.data, saved.reading(), keep or ())
        rated = None if labelled is None else _Rated.of(metrics, labelled, target, saved)
        with model_for(metrics[0], model):
            if dry_run:
                say(_estimated(metrics, _pieces(table, rated, 0), limits.store))
                return
            from metricsmith.metric import content_hash
            from metricsmith.scoring.streaming import ScoringStream

            stream = ScoringStream(metrics, lambda: _rows(table, rated), **options)
            lines = Lines.of(metrics, table, as_json=as_json, details=details, raw=raw_csv)
            identity = {
                "metric": stream.fingerprint, "table": table.source.checksum, "version": __version__,
                "option": content_hash([saved.reading(), keep, details, as_json, raw_csv, str(table.columns)]),
            }  # fmt: skip
            with ScoresFile(out, identity, kept=rated is None) if out else printed as file:
                shown: list[ScoredRow] | None = None if html is None else []
                earlier = int(file.told.get("rows", 0))
                try:
                    _score(stream, table, rated, lines, file, limits.store, shown)
                finally:
                    if html is not None and shown is not None and earlier + len(shown) == len(table):
                        if earlier and not details:
                            said = f"the first {earlier} rows were read back from {out}, and have numbers alone"
                            say(f"{html}: {said}; --details keeps their components and reasons, too", err=True)
                        before = read_scored(out).rows[:earlier] if earlier and out is not None else ()
                        write_shown(_on_page(stream, table, [*before, *shown]), html)


@takes_groups(without=("system", "rater", "where", "temperature"), after={"row": "data"})
def explain_command(
    saved: SavedMetricOptions,
    row: Annotated[str, typer.Option(metavar="ID", help="Id of the row to explain.")],
    model: ModelOptions = ModelOptions(),
) -> None:
    """Take one row's prediction apart, or those of all rows with this id."""
    from metricsmith.scoring.explanations import explained

    metric = single_metric(named_metrics(str(saved.metric), saved.local), saved.metric)
    table = rows_for(metric, saved.data, saved.reading())
    found = [candidate for candidate in table.rows if candidate["id"] == row]
    if not found:
        raise DataError(
            f"{saved.data} has no row with id {row!r}{nearest(row, table.ids)}; ids run from {table.ids[0]!r} to "
            f"{table.ids[-1]!r}"
        )
    with model_for(metric, model):
        taken = explained(metric, found, progress=False, max_failure_rate=1.0)
    tally, count = Tally(), len(found)
    for number, (one, explanation) in enumerate(zip(found, taken, strict=True), 1):
        told = f" ({number} of {count} with this id: {excerpt(one.get('output', ''), 60)!r})" if count > 1 else ""
        _tell(f"row {row}{told}", explanation, metric)
        tally.add(ScoredRow.of(row, {}, explanation), [metric])
    tally.check_failures()


def _tell(row: str, explanation: Explanation, metric: Metric) -> None:
    """Print a row's prediction and its parts."""
    prediction, task = explanation.prediction, getattr(metric, "task", None)
    # A decimal more than elsewhere, so that the sum is seen.
    width = (task.scale.high - task.scale.low) / 10 if isinstance(task, Task) else math.nan
    if prediction.raw is None:
        say(f"{row}: no prediction ({prediction.error})")
    elif isinstance(task, Task):
        say(f"{row}: {points(prediction.raw, width)} on {task.scale} (score {statistic(prediction.score or 0.0)})")
    else:
        say(f"{row}: {raw(prediction.raw)} by {metric.name}")
    if explanation.parts:
        say(f"{points(explanation.intercept, width, signed=True):>9}  a row that is average in every component")
    elif prediction.feedback:
        say(prediction.feedback)
    for part in sorted(explanation.parts, key=lambda part: -part.cost if part.judgement.ok else math.inf):
        added = points(part.contribution, width, signed=True) if part.judgement.ok else "none"
        say(f"{added:>9}  {part}")


@dataclass(frozen=True)
class _Rated:
    """Rated rows, which are judged before the others and correct the mean of these."""

    rows: list[dspy.Example]
    correction: CorrectionRows
    target: str
    values: list[float]

    @classmethod
    def of(cls, metrics: Sequence[Metric], labelled: str, target: str | None, saved: SavedMetricOptions) -> _Rated:
        from metricsmith.studies.correction import CorrectionRows

        metric, task = single_metric(metrics, saved.metric), getattr(metrics[0], "task", None)
        task = task if isinstance(task, Task) else None
        own = {"target": target or (task.target if task else None), "scale": task.scale if task else None}
        if own["target"] is None:
            raise OptionError(f"{saved.metric} does not say what it predicts: name the rating with --target COL")
        rated = rows_for(metric, labelled, {**saved.reading(), **own}, of="rated table: ")
        whole = rows_for(metric, saved.data, saved.reading(), quiet=True)
        correction = CorrectionRows.of(rated, whole, metric=metric)
        return cls(rated.rows, correction, str(own["target"]), [])

    def corrected(self) -> CorrectedMean:
        """The corrected mean of what was scored; `DataError` where it has none."""
        import numpy as np

        return self.correction.corrected(np.array(self.values, dtype=float)[self.correction.places])


def _rows(table: StreamedTable, rated: _Rated | None) -> Iterator[dspy.Example]:
    """All rows that are judged."""
    yield from [] if rated is None else rated.rows
    yield from (row for row, _ in table)


def _pieces(table: StreamedTable, rated: _Rated | None, after: int) -> Iterator[Sequence[KeptRow]]:
    """The rows in the pieces in which they are judged, those of the table without the first so many."""
    rows = [] if rated is None else rated.rows
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        yield [(row, {}) for row in rows[start : start + ROWS_AT_A_TIME]]
    yield from table.pieces(ROWS_AT_A_TIME, after)


def _estimated(metrics: Sequence[Metric], pieces: Iterable[Sequence[KeptRow]], store: Path | None) -> str:
    """The line of the requests that are left to send, piece by piece: a text counts once in each."""
    from metricsmith.model_calls.limits import total_usage
    from metricsmith.scoring import estimate
    from metricsmith.scoring.explanations import scored_metrics

    used = (
        estimate(scored_metrics(metrics[0]), [row for row, _ in piece], store=store)
        for piece in (pieces if "model" in metrics[0].card.needs else ())
    )
    return cost_line("estimated", total_usage([Usage(cost=0.0), *used]))


def _score(
    stream: ScoringStream,
    table: StreamedTable,
    rated: _Rated | None,
    lines: Lines,
    file: Printed,
    store: Path | None,
    shown: list[ScoredRow] | None,
) -> None:
    """Judge the rows that are left, write each line as soon as its piece is judged, and gather those to be shown."""
    tally, done, before = Tally(**file.told), 0, 0 if rated is None else len(rated.rows)
    asks = "model" in stream.metrics[0].card.needs
    if asks:
        say(_estimated(stream.metrics, _pieces(table, rated, tally.rows), store), err=True)
    total = before + len(table) - tally.rows
    pieces = _pieces(table, rated, tally.rows)
    for rows in stream.scored(pieces, total=total, progress=file.quiet):
        sure = stream.complete - done
        for number, row in enumerate(rows, 1):
            if rated is not None and row.prediction is not None:
                rated.values.append(math.nan if row.prediction.raw is None else row.prediction.raw)
            own = done + number > before
            if own:
                file.write(("" if tally.rows else lines.header(row)) + lines.text(row))
                if shown is not None:
                    shown.append(row)
            tally.add(row, stream.judging, own=own)
            if number == sure:
                file.sure(asdict(tally))
        done += len(rows)
    found, problem = None, stream.problem
    if rated is not None and problem is None:
        try:
            found = rated.corrected()
        except DataError as refusal:
            problem = refusal  # told when the scores are written
    if found is not None and lines.as_json:
        file.write(json.dumps({"corrected_mean": found.as_dict()}, ensure_ascii=False) + "\n")
    file.finish()
    if asks:
        say(cost_line("actual", stream.usage), err=True)
    if tally.left:
        say(f"{tally.left} judgements were left undone; run the command again with a larger budget", err=True)
    say(f"{tally}{file.name}", err=True)
    if problem is not None:
        raise problem
    if found is not None and rated is not None:
        say(f"mean {rated.target}: {found}", err=True)
    tally.check_failures()


def _on_page(stream: ScoringStream, table: StreamedTable, rows: Sequence[ScoredRow]) -> ScoredRows:
    """All rows of the table with their texts, for a page."""
    texts = texts_of([row for row, _ in table])
    made = [replace(row, cells={**cells, **row.cells}) for row, cells in zip(rows, texts, strict=True)]
    names, source = ", ".join(metric.name for metric in stream.metrics), Path(table.source.name).name
    if len(stream.metrics) > 1:
        return ScoredRows(made, "", None, names, source)
    task = getattr(stream.metrics[0], "task", None)
    target, scale = (task.target, task.scale) if isinstance(task, Task) else (names, None)
    signature = getattr(getattr(stream.metrics[0], "settings", None), "signature", "")
    return ScoredRows(made, target, scale, signature or names, source)
