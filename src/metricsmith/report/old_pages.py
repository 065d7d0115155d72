"""What every page is made of: the style sheet, its hash, and templates that escape whatever they print."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from metricsmith.report import formats
from metricsmith.report.markup import Markup

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["render_page"]

FILTERS = (
    "count", "duration", "excerpt", "interval", "money", "one_line", "p_value", "percent", "points", "rating", "raw",
    "statistic",
)  # fmt: skip


def render_page(template: str, /, **values: object) -> str:
    """A template of this package as a page that refers to nothing outside itself; every text is escaped."""
    style = _style_sheet()
    written: str = _template(template).render(style=Markup(style), style_hash=_content_hash(style), **values)
    return written


@lru_cache(maxsize=1)
def _style_sheet() -> str:
    """The style sheet of all pages."""
    return files("metricsmith.report").joinpath("templates", "report.css").read_text("utf-8")


def _content_hash(text: str) -> str:
    """The base64 SHA-256 by which a content security policy admits exactly this text."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache
def _template(name: str) -> Template:
    """A template of the package; an undefined name in it is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("metricsmith.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({name: getattr(formats, name) for name in FILTERS})
    return environment.get_template(name)


def _printable(value: object) -> object:
    """Clean whatever text a template prints; finished markup passes."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return formats.clean(value)
    return value
