"""The id and the group of every row, from named or guessed columns, else from the rows themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from metricsmith.datasets.cells import cell_text
from metricsmith.datasets.columns import Columns
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError

__all__ = ["Labels", "label_rows"]


@dataclass(frozen=True, slots=True)
class Labels:
    """What identifies the rows.

    Parameters
    ----------
    ids : tuple of str, shape (n rows,)
        Unique.
    groups : tuple of str, shape (n rows,)
        Rows of one group share a source and never sit on both sides of a split.
    columns : Columns
        With the id and group columns that are really used.
    notes : tuple of str
        How ids and groups came about, where no one named them.
    """

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    columns: Columns
    notes: tuple[str, ...]


def label_rows(raw: RawTable, columns: Columns, inputs: Sequence[str]) -> Labels:
    """Give every row an id and a group.

    The id is the named column; else the guessed one if its values are unique; else the row number.
    The group is the named column; else the guessed one if it has several values of which one repeats;
    else a guessed id column each of whose two or more values covers several rows; else the input text
    where inputs repeat; else each row is its own group.

    Parameters
    ----------
    raw : RawTable
        The table.
    columns : Columns
        From `resolve_columns`.
    inputs : sequence of str, shape (n rows,)
        The input texts, empty where there are none.

    Raises
    ------
    DataError
        If a named id column has a blank or duplicate cell, or a named group column a blank one.
    """
    columns, ids, id_notes = _ids(raw, columns)
    columns, groups, group_notes = _groups(raw, columns, ids, inputs)
    columns, people_notes = _usable(raw, columns)
    return Labels(ids, groups, columns, (*id_notes, *group_notes, *people_notes))


def _usable(raw: RawTable, columns: Columns) -> tuple[Columns, tuple[str, ...]]:
    """Without a guessed system or rater column that has one value, or another in every row."""
    notes = []
    for role in sorted(columns.guessed & {"system", "rater"}):
        column = getattr(columns, role)
        values = set(_texts(raw, column))
        if not 1 < len(values) < len(raw):
            notes.append(
                f"the guessed {role} column {column!r} has {len(values)} values over {len(raw)} rows and is not used"
            )
            columns = replace(columns, guessed=columns.guessed - {role}, **{role: None})
    return columns, tuple(notes)


def _ids(raw: RawTable, columns: Columns) -> tuple[Columns, tuple[str, ...], tuple[str, ...]]:
    numbers = tuple(str(number) for number in raw.numbers)
    if columns.id is None:
        return columns, numbers, ("no id column: row numbers are the ids",)
    ids = _texts(raw, columns.id)
    if "id" not in columns.guessed:
        _check_filled(raw, columns.id, ids, "id")
        _check_unique(raw, columns.id, ids)
        return columns, ids, ()
    if all(ids) and len(set(ids)) == len(ids):
        return columns, ids, ()
    counts = Counter(ids)
    why = f"has {len(counts)} values over {len(ids)} rows" if all(ids) else "has blank cells"
    note = f"the guessed id column {columns.id!r} {why} and is not used: row numbers are the ids"
    becomes_group = columns.group is None and all(ids) and len(counts) > 1 and min(counts.values()) > 1
    if becomes_group:
        note += f"; its values partition the rows, so {columns.id!r} is the group"
    guessed = columns.guessed - {"id"} | ({"group"} if becomes_group else set())
    group = columns.id if becomes_group else columns.group
    return replace(columns, id=None, group=group, guessed=guessed), numbers, (note,)


def _groups(
    raw: RawTable, columns: Columns, ids: tuple[str, ...], inputs: Sequence[str]
) -> tuple[Columns, tuple[str, ...], tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    if columns.group is not None:
        groups = _texts(raw, columns.group)
        if "group" not in columns.guessed:
            _check_filled(raw, columns.group, groups, "group")
            return columns, groups, ()
        if all(groups) and 1 < len(set(groups)) < len(groups):
            return columns, groups, ()
        notes = (
            f"the guessed group column {columns.group!r} has {len(set(groups))} values over {len(groups)} "
            f"rows"
            f"{'' if all(groups) else ', some of them blank,'} and is not used",
        )
        columns = replace(columns, group=None, guessed=columns.guessed - {"group"})
    distinct = {text: f"input {place}" for place, text in enumerate(dict.fromkeys(inputs), 1)}
    if 1 < len(distinct) < len(inputs) and all(inputs):
        note = f"no group column: rows with the same input form a group ({len(distinct)} groups)"
        return columns, tuple(distinct[text] for text in inputs), (*notes, note)
    return columns, ids, (*notes, "no group column and no repeated input: each row is its own group")


def _texts(raw: RawTable, column: str) -> tuple[str, ...]:
    return tuple(cell_text(cell).strip() for cell in raw.columns[column])


def _check_filled(raw: RawTable, column: str, values: tuple[str, ...], role: str) -> None:
    if not all(values):
        raise DataError(
            f"{raw.place(values.index(''), column)}: the {role} is blank ({values.count('')} such rows); every row "
            f"needs one in a column named with {role}=... (--{role}): fill it in, or do not name the column"
        )


def _check_unique(raw: RawTable, column: str, ids: tuple[str, ...]) -> None:
    first: dict[str, int] = {}
    for index, value in enumerate(ids):
        if value in first:
            raise DataError(
                f"{raw.place(index, column)}: the id {value[:60]!r} stands already in row "
                f"{raw.numbers[first[value]]} ({len(set(ids))} values over {len(ids)} rows); ids named with id=... "
                f"(--id) must be unique: name another column, or give this one as the group"
            )
        first[value] = index
