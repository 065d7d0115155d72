"""The id and the group of every row, from named or guessed columns, else from the rows themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.columns import Columns, fitting_columns
from metricsmith.datasets.sources import RawTable
from metricsmith.datasets.splits import connected_parts, instructions, long_output
from metricsmith.errors import DataError

__all__ = ["Labels", "check_filled", "label_rows", "usable_labels"]


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that identify the rows.

    Parameters
    ----------
    ids : tuple of str, shape (n rows,)
        Those of the table as they stand there, also where one repeats; numbers of rows where it has none.
    groups : tuple of str, shape (n rows,)
        Rows of one group share a source, an id, an input or a long output, directly or over other rows, and never
        sit on both sides of a split.
    sources : tuple of str, shape (n rows,)
        The row's own source, before groups that share something were joined.
    columns : Columns
        With the id and group columns that are really used. An id column that repeats says which rows are about the
        same; it is the group column where there is no other.
    notes : tuple of str
        How ids and groups came about, where no one named them.
    items : tuple of str, shape (n rows,)
        The ids where they repeat, blank where one joins nothing since it stands on outputs of different inputs; empty
        where no id repeats.
    """

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    sources: tuple[str, ...]
    columns: Columns
    notes: tuple[str, ...]
    items: tuple[str, ...] = ()


def label_rows(raw: RawTable, columns: Columns, inputs: Sequence[str]) -> Labels:
    """Give every row an id and a group.

    The id is the named column, else the guessed one, else the row number. Rows with the same id are about the same (an
    output and its raters, or a source and its systems), unless their inputs differ: such an id joins nothing.
    Groups are the connected parts of the rows that share a cell of the group column (named, or guessed if it has
    several values of which one repeats), an id, an input, or an output of eight words or more. An id or input
    shared by more than a third of the outputs is an instruction and joins nothing; instead of an input that is one,
    a column whose name says that it holds the sources may group the rows.

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
        If a named id or group column has a blank cell.
    """
    columns, ids, items, id_notes = _ids(raw, columns, inputs)
    if columns.group is not None and "group" not in columns.guessed:
        check_filled(raw, columns.group, "group")
    columns, group_notes = usable_labels(raw, columns, "group")
    columns, people_notes = usable_labels(raw, columns, "system", "rater")
    shared = _Shared.of(raw, columns, items, inputs)
    columns, shared_notes = shared.instead(raw, columns)
    useless = items == ids and bool(shared.told["id"] or not any(ids))
    if "id" in columns.guessed and useless and not _repeats(shared.items):
        columns, ids, items = columns.without("id"), _row_numbers(raw), ()
        id_notes = (f"{id_notes[0]}: row numbers are the ids", *id_notes[1:])
    ids = tuple(own or f"row {number}" for own, number in zip(ids, raw.numbers, strict=True))
    groups, sources, part_notes = shared.groups(raw, columns, ids)
    if items and _repeats(shared.items) and columns.group is None:
        columns = replace(columns, group=columns.id, guessed=columns.guessed | {"group"})
    notes = (*id_notes, *group_notes, *shared_notes, *part_notes, *people_notes)
    return Labels(ids, groups, sources, columns, notes, items)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Ids, inputs and outputs that rows may share, None where one joins nothing, and the instructions among them."""

    items: tuple[str | None, ...]
    inputs: tuple[str | None, ...]
    outputs: tuple[Hashable, ...]
    told: dict[str, dict[str, int]]

    @classmethod
    def of(cls, raw: RawTable, columns: Columns, items: tuple[str, ...], inputs: Sequence[str]) -> _Shared:
        texts = {"id": items or ("",) * len(raw), "input": tuple(" ".join(text.split()) for text in inputs)}
        named = [raw.texts(name) for name in (columns.group, columns.system, columns.output) if name is not None]
        places = tuple(range(len(raw))) if columns.output is None else (0,) * len(raw)
        outputs = tuple(zip(*texts.values(), *named, places, strict=True))
        told = {role: instructions(values, outputs) for role, values in texts.items()}
        kept = {
            role: tuple(value if value and value not in told[role] else None for value in values)
            for role, values in texts.items()
        }
        return cls(kept["id"], kept["input"], outputs, told)

    def instead(self, raw: RawTable, columns: Columns) -> tuple[Columns, tuple[str, ...]]:
        """The columns, with another one that groups the rows where an input or an id is an instruction; notes.

        A column that only looks as if it held sources is named in a note and not taken: any label with a few values
        would look like one.
        """
        lines = [
            f"the {role} {value[:60]!r} stands with {count} of {len(set(self.outputs))} outputs: it is an "
            "instruction, not a source, and joins no rows"
            for role, told in self.told.items()
            for value, count in told.items()
        ]
        if not lines or columns.group is not None:
            return columns, tuple(lines)
        no_sources = {
            columns.target, columns.output, columns.id, columns.system, columns.rater, *columns.inputs,
            *columns.references,
        }  # fmt: skip
        parting = [name for name in raw.columns if name not in no_sources and self._parts(raw, name)]
        known = [name for role in ("input", "context") for name in fitting_columns(raw, role) if name in parting]
        if known:
            columns = replace(columns, group=known[0], guessed=columns.guessed | {"group"})
            return columns, (*lines, f"{known[0]!r} groups the rows instead (name another with group=... (--group))")
        hint = f"{parting[0]!r} would group them: name it" if parting else "name the column that holds the sources"
        return columns, (*lines, f"if rows share sources, {hint} with group=... (--group)")

    def _parts(self, raw: RawTable, column: str) -> bool:
        """True for a column of texts with two rows or more a value on average, none of them an instruction."""
        values = raw.texts(column)
        texts = all(isinstance(cell, str) and value for cell, value in zip(raw.columns[column], values, strict=True))
        return texts and 3 <= len(set(values)) <= len(raw) / 2 and not instructions(values, self.outputs)

    def groups(
        self, raw: RawTable, columns: Columns, ids: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Every row's group and source, and a note on how groups came about where no column says so."""
        names = {text: f"input {place}" for place, text in enumerate(dict.fromkeys(filter(None, self.inputs)), 1)}
        again = {text for text, count in Counter(self.inputs).items() if text and count > 1}
        # A row number may be an id as well, and an id that joins nothing may stand twice.
        alone = [item or f"row {n}" for item, n in zip(self.items, raw.numbers, strict=True)] if _repeats(ids) else ids
        by_input = [names[text] if text in again else own for text, own in zip(self.inputs, alone, strict=True)]
        sources = tuple(by_input)
        if columns.group is not None:
            sources = raw.texts(columns.group)
        elif _repeats(self.items):
            sources = tuple(item or other for item, other in zip(self.items, by_input, strict=True))
        long = tuple(map(long_output, raw.texts(columns.output))) if columns.output else (None,) * len(raw)
        part = connected_parts(sources, self.items, self.inputs, long)
        # Each part is called after the first of its sources by name, which comes last and stays.
        labels = dict(sorted(zip(part.tolist(), sources, strict=True), reverse=True))
        groups = tuple(labels[number] for number in part.tolist())
        return groups, sources, self._group_notes(columns, sources, long, part)

    def _group_notes(
        self, columns: Columns, sources: Sequence[str], long: Sequence[str | None], part: NDArray[np.intp]
    ) -> tuple[str, ...]:
        parts = int(part.max()) + 1
        joining = {"id": self.items, "input": self.inputs, "output of eight words or more": long}
        by = [f"the same {what}" for what, values in joining.items() if _repeats(values)]
        if columns.group is not None:
            if parts == len(set(sources)):
                return ()
            groups = f"the {len(set(sources))} groups of {columns.group!r} count as {parts}"
            return (f"{groups}: rows with {' or '.join(by)} stay together",)
        if not by:
            return ("no group column and no repeated input: each row is its own group",)
        return (f"no group column: rows with {' or '.join(by)} form a group ({parts} groups)",)


def usable_labels(raw: RawTable, columns: Columns, *roles: str) -> tuple[Columns, tuple[str, ...]]:
    """The columns without a guessed one of `roles` that has one value, or another in every row; notes on that.

    A group column with blank cells is not used either: it says nothing about these rows.
    """
    notes = []
    for role in sorted(columns.guessed.intersection(roles)):
        column = getattr(columns, role)
        values = set(raw.texts(column))
        blank = ", some of them blank," if role == "group" and "" in values else ""
        if blank or not 1 < len(values) < len(raw):
            notes.append(
                f"the guessed {role} column {column!r} has {len(values)} values over {len(raw)} rows{blank} and is not "
                f"used"
            )
            columns = columns.without(role)
    return columns, tuple(notes)


def _ids(
    raw: RawTable, columns: Columns, inputs: Sequence[str]
) -> tuple[Columns, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Columns, ids, the cells of an id column that repeats (empty where an id joins nothing), and notes."""
    if columns.id is None:
        return columns, _row_numbers(raw), (), ("no id column: row numbers are the ids",)
    cells = raw.texts(columns.id)
    if "id" not in columns.guessed:
        check_filled(raw, columns.id, "id")
    if all(cells) and not _repeats(cells):
        return columns, cells, (), ()
    why = f"has {len(set(cells))} values over {len(cells)} rows" if all(cells) else "has blank cells"
    notes = [f"the {'guessed id' if 'id' in columns.guessed else 'id'} column {columns.id!r} {why}"]
    asked: dict[str, dict[str, int]] = {}
    for index, (cell, text) in enumerate(zip(cells, inputs, strict=True)):
        if cell and text.strip():
            asked.setdefault(cell, {}).setdefault(" ".join(text.split()), raw.numbers[index])
    apart = {cell: rows for cell, rows in asked.items() if len(rows) > 1}
    if apart:
        shown = [f"{cell[:40]!r} (rows {', '.join(map(str, [*rows.values()][:4]))})" for cell, rows in apart.items()]
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        notes.append(
            f"ids of {columns.id!r} that stand on outputs of different inputs join no rows: {', '.join(shown[:5])}"
            f"{more}; correct them, or name the column with group=... (--group) if its rows belong together"
        )
    return columns, cells, tuple("" if cell in apart else cell for cell in cells), tuple(notes)


def _row_numbers(raw: RawTable) -> tuple[str, ...]:
    return tuple(map(str, raw.numbers))


def _repeats(values: Sequence[str | None]) -> bool:
    known = [value for value in values if value is not None]
    return len(set(known)) < len(known)


def check_filled(raw: RawTable, column: str, role: str) -> None:
    """Refuse a named column with a blank cell."""
    values = raw.texts(column)
    if not all(values):
        raise DataError(
            f"{raw.place(values.index(''), column)}: the {role} is blank ({values.count('')} such rows); every row "
            f"needs one in a column named with {role}=... (--{role}): fill it in, or do not name the column"
        )
