"""Documents as one HTML page, as Markdown that data cannot break, as lines for the terminal, and as files.

The page is self-contained and written by one template. Style sheet, plots and, on a page to work with, a script are
inside the file; its content security policy lets nothing else in, so that the page opens offline and text from the
data can neither run nor fetch anything. Markdown is for pull requests, issues, notebooks and papers. In the terminal a
table has a name on the left and figures aligned on the right. Each file is written whole or not at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from metricsmith.errors import DataError, OptionError
from metricsmith.formats import clean, cost_stated, count, single_line
from metricsmith.records import Usage
from metricsmith.report.blocks import (
    Across,
    Block,
    Code,
    Document,
    Heading,
    Items,
    Markdown,
    Markup,
    Page,
    Paragraph,
    Terms,
    TextTable,
    Verdict,
    Warnings,
)

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "aligned", "cost_line", "escape", "lock_for_writing", "markdown_lines", "render_brief", "render_html",
    "render_json", "render_markdown", "render_page", "render_terminal", "replace_file", "standalone", "write_document",
]  # fmt: skip


def render_html(document: Document[Any]) -> str:
    """The document as one HTML page.

    Parameters
    ----------
    document : Document
        Undefined numbers appear as an en dash, with the reason where it is known.

    Returns
    -------
    str
        A complete page that refers to nothing outside itself; every text is escaped.
    """
    return render_page(document.page(), document.record.signature)


def render_page(page: Page, signature: str | None = None) -> str:
    """A page with a signature line below it, or without one; see `render_html`."""
    style, script = _part("report.css"), ""
    if page.script:
        style, script = style + _part(f"{page.script}.css"), _part(f"{page.script}.js")
    # A content security policy admits exactly this style sheet and this script, by their hashes.
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    frame = _templates().get_template("page.html.j2")
    return frame.render(page=page, signature=signature, style=Markup(style), script=Markup(script), hashes=hashes)


def render_brief(blocks: Sequence[Block], signature: str = "") -> str:
    """Blocks as a piece of HTML for the output of a notebook's cell, with a signature line below them.

    Every text is escaped. The style sheet is in the piece and touches nothing outside it; colours are the notebook's
    own, so that light and dark ones are readable.
    """
    shown = [*blocks, *([Paragraph(signature, "signature", own_direction=True)] if signature else ())]
    body = _templates().get_template("blocks.html.j2").module.show(shown)  # type: ignore[attr-defined]
    return f'<div class="metricsmith"><style>{_part("notebook.css")}</style>\n{body}</div>'


def standalone(drawing: Markup) -> str:
    """A plot as an SVG file of its own, in the page's colours; write it to ``name.svg``.

    Raises
    ------
    DataError
        If there is nothing to draw.
    """
    if not drawing:
        raise DataError("the plot is empty: none of its numbers is defined")
    style = html.escape(f"{_part('report.css')}\n:root {{ background: var(--paper); }}")
    return drawing.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        ">", f"><style>{style}</style>", 1
    )


@lru_cache
def _part(name: str) -> str:
    """A style sheet or a script: ``report.css`` is that of all pages, ``notebook.css`` that of short forms."""
    return files("metricsmith.report").joinpath("templates", name).read_text("utf-8")


@lru_cache(maxsize=1)
def _templates() -> Environment:
    """The templates; an undefined name in one is an error, and texts are cleaned and escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("metricsmith.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.tests["kind"] = lambda block, name: type(block).__name__ == name
    return environment


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
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))  # the text cannot close it
            return [f"{fence}python", block.text, fence, ""]
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
        lines += [block] if isinstance(block, str) else aligned(block)
    return "\n".join(lines)


def cost_line(label: Literal["estimated", "actual"], usage: Usage) -> str:
    """One line of requests, tokens and dollars."""
    tokens = f"{count(usage.prompt_tokens)} prompt and {count(usage.completion_tokens)} completion tokens"
    spent = cost_stated(usage.cost if usage.requests else 0.0)
    return f"{label + ':':<10} {count(usage.requests, 'request')}, {tokens}, {spent}"


def aligned(table: TextTable) -> Iterator[str]:
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


def render_json(record: Any) -> str:
    """`as_dict` of a record as indented JSON that every parser reads: no NaN, keys in the record's order."""
    return json.dumps(record.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_document(
    document: Document[Any], folder: str | PathLike[str], others: Mapping[str, str] | None = None
) -> None:
    """Write a document as HTML, Markdown and JSON, named by its `stem`, and `others`, finished texts by file name.

    All are rendered before the first is written, and each replaces its predecessor in one step, so that a reader never
    meets half a file. The folder is made if it does not exist.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    contents = {
        f"{document.stem}.html": render_html(document),
        f"{document.stem}.md": render_markdown(document),
        f"{document.stem}.json": render_json(document.record),
        **(others or {}),
    }
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        replace_file(target / name, content)


def replace_file(path: Path, content: str) -> None:
    """Write `content` whole or not at all."""
    # A lone surrogate has no UTF-8 form; an escape is valid inside JSON and visible elsewhere.
    encoded = content.encode("utf-8", "backslashreplace")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(encoded)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def lock_for_writing(stream: IO[bytes], path: Path) -> None:
    """Refuse a file to which another process is writing, where the system can tell."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        raise OptionError(f"{path} is being written by another run: wait for it, or name another --out") from None
