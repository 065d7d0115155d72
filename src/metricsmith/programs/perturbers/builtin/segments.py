"""Sentences, words and lines of a text as places in it, and the edits that are made at such places.

`Protected` holds the places that a rewriting must leave alone: code, addresses, quotations, tables and formulas.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple, TypeVar

import numpy as np

from metricsmith.bank.text import sentences
from metricsmith.programs.perturbers.base import Strength

__all__ = [
    "BULLET", "QUOTATIONS", "Edit", "Line", "Protected", "Sentence", "Span", "appended", "applied", "fitted",
    "line_places", "looks_english", "pick_one", "pick_one_or_all", "pick_some", "sentence_places", "without",
    "word_places",
]  # fmt: skip

T = TypeVar("T")
_ENDINGS = ".!?…:;。！？｡)]}\"'”’»*`>"
BULLET = re.compile(r"[ \t]*[-*+•‣][ \t]+(?=\S)")
_NUMBER = re.compile(r"[ \t]*\(?\d{1,3}[.)][ \t]+(?=\S)")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_FURNITURE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\||(?:[-*_=][ \t]*){3,}$)")
_DOTTED = re.compile(r"(?:^|[\s(])((?:[^\W\d_]\.){2,})$")
_SHORTENED = re.compile(r"(?i)\b(?:no|etc|inc|ltd|co|corp|dept|approx|est|max|min|p|pp|vol|ed|eds|al|ca)\.$")
_BREAKS = re.compile(r"[^\S\r\n]*(?:\r\n|\r|\n)?(?:[ \t]*(?:\r\n|\r|\n))*")
_CLOSED = re.compile(r"[.!?…:;。！？｡]['\"”’»)\]*_`]*$")
_MARKS = "`~|<>="
_FUNCTION_WORDS = frozenset({
    "the", "a", "an", "of", "to", "and", "in", "is", "are", "was", "were", "for", "on", "with", "that", "this", "it",
    "by", "as", "at", "from", "be", "been", "or", "not", "have", "has", "had", "will", "would", "can", "you", "your",
    "we", "our", "they", "their", "he", "she", "his", "her", "its", "but", "if", "there", "which", "who", "when",
    "what", "do", "does", "did", "so",
})  # fmt: skip


class Edit(NamedTuple):
    """Put `new` in place of ``text[start:end]``."""

    start: int
    end: int
    new: str


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Returns the text with all edits made; of two that overlap the earlier one counts."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        if edit.start >= at:
            parts += [text[at : edit.start], edit.new]
            at = edit.end
    return "".join([*parts, text[at:]])


def pick_one(items: Sequence[T], random: np.random.Generator) -> T:
    """Returns one of the items, all alike likely; there must be one."""
    return items[int(random.integers(len(items)))]


def pick_some(items: Sequence[T], count: int, random: np.random.Generator) -> list[T]:
    """Returns `count` of the items (all, if there are fewer), without repetition, in their order."""
    return [items[int(place)] for place in sorted(random.permutation(len(items))[:count])]


def pick_share(items: Sequence[T], part: float, random: np.random.Generator) -> list[T]:
    """Returns a part of the items, from 0 to 1 and at least one of them, in their order."""
    return pick_some(items, max(1, math.floor(part * len(items))), random)


def pick_one_or_all(items: Sequence[T], strength: Strength, random: np.random.Generator) -> list[T]:
    """Returns one item if the change shall be subtle, otherwise all of them."""
    return pick_some(items, 1, random) if strength == "subtle" else list(items)


def fitted(addition: str, text: str) -> str:
    """Returns the addition in small letters if the text has no others, so that letter case does not give it away."""
    return addition.lower() if text == text.lower() != text.upper() else addition


def appended(text: str, addition: str) -> str:
    """Returns the text and then the addition: on the same line after a sentence, below anything else."""
    if not text.strip():
        return addition
    body = text.rstrip()
    inline = "\n" not in body and body[-1] in _ENDINGS
    return body + (" " if inline else "\n\n") + addition + text[len(body) :]


def sampler(items: Sequence[T], random: np.random.Generator) -> Callable[[], T]:
    """Returns a function that gives the items in a drawn order, each once before any comes again."""
    return cycle([items[int(place)] for place in random.permutation(len(items))]).__next__


class Span(NamedTuple):
    """``text[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text.

    Parameters
    ----------
    start, end : int
        Its place, without the line break.
    body : int
        Where its words begin, after indent and list marker.
    kind : str
        ``prose``, ``bullet``, ``numbered``, ``blank``, ``code`` (in a fence, which may lack its end) or
        ``furniture`` (a heading, a row of a table, a rule).
    """

    start: int
    end: int
    body: int
    kind: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence's place, without list marker and surrounding space, and the kind of line in which it begins."""

    start: int
    end: int
    kind: str


def line_places(text: str) -> Iterator[Line]:
    """Yields the lines of the text, in order."""
    start = 0
    fence = ""
    for whole in text.splitlines(keepends=True):
        line = whole.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        mark = _FENCE.match(line)
        kind, body = _kind(line)
        if fence or mark:
            kind, body = "code", 0
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        yield Line(start, start + len(line), start + body, kind)
        start += len(whole)


def _kind(line: str) -> tuple[str, int]:
    if not line.strip():
        return "blank", 0
    if _FURNITURE.match(line):
        return "furniture", 0
    for kind, pattern in (("bullet", BULLET), ("numbered", _NUMBER)):
        if marker := pattern.match(line):
            return kind, marker.end()
    return "prose", len(line) - len(line.lstrip())


def sentence_places(text: str) -> list[Sentence]:
    """Returns the sentences of the text; headings, tables and fenced code hold none.

    Abbreviations, initials and decimals end no sentence. Neither does a line break after which a long line goes on in
    small letters; every other one does. Time grows with the length of the text.
    """
    found: list[Sentence] = []
    for start, end, kind in _blocks(text):
        flat = "".join(" " if character in "\r\n" else character for character in text[start:end])
        at = 0
        pieces: list[Sentence] = []
        for piece in sentences(flat):
            at = flat.index(piece, at)
            place = Sentence(start + at, start + at + len(piece), kind)
            at += len(piece)
            if pieces and _goes_on(text[max(pieces[-1].start, pieces[-1].end - 16) : pieces[-1].end], piece):
                pieces[-1] = Sentence(pieces[-1].start, place.end, kind)
            else:
                pieces.append(place)
        found += pieces
    return found


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields start, end and kind of the stretches that hold sentences: a line, or lines that were wrapped."""
    block: tuple[int, int, str] | None = None
    for line in line_places(text):
        if block and line.kind == "prose" and text[line.body].islower():
            before = text[max(block[0], block[1] - 80) : block[1]]
            if len(before) >= 40 and not _CLOSED.search(before.rstrip()):  # the line goes on
                block = (block[0], line.end, block[2])
                continue
        if block:
            yield block
        block = (line.body, line.end, line.kind) if line.kind in ("prose", "bullet", "numbered") else None
    if block:
        yield block


def _goes_on(before: str, after: str) -> bool:
    """Returns True if the full stop at the end of `before` belongs to an abbreviation and the sentence goes on."""
    small = after[0].islower() or after[0].isdigit()
    if dotted := _DOTTED.search(before):
        return small or dotted[1].lower() not in ("a.m.", "p.m.")
    return small and bool(_SHORTENED.search(before))


def without(text: str, all_sentences: Sequence[Sentence], places: Collection[int]) -> str:
    """The text without some of its sentences; a line that loses all goes as well, list marker and break included."""
    cuts: list[Span] = []
    for line in _by_line(text, all_sentences):
        kept = [place for place in line if place not in places]
        start, end = all_sentences[line[0]].start, all_sentences[line[-1]].end
        if kept:
            last = all_sentences[kept[-1]].end
            gone = (place for place in line if place in places and place < kept[-1])
            cuts += [Span(all_sentences[place].start, all_sentences[place + 1].start) for place in gone]
            cuts += [Span(last, end)] if last < end else []
        else:
            begun = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
            gap = _BREAKS.match(text, end)
            cuts.append(Span(begun, gap.end() if gap else end))
    parts = [
        text[one:two]
        for one, two in zip([0, *(cut.end for cut in cuts)], [*(cut.start for cut in cuts), None], strict=True)
    ]
    return "".join(parts).rstrip() + text[len(text.rstrip()) :]


def _by_line(text: str, all_sentences: Sequence[Sentence]) -> list[list[int]]:
    """Returns the sentences' numbers, those together that no line break parts."""
    found: list[list[int]] = []
    for place, sentence in enumerate(all_sentences):
        gap = text[all_sentences[place - 1].end : sentence.start] if place else "\n"
        if "\n" in gap or "\r" in gap:
            found.append([])
        found[-1].append(place)
    return found


def word_places(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """Returns the words between two places: runs between spaces, without punctuation marks on their outside.

    ``well-known``, ``3,000.5``, ``don't`` and addresses are one word, an emoji is one, and so is a run of a script
    without spaces.
    """
    found = []
    for match in re.compile(r"\S+").finditer(text, start, len(text) if end is None else end):
        left, right = match.span()
        while left < right and _is_mark(text[left]):
            left += 1
        while right > left and _is_mark(text[right - 1]):
            right -= 1
        if left < right:
            found.append(Span(left, right))
    return found


def _is_mark(character: str) -> bool:
    return character in _MARKS or (not character.isalnum() and unicodedata.category(character)[0] == "P")


def looks_english(text: str) -> bool:
    """Returns True if a fifth of the words, and two of them at least, are English function words."""
    found = [text[start:end].lower() for start, end in word_places(text)]
    known = sum(word in _FUNCTION_WORDS for word in found)
    return known >= max(2, 0.2 * len(found))


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
