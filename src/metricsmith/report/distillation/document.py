"""A distillation laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from metricsmith.formats import (
    MINUS,
    MISSING,
    count,
    excerpt,
    interval,
    interval_stated,
    percent,
    points,
    rating,
    single_line,
    statistic,
)
from metricsmith.report.blocks import Block, Box, Heading, Items, Paragraph, Terms, TextTable, Tone, Verdict, Warnings
from metricsmith.report.distillation.record import Distillation, Divergence
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.render import cost_line, write_document

__all__ = ["DISTILLATION_FILES", "DistillationDocument", "distillation_verdict", "write_distillation"]

DISTILLATION_FILES = ("distillation.html", "distillation.md", "distillation.json")
MOST = 0.8  # of the agreement: keeping at least so much, by the interval's lower end, is good
APART = "Where they differ"
CAUTION = (
    "It imitates the paid metric, mistakes and all, on rows like these: on other kinds of outputs, and under "
    "optimisation, it may part from it. No person's rating went into it."
)
GLOSSARY = (
    ("free, paid", "are the metric that was made here, and the one that it imitates."),
    ("share kept", "is the free metric's tau-b with people over the paid one's, on the same held-out rows, with "
        "Fieller's interval over groups. Where the paid metric's own agreement cannot be told from 0 there is none."),
    ("free − paid", "is the difference of the two tau-b on the same rows."),
    ("gap", "is the free number less the paid one, each in standard deviations of the held-out rows."),
)  # fmt: skip


def write_distillation(record: Distillation, folder: str | PathLike[str]) -> None:
    """Write ``distillation.html``, ``distillation.md`` and ``distillation.json``, as `write_document` does."""
    write_document(DistillationDocument(record), folder)


def distillation_verdict(record: Distillation) -> Verdict:
    """The share of the agreement with people that is kept; or why there is none, and how well the paid one is met."""
    share, found = record.share, record.imitation
    follows = (
        f"it follows the paid metric with tau-b {statistic(found.kendall_tau_b, 2)} "
        f"({interval_stated(found.ci_low, found.ci_high)}) on {_rows(found.n, found.groups)}"
    )
    tone: Tone = "unsure"
    if not record.free_people.n:
        sentence = f"Nothing is known of people here: {follows}."
    elif share.why_not:
        sentence = f"No share can be given, since {share.why_not}; {follows}."
    else:
        free, paid, apart = record.free_people, record.paid_people, record.difference
        tone = "bad" if not free.ci_low > 0 else "good" if share.ci_low >= MOST else "unsure"
        sentence = (
            f"The free metric keeps {_share(share.value)} of the paid metric's agreement with people "
            f"({interval_stated(share.ci_low, share.ci_high, _share)}): tau-b {statistic(free.kendall_tau_b, 2)} in "
            f"place of {statistic(paid.kendall_tau_b, 2)}, {statistic(apart.kendall_tau_b, 2, signed=True)} "
            f"({interval_stated(apart.ci_low, apart.ci_high)}) on {_rows(share.n, share.groups)}."
        )
    return Verdict(tone, single_line(sentence), details=(Paragraph(CAUTION, "small"),))


def _rows(rows: int, groups: int) -> str:
    return f"{count(rows, 'held-out row')} in {count(groups, 'group')}"


def _share(value: float) -> str:
    """A share that may lie below 0 or above 1, in per cent."""
    return MINUS * (value < 0) + percent(abs(value))


def _signed(gap: float) -> str:
    return points(gap, 4, signed=True)


class DistillationDocument(PartedDocument[Distillation]):
    """A distillation as a page, as Markdown and in the terminal."""

    stem = "distillation"

    def opening(self) -> Opening:
        """The metric that is imitated, and the answer."""
        title = f"A free metric in place of {self.record.paid}"
        return Opening(title, distillation_verdict(self.record), description=self._made(), below=self._made())

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """Agreement in figures, the rows where both differ, and the free metric's components."""
        record = self.record
        return [
            ("agreement", "Agreement", [Warnings(record.warnings), self._agreement()]),
            ("apart", APART, [*map(self._row, record.apart)]),
            ("components", "The free metric", [self._components()]),
            (
                "cost",
                "Cost",
                [Paragraph(cost_line("actual", record.usage)), Paragraph("The free metric asks nothing.")],
            ),
            ("reading", "How to read this", [Terms.glossary(GLOSSARY)]),
            ("notes", "Notes", [Items(record.notes)] if record.notes else []),
        ]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, the figures, the components, the rows furthest apart, and the place of the page."""
        record, verdict = self.record, distillation_verdict(self.record)
        apart = [f"  {self._named(one)}" for one in record.apart[:5]]
        return [
            verdict.sentence,
            CAUTION,
            self._made(),
            self._agreement(),
            self._components(),
            *([f"{APART}:", *apart] if apart else ()),
            cost_line("actual", record.usage),
            *self.ending(folder, "page", record.notes),
        ]

    def _made(self) -> str:
        record = self.record
        held = "tested on nothing" if record.evaluation == "train_only" else "tested on rows held out by group"
        how = record.split.rstrip(".") or held
        rows = count(record.learned, "row")
        return single_line(
            f"Fitted to the scores of {record.paid} ({record.fingerprint[:12]}) on {rows}. {how[0].upper()}{how[1:]}."
        )

    def _agreement(self) -> TextTable:
        """Both metrics with people, their difference and share, and the free with the paid one."""
        record, share, apart = self.record, self.record.share, self.record.difference
        people = f"with people ({record.target})" if record.target else ""
        lines = [("free with paid", record.imitation)]
        if record.free_people.n:
            lines = [(f"free {people}", record.free_people), (f"paid {people}", record.paid_people), *lines]
        rows = [
            (name, statistic(one.kendall_tau_b), interval(one.ci_low, one.ci_high), statistic(one.pearson),
             count(one.n), count(one.groups))
            for name, one in lines
        ]  # fmt: skip
        if record.free_people.n:
            gap = statistic(apart.kendall_tau_b, signed=True)
            ends = interval(share.ci_low, share.ci_high, write=_share)
            counts = count(share.n), count(share.groups)
            rows[2:2] = [
                ("free − paid", gap, interval(apart.ci_low, apart.ci_high), "", *counts),
                ("share kept", _share(share.value) if math.isfinite(share.value) else MISSING, ends, "", *counts),
            ]
        head = ("", "tau-b", "95 %", "Pearson", "rows", "groups")
        return TextTable(head, rows, "Agreement on held-out rows", own=[0])

    def _components(self) -> TextTable:
        rows = [
            (one.name, one.kind, points(one.weight, self.record.width, signed=True)) for one in self.record.components
        ]
        return TextTable(("component", "kind", "weight"), rows, "The free metric's components", left=2)

    def _named(self, one: Divergence) -> str:
        width = self.record.width
        people = "" if one.rating is None else f", people {rating(one.rating, width)}"
        return (
            f"{excerpt(one.id, 80)}: free {points(one.free, width)}, paid {points(one.paid, width)}{people} "
            f"(gap {_signed(one.gap)} standard deviations)"
        )

    def _row(self, one: Divergence) -> Block:
        asked = [Paragraph(excerpt(one.input, 400), "small", own_direction=True)] if one.input else []
        answer = Paragraph(excerpt(one.output, 1000), "kept", own_direction=True)
        return Box("surprise", [Heading(self._named(one)), *asked, answer], "article")
