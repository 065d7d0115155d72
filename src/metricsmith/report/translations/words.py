"""What is said about judged translations, as cells and sentences that HTML, Markdown and terminal share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metricsmith.mqm import SEVERITIES, SharedError, severity_name
from metricsmith.report.formats import MISSING, count, duration, money, points
from metricsmith.report.translations.record import MeanScore, SegmentScore, TranslationRecord

__all__ = [
    "COLUMNS", "GLOSSARY", "WIDTH", "Piece", "cells", "cost", "counted", "errors", "marked_text", "rests", "shown",
]  # fmt: skip

COLUMNS = ("MQM", "95 %", "segments", "without score")
WIDTH = 25.0  # points of one critical error, which decides how many digits a score deserves
MOST_SHOWN = 300  # segments on a page

GLOSSARY = (
    (
        "MQM",
        "is minus the sum of the weights of the errors: 0 is a translation without errors. Scores of different texts "
        "cannot be compared, since longer ones have more room for errors.",
    ),
    (
        "Runs.",
        "The model has looked for errors several times. A segment's score combines the runs, and the errors "
        "that are shown were found by at least half of them: what one run alone has found still moves the score.",
    ),
    (
        "95 %",
        "intervals of means hold what other segments (of a system: other documents) of the same kind would give; that "
        "of a segment holds what other runs of the same model would give. Neither knows whether the model is right.",
    ),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; the worst `severity` of the errors that cover it, and their `numbers`, from 1."""

    text: str
    severity: str = ""
    numbers: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()  # of the errors that end here, whose numbers are to be printed


def marked_text(text: str, found: Sequence[SharedError], side: str) -> list[Piece]:
    """A text cut where errors begin and end; an error without length is a piece without text."""
    placed = [
        (number, error.span.start, min(error.span.end, len(text)), severity_name(error.span.severity))
        for number, error in enumerate(found, 1)
        if error.span.side == side and error.span.start is not None and error.span.end is not None
    ]
    pieces: list[Piece] = []
    cuts = sorted({0, len(text), *(start for _, start, _, _ in placed), *(end for _, _, end, _ in placed)})
    for place, start in enumerate(cuts):
        for number, _, _, severity in [one for one in placed if one[1] == one[2] == start]:
            pieces.append(Piece("", severity, (number,), (number,)))
        if place + 1 == len(cuts):
            break
        end = cuts[place + 1]
        over = [one for one in placed if one[1] <= start and end <= one[2] and one[1] < one[2]]
        worst = min((SEVERITIES.index(severity) for *_, severity in over), default=None)
        pieces.append(
            Piece(
                text[start:end], "" if worst is None else SEVERITIES[worst], tuple(one[0] for one in over),
                tuple(one[0] for one in over if one[2] == end),
            )
        )  # fmt: skip
    return pieces


def counted(record: TranslationRecord) -> str:
    """What was judged, in one line."""
    documents = {line.document for line in record.documents}
    said = f"{count(len(record.segments), 'segment')} of {count(len(record.systems), 'system')}"
    judged = f"{count(record.judgements['ok'])} of {count(record.judgements['requested'])} runs have a number"
    return f"{said} in {count(len(documents), 'document')}, {record.languages}; {judged}."


def cells(line: MeanScore) -> tuple[str, ...]:
    """Mean, interval and counts; see `COLUMNS`."""
    return (
        points(line.mean, WIDTH), _range(line.low, line.high), count(line.segments),
        count(line.missing) if line.missing else MISSING,
    )  # fmt: skip


def rests(line: SegmentScore) -> str:
    """What a segment's score rests on: ``9 of 10 runs, from −55 to −6``."""
    numbers = [run for run in line.runs if run is not None]
    if not numbers:
        return f"no score: {line.error}"
    low, high = min(numbers), max(numbers)
    spread = f"all {points(low, WIDTH)}" if low == high else f"from {points(low, WIDTH)} to {points(high, WIDTH)}"
    wide = "" if line.half_width is None else f", ±{points(line.half_width, WIDTH)}"
    out = len(numbers) - line.kept if line.raw is not None else 0
    left = f", {out} left out as outlying" if out else ""
    said = f"{len(numbers)} of {len(line.runs)} runs, {spread}{left}{wide}"
    return said if line.raw is not None else f"no score: {line.error} ({said})"


def errors(line: SegmentScore) -> Iterable[tuple[int, str, str, str]]:
    """Number, severity, what it is and in how many runs, of each error."""
    for number, error in enumerate(line.errors, 1):
        span = error.span
        quoted = f" «{span.text}»" if span.text and span.start is None else ""
        side = " in the source" if span.side == "source" else ""
        what = ": ".join(filter(None, [f"{span.category}{side}{quoted}", span.description]))
        yield number, severity_name(span.severity), what, f"{error.found} of {line.kept} runs"


def shown(record: TranslationRecord) -> tuple[Sequence[SegmentScore], str]:
    """The segments that a page has room for, in their order, and what is said about the others."""
    if len(record.segments) <= MOST_SHOWN:
        return record.segments, ""
    worst = sorted(record.segments, key=lambda line: math.inf if line.raw is None else line.raw)[:MOST_SHOWN]
    chosen = {line.id for line in worst}
    return (
        [line for line in record.segments if line.id in chosen],
        f"The {MOST_SHOWN} worst of {count(len(record.segments), 'segment')}; segments.jsonl holds all.",
    )


def cost(record: TranslationRecord) -> str:
    """What the judging cost."""
    usage = record.usage
    price = "at an unknown price" if usage.cost is None and usage.requests else money(usage.cost or 0.0)
    kept = f" {count(record.reused, 'run')} came from the store." if record.reused else ""
    unasked = sum(record.judgements.get(status, 0) for status in ("skipped", "budget"))
    asked = record.judgements["requested"] - unasked - record.reused
    fewer = " Equal texts are judged once, and DSPy's cache answers what it knows." if usage.requests < asked else ""
    return (
        f"{count(usage.requests, 'request')} ({count(record.estimated.requests)} estimated), "
        f"{count(usage.prompt_tokens)} prompt and {count(usage.completion_tokens)} completion tokens, {price}, "
        f"{duration(usage.seconds)} of model time.{kept}{fewer}"
    )


def _range(low: float, high: float) -> str:
    if math.isnan(low) or math.isnan(high):
        return MISSING
    return f"{points(low, WIDTH)} to {points(high, WIDTH)}"
