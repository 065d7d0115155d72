"""CSV that spreadsheets do not run: a cell like a formula gets an apostrophe, which our reader takes off.

Reports, stores and the command line write such tables and loaders read them, so that this stands below all of these.
Readers that know nothing of the mark see one more empty column, and a file of anybody else keeps every apostrophe.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

__all__ = ["MARK", "is_formula", "tell_marks", "unmarked", "write_line", "write_table"]

MARK = "apostrophes before = + - @ are metricsmith's"  # name of the empty last column of a file that has any

# With any apostrophes of its own before it, so that these can be told from ours; a number is no formula.
FORMULA = re.compile(r"'*(?![+-](?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z)[=+\-@\t\r]")
notes = logging.getLogger("metricsmith.notes")


def write_table(
    stream: IO[str],
    header: Sequence[str],
    rows: Callable[[], Iterable[Sequence[Any]]],
    *,
    raw: bool = False,
    separator: str = ",",
    end: str = "\n",
) -> None:
    """Write a header and rows as CSV.

    Where a text begins with ``=``, ``+``, ``-``, ``@``, a tab or CR and is no number, it gets an apostrophe, and the
    table an empty last column whose name, `MARK`, tells `unmarked` so. A table without such a text is plain CSV.

    Parameters
    ----------
    stream : text stream
        Opened with ``newline=""``.
    header : sequence of str, length k
    rows : callable
        Gives the rows, each of k cells, as often as it is called: they are looked through before they are written.
        None is an empty cell.
    raw : bool
        Write every text as it is.
    separator, end : str
        Between cells, and after each row.
    """
    marked = not raw and any(is_formula(cell) for row in (header, *rows()) for cell in row)
    if marked:
        tell_marks()
    stream.write(write_line([*header, *([MARK] if marked else ())], marked, separator, end))
    for row in rows():
        stream.write(write_line([*row, *([""] if marked else ())], marked, separator, end))


def is_formula(cell: Any) -> bool:
    """True for a text that a spreadsheet would run."""
    return isinstance(cell, str) and FORMULA.match(cell) is not None


def tell_marks() -> None:
    """Say once that a table is marked, and how to do without."""
    notes.warning(
        "texts that a spreadsheet would run as formulas begin with an apostrophe in the table; metricsmith takes "
        "it off when it reads the file, and --raw-csv leaves it out"
    )


def unmarked(columns: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The columns of a file as they were before `write_table`, if it marked any; otherwise as they are."""
    if MARK not in columns:
        return dict(columns)
    return {_unmarked(name): [_unmarked(cell) for cell in cells] for name, cells in columns.items() if name != MARK}


def _unmarked(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def write_line(cells: Sequence[Any], marked: bool, separator: str = ",", end: str = "\n") -> str:
    """One row as CSV; where the table is `marked`, what a spreadsheet would run gets an apostrophe."""
    written = []
    for cell in cells:
        text = "" if cell is None else str(cell)
        if marked and is_formula(cell):
            text = f"'{text}"
        if any(special in text for special in (separator, '"', "\r", "\n")):
            text = '"' + text.replace('"', '""') + '"'
        written.append(text)
    return ('""' if written == [""] else separator.join(written)) + end
