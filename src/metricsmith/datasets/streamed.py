"""A table of any length to be scored: looked through once, then read some rows at a time, as often as it is wanted."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.cells import cell_text, is_blank
from metricsmith.datasets.columns import Columns, guess_notes, resolve_columns
from metricsmith.datasets.conversations import render_conversations, rendered
from metricsmith.datasets.formats import stream_file, table_suffix
from metricsmith.datasets.labels import Labels, check_filled, label_rows, usable_labels
from metricsmith.datasets.score_columns import ScoreColumns, match_columns, read_numbers
from metricsmith.datasets.sources import Condition, RawTable, filter_rows, open_source, parse_condition
from metricsmith.datasets.table import as_names, check_outputs, closed_inputs, table_rows, without_replies
from metricsmith.errors import DataError
from metricsmith.spreadsheets import is_formula

__all__ = ["StreamedTable", "stream_table"]

FIRST = 1_000  # rows by whose cells columns without a name are guessed
READ = 1_000  # rows that are read at a time

KeptRow = tuple[dspy.Example, dict[str, str]]


@dataclass(frozen=True)
class StreamedTable:
    """Rows to be scored, that are never all in memory.

    Parameters
    ----------
    source : RawSource
    columns : Columns
        The role of each column, the same for all rows.
    keep : tuple of str
        Columns whose texts stand beside each row.
    scores : tuple of str
        Columns of numbers that the rows bring along.
    closed : mapping of str to str
        Inputs that end with the output: see `table.closed_inputs`.
    conversations : tuple of str
        Columns of chat messages, which are written out.
    rows : int
        The number of rows.
    formulas : bool
        Whether an id or a kept cell is a text that a spreadsheet would run.
    notes : tuple of str
        One line for everything that was guessed, refused or left out.
    """

    source: RawSource = field(repr=False)
    columns: Columns
    keep: tuple[str, ...]
    scores: tuple[str, ...]
    closed: Mapping[str, str]
    conversations: tuple[str, ...]
    rows: int
    formulas: bool
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[KeptRow]:
        """Each row with its kept texts, from the start.

        Its id is the cell of the id column, ``row N`` where that is blank, without such a column its number in the
        file; its group the cell of the group column, else the id: unlike `read_table`, a stream joins no groups.
        """
        for raw in self.source:
            kept = [list(map(cell_text, raw.columns[name])) for name in self.keep]
            raw, columns = self.prepared(raw), self.columns
            ids = tuple(map(str, raw.numbers))
            if columns.id is not None:
                cells = raw.texts(columns.id)
                ids = tuple(cell or f"row {number}" for cell, number in zip(cells, raw.numbers, strict=True))
            groups = ids if columns.group is None else raw.texts(columns.group)
            labels = Labels(ids, groups, groups, columns, ())
            unrated = np.full(len(raw), math.nan)
            rows = table_rows(raw, labels, unrated, read_numbers(raw, self.scores))
            for place, row in enumerate(rows):
                yield row, {name: cells[place] for name, cells in zip(self.keep, kept, strict=True)}

    def prepared(self, raw: RawTable) -> RawTable:
        """Raw rows with their conversations written out."""
        return rendered(without_replies(raw, self.columns, self.closed)[0], self.conversations)

    def pieces(self, size: int, after: int = 0) -> Iterator[tuple[KeptRow, ...]]:
        """The rows `size` at a time, without the first so many.

        Raises
        ------
        DataError
            At the end, if the file was changed since it was looked through.
        """
        rows = iter(self)
        for _ in range(after):
            next(rows, None)
        while piece := tuple(islice(rows, size)):
            yield piece
        self.source.check_unchanged()


@dataclass(frozen=True)
class RawSource:
    """The raw rows of a source that fulfil the conditions, some at a time, each with all columns of the file.

    Parameters
    ----------
    name : str
    whole : RawTable or None
        The table, where it is not a file that can be read in pieces.
    where : tuple of str
    """

    name: str
    whole: RawTable | None = field(repr=False)
    where: tuple[str, ...]
    state: tuple[int, int]

    @classmethod
    def of(cls, source: Any, where: Sequence[str]) -> RawSource:
        """The rows of anything that `open_source` takes; a regular file of rows is not read yet."""
        path = Path(source) if isinstance(source, str | os.PathLike) else None
        if (
            path is None
            or not path.is_file()
            or table_suffix(path) in ("", ".json", ".xlsx")
            or not os.access(path, os.R_OK)
        ):
            raw = open_source(source)
            return cls(raw.name, raw, tuple(where), (0, 0))
        return cls(str(path), None, tuple(where), _state(path))

    @cached_property
    def checksum(self) -> str:
        """16 hex digits of the sha256 of the file's bytes, as of a `RawTable`."""
        if self.whole is not None:
            return self.whole.checksum
        with Path(self.name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All columns; those of JSON lines are known when all lines are read."""
        found: dict[str, None] = {}
        for raw in self._raw():
            found |= dict.fromkeys(raw.columns)
            if not self.name.lower().removesuffix(".gz").endswith(("jsonl", "ndjson")):
                break
        return tuple(found)

    @cached_property
    def _conditions(self) -> list[Condition]:
        return [parse_condition(text, self.names) for text in self.where]

    def __iter__(self) -> Iterator[RawTable]:
        for raw in self._raw():
            gaps = {name: [None] * len(raw) for name in self.names if name not in raw.columns}
            raw = replace(raw, columns={name: (gaps if name in gaps else raw.columns)[name] for name in self.names})
            if self.where:
                columns = [(condition, raw.columns[condition.column]) for condition in self._conditions]
                raw = raw.take([i for i in range(len(raw)) if all(one.holds(cells[i]) for one, cells in columns)])
            yield raw

    def _raw(self) -> Iterator[RawTable]:
        if self.whole is not None:
            for start in range(0, len(self.whole), READ):
                yield self.whole.take(range(start, min(start + READ, len(self.whole))))
            return
        before = 0
        for parsed in stream_file(Path(self.name), READ):
            rows = len(next(iter(parsed.columns.values()), ()))
            numbers = tuple(range(before + 1, before + rows + 1))
            yield RawTable(self.name, parsed.columns, numbers, parsed.lines, "", parsed.notes)
            before += rows

    def gathered(self, names: Sequence[str], most: int | None = None) -> RawTable:
        """Some columns of the first rows, or of all.

        Raises
        ------
        DataError
            If there is no row.
        """
        columns: dict[str, list[Any]] = {name: [] for name in names}
        numbers, lines, notes = list[int](), list[int](), tuple[str, ...]()
        for raw in self:
            for name in names:
                columns[name] += raw.columns[name]
            numbers += raw.numbers
            lines += raw.lines
            notes = notes or raw.notes
            if most is not None and len(numbers) >= most:
                break
        if not numbers:
            filter_rows(open_source(self.name) if self.whole is None else self.whole, self.where)  # says what there is
        raw = RawTable(self.name, columns, tuple(numbers), tuple(lines), "", notes)
        return raw if most is None else raw.take(range(min(most, len(numbers))))

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since the beginning."""
        if self.whole is None and _state(Path(self.name)) != self.state:
            raise DataError(f"{self.name} was changed while it was read; run the command again when it is complete")


def stream_table(
    source: Any,
    *,
    output: str | None = None,
    inputs: str | Sequence[str] = (),
    reference: str | Sequence[str] | None = None,
    id: str | None = None,
    group: str | None = None,
    context: str | None = None,
    system: str | None = None,
    rater: str | None = None,
    where: str | Sequence[str] = (),
    metric_columns: str | Sequence[str] = (),
    usual: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
) -> StreamedTable:
    """Look a table through that is to be scored, and read its rows some at a time later.

    Roles of columns are those of `read_table` without a rating, guessed by the first 1,000 rows. The whole table is
    read once to check it: every row, the outputs, the numbers, and the ids, of which 8 bytes each are kept.

    Parameters
    ----------
    source : path, pandas.DataFrame, datasets.Dataset or hub id
        CSV, TSV, JSON lines (also ``.gz``) and Parquet files are read in pieces, anything else whole.
    output, inputs, reference, id, group, context, system, rater, where, metric_columns, usual
        As for `read_table`.
    keep : sequence of str
        Columns whose texts stand beside each row.

    Raises
    ------
    DataError, OptionError
        As `read_table` does.
    """
    rows = RawSource.of(source, as_names(where))
    first = rows.gathered(rows.names, FIRST)
    for name in keep:
        first.require(name, "keep=... (--keep)")
    chosen = match_columns(first, as_names(metric_columns))
    named = Columns(None, output, as_names(inputs), as_names(reference), context, id, group, system, rater)
    columns = resolve_columns(first, named, taken=chosen.names, guess_target=False, usual=usual or {})
    if columns.output is None:
        columns, _ = check_outputs(first, columns, chosen, "", 0, 0)
    closed = closed_inputs(first, columns)
    parted, own, split = without_replies(first, columns, closed)
    _, told = render_conversations(parted, own.texts())
    talks = tuple(name for name in own.texts() if any(repr(name) in note for note in told))
    table = StreamedTable(rows, own, tuple(dict.fromkeys(keep)), chosen.names, closed, talks, 0, False, ())
    seen = _looked_through(table, parted, chosen)
    conditions = f"{seen.rows} rows fulfil {' and '.join(rows.where)}"
    shown = replace(seen.columns, output=columns.output).without("group")  # no score depends on the groups
    noted = guess_notes(first, shown)
    return replace(
        seen,
        notes=(
            *first.notes, *([conditions] if rows.where else []), *noted, *split, *told, *seen.notes, *chosen.notes,
        ),
    )  # fmt: skip


def _looked_through(table: StreamedTable, first: RawTable, chosen: ScoreColumns) -> StreamedTable:
    """The table with its number of rows, and with those of its columns that can be used."""
    columns, empty, place, count, formulas = table.columns, 0, "", 0, False
    group = None if "group" in columns.guessed else columns.group
    labels = [name for name in (columns.id, columns.system, columns.rater, group) if name is not None]
    digests: dict[str, list[NDArray[np.uint64]]] = {name: [] for name in labels}
    shown = {*table.keep, *([] if columns.id is None else [columns.id])}
    for raw in table.source:
        formulas = formulas or any(is_formula(cell_text(cell)) for name in shown for cell in raw.columns[name])
        raw = table.prepared(raw)
        outputs = [] if columns.output is None else [is_blank(cell) for cell in raw.columns[columns.output]]
        place = place or (raw.place(outputs.index(True), columns.output) if any(outputs) else "")
        empty, count = empty + sum(outputs), count + len(raw)
        read_numbers(raw, chosen.names)
        for name in labels:
            digests[name].append(np.fromiter(map(_digest, raw.texts(name)), np.uint64, len(raw)))
    columns, refused = check_outputs(first, columns, chosen, place, empty, count)
    values = {name: np.unique(np.concatenate(pieces), return_counts=True) for name, pieces in digests.items()}
    columns, notes = _with_labels(replace(table, columns=columns, rows=count), values)
    return replace(table, columns=columns, rows=count, formulas=formulas, notes=(*refused, *notes))


def _with_labels(
    table: StreamedTable, values: Mapping[str, tuple[NDArray[np.uint64], NDArray[np.intp]]]
) -> tuple[Columns, tuple[str, ...]]:
    """The columns without labels that are of no use, and notes; `values` has digests of each column's cells, counted.

    Columns that may be of no use are read whole, and looked at by the rules of a table that is read whole.
    """
    columns, source = table.columns, table.source
    for role in ("id", "group"):
        name = getattr(columns, role)
        if name in values and role not in columns.guessed and _digest("") in values[name][0]:
            check_filled(source.gathered([name]), name, role)
    notes: tuple[str, ...] = ("no id column: row numbers are the ids",)
    if columns.id is not None:
        ids, counts = values[columns.id]
        of = "guessed id" if "id" in columns.guessed else "id"
        why = f"has {ids.size} values over {table.rows} rows"
        notes = (f"the {of} column {columns.id!r} {'has blank cells' if _digest('') in ids else why}",)
        # Only two ids, and the blank one, may repeat in a column of no use: each of more than a third of the outputs.
        if "id" in columns.guessed and 3 * counts.max() > ids.size and (counts > 1).sum() <= 3:
            raw = table.prepared(
                source.gathered(tuple(name for name in columns.used() if name not in table.closed.values()))
            )
            if label_rows(raw, columns, raw.blocks(columns.inputs)).columns.id is None:
                columns, notes = columns.without("id"), (f"{notes[0]}: row numbers are the ids",)
        if columns.id is not None and ids.size == table.rows and _digest("") not in ids:
            notes = ()
    people = [name for name in (columns.system, columns.rater) if name is not None]
    if any(not 1 < values[name][0].size < table.rows for name in people):
        columns, unused = usable_labels(source.gathered(people), columns, "system", "rater")
        notes += unused
    return columns, notes


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _state(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns
