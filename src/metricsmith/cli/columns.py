"""Tables for the terminal: a name on the left, figures aligned on the right."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["aligned", "laid_out", "widths"]

Row = Sequence[str]


def widths(rows: Sequence[Row]) -> list[int]:
    """The width of each column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def aligned(row: Row, wide: Sequence[int]) -> str:
    """One line, indented by two."""
    name, *figures = row
    cells = [f"  {name:{wide[0]}}", *(f"{cell:>{width}}" for cell, width in zip(figures, wide[1:], strict=True))]
    return "  ".join(cells).rstrip()


def laid_out(head: Row, rows: Sequence[Row]) -> list[str]:
    """The lines of a table."""
    wide = widths((head, *rows))
    return [aligned(row, wide) for row in (head, *rows)]
