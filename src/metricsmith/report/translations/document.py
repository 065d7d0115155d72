"""Judged translations laid out for page, Markdown and terminal, with the errors marked in the texts."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from metricsmith.report.translations.record import JudgedNumber, MeanScore, SegmentScore, TranslationRecord
from metricsmith.report.translations.runs import RUN_COLUMNS, run_blocks, run_cells, spread_stated
from metricsmith.report.translations.verdict import difference_table, points_between, translations_verdict
from metricsmith.spreadsheets import write_table

__all__ = [
    "TRANSLATION_FILES",
    "MarkedPiece",
    "TranslationDocument",
    "marked_pieces",
    "score_basis",
    "write_translations",
]

TRANSLATION_FILES = ("mqm.html", "mqm.md", "mqm.json", "segments.jsonl", "segments.tsv", "runs.tsv")
TSV = (
    "id", "system", "doc", "segment", "raw", "score", "half_width", "kept", "delta", "status", "error", "metric",
    "errors",
)  # fmt: skip
MOST_LISTED = 10  # documents in the terminal
MOST_SHOWN = 300  # segments on a page
MQM = JudgedNumber()

BETTER = (
    "compares two systems on the segments that all have. Each test swaps the two systems, in single segments or in "
    "whole documents, and asks how often that leaves a difference as large. A system is better if both pairings "
    "have a p up to .05 and a 95 % interval above 0, on 30 segments or more. With several systems p-values are "
    "Holm's, times half the number of systems, since the same scores say which one is the best; intervals are of "
    "each two alone. A difference that is not decided may be there all the same."
)
MARKED_RUNS = (
    "The model has looked for errors several times. A segment's score combines the runs, and the errors "
    "that are shown were found by at least half of them: what one run alone has found still moves the score."
)
RUNS = "The model was asked about each segment several times. A segment's score combines the runs."
MEANS = "intervals of means hold what other segments (of a system: other documents) of the same kind would give"


def _severities(names: Sequence[str]) -> Markup:
    """«Critical, major and minor», each in its colour."""
    first, *others, last = (element("mark", name if at else name.title(), class_=name) for at, name in enumerate(names))
    return joined(first, *(part for one in others for part in (", ", one)), " and ", last)


def _glossary(number: JudgedNumber) -> list[tuple[str, str]]:
    """Terms and what they mean, in the order of the page."""
    runs = [("Runs.", MARKED_RUNS if number.marks else RUNS)] if number.repeated else []
    of_runs = "; that of a segment holds what other runs of the same model would give. Neither knows"
    intervals = f"{MEANS}{of_runs if number.repeated else '. They do not know'} whether the model is right."
    return [("Better", BETTER), (number.title, number.meaning), *runs, ("95 %", intervals)]


def write_translations(record: TranslationRecord, folder: str | PathLike[str], *, raw_csv: bool = False) -> None:
    """Write ``mqm.html``, ``mqm.md`` and ``mqm.json``, and all segments as ``segments.jsonl`` and ``segments.tsv``.

    ``runs.tsv`` has a row for each run of each segment, with its errors by severity and its score.

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
    runs = [cells for segment in record.segments for cells in run_cells(segment)]
    segments = {
        "segments.jsonl": "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines),
        "segments.tsv": _separated(TSV, rows, raw_csv),
        "runs.tsv": _separated(RUN_COLUMNS, runs, raw_csv),
    }
    write_document(TranslationDocument(record), folder, segments)


def _separated(head: Sequence[str], rows: Sequence[Sequence[object]], raw_csv: bool) -> str:
    buffer = io.StringIO()
    write_table(buffer, head, lambda: rows, raw=raw_csv, separator="\t")
    return buffer.getvalue()


class TranslationDocument(Document[TranslationRecord]):
    """Judged translations as a page, as Markdown and in the terminal."""

    stem = "mqm"

    def page(self) -> Page:
        """The verdict, means of systems and documents, then segments beside their sources with the errors marked."""
        record, verdict, number = self.record, translations_verdict(self.record), self.record.number
        title, languages = single_line(record.title), single_line(record.languages)
        mean = f"Mean {number.title} score" if number.title.isupper() else f"Mean {number.title.lower()}"
        means: list[Block] = [
            Paragraph(self._counted()),
            Warnings(list(map(single_line, record.warnings))),
            TextTable(
                ("System", *_columns(number)),
                [(named(line.system), *_mean_cells(line, number)) for line in record.systems],
                f"{mean} of each system, best first", "Mean scores of systems", bold=1,
            ),
            *([on_page(difference_table(record, "The best system beside the others"))] if record.differences else ()),
        ]  # fmt: skip
        if len(record.documents) > len(record.systems):
            rows = [
                (joined(named(line.document), " ", remark(single_line(line.system))), *_mean_cells(line, number))
                for line in record.documents
            ]
            table = TextTable(
                ("Document", *_columns(number)), rows, f"{mean} of each document", "Mean scores of documents", bold=1
            )
            means.append(Details(count(len(rows), "document mean"), [table]))
        segments, left = self.segments()
        runs = run_blocks(record, page=True)
        found = " errors that at least half of the runs found." if number.repeated else " errors that the model found."
        legend: Markup | str = " ".join(filter(None, (number.unmarked, left)))
        if number.marks:
            legend = joined(_severities(number.marks), found, f" {left}" if left else "")
        reading: list[Block] = [
            Terms.glossary(_glossary(number)), Paragraph(record.method, "small"), Paragraph(self._cost(), "small"),
            *([Items(list(map(single_line, record.notes)), "small")] if record.notes else []),
        ]  # fmt: skip
        return Page(
            title=f"{number.title} of {title}, {languages}",
            skip="Skip to the scores",
            header=[
                *header("metricsmith mqm", joined(f"{number.title} of ", isolated(title)), languages),
                replace(verdict, sentence=single_line(verdict.sentence)),
            ],
            main=[
                Section("means", "Systems and documents", means),
                *([Section("runs", "Runs", list(map(on_page, runs)))] if runs else ()),
                Section(
                    "segments", "Segments",
                    [*([Paragraph(legend)] if legend else []), *(_segment(line, number) for line in segments)],
                ),
                Section("reading", "How to read this", reading),
            ],
        )  # fmt: skip

    def markdown(self) -> list[Block]:
        """The page's tables, and its segments with a list of errors."""
        record, verdict, number = self.record, translations_verdict(self.record), self.record.number
        segments, left = self.segments()
        blocks: list[Block] = [
            Heading(f"{number.title} of {record.title}", level=1),
            verdict,
            *verdict.details,
            Paragraph(self._counted()),
            Warnings(record.warnings),
            Heading("Systems", level=2),
            TextTable(
                ("system", *_columns(number)), [(line.system, *_mean_cells(line, number)) for line in record.systems]
            ),
            *([difference_table(record)] if record.differences else ()),
            Heading("Documents", level=2),
            TextTable(
                ("system", "document", *_columns(number)),
                [(line.system, line.document, *_mean_cells(line, number)) for line in record.documents],
                left=2,
            ),
            *([Heading("Runs", level=2), *runs] if (runs := run_blocks(record, page=False)) else ()),
            Heading("Segments", level=2),
            *([Paragraph(number.unmarked)] if number.unmarked else []),
            *([Paragraph(left)] if left else ()),
        ]
        for line in segments:
            errors = [
                Markdown(f"{', '.join(filter(None, (severity, found)))}: {escape(what)}")
                for severity, what, found in _error_lines(line, number)
            ]
            texts = [
                Markdown(f"source: {escape(line.source)}"), Markdown(f"translation: {escape(line.translation)}"),
            ]  # fmt: skip
            blocks += [
                Heading(Markdown(f"{escape(line.id)}: {points(line.raw, number.width)}")),
                Paragraph(score_basis(line, number)),
                Items([*texts, *errors]),
            ]
        blocks += [Heading("How to read this", level=2), Terms.glossary(_glossary(number))]
        return [*blocks, Items([record.method, self._cost(), *record.notes])]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, means, differences, costs, warnings, notes, and the place of the page."""
        record, verdict, number = self.record, translations_verdict(self.record), self.record.number
        systems = [(line.system, *_mean_cells(line, number)) for line in record.systems]
        reasons = [block.text for block in verdict.details if isinstance(block, Paragraph)]
        lines: list[str | TextTable] = [verdict.sentence, *reasons, self._counted(), ""]
        lines += [TextTable(("system", *_columns(number)), systems)]
        lines += [difference_table(record)] if record.differences else []
        if len(record.documents) > len(record.systems):
            rows = [(line.system, line.document, *_mean_cells(line, number)) for line in record.documents]
            more = f"and {len(rows) - MOST_LISTED} documents more"
            lines += [TextTable(("system", "document", *_columns(number)), rows[:MOST_LISTED])]
            lines += [f"{more} in {folder / 'mqm.md'}" if folder is not None else more] * (len(rows) > MOST_LISTED)
        return [
            *lines,
            *filter(None, [spread_stated(record)]),
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

    def _counted(self) -> str:
        record, unit = self.record, _unit(self.record.number)
        documents = {line.document for line in record.documents}
        text = f"{count(len(record.segments), 'segment')} of {count(len(record.systems), 'system')}"
        judged = f"{count(record.judgements['ok'])} of {count(record.judgements['requested'])} {unit}s have a number"
        return f"{text} in {count(len(documents), 'document')}, {record.languages}; {judged}."

    def _cost(self) -> str:
        record, unit = self.record, _unit(self.record.number)
        usage = record.usage
        price = "at an unknown price" if usage.cost is None and usage.requests else money(usage.cost or 0.0)
        kept = f" {count(record.reused, unit)} came from the store." if record.reused else ""
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


def _segment(line: SegmentScore, number: JudgedNumber) -> Block:
    """A segment for the page: both texts side by side, its errors, and the runs that its score rests on."""
    title = element(
        "span", isolated(excerpt(line.document, 60)), f" {line.segment}, ", isolated(excerpt(line.system, 60))
    )
    score = element("span", points(line.raw, number.width), class_="points none" if line.raw is None else "points")
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
        for severity, what, found in _error_lines(line, number)
    ]
    listed = [Items(errors, "errors", numbered=True)] if errors else []
    basis = Paragraph(single_line(score_basis(line, number)), "sub")
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


def _unit(number: JudgedNumber) -> str:
    return "run" if number.repeated else "judgement"


def _columns(number: JudgedNumber) -> tuple[str, ...]:
    return (number.title, "95 %", "segments", "without score")


def _mean_cells(line: MeanScore, number: JudgedNumber) -> tuple[str, ...]:
    """Mean, interval and counts; see `_columns`."""
    return (
        points(line.mean, number.width),
        points_between(line.low, line.high, number.width),
        count(line.segments),
        count(line.missing) if line.missing else MISSING,
    )  # fmt: skip


def score_basis(line: SegmentScore, number: JudgedNumber = MQM) -> str:
    """The runs that a segment's score rests on, ``9 of 10 runs, from −55 to −6``; of a single one its reasons."""
    if not number.repeated:
        return f"no score: {line.error}" if line.raw is None else line.reasons or count(len(line.errors or ()), "error")
    write = partial(points, width=number.width)
    numbers = [run for run in line.runs if run is not None]
    if not numbers:
        return f"no score: {line.error}"
    low, high = min(numbers), max(numbers)
    spread = f"all {write(low)}" if low == high else f"from {write(low)} to {write(high)}"
    wide = "" if line.half_width is None else f", ±{write(line.half_width)}"
    out = len(numbers) - line.kept if line.raw is not None else 0
    left = f", {out} left out as outlying" if out else ""
    text = f"{len(numbers)} of {len(line.runs)} runs, {spread}{left}{wide}"
    if line.raw is None:
        return f"no score: {line.error} ({text})"
    return f"{text}. {line.reasons}" if line.reasons else text


def _error_lines(line: SegmentScore, number: JudgedNumber) -> Iterable[tuple[str, str, str]]:
    """Severity, what it is and in how many runs, of each error."""
    for error in line.errors or ():
        span = error.span
        quoted = f" «{span.text}»" if span.text and span.start is None else ""
        side = " in the source" if span.side == "source" else ""
        what = ": ".join(filter(None, [f"{span.category}{side}{quoted}", span.description]))
        found = f"{error.found} of {line.kept} runs" if number.repeated else ""
        yield severity_name(span.severity), what, found
