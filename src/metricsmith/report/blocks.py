"""The blocks of a document: a report is a record and a document that lays it out.

A document says in blocks what stands on the page, in Markdown and in the terminal. `metricsmith.report.render` writes
blocks down and makes the files; it knows no report. Texts are plain and get escaped, except `Markup` on a page and
`Markdown` in Markdown, which are pasted as they are. `element` and its kin make markup, of HTML and of SVG: finished
elements are pasted, every other text is escaped on the way in.
"""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from metricsmith.formats import clean, excerpt, single_line, visible

__all__ = [
    "Across", "Block", "Box", "Cell", "Code", "Details", "Document", "Figure", "Heading", "Items", "Markdown",
    "Markup", "Page", "Paragraph", "RecordType", "Section", "Terms", "TextTable", "Tone", "Verdict", "Warnings",
    "element", "header", "isolated", "joined", "marked_changes", "named", "on_page", "remark", "strong",
]  # fmt: skip

LONGEST = 3_000  # characters of a text that is shown with its changes
# These are never written as empty tags: a browser would take `<bdi/>` for an opening one.
_HTML = frozenset({"a", "bdi", "dd", "del", "div", "dt", "ins", "li", "mark", "p", "span", "strong", "sup", "ul"})


class Markup(str):
    """HTML or SVG source that is safe to paste into a page."""

    __slots__ = ()

    def __html__(self) -> str:
        """Tell Jinja2 that this text is already escaped."""
        return self


def joined(*children: str) -> Markup:
    """Texts and elements in a row; children that are not `Markup` are text and get escaped."""
    return Markup("".join(child if isinstance(child, Markup) else escape(clean(child)) for child in children))


def element(tag: str, *children: str, **attributes: str | float) -> Markup:
    """One element with `children` as in `joined`; ``class_`` means ``class``, a float has at most two decimals."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="'
        f'{escape(clean(value)) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")}"'
        for name, value in attributes.items()
    )
    body = joined(*children)
    return Markup(f"<{tag}{written}>{body}</{tag}>" if body or tag in _HTML else f"<{tag}{written}/>")


def isolated(text: str) -> Markup:
    """A text from the data, kept apart from the direction of the text around it."""
    return element("bdi", text)


def named(text: str) -> Markup:
    """A name from the data, `isolated` and cut to 120 characters; it may break after an underscore."""
    return isolated(Markup(joined(excerpt(text, 120)).replace("_", "_<wbr>")))


def remark(text: str) -> Markup:
    """A small remark beside a name."""
    return element("span", text, class_="sub")


def marked_changes(original: str, changed: str) -> tuple[Markup, Markup]:
    """Both texts, with the words that only one of them has marked; long texts are cut."""
    cut = [clean(text[:LONGEST]) + (" […]" if len(text) > LONGEST else "") for text in (original, changed)]
    before, after = (re.findall(r"\s+|\w+|[^\w\s]", text) for text in cut)
    left: list[str] = []
    right: list[str] = []
    for what, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone, new = "".join(before[i:j]), "".join(after[k:m])
        left.append(gone if what == "equal" or not gone else element("del", gone))
        right.append(new if what == "equal" or not new else element("ins", new))
    return joined(*left), joined(*right)


Tone = Literal["good", "unsure", "bad"]


class Markdown(str):
    """Text that is Markdown already; as a block it is a paragraph that is pasted as it is."""

    __slots__ = ()


class Cell(str):
    """The text of a table's cell or of a term's meaning, with a class of the style sheet."""

    style: str

    def __new__(cls, text: str, style: str) -> Cell:
        """Make `text` a cell."""
        cell = super().__new__(cls, text)
        cell.style = style
        return cell


def strong(text: str) -> Cell:
    """A cell in bold type."""
    return Cell(text, "strong")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside a section, or the page's own (level 1)."""

    text: str
    level: int = 3


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `own_direction` lets a text from the data run in the direction of its own script."""

    text: str
    style: str = ""
    own_direction: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in one sentence.

    Parameters
    ----------
    tone : str
        ``good``, ``unsure`` or ``bad``; for an induction: better than chance on unseen rows, not known, or against
        the raters.
    sentence : str
    cautions : tuple of str
        Plain warnings that belong to it, for Markdown.
    details : tuple of Block
        Blocks inside its frame, for a page.
    """

    tone: Tone
    sentence: str
    cautions: tuple[str, ...] = ()
    details: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Warnings:
    """Warnings of the run; nothing where there is none."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Items:
    """A list; `style` is a class of the style sheet."""

    lines: Sequence[str]
    style: str = ""
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms, each with its meanings."""

    terms: Sequence[tuple[str, Sequence[str]]]
    style: str = ""

    @classmethod
    def glossary(cls, terms: Iterable[tuple[str, str]]) -> Terms:
        """A glossary: each term with its one meaning."""
        return cls([(term, [meaning]) for term, meaning in terms], "glossary")


@dataclass(frozen=True, slots=True)
class Across:
    """A row of one cell across the table; with `group` it is the heading of the rows that follow."""

    text: str
    group: bool = True


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table: a name on the left of each row, figures on the right.

    Parameters
    ----------
    head : sequence of str
    rows : sequence
        As many cells as `head` has, or `Across`.
    caption : str
        Above the table, on a page.
    label : str
        The name of the region in which a wide table scrolls; a page draws none without it.
    own : collection of int
        The places of rows that are shaded.
    bold : int
        The column in bold type; 0 for none.
    style : str
        A class of the style sheet.
    left : int
        Leading columns that hold texts: they stand to the left, the others are figures.
    over : sequence of (str, int)
        A second head above the first, on a page: texts, each over so many columns.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str] | Across]
    caption: str = ""
    label: str = ""
    own: Collection[int] = ()
    bold: int = 0
    style: str = ""
    left: int = 1
    over: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot with its caption; nothing where the plot is empty."""

    plot: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class Code:
    """Lines of Python, in which every character is `visible`."""

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", visible(self.text).rstrip("\n"))


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that open from a line."""

    summary: str
    blocks: Sequence[Block]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """Blocks in an element of their own; `style` is a class of the style sheet."""

    style: str
    blocks: Sequence[Block]
    tag: Literal["div", "article", "ol", "li"] = "div"


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page with its heading; `key` is its address."""

    key: str
    title: str
    blocks: Sequence[Block]


Block = (
    Heading | Paragraph | Verdict | Warnings | Items | Terms | TextTable | Figure | Code | Details | Box | Section
    | Markup | Markdown
)  # fmt: skip


def header(eyebrow: str, title: str, target: str = "", description: str = "") -> list[Block]:
    """The top of a page: a small line, the title with its target, and the description of the task, if there is one."""
    heading = joined(title, " ", element("span", target, class_="target")) if target else title
    task = [Paragraph(description, "task", own_direction=True)] if description else []
    return [Paragraph(eyebrow, "eyebrow"), Heading(heading, level=1), *task]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its title, its header, its sections, and the text of the link that skips the header (empty: no link).

    A page to work with names its `script`: that script and the style sheet of the same name in ``templates/``.
    """

    title: str
    header: Sequence[Block]
    main: Sequence[Block]
    skip: str = ""
    script: str = ""


def on_page(block: Block) -> Block:
    """Tables of a page scroll under their caption, and their names are isolated; lines of lists have no breaks."""
    if isinstance(block, Box | Details):
        return replace(block, blocks=[on_page(one) for one in block.blocks])
    if isinstance(block, Warnings | Items):
        return replace(block, lines=[line if isinstance(line, Markup) else single_line(line) for line in block.lines])
    if not isinstance(block, TextTable):
        return block
    rows = [
        Across(single_line(row.text)) if isinstance(row, Across) else (isolated(single_line(row[0])), *row[1:])
        for row in block.rows
    ]
    head = [name if isinstance(name, Cell) else single_line(name) for name in block.head]
    return replace(block, head=head, rows=rows, label=block.caption)


class SignedRecord(Protocol):
    """The data of a run."""

    @property
    def signature(self) -> str:
        """The line that makes every number reproducible."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that must not be overlooked."""

    def as_dict(self) -> dict[str, Any]:
        """The content of the JSON file."""


RecordType = TypeVar("RecordType", bound=SignedRecord)


@dataclass(frozen=True)
class Document(ABC, Generic[RecordType]):
    """A record laid out in blocks.

    Parameters
    ----------
    record : SignedRecord
    """

    record: RecordType
    stem: ClassVar[str]
    """The name of the files, without ending."""

    @abstractmethod
    def page(self) -> Page:
        """The page; the signature line is added below it."""

    @abstractmethod
    def markdown(self) -> list[Block]:
        """The Markdown file; the signature line is added below it."""

    @abstractmethod
    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """Lines and tables for the terminal; `folder` is where the files were written, if they were."""

    def facts(self) -> list[Block]:
        """The main figures, for a notebook; none by default."""
        return []

    def ending(self, folder: Path | None, called: str = "report", notes: Sequence[str] = ()) -> list[str]:
        """The last lines for the terminal: warnings, notes, the place of the page, if it was written, the signature."""
        return [
            *(f"warning: {warning}" for warning in self.record.warnings),
            *(f"note: {note}" for note in notes),
            *([f"{called}: {folder / f'{self.stem}.html'}"] if folder is not None else ()),
            self.record.signature,
        ]
