"""Bytes of a file -> columns of plain cells: CSV, TSV, JSONL, JSON, XLSX and Parquet, each error with its place.

A text table can be read some rows at a time, as `stream_file` does; then the next bytes are read when they are needed.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from metricsmith.datasets.cells import cell_text, is_blank, plain_value
from metricsmith.errors import DataError, NeedsError
from metricsmith.spreadsheets import unmarked

__all__ = [
    "SUFFIXES", "Parsed", "decode", "frame_columns", "parse_file", "record_columns", "stream_file", "table_suffix",
    "unzip",
]  # fmt: skip


LONGEST_CELL = 2**31 - 1  # characters, all that the csv module takes
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The content of a file.

    Parameters
    ----------
    columns : dict of str to list
        Plain cells by column, all lists of one length.
    lines : tuple of int
        The line (from 1) of a text file, or the row of a sheet, on which each row starts; empty otherwise.
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
    (parsed,) = SUFFIXES[suffix](path, io.BytesIO(unzip(path, content)), None)
    if not parsed.columns or not next(iter(parsed.columns.values())):
        seen = f"a header ({', '.join(list(parsed.columns)[:8])}) but " if parsed.columns else ""
        raise DataError(f"{path} is empty: {seen}no row of data; at least one row is needed: check the export")
    return parsed


def stream_file(path: Path, rows: int) -> Iterator[Parsed]:
    """Yield the rows of a file, so many at a time: what `parse_file` returns, in pieces.

    Pieces of JSON lines have the columns of their own rows. A ``.json`` file is one piece. The first piece of a table
    without rows is empty.

    Raises
    ------
    DataError
        As `parse_file` does, when the row is reached; a file without rows is no error here.
    OSError
        If the file cannot be opened.
    """
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rb") as stream:
        yield from SUFFIXES[table_suffix(path)](path, stream, rows)


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
        raise _not_packed(path, error) from error


def _not_packed(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path} ends in .gz but cannot be unpacked ({error}); a complete gzip file is needed: "
        f"copy it again, or drop .gz from the name if it is not packed"
    )


def decode(path: Path, content: bytes) -> str:
    """The text in the bytes of a file, without a byte order mark; a `DataError` with the place if it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, io.BytesIO(content)) from error


def _not_utf8(path: Path, stream: IO[bytes]) -> DataError:
    """The error that names the first byte that is not UTF-8."""
    stream.seek(0)
    position, likely = 0, "ISO-8859-1"
    for line, content in enumerate(stream, 1):
        likely = "UTF-16" if line == 1 and content[:2] in (b"\xff\xfe", b"\xfe\xff") else likely
        try:
            content.decode()
        except UnicodeDecodeError as error:
            place = f"byte 0x{content[error.start]:02x} at position {position + error.start} (line {line})"
            break
        position += len(content)
    return DataError(
        f"{path} is not UTF-8 text: {place} does not fit; only UTF-8 is read: convert it, for example with "
        f"`iconv -f {likely} -t UTF-8`"
    )


def _lines(path: Path, stream: IO[bytes], newline: str) -> Iterator[str]:
    """The lines of a text file with their ends, without a byte order mark."""
    with io.TextIOWrapper(stream, "utf-8-sig", newline=newline) as text:
        try:
            yield from text
        except UnicodeDecodeError as error:
            raise _not_utf8(path, stream) from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise _not_packed(path, error) from error


def _separated(path: Path, stream: IO[bytes], size: int | None, separator: str) -> Iterator[Parsed]:
    lines, head = _lines(path, stream, ""), list[str]()
    while (not head or not head[-1].strip()) and (line := next(lines, "")):
        head.append(line)
    first = head[-1].lstrip() if head else ""
    found = next((other for other in (separator, *OTHER_SEPARATORS) if other in first), separator)
    another = f"{path.name}: the header has no {separator!r}: cells are taken to be separated by "
    notes = () if found == separator else (another + OTHER_SEPARATORS[found],)  # the file's name promises another
    records = _records(path, chain(head, lines), found)
    _, names = next(records, (0, None))
    if names is None:
        raise DataError(f"{path} is empty: only blank lines; a header and rows are needed: check the export")
    header = [cell.strip() or f"column {place}" for place, cell in enumerate(names, 1)]
    _check_names(str(path), header)
    before = 0
    while (rows := list(islice(records, size))) or not before:
        for number, (place, cells) in enumerate(rows, before + 1):
            if len(cells) != len(header):
                raise DataError(
                    f"{path}, row {number} (line {place}) has {len(cells)} cells, seen {cells[:3]!r} ...; the header "
                    f"has {len(header)} columns: quote cells that contain {found!r} or line breaks, or fill the row"
                )
        columns = {name: [cells[place] for _, cells in rows] for place, name in enumerate(header)}
        yield Parsed(unmarked(columns), tuple(place for place, _ in rows), notes)
        before += len(rows) or 1


def _records(path: Path, lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each record that is not a blank line."""
    reader, line = csv.reader(lines, delimiter=separator, strict=True), 1
    while True:
        limit = csv.field_size_limit(LONGEST_CELL)  # of the whole process, and others may read meanwhile
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise DataError(
                f"{path}, line {line}: cannot be split into cells ({error}); quotes must be closed and doubled "
                f"inside a quoted cell: export the file again with a CSV writer"
            ) from error
        finally:
            csv.field_size_limit(limit)
        if cells is None:
            return
        if cells:
            yield line, cells
        line = reader.line_num + 1


def _json_file(path: Path, stream: IO[bytes], _: int | None) -> Iterator[Parsed]:
    """A list of objects, or one object on each line; whole in any case."""
    content = stream.read()
    text = decode(path, content)
    if text.lstrip("\ufeff \t\r\n").startswith("["):
        yield Parsed(record_columns(str(path), _json(path, text, "whole file")))
    else:
        yield from _json_lines(path, io.BytesIO(content), None)


def _json_lines(path: Path, stream: IO[bytes], size: int | None) -> Iterator[Parsed]:
    """One object on each line."""
    parts = ((line, part) for line, part in enumerate(_lines(path, stream, "\n"), 1) if part.strip())
    before = 0
    while (piece := list(islice(parts, size))) or not before:
        records = [
            _json(path, part.removesuffix("\n"), f"row {row} (line {line})")
            for row, (line, part) in enumerate(piece, before + 1)
        ]
        lines = tuple(line for line, _ in piece)
        yield Parsed(record_columns(str(path), records, lines, before), lines)
        before += len(piece) or 1


def _json(path: Path, text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}, {place}: not JSON ({error}), seen {text.strip()[:40]!r}; one JSON object per line "
            f"(or one list of objects in a .json file) is needed: repair that line"
        ) from error


def record_columns(
    name: str, records: Sequence[Any], lines: Sequence[int] = (), before: int = 0
) -> dict[str, list[Any]]:
    """Columns of plain cells of a list of objects, in the order in which their names are met.

    Raises
    ------
    DataError
        If one is no object; the message names it, counted from the `before` objects that stand before these, with its
        line where `lines` tells those of all.
    """
    names: dict[Any, None] = {}
    for number, record in enumerate(records, before + 1):
        if not isinstance(record, Mapping):
            line = f" (line {lines[number - before - 1]})" if lines else ""
            raise DataError(
                f"{name}, row {number}{line}: a {type(record).__name__}, seen {str(record)[:40]!r}; each row is "
                f'an object such as {{"output": "...", "score": 4}}: give every value its column name'
            )
        names.update(dict.fromkeys(record))
    return {str(column): [plain_value(record.get(column)) for record in records] for column in names}


def _parquet(path: Path, stream: IO[bytes], size: int | None) -> Iterator[Parsed]:
    try:
        for frame in _frames(stream, size):
            yield Parsed(frame_columns(str(path), frame))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read as Parquet ({error}); a complete Parquet file is needed: write it again, "
            f"for example with DataFrame.to_parquet"
        ) from error


def _frames(stream: IO[bytes], size: int | None) -> Iterator[Any]:
    if size is None:
        import pandas

        yield pandas.read_parquet(stream)
        return
    import pyarrow
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(stream)
    yield pyarrow.Table.from_batches([], file.schema_arrow).to_pandas()  # the columns, where there is no row
    for batch in file.iter_batches(size):
        yield pyarrow.Table.from_batches([batch]).to_pandas()


def _workbook(path: Path, stream: IO[bytes], _: int | None) -> Iterator[Parsed]:
    """The first sheet: the header is its first row that is not blank, formulas are their stored values."""
    content = stream.read()
    try:
        import openpyxl
    except ImportError as error:
        raise NeedsError(
            f"{path}: .xlsx is read by openpyxl, which is not here: pip install 'metricsmith[excel]'"
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on forms and styles that openpyxl does not know, which are no cells
            book, plain = (openpyxl.load_workbook(io.BytesIO(content), data_only=only) for only in (True, False))
        sheet = book.worksheets[0]
    except (zipfile.BadZipFile, KeyError, ValueError, IndexError, OSError) as error:
        raise DataError(
            f"{path} cannot be read as an Excel workbook ({error}); an .xlsx file with a sheet and without a password "
            f"is needed: save it again, or export the sheet as CSV"
        ) from error
    notes = [] if len(book.worksheets) == 1 else [f"{path.name}: the first of {len(book.worksheets)} sheets is read, "
                                                  f"{sheet.title!r}"]  # fmt: skip
    rows = {number: list(map(_stored, cells)) for number, cells in enumerate(sheet.iter_rows(values_only=True), 1)}
    filled = {number: cells for number, cells in rows.items() if not all(map(is_blank, cells))}
    if not filled:
        raise DataError(f"{path} is empty: the sheet {sheet.title!r} has no filled cell; a header and rows are needed")
    first, *numbers = filled
    columns: dict[str, list[Any]] = {}
    for place, head in enumerate(filled[first]):
        cells = [filled[number][place] for number in numbers]
        if is_blank(head) and all(map(is_blank, cells)):
            continue
        name = cell_text(head).strip() or f"column {place + 1}"
        _check_names(str(path), [*columns, name])
        columns[name] = cells
        formulas = (plain.worksheets[0].cell(number, place + 1).data_type == "f" for number in numbers)
        unknown = sum(formula and is_blank(cell) for formula, cell in zip(formulas, cells, strict=True))
        if unknown:
            notes.append(
                f"column {name!r}: {unknown} formulas have no stored value and are blank: open the file in a "
                f"spreadsheet and save it"
            )
    yield Parsed(columns, tuple(numbers), tuple(notes))


def _stored(value: Any) -> Any:
    """A cell of a sheet as a plain cell; a date without a time is written as a date."""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return plain_value(value)


def _check_names(name: str, columns: list[str]) -> None:
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise DataError(
            f"{name}: the column name {twice[0]!r} stands {columns.count(twice[0])} times in the header; "
            f"names must be unique: rename or drop the others"
        )


SUFFIXES: dict[str, Callable[[Path, IO[bytes], int | None], Iterator[Parsed]]] = {
    ".csv": partial(_separated, separator=","),
    ".tsv": partial(_separated, separator="\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_file,
    ".parquet": _parquet,
    ".xlsx": _workbook,
}
"""For each ending, a reader of the rows some at a time, or all at once."""
