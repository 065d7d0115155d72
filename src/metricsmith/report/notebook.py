"""Records that show themselves in a notebook, by the document that stands beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

from metricsmith.report.blocks import (
    Across,
    Block,
    Box,
    Document,
    Heading,
    Markup,
    Paragraph,
    Section,
    TextTable,
    Verdict,
    Warnings,
)  # fmt: skip
from metricsmith.report.render import render_brief

__all__ = ["SHORT", "NotebookRecord", "short_form"]

SHORT = 8  # rows of a table
TABLES = 2
MOST_WARNINGS = 3


class NotebookRecord:
    """A record in ``report/NAME/record.py``: the one `Document` in ``report/NAME/document.py`` lays it out."""

    __slots__ = ()
    signature: str

    def _document(self) -> Document[Any]:
        home = import_module(type(self).__module__.removesuffix("record") + "document")
        own = [one for one in vars(home).values() if getattr(one, "__module__", "") == home.__name__]
        (kind,) = (one for one in own if isinstance(one, type) and issubclass(one, Document))
        return kind(self)

    def _repr_html_(self) -> str:
        return render_brief(short_form(self._document()), self.signature)


def short_form(document: Document[Any]) -> list[Block]:
    """The short form of a document: title, verdict, main figures, the first tables of the page, the first warnings."""
    page, warnings = document.page(), document.record.warnings
    blocks = list(_flat([*page.header, *page.main]))
    verdicts = [
        replace(one, details=tuple(part for part in one.details if not _links(part)))
        for one in blocks
        if isinstance(one, Verdict)
    ]
    tables = [_shortened(one) for one in blocks if isinstance(one, TextTable)]
    more = len(warnings) - MOST_WARNINGS
    lines = [*warnings[:MOST_WARNINGS], *([f"… and {more} more"] if more > 0 else [])]
    return [Heading(page.title), *verdicts[:1], *document.facts(), *tables[:TABLES], Warnings(lines)]


def _flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks one after the other, those of boxes and sections in their places."""
    for block in blocks:
        if isinstance(block, Box | Section):
            yield from _flat(block.blocks)
        else:
            yield block


def _links(block: Block) -> bool:
    """True for a paragraph with markup: its link would lead nowhere."""
    return isinstance(block, Paragraph) and isinstance(block.text, Markup)


def _shortened(table: TextTable) -> TextTable:
    more = len(table.rows) - SHORT
    return replace(table, rows=[*table.rows[:SHORT], Across(f"… and {more} more", group=False)]) if more > 0 else table
