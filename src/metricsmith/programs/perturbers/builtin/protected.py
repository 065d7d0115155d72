"""The places that a rewriting must leave alone: code, addresses, quotations, tables and formulas."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from metricsmith.programs.perturbers.builtin.segments import Span, line_places

__all__ = ["QUOTATIONS", "Protected"]

# Every alternative ends at the next mark of its own kind or is bounded, so that the time stays linear.
_INLINE = re.compile(
    r"""
    `+[^`]*+`+
  | (?:https?|ftp|file)://[^\s<>"]+ | www\.[^\s<>"]+          # addresses
  | [\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6}
  | \b[\w-]{1,64}(?:\.[\w-]{1,64}){0,4}\.(?:com|org|net|io|edu|gov|dev|uk|de|fr)\b(?:/\S*)?
  | <[a-zA-Z/!][^<>\n]{0,300}>                                # tags
  | \$[^$\n]{1,200}\$ | \\\(.{0,200}?\\\)                     # formulas
  | \]\([^()\s]*\)                                            # targets of links
  | (?<![\w.-])(?!\d[\d./-]{0,20}(?!\w))[\w.-]{0,64}[_/\\][\w./\\-]*  # paths and identifiers
    """,
    re.VERBOSE | re.MULTILINE,
)
QUOTATIONS = re.compile(
    r"""
    "[^"]*+" | “[^“”]*+” | „[^„“”]*+[“”] | «[^«»]*+»
  | (?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w))++'(?!\w) | ‘(?:[^‘’\n]|(?<=\w)’(?=\w))++’(?!\w)
    """,
    re.VERBOSE,
)
_INDENTED = re.compile(r"(?:\t| {4,})\S")
_PARAGRAPH = re.compile(r"[^\r\n]+(?:(?:\r\n|\r|\n)[^\r\n]+)*")


class Protected:
    """The places of a text that hold something else than prose of its own.

    Fenced and inline code, lines indented by four spaces, headings, tables and block quotations, addresses, tags,
    formulas, paths and quoted strings. A paragraph whose double quotation marks do not pair up is protected as a
    whole, since its quotations cannot be told.

    Parameters
    ----------
    text : str
    quotations : bool
        True if quoted strings are among them.
    """

    def __init__(self, text: str, *, quotations: bool = True) -> None:
        spans = sorted([*_lines(text), *_matches(_INLINE, text), *(_quoted(text) if quotations else ())])
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in spans:
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def spans(self) -> list[Span]:
        """Returns the places, in order, without overlap."""
        return [Span(start, end) for start, end in zip(self._starts, self._ends, strict=True)]

    def touches(self, start: int, end: int) -> bool:
        """Returns True if ``text[start:end]`` shares a character with a protected place, or lies inside it."""
        place = bisect_right(self._starts, max(start, end - 1)) - 1
        return place >= 0 and self._ends[place] > start

    def free(self, pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
        """Yields the matches of a pattern that share nothing with a protected place."""
        return (match for match in pattern.finditer(text) if not self.touches(*match.span()))


def _lines(text: str) -> Iterator[Span]:
    for line in line_places(text):
        whole = text[line.start : line.end]
        quoted = whole.lstrip().startswith(">")
        indented = line.kind == "prose" and _INDENTED.match(whole)
        if line.kind in ("code", "furniture") or quoted or indented or whole.count("|") > 1:
            yield Span(line.start, line.end)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    return (Span(*match.span()) for match in pattern.finditer(text))


def _quoted(text: str) -> Iterator[Span]:
    for match in _PARAGRAPH.finditer(text):
        paragraph = match.group()
        if paragraph.count('"') % 2 or paragraph.count("“") != paragraph.count("”"):
            yield Span(*match.span())
        else:
            yield from (
                Span(start + match.start(), end + match.start()) for start, end in _matches(QUOTATIONS, paragraph)
            )
