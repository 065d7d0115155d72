"""The lines of a public MQM file -> ratings with error spans.

The format is that of google/wmt-mqm-human-evaluation: fields separated by tabs and never quoted, one line per marked
error, the marked text between ``<v>`` and ``</v>`` in source or target. An older and a newer generation differ in
column names and in what follows the severity: a comment, or metadata in JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from metricsmith.errors import DataError, nearest
from metricsmith.mqm import severity_name
from metricsmith.records import ErrorSpan

__all__ = ["COUNTS", "MarkedRating", "parse_mqm_tsv"]

NAMES = {"docsegid": "doc_id", "doc_seg_id": "doc_id", "globalsegid": "seg_id", "global_seg_id": "seg_id"}
"""The older generation's names for columns of the newer one."""

NEEDED = ("system", "doc", "doc_id", "rater", "source", "target", "category", "severity")

COUNTS = {
    "no_error": "ratings say that there is no error",
    "found": "lines report an attention test that the rater passed (HOTW-test, Found): no errors, left out",
    "missed": "lines report an attention test that the rater failed (HOTW-test, Missed): no errors, left out",
    "only_tests": "ratings consist of attention tests alone and are left out",
    "metadata": "lines carry metadata alone, without rater and severity, and are left out",
    "contradictions": "lines say that there is no error beside errors of the same rating: the errors count",
    "unclosed": "spans lack their closing tag and reach to the end of the text",
    "clipped": "spans reached into white space at the end of a text and were cut",
    "trimmed": "lines had white space at the end of source or target, which is removed",
    "unmarked": "errors mark no text: they count, without a span",
    "both_sides": "errors mark source and target: each counts once, with the span of the target",
    "other_text": "errors were marked in another wording than the rating's first line has: their spans have no offsets",
}
"""The things counted while reading, each with the text of its note."""


@dataclass(frozen=True, slots=True)
class MarkedRating:
    """The errors that one rater marked in one system's translation of one segment.

    Parameters
    ----------
    system, doc, rater : str
    doc_segment : str
        Where the segment stands in its document, as the file counts.
    segment : str
        The file's number of the segment in the whole test set; empty if it gives none.
    source, target : str
        Without tags and without white space at the end.
    spans : tuple of ErrorSpan
        Severities in lower case, categories as in the file; empty if there is no error.
    slot : int
        Which of the segment's raters this is, from 0 in the order of the file. No order in time.
    language_pair : str
        Such as ``en-de``; empty where the file does not say.
    """

    system: str
    doc: str
    doc_segment: str
    segment: str
    rater: str
    source: str
    target: str
    spans: tuple[ErrorSpan, ...]
    slot: int
    language_pair: str = ""

    @property
    def item(self) -> str:
        """The segment, which all systems translate: ``doc:doc_segment``."""
        return f"{self.doc}:{self.doc_segment}"


@dataclass(slots=True)
class _Draft:
    """A rating whose lines are still being read."""

    line: Mapping[str, str]
    source: str
    target: str
    spans: list[ErrorSpan] = field(default_factory=list)
    clean: int = 0


def parse_mqm_tsv(name: str, text: str) -> tuple[tuple[MarkedRating, ...], Counter[str]]:
    """Read all lines of a public MQM file.

    Oddities are repaired where one reading is certain, and counted: a missing closing tag reaches to the end. The rest
    is an error: nobody can tell if two spans in one line are one error or two. A rating whose lines are attention tests
    alone is left out and not read as one without errors.

    Parameters
    ----------
    name : str
        The path of the file, with which errors begin.
    text : str
        Its content, header included.

    Returns
    -------
    tuple of MarkedRating
        In the order of their first lines.
    Counter
        The number of times that each of `COUNTS` happened.

    Raises
    ------
    DataError
        If a column is missing, a line has too few or too many fields or more than one span in a text, or a severity
        is unknown. It names the line.
    """
    counts: Counter[str] = Counter()
    drafts: dict[tuple[str, ...], _Draft | None] = {}
    for place, line in _lines(name, text):
        severity = line["severity"].strip().casefold()
        if not severity and not line["rater"].strip():
            counts["metadata"] += 1
            continue
        key = _key(place, line)
        if severity.startswith("hotw"):
            counts["missed" if line["category"].strip().casefold() == "missed" else "found"] += 1
            drafts.setdefault(key, None)
            continue
        source, target = _Text.read(place, "source", line, counts), _Text.read(place, "target", line, counts)
        counts["trimmed"] += source.trimmed or target.trimmed
        draft = drafts.get(key)
        if draft is None:
            draft = drafts[key] = _Draft(line, source.plain, target.plain)
        if severity.replace("_", "-") == "no-error":
            draft.clean += 1
        else:
            draft.spans.append(_error(place, line, source, target, draft, counts))
    counts["only_tests"] = sum(draft is None for draft in drafts.values())
    ratings = _finished([draft for draft in drafts.values() if draft is not None], counts)
    return ratings, +counts


def _lines(name: str, text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Place and fields of every line that is not blank."""
    # Not splitlines, which also breaks at characters that stand inside translations (U+2028, U+0085).
    lines = text.split("\n")
    header = [NAMES.get(column.strip().casefold(), column.strip().casefold()) for column in lines[0].split("\t")]
    missing = [column for column in NEEDED if column not in header]
    if missing:
        raise DataError(
            f"{name}: no column {missing[0]!r}{nearest(missing[0], header)}; the header has {', '.join(header)[:200]}, "
            f"an MQM file has {', '.join(NEEDED)}, separated by tabs: give the file as it was published, header "
            f"included, or rename the columns"
        )
    needed = 1 + max(map(header.index, NEEDED))
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) < needed or any(cell.strip() for cell in cells[len(header) :]):
            raise DataError(
                f"{name}, line {number}: {len(cells)} fields, seen {cells[:3]!r} ...; allowed are {needed} to "
                f"{len(header)}, separated by tabs, without quoting: restore the line, perhaps a tab or a line break "
                f"stands inside a text"
            )
        cells += [""] * (len(header) - len(cells))
        yield f"{name}, line {number}", dict(zip(header, cells, strict=False))


def _key(place: str, line: Mapping[str, str]) -> tuple[str, ...]:
    key = tuple(line[column].strip() for column in ("system", "doc", "doc_id", "rater"))
    for column, value in zip(("system", "doc", "doc_id", "rater"), key, strict=True):
        if not value:
            raise DataError(f"{place}, column {column!r}: it is blank; every rating needs its {column}: fill it in")
    return key


@dataclass(frozen=True, slots=True)
class _Text:
    """A text without its tags.

    `span` is None if nothing is marked.
    """

    plain: str
    span: tuple[int, int] | None
    trimmed: bool

    @classmethod
    def read(cls, place: str, column: str, line: Mapping[str, str], counts: Counter[str]) -> _Text:
        before, opened, rest = line[column].partition("<v>")
        marked, closed, after = rest.partition("</v>")
        if "<v>" in rest or "</v>" in before + after:
            raise DataError(
                f"{place}, column {column!r}: the tags do not form one span, seen {line[column][:60]!r}; allowed is "
                f"one <v>...</v> by line: give each error a line of its own"
            )
        whole = before + marked + after
        plain = whole.rstrip()
        if not opened:
            return cls(plain, None, plain != whole)
        counts["unclosed"] += not closed
        start, end = len(before), len(before) + len(marked)
        counts["clipped"] += end > len(plain)
        return cls(plain, (min(start, len(plain)), min(end, len(plain))), plain != whole)


def _error(
    place: str, line: Mapping[str, str], source: _Text, target: _Text, draft: _Draft, counts: Counter[str]
) -> ErrorSpan:
    try:
        severity = severity_name(line["severity"])
    except DataError as error:
        raise DataError(f"{place}, column 'severity': {error}") from error
    bare = ErrorSpan(severity, line["category"].strip(), description=_remark(place, line))
    counts["both_sides"] += source.span is not None and target.span is not None
    side, text, wording = ("target", target, draft.target)
    if target.span is None and source.span is not None:
        side, text, wording = ("source", source, draft.source)
    if text.span is None:
        counts["unmarked"] += 1
        return bare
    start, end = text.span
    span = replace(bare, start=start, end=end, text=text.plain[start:end], side=side)
    if text.plain == wording:
        return span
    counts["other_text"] += 1
    return replace(span, start=None, end=None)


def _remark(place: str, line: Mapping[str, str]) -> str:
    """The rater's own words: the comment, or the note in the metadata."""
    metadata = line.get("metadata", "").strip()
    if line.get("comment", "").strip() or not metadata:
        return line.get("comment", "").strip()
    try:
        note = json.loads(metadata)
    except ValueError as error:
        raise DataError(
            f"{place}, column 'metadata': not JSON ({error}), seen {metadata[:40]!r}; an object is needed, or nothing: "
            f"restore the line"
        ) from error
    return str(note.get("note") or "").strip() if isinstance(note, dict) else ""


def _finished(drafts: Sequence[_Draft], counts: Counter[str]) -> tuple[MarkedRating, ...]:
    slots: dict[tuple[str, str], dict[str, int]] = {}
    ratings = []
    for draft in drafts:
        place = (draft.line["doc"].strip(), draft.line["doc_id"].strip())
        rater = draft.line["rater"].strip()
        raters = slots.setdefault(place, {})
        counts["no_error"] += not draft.spans
        counts["contradictions"] += draft.clean if draft.spans else 0
        ratings.append(
            MarkedRating(
                draft.line["system"].strip(),
                *place,
                draft.line.get("seg_id", "").strip(),
                rater,
                draft.source,
                draft.target,
                tuple(draft.spans),
                raters.setdefault(rater, len(raters)),
            )
        )
    return tuple(ratings)
