"""Elements of HTML and SVG: finished ones are pasted, every other text is escaped on the way in."""

from __future__ import annotations

import difflib
import re
from html import escape

from metricsmith.report.formats import clean, excerpt

__all__ = ["Markup", "element", "isolated", "joined", "marked_changes", "named", "remark"]

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
