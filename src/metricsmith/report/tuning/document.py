"""A tuning laid out for page, Markdown and terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from metricsmith.formats import count, duration, excerpt, interval, money, single_line, statistic
from metricsmith.metric import unfenced
from metricsmith.report.blocks import (
    Block,
    Box,
    Details,
    Heading,
    Items,
    Paragraph,
    Terms,
    TextTable,
    Verdict,
    Warnings,
    isolated,
    joined,
    marked_changes,
)
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.render import write_document
from metricsmith.report.tuning.record import CandidateResult, Tuning

__all__ = ["TuningDocument", "tuning_verdict", "write_tuning"]

MOST_LISTED = 30  # candidates in the table
HARD_BREAK = re.compile(r"(?<=[^\n]{50})(?<![.:;!?])\n(?=\w)")  # inside a sentence, after a long line
APART = (
    "Value and gain after tuning are corrected for the choice of the best candidate each for itself: the gain is not "
    "the difference of the two values."
)
GLOSSARY = (
    ("candidate", "is an instruction with its demonstrations that judged every row to select by without a failure."),
    ("gain", "is how much more the candidate agrees with the raters than the judge as it was, on the same rows, which "
        "no candidate had seen. Its interval leaves out each group of rows in turn."),
    ("after", "is the candidate that was taken. Value and gain are corrected, each for itself, for having been chosen "
        "by these rows. A judge is replaced if the best gain, less what the best of so many gains by luck, is at "
        "least one standard error; tuning helped if the corrected gain has an interval above 0."),
)  # fmt: skip


def write_tuning(record: Tuning, folder: str | PathLike[str]) -> None:
    """Write ``tuning.html``, ``tuning.md`` and ``tuning.json`` of a judge's `tuning`, as `write_document` does."""
    write_document(TuningDocument(record), folder)


def tuning_verdict(record: Tuning) -> Verdict:
    """The answer, good where the gain on unseen rows is more than luck."""
    return Verdict("good" if record.helped else "unsure", single_line(record.verdict))


class TuningDocument(PartedDocument[Tuning]):
    """A tuning as a page, as Markdown and in the terminal."""

    stem = "tuning"

    def opening(self) -> Opening:
        """The objective and the answer."""
        record = self.record
        return Opening(f"Tuning for {record.objective}", tuning_verdict(record), f"by {record.method}")

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """Agreement, candidates, demonstrations, cost, and the instructions: on a page with their changes marked."""
        record = self.record
        asked = [Paragraph(APART, "small")] if record.selection.after else []
        asked += [Paragraph(single_line(record.asked))] if record.asked else []
        agreement: list[Block] = [Warnings(record.warnings), Paragraph(self._rows()), self._agreement(), *asked]
        return [
            ("agreement", "Agreement with the raters", agreement),
            ("candidates", "Candidates", [self._candidates()] if record.selection.candidates else []),
            ("instruction", "Instruction", [block for name in record.after for block in self._instruction(name, page)]),
            ("demonstrations", "Demonstrations", self._demonstrations()),
            ("cost", "Cost", [Paragraph(self._cost())]),
            ("reading", "How to read this", [Terms.glossary(GLOSSARY)]),
        ]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, agreement before and after, the decision, cost, warnings, and the place of the page."""
        record = self.record
        notes = [record.asked] if record.asked else []
        return [
            record.verdict,
            self._rows(),
            "",
            self._agreement(),
            "",
            f"{record.selection.verdict}.",
            self._cost(),
            *self.ending(folder, notes=notes),
        ]

    def _rows(self) -> str:
        record = self.record
        groups = f" in {count(record.groups, 'group')}" if record.groups else ""
        return f"{count(record.learned, 'row')} to learn from, {count(record.selected)} to select by{groups}."

    def _agreement(self) -> TextTable:
        """The judge before and after, and measures that were not searched by."""
        record = self.record
        now = "after" if record.replaced else "unchanged"
        lines = [
            ("before", record.selection.before),
            *([(now, record.selection.after)] if record.selection.after else ()),
        ]
        rows = [(name, *_figures(one)[:2], *(_figures(one)[2:4] if name == now else ("", ""))) for name, one in lines]
        rows += [
            (f"{name}, {when}, not searched by", statistic(value), "", "", "")
            for name, pair in record.reported.items()
            for when, value in zip(("before", now), pair, strict=True)
        ]
        return TextTable(
            ("judge", record.objective, "95 %", "gain", "95 % of gain"), rows, "The judge before and after"
        )

    def _candidates(self) -> TextTable:
        found = self.record.selection
        rows = [
            (one.name[:8], *_figures(one), "chosen" if one.name == found.chosen else "")
            for one in found.candidates[:MOST_LISTED]
        ]
        rest = f", the best {MOST_LISTED}" if len(found.candidates) > MOST_LISTED else ""
        caption = f"{count(len(found.candidates), 'candidate')} on the rows to select by{rest}, as they read"
        head = ("candidate", self.record.objective, "95 %", "gain", "95 % of gain", "standard error", "")
        return TextTable(head, rows, caption, own=[place for place, row in enumerate(rows) if row[-1]])

    def _instruction(self, name: str, marked: bool) -> list[Block]:
        """The instruction of one predictor, before and after."""
        before, after = self.record.before.get(name, ""), self.record.after[name]
        if before == after:
            return [Paragraph(joined("The instruction of ", isolated(name), " is unchanged."))] if marked else []
        if not marked:
            return [Heading(name), Items([f"before: {before}", f"after: {after}"])]
        changes = marked_changes(*(HARD_BREAK.sub(" ", text) for text in (before, after)))
        sides = [
            Box("", [Paragraph(when, "label"), Paragraph(side, "kept", own_direction=True)])
            for when, side in zip(("before", "after"), changes, strict=True)
        ]
        return [Heading(isolated(name)), Box("pair", sides)]

    def _demonstrations(self) -> list[Block]:
        """The demonstrations of the judge that came back, without the fields that all of them share."""
        shown = self.record.demonstrations
        if not shown:
            return [Paragraph("The judge shows no demonstrations.")]
        own = [name for name in shown[0] if len(shown) == 1 or len({one.get(name) for one in shown}) > 1]
        lines = ["; ".join(f"{name}: {excerpt(unfenced(one.get(name, '')), 300)}" for name in own) for one in shown]
        summary = f"{count(len(shown), 'demonstration')} in the judge that came back"
        return [Details(summary, [Items(lines, numbered=True)])]

    def _cost(self) -> str:
        usage = self.record.usage
        price = "at an unknown price" if usage.cost is None and usage.requests else money(usage.cost or 0.0)
        return (
            f"{count(usage.requests, 'request')} of {count(self.record.bound)} at most, {count(usage.prompt_tokens)} "
            f"prompt and {count(usage.completion_tokens)} completion tokens, {price}, {duration(usage.seconds)}."
        )


def _figures(one: CandidateResult) -> tuple[str, ...]:
    """Statistic, gain and standard error of one candidate, with intervals."""
    return (
        statistic(one.statistic), interval(one.low, one.high), statistic(one.gain, signed=True),
        interval(one.gain_low, one.gain_high), statistic(one.standard_error),
    )  # fmt: skip
