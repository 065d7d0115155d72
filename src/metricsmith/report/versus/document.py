"""Two versions of outputs side by side, laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from metricsmith.formats import (
    count,
    excerpt,
    interval,
    interval_stated,
    p_stated,
    p_value,
    percent,
    points,
    single_line,
)
from metricsmith.report.blocks import (
    Block,
    Box,
    Heading,
    Items,
    Paragraph,
    Terms,
    TextTable,
    Tone,
    Verdict,
    Warnings,
)
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.render import cost_line, write_document
from metricsmith.report.versus.record import MovedPair, Versus
from metricsmith.stats.mean_difference import FEWEST_GROUPS, MeanDifference
from metricsmith.stats.validity import PairedMean

__all__ = ["VERSUS_FILES", "VersusDocument", "versus_verdict", "write_versus"]

VERSUS_FILES = ("versus.html", "versus.md", "versus.json")
WORDS: dict[str, tuple[Tone, str]] = {
    "better": ("good", "B is better"), "worse": ("bad", "B is worse"), "undecided": ("unsure", "Not decided"),
}  # fmt: skip
HEAD = ("B − A", "95 %", "p", "verdict", "A", "B", "pairs", "groups")
MOVED = "Pairs that moved most"
MOST_NAMED = 5  # of the rows that do not count
MOST_SHOWN = 1_000  # characters of an output
MOST_REASONS = 3  # components of a pair
CAUTION = "It is a difference in the metric, not in people's ratings."
OF_A_JUDGE = f"{CAUTION[:-1]}, and in these judgements: a judge at a temperature gives others when it is asked again."
GLOSSARY = (
    ("B − A", "is the mean over pairs of B's value less A's, on the metric's scale; 95 % is where it may lie for other "
        "groups of rows. Of components it is the mean contribution; their differences add up to the whole."),
    ("p", "is how often the difference would be so large if A and B were exchanged at random in whole groups, with "
        "Holm's correction over the slices and over the components."),
    ("verdict", "takes both: p of at most .05, and 0 outside the interval. With fewer than six groups there is none."),
)  # fmt: skip


def write_versus(record: Versus, folder: str | PathLike[str]) -> None:
    """Write ``versus.html``, ``versus.md`` and ``versus.json``, as `write_document` does."""
    write_document(VersusDocument(record), folder)


def versus_verdict(record: Versus) -> Verdict:
    """B is better, worse, or not told from A, with the figures; in the last case also the pairs that would decide."""
    whole, (tone, words) = record.whole, WORDS[record.whole.verdict]
    if whole.verdict == "undecided" and math.isfinite(whole.needed):
        words += f" (about {_about(whole.needed)} pairs would decide)"
    value = points(whole.value, record.width, signed=True)
    found = interval_stated(*_ends(whole), lambda end: points(end, record.width, signed=True))
    target = record.target + " (lower is better)" * (whole.sign < 0)
    sentence = (
        f"{words}: mean {target} {points(whole.second, record.width)} after "
        f"{points(whole.first, record.width)}, {value} ({found}, {p_stated(whole.p_value)}) on "
        f"{count(whole.n, 'pair')} in {count(whole.groups, 'group')}."
    )
    wins = (
        f"B wins {percent(whole.wins.value)} of the pairs ({interval_stated(*_ends(whole.wins), percent)}), loses "
        f"{percent(whole.wins.risen)} and ties {percent(whole.wins.tied)}."
    )
    details = (
        *([_outlook(record)] if whole.verdict == "undecided" else ()),
        wins,
        OF_A_JUDGE if record.model else CAUTION,
    )
    return Verdict(tone, single_line(sentence), details=tuple(Paragraph(line, "small") for line in details))


def _outlook(record: Versus) -> str:
    """The pairs that would decide, where the verdict is open."""
    whole = record.whole
    if whole.wins.tied == 1:
        return "No pair differs."
    if math.isnan(whole.needed):
        few = "All pairs are of one group" if whole.groups < 2 else "Every pair differs by the same amount"
        return f"{few}, which says nothing of how others vary."
    few = f"Fewer than {FEWEST_GROUPS} groups never decide. " if whole.groups < FEWEST_GROUPS else ""
    if math.isfinite(whole.needed):
        groups = _about(whole.needed * whole.groups / whole.n)
        return (
            f"{few}About {_about(whole.needed)} pairs in {groups} groups would decide in four of five cases, if "
            "difference and spread stay as they are."
        )
    return (
        f"{few}The difference is so near 0 that no number of rows of this kind is likely to decide. One of "
        f"{points(whole.detectable, record.width)} would have shown here in four of five cases; half of it takes about "
        f"{_about(4 * whole.n)} pairs."
    )


def _about(number: float) -> str:
    """Two significant digits, rounded up."""
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return count(math.ceil(number / unit - 1e-9) * unit)


def _ends(found: PairedMean) -> tuple[float, float]:
    return found.interval.low, found.interval.high


class VersusDocument(PartedDocument[Versus]):
    """Two versions as a page, as Markdown and in the terminal."""

    stem = "versus"

    def opening(self) -> Opening:
        """The question and its answer."""
        title, compared = f"B against A: {self.record.target}", self._compared()
        return Opening(title, versus_verdict(self.record), description=compared, below=compared)

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """The differences in figures, and the pairs that moved most with their texts."""
        record = self.record
        return [
            ("figures", "The difference", [Warnings(record.warnings), *self._tables()]),
            ("moved", MOVED, [self._moved(pair) for pair in record.moved]),
            ("left-out", "What does not count", [Items(self._left_out())] if record.left_out else []),
            ("reading", "How to read this", [Terms.glossary(GLOSSARY)]),
            ("notes", "Notes", [Items(record.notes)] if record.notes else []),
        ]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, the differences, the pairs that moved most, what does not count, and the place of the page."""
        record, verdict = self.record, versus_verdict(self.record)
        moved = [excerpt(". ".join([self._change(pair), *self._reasons(pair)]), 118) for pair in record.moved]
        return [
            verdict.sentence,
            *(block.text for block in verdict.details if isinstance(block, Paragraph)),
            self._compared(),
            *self._tables(),
            *([MOVED + ":"] if moved else ()),
            *(f"  {line}" for line in moved),
            *self._left_out(),
            *([cost_line("actual", record.usage)] if record.usage.requests else ()),
            *self.ending(folder, "page", record.notes),
        ]

    def _compared(self) -> str:
        record = self.record
        return single_line(
            f"A is {record.versions[0]}, B is {record.versions[1]}, judged by {record.metric}; rows are paired by "
            f"{record.paired_by}."
        )

    def _tables(self) -> list[TextTable]:
        """The whole with its components, and the slices below the whole."""
        record = self.record
        title = "All pairs" + ", and what each component adds" * bool(record.components)
        slices = [self._table(record.by, f"By {record.by}", [record.whole, *record.slices])] if record.by else []
        return [self._table("", title, [record.whole, *record.components]), *slices]

    def _table(self, corner: str, caption: str, lines: Sequence[MeanDifference]) -> TextTable:
        width = self.record.width
        rows = []
        for line in lines:
            span = interval(*_ends(line), write=lambda end: points(end, width, signed=True))
            rows.append((
                line.name, points(line.value, width, signed=True), span, p_value(line.p_adjusted), line.verdict,
                points(line.first, width), points(line.second, width), count(line.n), count(line.groups),
            ))  # fmt: skip
        return TextTable((corner, *HEAD), rows, caption, own=[0])

    def _left_out(self) -> list[str]:
        return [
            single_line(f"{len(ids)} {why}: {', '.join(ids[:MOST_NAMED])}{', …' * (len(ids) > MOST_NAMED)}")
            for why, ids in self.record.left_out.items()
        ]

    def _moved(self, pair: MovedPair) -> Block:
        """The outputs of a pair side by side, with the reasons of what moved."""
        texts = [row.cells["output"] for row in (pair.first, pair.second)]
        sides = [
            Paragraph(f"{letter}: {text[:MOST_SHOWN]}{' […]' * (len(text) > MOST_SHOWN)}", "kept", own_direction=True)
            for letter, text in zip("AB", texts, strict=True)
        ]
        asked = excerpt(pair.first.cells["input"], 400)
        told = [Paragraph(asked, "small", own_direction=True)] if asked else []
        reasons = [Items(lines, "small")] if (lines := self._reasons(pair)) else []
        return Box("surprise", [Heading(self._change(pair)), *told, Box("sides", sides), *reasons], "article")

    def _change(self, pair: MovedPair) -> str:
        values = [row.prediction.raw if row.prediction else None for row in (pair.first, pair.second)]
        before, after = (points(value, self.record.width) for value in values)
        gap = points(pair.change, self.record.width, signed=True)
        return f"{excerpt(pair.first.id, 80)}: {gap}, from {before} to {after}"

    def _reasons(self, pair: MovedPair) -> list[str]:
        """The components that moved most, or the metric where it has none, each with the reasons for both outputs."""
        before, after = pair.first, pair.second
        told = [
            (new.contribution - old.contribution, f"{old.name} ", old.judgement, new.judgement)
            for old, new in zip(before.parts, after.parts, strict=True)
        ]
        if not told and before.prediction and after.prediction:
            told = [(pair.change, "", before.prediction, after.prediction)]
        lines = []
        for gap, name, old, new in sorted((line for line in told if abs(line[0]) > 0), key=lambda line: -abs(line[0])):
            given = [(letter, excerpt(one.feedback, 200)) for letter, one in (("A", old), ("B", new)) if one.feedback]
            said = [f"{letter}: {reason.rstrip('.')}" for letter, reason in given]
            moved = [name + points(gap, self.record.width, signed=True)] if name else []
            lines += [". ".join([*moved, *said])] if moved or said else []
        return lines[:MOST_REASONS]
