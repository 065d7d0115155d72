"""The sections of an induction's page that hold long texts: disagreements and cards."""

from __future__ import annotations

from collections.abc import Sequence

from metricsmith.records import MetricCard
from metricsmith.report.blocks import (
    Block,
    Box,
    Cell,
    Details,
    Heading,
    Paragraph,
    Section,
    Terms,
    TextTable,
    element,
    isolated,
    joined,
    named,
    strong,
)
from metricsmith.report.formats import count, excerpt, points, rating, raw, single_line
from metricsmith.report.induction.components import KINDS, cards
from metricsmith.report.induction.record import Component, RunRecord
from metricsmith.report.induction.rows import Disagreement, disagreements
from metricsmith.report.plots.induction import MOST_BARS

__all__ = ["FULL_TEXT", "card_section", "disagreement_section"]

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


def card_section(record: RunRecord) -> Section:
    """The cards of the components; many are listed behind a line."""
    found = [_card(card, components) for card, components in cards(record)]
    shown: list[Block] = [*found[:MOST_BARS]] or [Paragraph("No component, no card.")]
    if len(found) > MOST_BARS:
        shown.append(Details(count(len(found) - MOST_BARS, "more card"), found[MOST_BARS:]))
    return Section("cards", "The components' cards", shown)


def _card(card: MetricCard, components: Sequence[Component]) -> Details:
    used = [part for one in components for part in (", ", named(one.name))]
    in_use = [", in use as ", *used[1:]] if components[0].name != card.name else []
    kind = element("span", single_line(KINDS.get(card.kind, card.kind)), *in_use, class_="sub")
    rows = [
        (
            named(output.name),
            f"{'−∞' if output.low is None else raw(output.low)} to {'∞' if output.high is None else raw(output.high)}",
            "higher" if output.higher_is_better else "lower",
            Cell(single_line(output.description) or "–", "prose"),
        )
        for output in card.outputs
    ]
    head = ("Output", "Range", "Better", Cell("Meaning", "prose"))
    about = {
        "Formula": card.formula,
        "Needs": ", ".join(card.needs) or "the output only",
        "Cost": card.cost,
        "Several references": card.multi_reference,
        "Backend": f"{card.backend} ({card.backend_license})",
        "Asked on": card.asked,
        "In the raters' numbers": card.rating_map_words,
        "Instruction before tuning": card.instruction_before,
        "Instruction after tuning": card.instruction,
        "Domains": "; ".join(card.domains),
        "Tasks": "; ".join(card.tasks),
        "Best for": "; ".join(card.best_for),
        "Not for": "; ".join(card.not_for),
        "Known limits": "; ".join(card.limits),
        "Failure cases": "; ".join(card.failure_cases),
        "Related": "; ".join(card.related),
        "Papers": "; ".join(card.papers),
    }
    blocks: list[Block] = [
        Paragraph(card.summary, own_direction=True),
        TextTable(head, rows, label=f"Outputs of {single_line(card.name)}"),
        Terms([(term, [text]) for term, text in about.items() if text]),
    ]
    return Details(joined(element("strong", named(card.name)), " ", kind), blocks, "card")
