"""A file, a data frame, a data set, a hub id, dicts or rows -> one `RawTable`, and those of its rows that are wanted.

Conditions on rows are ``COL=VALUE`` and ``COL!=VALUE``.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dspy

from metricsmith.datasets.cells import cell_number, cell_text, is_blank, plain_value
from metricsmith.datasets.formats import Parsed, frame_columns, parse_file, record_columns, table_suffix
from metricsmith.errors import DataError, ModelFailure, OptionError, nearest
from metricsmith.metric import content_hash

__all__ = ["Condition", "RawTable", "filter_rows", "load_hub", "open_source", "parse_condition", "read_bytes"]


@dataclass(frozen=True)
class RawTable:
    """Named columns of plain cells that remember where each row stood.

    Parameters
    ----------
    name : str
        The path or hub id as given, or ``the data frame``, ``the list`` and so on; errors begin with it.
    columns : dict of str to list
        Cells by column, all lists of one length.
    numbers : tuple of int
        The data row, from 1, that each row was in the source (filtering keeps it).
    lines : tuple of int
        For text formats, the file's line on which each row starts; else empty.
    checksum : str
        16 hex digits of the sha256 of the file's bytes, or of the frame's columns and cells.
    notes : tuple of str
        What had to be guessed while reading.
    """

    name: str
    columns: dict[str, list[Any]]
    numbers: tuple[int, ...]
    lines: tuple[int, ...]
    checksum: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, index: int, column: str | None = None) -> str:
        """The place of row `index` (from 0, after filtering): ``a.csv, row 3 (line 4), column 'x'``."""
        counted = f"(line {self.lines[index]})" if self.lines else "(counted from 1)"
        where = f"{self.name}, row {self.numbers[index]} {counted}"
        return where if column is None else f"{where}, column {column!r}"

    def require(self, column: str, option: str) -> str:
        """Return `column`, or raise a `DataError` with the nearest name if the table lacks it."""
        if column not in self.columns:
            raise DataError(
                f"{self.name}: no column {column!r}{nearest(column, self.columns)}; the columns are "
                f"{', '.join(list(self.columns)[:20])}{', ...' if len(self.columns) > 20 else ''}: "
                f"name an existing one with {option}"
            )
        return column

    def require_all(self, columns: Sequence[str], kind: str, way_out: str) -> None:
        """Raise a `DataError` with the nearest name if the table of such a `kind` lacks one of its columns."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            raise DataError(
                f"{self.name}: no column {missing[0]!r}{nearest(missing[0], self.columns)}; {kind} have the columns "
                f"{', '.join(columns)}: rename yours, or {way_out}"
            )

    def texts(self, column: str) -> tuple[str, ...]:
        """The texts of a column's cells, without white space at the ends."""
        return tuple(cell_text(cell).strip() for cell in self.columns[column])

    def blocks(self, names: Sequence[str]) -> list[str]:
        """Each row's texts in these columns: one column as it is, several as labelled blocks without blank cells."""
        if len(names) == 1:
            return [cell_text(cell) for cell in self.columns[names[0]]]
        return [
            "\n\n".join(
                f"{name}: {cell_text(cell)}" for name, cell in zip(names, cells, strict=True) if not is_blank(cell)
            )
            for cells in zip(*map(self.columns.__getitem__, names), strict=True)
        ] or [""] * len(self)

    def take(self, indices: Sequence[int]) -> RawTable:
        """The rows at `indices`, in that order."""
        return replace(
            self,
            columns={name: [cells[index] for index in indices] for name, cells in self.columns.items()},
            numbers=tuple(self.numbers[index] for index in indices),
            lines=tuple(self.lines[index] for index in indices) if self.lines else (),
        )


def open_source(source: Any) -> RawTable:
    """Read `source` into a `RawTable`.

    Parameters
    ----------
    source : path, hub id, pandas.DataFrame, datasets.Dataset, list, dict of lists or RawTable
        A text ``owner/name`` that is no path is a hub id. A data set with several splits is read from
        its ``train`` split, which is noted. A list holds dicts or `dspy.Example` rows; scores that a row has under
        ``columns`` are columns as any other. A `RawTable` stays as it is.

    Raises
    ------
    DataError
        If the source is of no such kind, cannot be read, or has no rows.
    """
    if isinstance(source, RawTable):
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        looks_like = isinstance(source, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", source)
        if looks_like and not (path.exists() or path.parent.exists() or table_suffix(path)):
            return load_hub(str(source))
        content = read_bytes(path)
        return _table(str(path), parse_file(path, content), hashlib.sha256(content).hexdigest()[:16])
    return _from_object("the data frame" if _is_frame(source) else "the data set", source)


def _in_memory(source: Any) -> tuple[str, dict[str, list[Any]]] | None:
    """Name and columns of a list of dicts or rows, or of a dict of lists; None for anything else."""
    if isinstance(source, list | tuple):
        return "the list", record_columns("the list", [_fields(row) for row in source])
    if not isinstance(source, Mapping):
        return None
    columns = {str(name): plain_value(cells) for name, cells in source.items()}
    lengths = {name: len(cells) if isinstance(cells, list) else None for name, cells in columns.items()}
    if None in lengths.values() or len(set(lengths.values())) > 1:
        seen = ", ".join(f"{name}: {'no list' if n is None else n}" for name, n in list(lengths.items())[:8])
        raise DataError(
            f"the dict is no table, seen {seen}; a dict holds a list of cells for each column, all of one "
            "length: write [row] for one row, or pandas.DataFrame(...) for anything else"
        )
    return "the dict", columns


def _fields(row: Any) -> Any:
    """The fields of a `dspy.Example`, those under ``columns`` among them; anything else as it is."""
    if not isinstance(row, dspy.Example):
        return row
    fields = row.toDict()
    return {**fields.pop("columns"), **fields} if isinstance(fields.get("columns"), Mapping) else fields


def load_hub(name: str, load: Callable[[str], Any] | None = None) -> RawTable:
    """Read the data set `name` from the Hugging Face hub.

    Parameters
    ----------
    name : str
        ``owner/name``.
    load : callable, optional
        Takes the name and returns the data set; default `datasets.load_dataset`.

    Raises
    ------
    DataError
        If it cannot be loaded: it does not exist or is private.
    ModelFailure
        If the hub cannot be reached.
    """
    # By name, because a type checker run in the root finds the link `datasets` instead of the library.
    loader = load or importlib.import_module("datasets").load_dataset
    try:
        data = loader(name)
    except ConnectionError as error:
        raise ModelFailure(
            f"{name}: the Hugging Face hub cannot be reached ({type(error).__name__}); check the network, or give a "
            "file"
        ) from error
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise DataError(
            f"{name}: cannot be loaded from the Hugging Face hub ({type(error).__name__}: {error}); an "
            "existing file or a public data set owner/name is needed: check the spelling, or give a file"
        ) from error
    return _from_object(name, data)


def _is_frame(source: Any) -> bool:
    return hasattr(source, "iloc") and hasattr(source, "columns")


def read_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises
    ------
    DataError
        If it is absent (with the nearest name beside it) or cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        folder = path.parent
        beside = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        missing = "" if folder.is_dir() else f" (nor the folder {folder})"
        raise DataError(
            f"{path}: no such file{missing}{nearest(path.name, beside)}: check the path; where a table "
            f"is asked for, the hub id owner/name of a data set will do too"
        ) from error
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); a readable file is needed: check that it is a file "
            f"and that you may read it"
        ) from error


def _from_object(name: str, source: Any) -> RawTable:
    frame, notes = _one_split(name, source)
    if (known := _in_memory(frame)) is not None:
        name, columns = known
    else:
        if not _is_frame(frame):
            if not hasattr(frame, "to_pandas"):
                raise DataError(
                    f"{name}: a {type(frame).__name__} cannot be read as a table; allowed are a path, a hub id, a list "
                    f"of dicts or rows, a dict of lists, a pandas DataFrame and a datasets.Dataset: write list(...) or "
                    f"pandas.DataFrame(...)"
                )
            frame = frame.to_pandas()
        columns = frame_columns(name, frame)
    rows = len(next(iter(columns.values()), ()))
    if not rows:
        raise DataError(
            f"{name} is empty: seen {rows} rows and {len(columns)} columns; at least one row is "
            f"needed: check how it was made"
        )
    checksum = content_hash({column: [repr(cell) for cell in cells] for column, cells in columns.items()})
    return _table(name, Parsed(columns, (), notes), checksum)


def _one_split(name: str, source: Any) -> tuple[Any, tuple[str, ...]]:
    """The split ``train`` of a data set that has several, with a note on that; anything else as it is."""
    parts = list(source.values()) if isinstance(source, Mapping) else []
    if not parts or not all(hasattr(part, "to_pandas") for part in parts):
        return source, ()
    splits = [str(split) for split in source]
    if len(splits) == 1:
        return source[splits[0]], ()
    if "train" not in splits:
        raise DataError(
            f"{name}: several splits ({', '.join(splits)}) and none is called 'train'; one table is needed: load the "
            f"split you mean with datasets.load_dataset(..., split=...)"
        )
    return source["train"], (f"{name}: split 'train' of {', '.join(splits)} is read",)


def _table(name: str, parsed: Parsed, checksum: str) -> RawTable:
    rows = len(next(iter(parsed.columns.values())))
    return RawTable(name, parsed.columns, tuple(range(1, rows + 1)), parsed.lines, checksum, parsed.notes)


@dataclass(frozen=True, slots=True)
class Condition:
    """Keeps the rows whose cell in `column` equals `value` (or differs, where `equal` is False)."""

    column: str
    value: str
    equal: bool

    def __str__(self) -> str:
        return f"{self.column}{'=' if self.equal else '!='}{self.value}"

    def holds(self, cell: Any) -> bool:
        """True if a plain cell fulfils the condition.

        Texts are compared without white space at the ends; numbers as numbers (1 equals 1.0); booleans
        in any case; a missing cell equals the empty value.
        """
        text, value = cell_text(cell).strip(), self.value.strip()
        same = text == value or (isinstance(cell, bool) and text.lower() == value.lower())
        if not same:
            with suppress(ValueError):  # NaN equals nothing
                same = cell_number(text) == cell_number(value)
        return same == self.equal


def parse_condition(text: str, columns: Iterable[str]) -> Condition:
    """Read ``COL=VALUE`` or ``COL!=VALUE``.

    Column names may contain ``=``, ``!`` and spaces: the longest existing name that an operator follows
    is meant. White space around the operator is allowed.

    Raises
    ------
    OptionError
        If there is no operator, or no column of that name (the nearest is suggested).
    """
    known = list(columns)
    for column in sorted(known, key=len, reverse=True):
        rest = text[len(column) :].lstrip() if text.startswith(column) else ""
        for operator in ("!=", "="):
            if rest.startswith(operator):
                return Condition(column, rest[len(operator) :].strip(), operator == "=")
    if "=" not in text:
        raise OptionError(
            f"condition {text!r} has no '='; allowed are COL=VALUE and COL!=VALUE: write for example "
            f"where={(known or ['COL'])[0] + '=VALUE'!r} (--where)"
        )
    name = text.partition("=")[0].removesuffix("!").strip()
    raise OptionError(
        f"condition {text!r}: no column {name!r}{nearest(name, known)}; the columns are "
        f"{', '.join(known[:20])}"
        f"{', ...' if len(known) > 20 else ''}: name an existing one in where=... (--where)"
    )


def filter_rows(raw: RawTable, where: Sequence[str]) -> RawTable:
    """Keep the rows of `raw` that fulfil every condition of `where`, in order.

    Raises
    ------
    OptionError
        If a condition cannot be read.
    DataError
        If no row is left; some values that the column has are shown.
    """
    for text in where:
        condition = parse_condition(text, raw.columns)
        cells = raw.columns[condition.column]
        keep = [index for index, cell in enumerate(cells) if condition.holds(cell)]
        if not keep:
            seen = list(dict.fromkeys(cell_text(cell)[:30] for cell in cells))
            raise DataError(
                f"{raw.name}: no row is left by the condition {str(condition)!r} (column "
                f"{condition.column!r}, "
                f"value {condition.value!r}); of {len(raw)} rows the column holds "
                f"{', '.join(map(repr, seen[:6]))}"
                f"{', ...' if len(seen) > 6 else ''}{nearest(condition.value, seen)}: change or drop the "
                f"condition"
            )
        raw = raw.take(keep)
    return raw
