"""Outputs laid out otherwise: white space, marks, and the order of what has no order. No word changes."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from metricsmith.programs.perturbers.base import Perturber, Source, Strength
from metricsmith.programs.perturbers.builtin.segments import (
    QUOTATIONS,
    Edit,
    Line,
    Protected,
    applied,
    line_places,
    looks_english,
    pick_one_or_all,
    sentence_places,
)

__all__ = ["LAYOUT"]

_WIDTH = 76
_STRAIGHT = re.compile(r"(?<=[^\W\d_])'(?=(?:s|t|re|ve|ll|d|m)(?![\w']))")
_CURLY = re.compile(r"(?<=[^\W\d_])’(?=(?:s|t|re|ve|ll|d|m)(?![\w’]))")
_BOLD = re.compile(r"(?<![\w*\\])\*\*[^*_\s](?:[^*_\n]*[^*_\s])?\*\*(?![\w*])")
_PARAGRAPH = re.compile(r"[^\r\n]+(?:(?:\r\n|\r|\n)[^\r\n]+)*")
_PROSE_END = re.compile(r"[.!?…][\"”’')]*\s*$")
_CODE_MARKS = re.compile(r"[{}=\\;<>`|]")
# Words by which one item, or the text around, may speak of the order of items.
_ORDER = re.compile(
    r"(?i)\b(?:first|second|third|fourth|last|lastly|former|latter|above|below|preceding|previous|next|then|finally|"
    r"after|afterwards?|before|begin|start|follow\w*|steps?|stages?|phases?|order\w*|rank\w*|top|bottom|priorit\w*|"
    r"sequence|chronolog\w*|timeline|alphabet\w*|ascending|descending|sort\w*|other|others|also|again|same|both|"
    r"else|another|otherwise|however|therefore|thus|similarly|instead|rest|remaining|least|most|important\w*)\b"
)
_BACKWARD = re.compile(r"(?:It|This|That|These|Those|They|He|She|His|Her|Its|Their|Such|And|But|Or|So)\b")
_LINKED = re.compile(r"(?:[,;:]|\b(?:and|or))$")


def whitespace(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    if not text.strip():
        return text
    protected = Protected(text)
    edits = [
        Edit(before.end, after.start, "  ")
        for before, after in pairwise(sentence_places(text))
        if text[before.end : after.start] == " " and not protected.touches(before.end, after.start)
    ]
    edits += [
        Edit(line.end, line.end, " ")
        for line in line_places(text)
        if line.kind in ("prose", "bullet", "numbered")
        and line.end < len(text)
        and text[line.end - 1] not in " \t\\"
        and not protected.touches(line.end - 1, line.end)
    ]
    if text[-1] not in "\r\n":
        edits.append(Edit(len(text), len(text), "\r\n" if "\r\n" in text else "\n"))
    if strength == "obvious":
        edits += _wraps(text, protected)
    return applied(text, pick_one_or_all(edits, strength, random))


def _wraps(text: str, protected: Protected) -> list[Edit]:
    """Line breaks inside paragraphs that are one long line, where the next word cannot begin a list or heading."""
    edits = []
    every = list(line_places(text))
    for place, line in enumerate(every):
        alone = all(other.kind == "blank" for other in every[max(0, place - 1) : place + 2] if other is not line)
        if (
            line.kind != "prose"
            or not alone
            or line.end - line.start < 100
            or _CODE_MARKS.search(text, line.start, line.end)
        ):
            continue
        begun = line.start
        for gap in re.compile(r"(?<=\S) (?=[^\W\d_])").finditer(text, line.start, line.end):
            if gap.end() - begun >= _WIDTH and not protected.touches(*gap.span()):
                edits.append(Edit(*gap.span(), "\r\n" if "\r\n" in text else "\n"))
                begun = gap.end()
    return edits


def markup(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    protected = Protected(text)
    apostrophes = [
        [Edit(match.start(), match.end(), other) for match in protected.free(pattern, text)]
        for pattern, other in ((_STRAIGHT, "’"), (_CURLY, "'"))
    ]
    kinds = [
        _bullets(text, protected),
        _quotation_marks(text),
        next((edits for edits in apostrophes if edits), []),
        [Edit(m.start(), m.end(), f"__{m.group()[2:-2]}__") for m in protected.free(_BOLD, text)],
    ]
    groups = pick_one_or_all([edits for edits in kinds if edits], strength, random)
    return applied(text, [edit for edits in groups for edit in edits])


def _bullets(text: str, protected: Protected) -> list[Edit]:
    """Exchanges all bullets at once, since a list ends where the bullet changes; none where two kinds are in use."""
    marks = [
        line.start + len(text[line.start : line.body]) - len(text[line.start : line.body].lstrip())
        for line in line_places(text)
        if line.kind == "bullet"
    ]
    if len({text[mark] for mark in marks}) != 1 or text[marks[0]] not in "-*":
        return []
    other = "*" if text[marks[0]] == "-" else "-"
    return [Edit(mark, mark + 1, other) for mark in marks if not protected.touches(mark, mark + 1)]


def _quotation_marks(text: str) -> list[Edit]:
    protected = Protected(text, quotations=False)
    edits = []
    for paragraph in _PARAGRAPH.finditer(text):
        told = paragraph.group()
        if told.count('"') % 2 or _CODE_MARKS.search(told) or not _PROSE_END.search(told):
            continue
        for quotation in QUOTATIONS.finditer(told):
            start, end = (paragraph.start() + place for place in quotation.span())
            inner = text[start + 1 : end - 1]
            outside = text[max(0, start - 1) : start].strip() + re.sub(r"[\s.,;:!?)]", "", text[end : end + 1])
            if outside or not inner or inner != inner.strip() or protected.touches(start, end):
                continue
            marks = {'"': "“”", "“": '""'}.get(text[start])
            if marks and text[end - 1] in '"”':
                edits += [Edit(start, start + 1, marks[0]), Edit(end - 1, end, marks[1])]
    return edits


def reorder(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    found = [items for items in _lists(text) if _without_order(text, items)] if looks_english(text) else []
    edits = []
    for items in pick_one_or_all(found, strength, random) if found else []:
        told = [text[item.body : item.end] for item in items]
        if strength == "subtle":
            place = int(random.integers(len(items) - 1))
            order = [*range(place), place + 1, place, *range(place + 2, len(items))]
        else:
            turn = 1 + int(random.integers(len(items) - 1))
            order = [*range(turn, len(items)), *range(turn)][:: -1 if len(items) > 3 else 1]
        edits += [Edit(item.body, item.end, told[k]) for item, k in zip(items, order, strict=True)]
    return applied(text, edits)


def _lists(text: str) -> list[list[Line]]:
    """Returns the bullet lists whose items are single lines of one indent, without anything below an item."""
    found: list[list[Line]] = []
    every = [*line_places(text), Line(len(text), len(text), len(text), "blank")]
    run: list[Line] = []
    for line in every:
        if line.kind == "bullet":
            run.append(line)
            continue
        heads = {text[item.start : item.body] for item in run}
        if len(run) > 1 and len(heads) == 1 and line.kind == "blank":
            found.append(run)
        run = []
    return found


def _without_order(text: str, items: list[Line]) -> bool:
    """Returns True if nothing in the text, nor in the items' form, says that their order means anything.

    Most lists fail that.
    """
    told = [text[item.body : item.end].rstrip() for item in items]
    if _ORDER.search(text) or len(set(told)) < 2 or Protected(text).touches(items[0].start, items[-1].end):
        return False
    if any(_BACKWARD.match(item) or _LINKED.search(item) or item[0].isdigit() for item in told):
        return False
    closed = {item[-1] in ".!?" for item in told}
    sorted_already = [item.lower() for item in told] == sorted(item.lower() for item in told)
    return len(closed) == 1 and not (len(told) > 2 and sorted_already) and not any(re.search(r"\d", i) for i in told)


LAYOUT = (
    Perturber(
        "whitespace",
        "same",
        "Doubles a space between sentences, adds one at the end of a line or a line break at the end; if obvious, all "
        "of these, and long paragraphs are wrapped.",
        "No word, paragraph or list changes.",
        whitespace,
    ),
    Perturber(
        "markup",
        "same",
        "Straight or curly quotation marks and apostrophes, bullets as - or *, bold as ** or __: one of these in the "
        "whole text; if obvious, each.",
        "The marks mean the same.",
        markup,
        limits="Where the task fixes the marks.",
    ),
    Perturber(
        "reorder",
        "same",
        "Exchanges two neighbouring items of a bullet list; if obvious, moves most items of every list. English.",
        "The list is not numbered, no item has a number, and no word of the text speaks of order or of other items.",
        reorder,
    ),
)
