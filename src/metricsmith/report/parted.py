"""Documents of parts, which are the same on a page and in Markdown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from metricsmith.formats import single_line
from metricsmith.report.blocks import (
    Block,
    Box,
    Details,
    Document,
    Figure,
    Heading,
    Page,
    Paragraph,
    RecordType,
    Section,
    TextTable,
    Verdict,
    header,
    on_page,
)

__all__ = ["Opening", "PartedDocument"]


@dataclass(frozen=True, slots=True)
class Opening:
    """The top of a `PartedDocument`.

    On a page the title has `beside` next to it and the `description` below it, the verdict the `plot`; the browser
    shows `tab`, or the title. In Markdown the verdict has its details and `below` under it.
    """

    title: str
    verdict: Verdict
    beside: str = ""
    description: str = ""
    plot: Figure | None = None
    tab: str = ""
    below: str = ""


class PartedDocument(Document[RecordType]):
    """A document whose page and Markdown hold the same parts; a page has plots as well."""

    @abstractmethod
    def opening(self) -> Opening:
        """Title and verdict."""

    @abstractmethod
    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """Address, title and blocks of each part, for a page or for Markdown; one without blocks is left out."""

    def page(self) -> Page:
        """The verdict, a plot beside it where there is one, then the parts."""
        top = self.opening()
        verdict: list[Block] = [top.verdict] if top.plot is None else [Box("hero", [top.verdict, top.plot])]
        return Page(
            title=single_line(top.tab or top.title),
            skip="Skip to the tables",
            header=[
                *header(
                    f"metricsmith {self.stem.replace('_', '-')}", single_line(top.title), top.beside, top.description
                ),
                *verdict,
            ],
            main=[
                Section(key, single_line(name), list(map(on_page, blocks)))
                for key, name, blocks in self.parts(page=True)
                if blocks
            ],
        )

    def markdown(self) -> list[Block]:
        """The same without plots."""
        top = self.opening()
        below = [Paragraph(top.below)] if top.below else []
        blocks: list[Block] = [Heading(top.title, level=1), top.verdict, *top.verdict.details, *below]
        for _, name, part in self.parts(page=False):
            blocks += [Heading(name, level=2), *(kept for one in part for kept in _in_markdown(one))] if part else []
        return blocks


def _in_markdown(block: Block) -> list[Block]:
    """Captions stand above their tables; plots are left out."""
    if isinstance(block, Box | Details):
        return [kept for one in block.blocks for kept in _in_markdown(one)]
    if isinstance(block, TextTable):
        return [Paragraph(f"{block.caption}:"), block]
    return [] if isinstance(block, Figure) else [block]
