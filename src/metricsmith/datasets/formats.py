"""Bytes of a file -> columns of plain cells: CSV, TSV, JSONL, JSON and Parquet, each error with its place."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from metricsmith.datasets.cells import plain_value
from metricsmith.errors import DataError
from metricsmith.spreadsheets import unmarked

__all__ = ["SUFFIXES", "Parsed", "decode", "frame_columns", "parse_file", "table_suffix", "unzip"]


OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The content of a file.

    Parameters
    ----------
    columns : dict of str to list
        Plain cells by column, all lists of one length.
    lines : tuple of int
        For text formats, the file's line (from 1) on which each row starts; empty otherwise.
    notes : tuple of str
        What had to be guessed.
    """

    columns: dict[str, list[Any]]
    lines: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def table_suffix(path: Path) -> str:
    """The suffix that decides the format, without ``.gz``: ``.csv`` for ``a.csv.gz``; empty if unknown."""
    name = path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def parse_file(path: Path, content: bytes) -> Parsed:
    """Parse the bytes of `path`, whose name decides the format.

    Raises
    ------
    DataError
        If the format is unknown, the bytes do not fit it, the encoding is not UTF-8, a row has too many
        or too few cells, two columns share a name, or there is no row.
    """
    suffix = table_suffix(path)
    if not suffix:
        raise DataError(
            f"{path}: the name ends in {path.suffix!r}; a table ends in {', '.join(SUFFIXES)} "
            f"(text formats also with .gz): save it in one of these formats"
        )
    if not content.strip():
        raise DataError(
            f"{path} is empty ({len(content)} bytes, no text); a table needs a header and rows: check the export"
        )
    parsed = SUFFIXES[suffix](path, unzip(path, content))
    if not parsed.columns or not next(iter(parsed.columns.values())):
        seen = f"a header ({', '.join(list(parsed.columns)[:8])}) but " if parsed.columns else ""
        raise DataError(f"{path} is empty: {seen}no row of data; at least one row is needed: check the export")
    return parsed


def frame_columns(name: str, frame: Any) -> dict[str, list[Any]]:
    """Columns of plain cells of a pandas frame; a named index is a column too.

    Raises
    ------
    DataError
        If two columns share a name.
    """
    named = [level for level in frame.index.names if level is not None and level not in frame.columns]
    if named:
        frame = frame.reset_index(level=named)
    _check_names(name, [str(column) for column in frame.columns])
    return {
        str(column): [plain_value(cell) for cell in frame.iloc[:, place].tolist()]
        for place, column in enumerate(frame.columns)
    }


def unzip(path: Path, content: bytes) -> bytes:
    """Unpack the bytes of a file whose name ends in ``.gz``; a `DataError` that names `path` if they are no gzip file.

    Those of any other file stay as they are.
    """
    try:
        return gzip.decompress(content) if path.name.lower().endswith(".gz") else content
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} ends in .gz but cannot be unpacked ({error}); a complete gzip file is needed: "
            f"copy it again, or drop .gz from the name if it is not packed"
        ) from error


def decode(path: Path, content: bytes) -> str:
    """The text in the bytes of a file, without a byte order mark; a `DataError` with the place if it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        likely = "UTF-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "ISO-8859-1"
        raise DataError(
            f"{path} is not UTF-8 text: byte 0x{content[error.start]:02x} at position {error.start} "
            f"(line {line}) does not fit; only UTF-8 is read: convert it, for example with "
            f"`iconv -f {likely} -t UTF-8`"
        ) from error


def _separated(path: Path, content: bytes, separator: str) -> Parsed:
    text = decode(path, content)
    first = text.lstrip().partition("\n")[0]
    found = next((other for other in (separator, *OTHER_SEPARATORS) if other in first), separator)
    another = f"{path.name}: the header has no {separator!r}: cells are taken to be separated by "
    notes = () if found == separator else (another + OTHER_SEPARATORS[found],)  # the file's name promises another
    rows = list(_records(path, text, found))
    if not rows:
        raise DataError(f"{path} is empty: only blank lines; a header and rows are needed: check the export")
    header = [cell.strip() or f"column {place}" for place, cell in enumerate(rows[0][1], 1)]
    _check_names(str(path), header)
    for number, (line, cells) in enumerate(rows[1:], 1):
        if len(cells) != len(header):
            raise DataError(
                f"{path}, row {number} (line {line}) has {len(cells)} cells, seen {cells[:3]!r} ...; the header has "
                f"{len(header)} columns: quote cells that contain {found!r} or line breaks, or fill the row"
            )
    columns = {name: [cells[place] for _, cells in rows[1:]] for place, name in enumerate(header)}
    return Parsed(unmarked(columns), tuple(line for line, _ in rows[1:]), notes)


def _records(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each record that is not a blank line."""
    limit = csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {line}: cannot be split into cells ({error}); quotes must be closed and doubled "
            f"inside a quoted cell: export the file again with a CSV writer"
        ) from error
    finally:
        csv.field_size_limit(limit)


def _json_records(path: Path, content: bytes) -> Parsed:
    """One object on each line, or in a ``.json`` file a list of objects."""
    text = decode(path, content)
    if table_suffix(path) == ".json" and text.lstrip("\ufeff \t\r\n").startswith("["):
        return _from_records(path, _json(path, text, "whole file"), ())
    parts = {line: part for line, part in enumerate(text.split("\n"), 1) if part.strip()}
    records = [_json(path, part, f"row {row} (line {line})") for row, (line, part) in enumerate(parts.items(), 1)]
    return _from_records(path, records, tuple(parts))


def _json(path: Path, text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}, {place}: not JSON ({error}), seen {text.strip()[:40]!r}; one JSON object per line "
            f"(or one list of objects in a .json file) is needed: repair that line"
        ) from error


def _from_records(path: Path, records: list[Any], lines: tuple[int, ...]) -> Parsed:
    names: dict[str, None] = {}
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            line = f" (line {lines[number - 1]})" if lines else ""
            raise DataError(
                f"{path}, row {number}{line}: a JSON {type(record).__name__}, seen {str(record)[:40]!r}; "
                f"each row is "
                f'an object such as {{"output": "...", "score": 4}}: give every value its column name'
            )
        names.update(dict.fromkeys(record))
    return Parsed({name: [plain_value(record.get(name)) for record in records] for name in names}, lines)


def _parquet(path: Path, content: bytes) -> Parsed:
    import pandas

    try:
        frame = pandas.read_parquet(io.BytesIO(content))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read as Parquet ({error}); a complete Parquet file is needed: write it again, "
            f"for example with DataFrame.to_parquet"
        ) from error
    return Parsed(frame_columns(str(path), frame))


def _check_names(name: str, columns: list[str]) -> None:
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise DataError(
            f"{name}: the column name {twice[0]!r} stands {columns.count(twice[0])} times in the header; "
            f"names must be unique: rename or drop the others"
        )


SUFFIXES: dict[str, Callable[[Path, bytes], Parsed]] = {
    ".csv": partial(_separated, separator=","),
    ".tsv": partial(_separated, separator="\t"),
    ".jsonl": _json_records,
    ".ndjson": _json_records,
    ".json": _json_records,
    ".parquet": _parquet,
}
