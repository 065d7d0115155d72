"""Documents for the terminal: lines, and tables with a name on the left and figures aligned on the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from metricsmith.records import Usage
from metricsmith.report.blocks import Across, Document, TextTable

__all__ = ["cost_line", "render_terminal"]


def render_terminal(document: Document[Any], folder: Path | None = None) -> str:
    """The document as lines of text.

    Parameters
    ----------
    document : Document
    folder : path, optional
        The folder of its files, if they were written.
    """
    lines: list[str] = []
    for block in document.terminal(folder):
        lines += [block] if isinstance(block, str) else _aligned(block)
    return "\n".join(lines)


def cost_line(label: Literal["estimated", "actual"], usage: Usage) -> str:
    """One line of requests, tokens and dollars."""
    known = 0.0 if not usage.requests else usage.cost
    dollars = "price unknown" if known is None else f"${known:.4f}"
    return (
        f"{label + ':':<10} {usage.requests} requests, {usage.prompt_tokens} prompt and {usage.completion_tokens} "
        f"completion tokens, {dollars}"
    )


def _aligned(table: TextTable) -> Iterator[str]:
    """The lines of a table, indented by two; a row across it is not."""
    rows: list[Sequence[str] | Across] = [table.head, *table.rows]
    wide = [max(map(len, column)) for column in zip(*(r for r in rows if not isinstance(r, Across)), strict=True)]
    for row in rows:
        if isinstance(row, Across):
            yield row.text
        else:
            name, *figures = row
            cells = [
                f"  {name:{wide[0]}}",
                *(f"{cell:>{width}}" for cell, width in zip(figures, wide[1:], strict=True)),
            ]
            yield "  ".join(cells).rstrip()
