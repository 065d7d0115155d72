"""Elements of HTML and SVG: finished ones are pasted, every other text is escaped on the way in."""

from __future__ import annotations

from html import escape

from metricsmith.report.formats import clean, excerpt

__all__ = ["Markup", "element", "isolated", "joined", "named", "remark"]

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
