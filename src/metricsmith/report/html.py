"""Documents as HTML: one self-contained page, written by one template.

Style sheet and plots are inside the file; its content security policy lets nothing else in, so that the page opens
offline and text from the data can neither run nor fetch anything.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from metricsmith.errors import DataError
from metricsmith.report.blocks import Document, Page
from metricsmith.report.formats import clean
from metricsmith.report.markup import Markup

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["render_html", "render_page", "standalone"]


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
    style = _style_sheet()
    # A content security policy admits exactly this style sheet, by its hash.
    style_hash = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(page=page, signature=signature, style=Markup(style), style_hash=style_hash)


def standalone(drawing: Markup) -> str:
    """A plot as an SVG file of its own, in the page's colours; write it to ``name.svg``.

    Raises
    ------
    DataError
        If there is nothing to draw.
    """
    if not drawing:
        raise DataError("the plot is empty: none of its numbers is defined")
    style = f"{_style_sheet()}\n:root {{ background: var(--paper); }}"
    return drawing.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        ">", f"><style>{escape(style)}</style>", 1
    )


@lru_cache(maxsize=1)
def _style_sheet() -> str:
    """The style sheet of all pages."""
    return files("metricsmith.report").joinpath("templates", "report.css").read_text("utf-8")


@lru_cache(maxsize=1)
def _template() -> Template:
    """The template of all pages; an undefined name in it is an error, and texts are cleaned and escaped."""
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
    return environment.get_template("page.html.j2")
