"""Judged translations laid out for page, Markdown and terminal, with the errors marked in the texts."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from metricsmith.formats import MISSING, count, duration, excerpt, money, points, single_line
from metricsmith.mqm import SEVERITIES, SharedError, severity_name
from metricsmith.report.blocks import (
    Block,
    Box,
    Details,
    Document,
    Heading,
    Items,
    Markdown,
    Markup,
    Page,
    Paragraph,
    Section,
    Terms,
    TextTable,
    Warnings,
    element,
    header,
    isolated,
    joined,
    named,
    on_page,
    remark,
)
from metricsmith.report.render import escape, write_document
from metricsmith.report.translations.record import MeanScore, SegmentScore, TranslationRecord
from metricsmith.report.translations.verdict import WIDTH, difference_table, points_between, translations_verdict
from metricsmith.spreadsheets import write_table

__all__ = [
    "TRANSLATION_FILES",
    "MarkedPiece",
    "TranslationDocument",
    "marked_pieces",
    "score_basis",
    "write_translations",
]

TRANSLATION_FILES = ("mqm.html", "mqm.md", "mqm.json", "segments.jsonl", "segments.tsv")
TSV = ("id", "system", "doc", "segment", "raw", "score", "half_width", "kept", "status", "error", "metric", "errors")
MOST_LISTED = 10  # documents in the terminal
COLUMNS = ("MQM", "95 %", "segments", "without score")
MOST_SHOWN = 300  # segments on a page

RUNS = "The model has looked for errors several times. A segment's score combines the runs"
WITHOUT_SPANS = "Errors are not marked: no spans were asked for."
GLOSSARY = (
    (
        "Better",
        "compares two systems on the segments that all have. Each test swaps the two systems, in single segments or in "
        "whole documents, and asks how often that leaves a difference as large. A system is better if both pairings "
        "have a p up to .05 and a 95 % interval above 0, on 30 segments or more. With several systems p-values are "
        "Holm's, times half the number of systems, since the same scores say which one is the best; intervals are of "
        "each two alone. A difference that is not decided may be there all the same.",
    ),
    (
        "MQM",
        "is minus the sum of the weights of the errors: 0 is a translation without errors. Scores of different texts "
        "cannot be compared, since longer ones have more room for errors.",
    ),
    (
        "Runs.",
        f"{RUNS}, and the errors that are shown were found by at least half of them: what one run alone has found "
        "still moves the score.",
    ),
    (
        "95 %",
        "intervals of means hold what other segments (of a system: other documents) of the same kind would give; that "
        "of a segment holds what other runs of the same model would give. Neither knows whether the model is right.",
    ),
)


def write_translations(record: TranslationRecord, folder: str | PathLike[str], *, raw_csv: bool = False) -> None:
    """Write ``mqm.html``, ``mqm.md`` and ``mqm.json``, and all segments as ``segments.jsonl`` and ``segments.tsv``.

    Parameters
    ----------
    record : TranslationRecord
    folder : path
        Made if it does not exist.
    raw_csv : bool
        Write texts that a spreadsheet would run as they are.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    lines = [segment.as_dict() | {"metric": record.metric} for segment in record.segments]
    # One line by segment, without texts; its errors as JSON in the last column.
    rows = [[*(line[name] for name in TSV[:-1]), json.dumps(line["errors"], ensure_ascii=False)] for line in lines]
    buffer = io.StringIO()
    write_table(buffer, TSV, lambda: rows, raw=raw_csv, separator="\t")
    segments = {
        "segments.jsonl": "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines),
        "segments.tsv": buffer.getvalue(),
    }
    write_document(TranslationDocument(record), folder, segments)


class TranslationDocument(Document[TranslationRecord]):
    """Judged translations as a page, as Markdown and in the terminal."""

    stem = "mqm"

    def page(self) -> Page:
        """The verdict, means of systems and documents, then segments beside their sources with the errors marked."""
        record, verdict = self.record, translations_verdict(self.record)
        title, languages = single_line(record.title), single_line(record.languages)
        means: list[Block] = [
            Paragraph(self._counted()),
            Warnings(list(map(single_line, record.warnings))),
            TextTable(
                ("System", *COLUMNS), [(named(line.system), *_mean_cells(line)) for line in record.systems],
                "Mean MQM score of each system, best first", "Mean scores of systems", bold=1,
            ),
            *([on_page(difference_table(record, "The best system beside the others"))] if record.differences else ()),
        ]  # fmt: skip
        if len(record.documents) > len(record.systems):
            rows = [
                (joined(named(line.document), " ", remark(single_line(line.system))), *_mean_cells(line))
                for line in record.documents
            ]
            table = TextTable(
                ("Document", *COLUMNS), rows, "Mean MQM score of each document", "Mean scores of documents", bold=1
            )  # fmt: skip
            means.append(Details(count(len(rows), "document mean"), [table]))
        segments, left = self.segments()
        legend = joined(
            element("mark", "Critical", class_="critical"), ", ", element("mark", "major", class_="major"), " and ",
            element("mark", "minor", class_="minor"), " errors that at least half of the runs found.",
            f" {left}" if left else "",
        ) if record.has_spans else joined(WITHOUT_SPANS, f" {left}" if left else "")  # fmt: skip
        reading: list[Block] = [
            Terms.glossary(self._glossary()), Paragraph(record.method, "small"), Paragraph(self._cost(), "small"),
            *([Items(list(map(single_line, record.notes)), "small")] if record.notes else []),
        ]  # fmt: skip
        return Page(
            title=f"MQM of {title}, {languages}",
            skip="Skip to the scores",
            header=[
                *header("metricsmith mqm", joined("MQM of ", isolated(title)), languages),
                replace(verdict, sentence=single_line(verdict.sentence)),
            ],
            main=[
                Section("means", "Systems and documents", means),
                Section("segments", "Segments", [Paragraph(legend), *map(_segment, segments)]),
                Section("reading", "How to read this", reading),
            ],
        )

    def markdown(self) -> list[Block]:
        """The page's tables, and its segments with a list of errors."""
        record, verdict = self.record, translations_verdict(self.record)
        segments, left = self.segments()
        blocks: list[Block] = [
            Heading(f"MQM of {record.title}", level=1),
            verdict,
            *verdict.details,
            Paragraph(self._counted()),
            Warnings(record.warnings),
            Heading("Systems", level=2),
            TextTable(("system", *COLUMNS), [(line.system, *_mean_cells(line)) for line in record.systems]),
            *([difference_table(record)] if record.differences else ()),
            Heading("Documents", level=2),
            TextTable(
                ("system", "document", *COLUMNS),
                [(line.system, line.document, *_mean_cells(line)) for line in record.documents],
                left=2,
            ),
            Heading("Segments", level=2),
            *([] if record.has_spans else [Paragraph(WITHOUT_SPANS)]),
            *([Paragraph(left)] if left else ()),
        ]
        for line in segments:
            errors = [
                Markdown(f"{severity}, {found}: {escape(what)}") for _, severity, what, found in _error_lines(line)
            ]
            texts = [
                Markdown(f"source: {escape(line.source)}"), Markdown(f"translation: {escape(line.translation)}"),
            ]  # fmt: skip
            blocks += [
                Heading(Markdown(f"{escape(line.id)}: {points(line.raw, WIDTH)}")),
                Paragraph(score_basis(line)),
                Items([*texts, *errors]),
            ]
        blocks += [Heading("How to read this", level=2), Terms.glossary(self._glossary())]
        return [*blocks, Items([record.method, self._cost(), *record.notes])]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, means, differences, costs, warnings, notes, and the place of the page."""
        record, verdict = self.record, translations_verdict(self.record)
        systems = [(line.system, *_mean_cells(line)) for line in record.systems]
        reasons = [block.text for block in verdict.details if isinstance(block, Paragraph)]
        lines: list[str | TextTable] = [verdict.sentence, *reasons, self._counted(), ""]
        lines += [TextTable(("system", *COLUMNS), systems)]
        lines += [difference_table(record)] if record.differences else []
        if len(record.documents) > len(record.systems):
            rows = [(line.system, line.document, *_mean_cells(line)) for line in record.documents]
            more = f"and {len(rows) - MOST_LISTED} documents more"
            lines += [TextTable(("system", "document", *COLUMNS), rows[:MOST_LISTED])]
            lines += [f"{more} in {folder / 'mqm.md'}" if folder is not None else more] * (len(rows) > MOST_LISTED)
        return [
            *lines,
            self._cost(),
            *self.ending(folder, notes=record.notes),
        ]

    def segments(self) -> tuple[Sequence[SegmentScore], str]:
        """The segments that a page has room for, in their order, and a sentence on the others."""
        record = self.record
        if len(record.segments) <= MOST_SHOWN:
            return record.segments, ""
        worst = sorted(record.segments, key=lambda line: math.inf if line.raw is None else line.raw)[:MOST_SHOWN]
        chosen = {line.id for line in worst}
        return (
            [line for line in record.segments if line.id in chosen],
            f"The {MOST_SHOWN} worst of {count(len(record.segments), 'segment')}; segments.jsonl holds all.",
        )

    def _glossary(self) -> Sequence[tuple[str, str]]:
        """The glossary, where no spans were asked for without a word on shared errors."""
        runs = RUNS + "; without spans those that they share are not known."
        return GLOSSARY if self.record.has_spans else [(n, runs if n == "Runs." else text) for n, text in GLOSSARY]

    def _counted(self) -> str:
        record = self.record
        documents = {line.document for line in record.documents}
        text = f"{count(len(record.segments), 'segment')} of {count(len(record.systems), 'system')}"
        judged = f"{count(record.judgements['ok'])} of {count(record.judgements['requested'])} runs have a number"
        return f"{text} in {count(len(documents), 'document')}, {record.languages}; {judged}."

    def _cost(self) -> str:
        record = self.record
        usage = record.usage
        price = "at an unknown price" if usage.cost is None and usage.requests else money(usage.cost or 0.0)
        kept = f" {count(record.reused, 'run')} came from the store." if record.reused else ""
        unasked = sum(record.judgements.get(status, 0) for status in ("skipped", "budget"))
        asked = record.judgements["requested"] - unasked - record.reused
        fewer = (
            " Equal texts are judged once, and DSPy's cache answers what it knows." if usage.requests < asked else ""
        )
        return (
            f"{count(usage.requests, 'request')} ({count(record.estimated.requests)} estimated), "
            f"{count(usage.prompt_tokens)} prompt and {count(usage.completion_tokens)} completion tokens, {price}, "
            f"{duration(usage.seconds)} of model time.{kept}{fewer}"
        )


def _segment(line: SegmentScore) -> Block:
    """A segment for the page: both texts side by side, its errors, and the runs that its score rests on."""
    title = element(
        "span", isolated(excerpt(line.document, 60)), f" {line.segment}, ", isolated(excerpt(line.system, 60))
    )
    score = element("span", points(line.raw, WIDTH), class_="points none" if line.raw is None else "points")
    sides = [
        Paragraph(_marked(line.source, line.errors or (), "source"), "kept", own_direction=True),
        Paragraph(
            _marked(line.translation, line.errors or (), "target") if line.translation else "(empty)",
            "kept",
            own_direction=True,
        ),
    ]
    errors = [
        joined(element("span", severity, class_=f"severity {severity}"), f" {single_line(what)} ", remark(found))
        for _, severity, what, found in _error_lines(line)
    ]
    listed = [Items(errors, "errors", numbered=True)] if errors else []
    basis = Paragraph(single_line(score_basis(line)), "sub")
    return Box("segment", [Heading(joined(title, " ", score)), Box("sides", sides), *listed, basis], "article")


def _marked(text: str, errors: Sequence[SharedError], side: str) -> Markup:
    """A text with its errors marked, and numbered in brackets: errors that end together read [1][2], never 12."""
    marked = [
        element("mark", piece.text, *(element("sup", f"[{end}]") for end in piece.ends), class_=piece.severity)
        if piece.severity
        else piece.text
        for piece in marked_pieces(text, errors, side)
    ]
    return joined(*marked)


@dataclass(frozen=True, slots=True)
class MarkedPiece:
    """A stretch of text; the worst `severity` of the errors that cover it, and their `numbers`, from 1."""

    text: str
    severity: str = ""
    numbers: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()  # of the errors that end here, whose numbers are to be printed


def marked_pieces(text: str, found: Sequence[SharedError], side: str) -> list[MarkedPiece]:
    """A text cut where errors begin and end; an error without length is a piece without text."""
    placed = [
        (number, error.span.start, min(error.span.end, len(text)), severity_name(error.span.severity))
        for number, error in enumerate(found, 1)
        if error.span.side == side and error.span.start is not None and error.span.end is not None
    ]
    pieces: list[MarkedPiece] = []
    cuts = sorted({0, len(text), *(start for _, start, _, _ in placed), *(end for _, _, end, _ in placed)})
    for place, start in enumerate(cuts):
        for number, _, _, severity in [one for one in placed if one[1] == one[2] == start]:
            pieces.append(MarkedPiece("", severity, (number,), (number,)))
        if place + 1 == len(cuts):
            break
        end = cuts[place + 1]
        over = [one for one in placed if one[1] <= start and end <= one[2] and one[1] < one[2]]
        worst = min((SEVERITIES.index(severity) for *_, severity in over), default=None)
        pieces.append(
            MarkedPiece(
                text[start:end], "" if worst is None else SEVERITIES[worst], tuple(one[0] for one in over),
                tuple(one[0] for one in over if one[2] == end),
            )
        )  # fmt: skip
    return pieces


def _mean_cells(line: MeanScore) -> tuple[str, ...]:
    """Mean, interval and counts; see `COLUMNS`."""
    return (
        points(line.mean, WIDTH),
        points_between(line.low, line.high),
        count(line.segments),
        count(line.missing) if line.missing else MISSING,
    )  # fmt: skip


def score_basis(line: SegmentScore) -> str:
    """The runs that a segment's score rests on: ``9 of 10 runs, from −55 to −6``."""
    numbers = [run for run in line.runs if run is not None]
    if not numbers:
        return f"no score: {line.error}"
    low, high = min(numbers), max(numbers)
    spread = f"all {points(low, WIDTH)}" if low == high else f"from {points(low, WIDTH)} to {points(high, WIDTH)}"
    wide = "" if line.half_width is None else f", ±{points(line.half_width, WIDTH)}"
    out = len(numbers) - line.kept if line.raw is not None else 0
    left = f", {out} left out as outlying" if out else ""
    text = f"{len(numbers)} of {len(line.runs)} runs, {spread}{left}{wide}"
    return text if line.raw is not None else f"no score: {line.error} ({text})"


def _error_lines(line: SegmentScore) -> Iterable[tuple[int, str, str, str]]:
    """Number, severity, what it is and in how many runs, of each error."""
    for number, error in enumerate(line.errors or (), 1):
        span = error.span
        quoted = f" «{span.text}»" if span.text and span.start is None else ""
        side = " in the source" if span.side == "source" else ""
        what = ": ".join(filter(None, [f"{span.category}{side}{quoted}", span.description]))
        yield number, severity_name(span.severity), what, f"{error.found} of {line.kept} runs"
