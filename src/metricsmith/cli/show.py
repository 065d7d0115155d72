"""``metricsmith show``: a page of scored rows from what is stored, nothing is judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metricsmith.cli.running import check_apart, check_writable
from metricsmith.cli.terminal import say
from metricsmith.errors import DataError
from metricsmith.report.scored.record import ScoredRow, ScoredRows

if TYPE_CHECKING:
    import dspy

__all__ = ["read_scored", "read_stored", "show_command", "texts_of", "write_shown"]


def show_command(
    file: Annotated[
        Path, typer.Argument(metavar="STORE|SCORES", help="A store, or a table of scores: CSV or JSON lines.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="File to write; by default its whole name with .html.")
    ] = None,
) -> None:
    """Make a page of scored rows: sort, filter, search, open each row. Nothing is judged."""
    from metricsmith.report.scored.document import scored_verdict

    page = file.with_name(f"{file.name}.html") if out is None else out  # never the page that a score command wrote
    check_writable(page, "--out", folder=False)
    check_apart([page], "--out", {"file to show": file})
    table = read_stored(file) if _is_store(file) else read_scored(file)
    say(scored_verdict(table).sentence)
    write_shown(table, page)


def write_shown(table: ScoredRows, page: Path) -> None:
    """Write the page, and say in the terminal where it is and what it leaves out.

    Raises
    ------
    DataError
        If it cannot be written.
    """
    from metricsmith.report.scored.document import shown_rows, write_page

    for note in filter(None, (shown_rows(table)[1], *table.notes)):
        say(f"note: {note}", err=True)
    try:
        write_page(table, page)
    except OSError as problem:
        raise DataError(f"cannot write {page}: {problem.strerror or problem}; name another place") from problem
    say(f"page: {page}", err=True)


def texts_of(rows: Sequence[dspy.Example]) -> list[dict[str, str]]:
    """The texts of rows as cells of a page: input, output, references and context, those that any of the rows has."""
    from metricsmith.metric import row_text

    texts = [row_text(row) for row in rows]
    cells = [
        {
            "input": text.input,
            "output": text.output,
            "references": "\n\n".join(text.references),
            "context": text.context,
        }
        for text in texts
    ]
    used = [name for name in (cells[0] if cells else ()) if any(one[name] for one in cells)]
    return [{name: one[name] for name in used} for one in cells]


def _is_store(file: Path) -> bool:
    """True if the file begins as those of SQLite do."""
    try:
        with file.open("rb") as stream:
            return stream.read(16) == b"SQLite format 3\0"
    except OSError as problem:
        raise DataError(
            f"{file} cannot be read: {problem.strerror or problem}; name a store or a table of scores"
        ) from problem


def read_scored(file: Path) -> ScoredRows:
    """The scored rows of a table of scores, as ``metricsmith score --out`` writes it.

    Raises
    ------
    DataError
        If the file cannot be read, or is no table of scores.
    """
    from metricsmith.datasets.formats import parse_file
    from metricsmith.report.scored.reading import rows_of_scores

    return rows_of_scores(parse_file(file, file.read_bytes()).columns, file.name)


def read_stored(file: Path) -> ScoredRows:
    """The rows of a store, in which every metric is a part, and so is each further run of it; there are no texts.

    A store of one metric's first run alone has that metric's judgements as values.

    Raises
    ------
    StoreError
        If the store cannot be opened.
    DataError
        If it holds no judgement.
    """
    from metricsmith.metric import Part
    from metricsmith.records import Judgement, Status
    from metricsmith.store.schema import connect
    from metricsmith.store.verifying import records

    found: dict[str, tuple[str, dict[tuple[str, int], Judgement]]] = {}
    fingerprints: dict[str, list[str]] = {}
    damaged = 0
    with closing(connect(file, read_only=True, salvage=True)) as connection:
        for record in records(connection):
            judgement = record.judgement
            if judgement is None or record.row_key is None or record.fingerprint is None:
                damaged += 1
                continue
            _, row = found.setdefault(record.row_key, (record.row_id or record.row_key, {}))
            row[record.fingerprint, judgement.run] = judgement
            known = fingerprints.setdefault(judgement.metric, [])
            if record.fingerprint not in known:
                known.append(record.fingerprint)
    if not found:
        raise DataError(f"{file} holds no judgement that can be read: `metricsmith store verify {file}` names damage")
    runs = {key for _, row in found.values() for key in row}
    names = {
        (fingerprint, run): metric
        + (f" [{fingerprint[:8]}]" if len(known) > 1 else "")
        + (f" (run {run + 1})" if run else "")
        for metric, known in fingerprints.items()
        for fingerprint in known
        for run in sorted(run for one, run in runs if one == fingerprint)
    }
    never = Judgement("", status=Status.SKIPPED, error="the store has no judgement of this row")
    rows = [
        ScoredRow(label, {}, next(iter(row.values())), 0.0, ())
        if len(names) == 1
        else ScoredRow(label, {}, None, math.nan, tuple(
            Part(name, "", math.nan, True, math.nan, math.nan, row.get(key, never)) for key, name in names.items()
        ))
        for label, row in found.values()
    ]  # fmt: skip
    told = f"{damaged} damaged judgements are left out; `metricsmith store verify {file}` names them"
    target = next(iter(names.values())) if len(names) == 1 else ""
    return ScoredRows(rows, target, None, ", ".join(names.values()), file.name, (told,) if damaged else ())
