"""The rows of a run: predictions beside ratings, disagreements with their section, and the table of scores."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from metricsmith.formats import count, excerpt, points, rating, raw, single_line
from metricsmith.records import Scale
from metricsmith.report.blocks import (
    Block,
    Box,
    Details,
    Heading,
    Paragraph,
    Section,
    TextTable,
    element,
    isolated,
    joined,
    named,
    strong,
)
from metricsmith.report.induction.record import RowRecord, RunRecord
from metricsmith.report.plots.reliability import Bin, bins
from metricsmith.spreadsheets import write_table

__all__ = [
    "FULL_TEXT", "Disagreement", "disagreement_section", "disagreements", "rated_rows",
    "reliability_bins", "reliability_sentence", "render_scores",
]  # fmt: skip

MOST_CONTRIBUTIONS = 10


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row on which metric and raters differ.

    Parameters
    ----------
    row : RowRecord
    rating, prediction : float
    held_out : bool
    start : float
        The prediction before any component adds to it.
    contributions : tuple of (str, float)
        By falling size, undefined ones last; at most `MOST_CONTRIBUTIONS`.
    others : int
        How many more there are.
    rest : float
        What those add together.
    """

    row: RowRecord
    rating: float
    prediction: float
    held_out: bool
    start: float
    contributions: tuple[tuple[str, float], ...]
    others: int
    rest: float

    @property
    def gap(self) -> float:
        """Prediction minus rating, in rating points."""
        return self.prediction - self.rating


def rated_rows(record: RunRecord) -> list[tuple[RowRecord, float, float]]:
    """Rows that have both a rating and a prediction, with the two numbers."""
    return [
        (row, row.rating, row.prediction)
        for row in record.data
        if row.rating is not None
        and row.prediction is not None
        and math.isfinite(row.rating)
        and math.isfinite(row.prediction)
    ]


def reliability_bins(record: RunRecord) -> list[Bin]:
    """The held-out rows in bins by prediction, intervals cut to the scale; empty if nothing was held out."""
    held_out = [item for item in rated_rows(record) if record.tested and record.held_out(item[0])]
    predictions, ratings = [item[2] for item in held_out], [item[1] for item in held_out]
    scale, found = record.task.scale, bins(predictions, ratings, [item[0].group for item in held_out])
    return [replace(part, ci_low=max(part.ci_low, scale.low), ci_high=min(part.ci_high, scale.high)) for part in found]


def reliability_sentence(parts: Sequence[Bin], scale: Scale) -> str:
    """The bins in which the metric is too generous or too strict; empty without bins that have an interval."""
    judged = [part for part in parts if math.isfinite(part.ci_low)]
    if not judged:
        return ""
    off = [part for part in judged if part.side]
    some = f"{len(off)} of" if off else "all"
    where = "In the only bin" if len(judged) == 1 else f"In {some} {len(judged)} bins"
    place = (
        f"{where} the mean prediction lies {'outside' if off else 'inside'} the 95\u00a0% interval of the mean rating"
    )
    if not off:
        return f"{place}: these rows show no place where the metric is too generous or too strict."
    better = 1 if scale.higher_is_better else -1
    names = {better: "too generous", -better: "too strict"}
    places = "; ".join(f"{names[part.side]} {_place(part, scale)}" for part in off)
    return f"{place}; the metric is {places}. One bin in twenty lies outside by chance alone."


def _place(part: Bin, scale: Scale) -> str:
    lowest, highest, guess, given = (
        points(number, scale.width) for number in (part.lowest, part.highest, part.prediction, part.rating)
    )
    if lowest == highest:
        return f"where it predicts {guess} (the raters gave {given} on average)"
    return f"where it predicts {lowest} to {highest} ({guess} on average, and the raters gave {given})"


def disagreements(record: RunRecord, most: int = 8) -> list[Disagreement]:
    """The rows where prediction and rating lie furthest apart: held-out rows first, then training rows.

    Rows that agree exactly never appear; ties keep the order of the data.
    """
    apart = [(row, rating, guess) for row, rating, guess in rated_rows(record) if guess != rating]
    apart.sort(key=lambda item: (not record.held_out(item[0]), -abs(item[2] - item[1])))
    return [_disagreement(record, *item) for item in apart[:most]]


def _disagreement(record: RunRecord, row: RowRecord, rating: float, prediction: float) -> Disagreement:
    ordered = sorted(row.contributions.items(), key=lambda item: -abs(item[1]) if math.isfinite(item[1]) else math.inf)
    total = math.fsum(value for _, value in ordered if math.isfinite(value))
    rest = ordered[MOST_CONTRIBUTIONS:]
    return Disagreement(
        row=row,
        rating=rating,
        prediction=prediction,
        held_out=record.held_out(row),
        start=prediction - total if ordered else math.nan,
        contributions=tuple(ordered[:MOST_CONTRIBUTIONS]),
        others=len(rest),
        rest=math.fsum(value for _, value in rest if math.isfinite(value)),
    )


def render_scores(record: RunRecord, *, raw_csv: bool = False) -> str:
    """The lines of the record as CSV.

    Numbers have full precision; a missing or undefined one is an empty cell. Texts that a spreadsheet would run are
    marked as `metricsmith.spreadsheets.write_table` says, unless `raw_csv`.
    """
    head, lines = record.lines()
    rows = [[cell if isinstance(cell, str) else _cell(cell) for cell in line] for line in lines]
    stream = io.StringIO()
    write_table(stream, head, lambda: rows, raw=raw_csv)
    return stream.getvalue()


def _cell(value: float | None) -> str | None:
    if value is None or not math.isfinite(value):
        return None
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


# Longer texts are cut, with a note of what is left out: the page must stay small enough for a phone.
FULL_TEXT = 6000
EXCERPT = 180


def disagreement_section(record: RunRecord) -> Section:
    """The rows on which metric and raters differ most, each with its texts, its parts and the judges' feedback."""
    cases, title = disagreements(record), "Where metric and raters disagree most"
    if not cases:
        return Section("disagreements", title, [Paragraph("There is no rated row on which they differ.")])
    mark = [element("span", "synthetic data", class_="tag synthetic"), " "] if record.synthetic else []
    which = "held-out rows first" if record.tested else "training rows"
    text = (
        f"The {count(len(cases), 'row')} with the widest gap, {which}. Read them before you trust the metric: they "
        "show what it cannot see, and at times where a rating is at fault."
    )
    articles = [Box("", [Box("", _case(case, record.task.scale.width), "article")], "li") for case in cases]
    return Section("disagreements", title, [Paragraph(joined(*mark, text)), Box("cases", articles, "ol")])


def _case(case: Disagreement, width: float) -> list[Block]:
    row = case.row
    group = (
        [" ", element("span", "group ", named(excerpt(row.group, 80)), class_="sub")]
        if row.group and row.group != row.id
        else []
    )
    low = case.gap < 0
    figures = [
        element("span", "raters ", element("strong", rating(case.rating, width))), " ",
        element("span", "metric ", element("strong", points(case.prediction, width))), " ",
        element(
            "span", f"{'too low' if low else 'too high'} by ", element("strong", points(abs(case.gap), width)),
            class_=f"gap {'down' if low else 'up'}",
        ),
        *([] if case.held_out else [" ", element("span", "training row", class_="tag")]),
    ]  # fmt: skip
    blocks: list[Block] = [
        Heading(joined("Row ", named(row.id), *group)),
        Paragraph(joined(*figures), "numbers"),
        *_long_text("Output", row.output),
        *_long_text("Input", row.input),
    ]
    if case.contributions:
        added = [
            (named(part), raw(row.values.get(part)), points(value, width, signed=True))
            for part, value in case.contributions
        ]
        rest = (count(case.others, "other component"), "", points(case.rest, width, signed=True))
        rows = [
            ("Starting point", "", points(case.start, width)),
            *added,
            *([rest] if case.others else ()),
            ("Prediction", "", strong(points(case.prediction, width))),
        ]
        table = TextTable(("Part", "Raw value", "Adds"), rows, own=(len(rows) - 1,), style="narrow")
        blocks.append(Details("How the prediction came about", [table]))
    for part, reason in row.feedback.items():
        blocks += _long_text(f"{single_line(part)} says:", reason)
    return blocks


def _long_text(label: str, text: str) -> list[Block]:
    """A text with its label; a long one is an excerpt that opens to the whole."""
    if not text.strip():
        return []
    title = element("span", label, class_="label")
    if len(text) <= EXCERPT:
        return [Paragraph(joined(title, " ", element("bdi", text, class_="kept")), "text")]
    whole: list[Block] = [Paragraph(text[:FULL_TEXT], "full", own_direction=True)]
    if len(text) > FULL_TEXT:
        note = f"{count(len(text) - FULL_TEXT, 'more character')}, not shown here."
        whole = [Paragraph(f"{text[:FULL_TEXT]}…", "full", own_direction=True), Paragraph(note, "muted")]
    return [Details(joined(title, " ", isolated(excerpt(text, EXCERPT))), whole, "text")]
