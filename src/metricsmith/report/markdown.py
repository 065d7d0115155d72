"""Documents as Markdown that data cannot break: for pull requests, issues, notebooks and papers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from metricsmith.report.blocks import (
    Across,
    Block,
    Code,
    Document,
    Heading,
    Items,
    Markdown,
    Paragraph,
    Terms,
    TextTable,
    Verdict,
    Warnings,
)
from metricsmith.report.formats import single_line

__all__ = ["escape", "markdown_lines", "render_markdown"]

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
# Characters that would open a list, a heading or a rule at the start of a line.
_OPENING = re.compile(r"^(\s*)([-+#=]|\d+(?=[.)]))")


def escape(text: str) -> str:
    """`text` on one line, with nothing left that Markdown or HTML would act on; `Markdown` stays as it is."""
    if isinstance(text, Markdown):
        return text
    line = single_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _SPECIAL.sub(r"\\\1", line)
    return _OPENING.sub(lambda match: match[1] + ("&#8203;" if match[2].isdigit() else "\\") + match[2], line)


def render_markdown(document: Document[Any]) -> str:
    """The document as Markdown with the signature line below; undefined numbers appear as an en dash."""
    lines = [*markdown_lines(document.markdown()), f"Signature: {escape(document.record.signature)}"]
    return "\n".join(lines).rstrip() + "\n"


def markdown_lines(blocks: Iterable[Block]) -> list[str]:
    """The lines of blocks, an empty one after each block."""
    return [line for block in blocks for line in _lines(block)]


def _lines(block: Block) -> list[str]:
    match block:
        case Heading():
            return [f"{'#' * block.level} {escape(block.text)}", ""]
        case Paragraph(text=text) | (Markdown() as text):
            return [escape(text), ""]
        case Verdict():
            return [f"**{escape(block.sentence)}**", "", *_lines(Warnings(block.cautions))]
        case Warnings():
            return [line for warning in block.lines for line in (f"> Warning: {escape(warning)}", "")]
        case Items():
            return [*(f"- {escape(line)}" for line in block.lines), ""]
        case Terms():
            return [*(f"- **{escape(term)}** {escape(' '.join(meanings))}" for term, meanings in block.terms), ""]
        case Code():
            return ["```python", block.text, "```", ""]
        case TextTable():
            return [*_table(block), ""]
    raise TypeError(f"{type(block).__name__} has no form in Markdown")


def _table(table: TextTable) -> list[str]:
    """The lines of a table; of figures only ``<`` needs to be escaped."""
    lines: list[Sequence[str]] = [
        [escape(cell) for cell in table.head],
        ["---" if place < table.left else "---:" for place in range(len(table.head))],
    ]
    for row in table.rows:
        if isinstance(row, Across):
            lines.append([f"*{escape(row.text)}*", *("" for _ in table.head[1:])])
        else:
            figures = [cell if isinstance(cell, Markdown) else cell.replace("<", "&lt;") for cell in row[table.left :]]
            lines.append([*map(escape, row[: table.left]), *figures])
    return [f"| {' | '.join(cells)} |" for cells in lines]
