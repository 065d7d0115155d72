"""A specialist's evaluation laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from metricsmith.formats import MISSING, count, ends, money, p_value, percent, points, single_line, statistic
from metricsmith.records import Usage
from metricsmith.report.blocks import (
    Across,
    Block,
    Box,
    Details,
    Figure,
    Heading,
    Items,
    Paragraph,
    Terms,
    TextTable,
    Warnings,
    isolated,
)
from metricsmith.report.meta_evaluation.document import MEANINGS
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.plots.lines import line_plot
from metricsmith.report.render import write_document
from metricsmith.report.specialist.record import PolicyResult, SpecialistEvaluation
from metricsmith.report.specialist.verdict import CHARACTER_F1, FILTERED, specialist_verdict, spoken

__all__ = ["SPECIALIST_FILES", "SpecialistDocument", "specialist_verdict", "write_specialist"]

SPECIALIST_FILES = ("specialist.html", "specialist.md", "specialist.json")
DIFFERENCES = ("difference", "95 % segments", "p segments", "95 % documents", "p documents")
COPYING = (
    "errors marked",
    "equal an example's",
    "… or overlap one",
    "equal people's",
    "… or overlap",
    "example errors left out",
)

GLOSSARY = (
    (
        "same, other, merged, any",
        "show ratings of other outputs of the same source: by the row's own rater, by the next one, by all but the "
        "row's own, by all. shuffled and fixed show as many of other sources as the row's has systems, drawn from all "
        "raters, or all of one source: they "
        "tell whether the source matters. none shows no example.",
    ),
    (
        "filtered",
        "takes out of the examples the errors that people marked in the row itself, and equal outputs. It reads the "
        "gold: an analysis, and no way to judge.",
    ),
    (
        "parrot",
        "asks no model: it marks every error of the examples whose text stands in the output again, all its "
        "occurrences or the first. A specialist that is no better only copies.",
    ),
    (
        "character F1",
        "compares the characters that judge and rater mark, summed over all rows; another severity counts half.",
    ),
    (
        "example_mean",
        "asks no model: the mean rating of the row's examples, whatever its output. It ranks against people where only "
        "the output counts, because the mean of the others falls where the held-out one is good.",
    ),
    (
        "examples, errors",
        "are means of a row: the ratings that it is shown, and the errors marked in them on either side. sd over seeds "
        "is the spread of policies that draw, over --seeds draws.",
    ),
    (
        "copies",
        "are marked texts that equal one of the examples' errors, or lie in or contain one; beside them the same for "
        "what people marked in the row itself. Example errors left out stand in the output and were not marked.",
    ),
    (
        "95 %",
        "is where the value may lie for other segments, or for other documents, each left out in turn. Quote the one "
        "over documents: segments of one document resemble one another. With fewer than six documents the verdict "
        "goes by segments: exchanging so few has no p below .05.",
    ),
    (
        "difference",
        "is the value less that of the same judge's first policy on the same rows; p is how often it would be this far "
        "from 0 if the two were exchanged in whole segments or documents.",
    ),
)


def write_specialist(record: SpecialistEvaluation, folder: str | PathLike[str]) -> None:
    """Write ``specialist.html``, ``specialist.md`` and ``specialist.json``, as `write_document` does."""
    write_document(SpecialistDocument(record), folder)


class SpecialistDocument(PartedDocument[SpecialistEvaluation]):
    """A specialist's evaluation as a page, as Markdown and in the terminal."""

    stem = "specialist"

    def opening(self) -> Opening:
        """The verdict beside the plot of the systems."""
        record = self.record
        return Opening(
            record.title, specialist_verdict(record), isolated(single_line(record.history)), plot=self._figure(),
            tab=f"{record.title}: {record.history}",
        )  # fmt: skip

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, the tables of policies, what people agree on, copies, warnings, notes, and the page's place."""
        tables = [self._values(), self._differences(), self._copying()]
        return [
            specialist_verdict(self.record).sentence,
            self._compared(),
            *(table for table in tables if table.rows),
            *filter(None, [self._people()]),
            *self._alone(),
            *self.ending(folder, notes=self.record.notes),
        ]

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """A part for each question; one without figures is left out."""
        record = self.record
        matrices = [
            self._matrix("The judge, shown the row's rater, against the column's", record.as_rater),
            self._matrix("The row's rater against the column's, on the same rows", record.people),
        ]
        curve = line_plot(
            "curve", record.curve, f"{spoken(self.record)} by number of examples", ("examples", spoken(self.record))
        )
        return [
            ("policies", "Judges and policies", [
                Paragraph(self._compared()), Warnings(record.warnings),
                self._values(), self._differences(), Details("Values by system and by rater", [self._by_part()]),
                Heading("How to read this"), Terms.glossary(self._glossary())]),
            ("curve", "Number of examples", [
                Box("pair", [Figure(curve, "Each set of examples is part of the next larger one."), self._curve()])]
                if record.curve else []),
            ("raters", "Raters", [Paragraph(self._people()), Box("pair", [table for table in matrices if table.rows])]
                if record.people else []),
            ("copying", "Copies of the examples", [self._copying(), Items(self._alone())]
                if self._copying().rows else []),
            ("examples", "Examples and costs", [self._shown(), Items(self._spent())]),
            ("notes", "Notes", [Items(record.notes)] if record.notes else []),
        ]  # fmt: skip

    def _glossary(self) -> list[tuple[str, str]]:
        """The terms that this evaluation has."""
        record = self.record
        names = {line.judge for line in record.results}
        here = {
            "filtered": any(line.policy == FILTERED for line in record.results),
            "parrot": any(name.startswith("parrot") for name in names),
            "example_mean": any(name.startswith("example_mean") for name in names),
            "character F1": record.measure == CHARACTER_F1,
            "copies": record.measure == CHARACTER_F1,
        }
        own = [] if record.measure == CHARACTER_F1 else [(record.measure, MEANINGS[record.measure])]
        return [*own, *((term, meaning) for term, meaning in GLOSSARY if here.get(term, True))]

    def _compared(self) -> str:
        record = self.record
        documents = f" in {count(record.documents, 'document')}" if record.documents else ""
        raters = f" by {count(len(record.raters), 'rater')}" if record.raters else ""
        return single_line(
            f"{count(len(record.systems), 'system')}, each held out in turn: {spoken(self.record)} on "
            f"{count(record.ratings, 'rating')}{raters} of {count(record.sources, 'source')}{documents} "
            f"({record.history})."
        )

    def _table(self, caption: str, columns: Sequence[str], cells: Callable[[PolicyResult], Sequence[str]]) -> TextTable:
        """A line for each policy under the name of its judge; a line of dashes is left out."""
        rows: list[Sequence[str] | Across] = []
        for judge in dict.fromkeys(line.judge for line in self.record.results):
            own = [(line.policy, *cells(line)) for line in self.record.results if line.judge == judge]
            kept = [row for row in own if set(row[1:]) - {MISSING}]
            rows += [Across(judge), *kept] if kept else []
        return TextTable(("policy", *columns), rows, caption)

    def _values(self) -> TextTable:
        parts = ("precision", "recall") if self.record.measure == CHARACTER_F1 else ()
        columns = (
            "examples",
            "errors",
            spoken(self.record),
            *parts,
            "95 % segments",
            "95 % documents",
            "sd over seeds",
        )
        return self._table(
            "Agreement with the raters", columns, lambda line: (
                points(line.examples, 4), points(line.errors, 4), statistic(line.value),
                *(statistic(getattr(line, part)) for part in parts), ends(line.by_segment),
                ends(line.by_document), statistic(line.spread)),
        )  # fmt: skip

    def _differences(self) -> TextTable:
        return self._table(
            "Less the same judge's first policy", DIFFERENCES, lambda line: (
                statistic(line.difference, signed=True), ends(line.difference_by_segment),
                p_value(line.p_by_segment), ends(line.difference_by_document), p_value(line.p_by_document)),
        )  # fmt: skip

    def _by_part(self) -> TextTable:
        """The value of each judge and policy on the rows of one system or rater."""
        lines = self.record.results
        rows: list[Sequence[str] | Across] = [Across("systems, best first")]
        rows += [
            (
                one.name,
                f"{points(one.mean, 4)} ({count(one.ratings)})",
                *(statistic(p.systems.get(one.name)) for p in lines),
            )
            for one in self.record.systems
        ]
        rows += [Across("raters")] * bool(self.record.raters)
        rows += [(rater, "", *(statistic(line.raters.get(rater)) for line in lines)) for rater in self.record.raters]
        head = ("", "mean rating (ratings)", *(f"{line.judge}, {line.policy}" for line in lines))
        return TextTable(head, rows, "Value by system and by rater")

    def _figure(self) -> Figure:
        """The first policy of each judge by system (Figure 2 of the paper)."""
        results, systems = self.record.results, self.record.systems
        series = {
            f"{line.judge}, {line.policy}": [(one.mean, line.systems.get(one.name, math.nan)) for one in systems]
            for line in results
            if line.policy == results[0].policy
        }
        value = spoken(self.record)
        plot = line_plot("systems", series, f"{value} by system", ("mean rating of the system", value))
        return Figure(plot, "Each system held out, by the mean rating that people gave it.")

    def _curve(self) -> TextTable:
        counts = sorted({most for points in self.record.curve.values() for most, _ in points})
        rows = [
            (name, *(statistic(dict(points).get(most)) for most in counts))
            for name, points in self.record.curve.items()
        ]
        return TextTable(("examples, at most", *map(str, counts)), rows, "Value by number of examples")

    def _matrix(self, caption: str, values: Mapping[str, Mapping[str, float]]) -> TextTable:
        """A table of raters by raters."""
        raters = self.record.raters
        rows = [(one, *(statistic(values[one].get(other)) for other in raters)) for one in raters if one in values]
        return TextTable(("rater", *raters), rows, caption)

    def _people(self) -> str:
        """The range of people's agreement with one another."""
        pairs = [(one, other, value) for one, row in self.record.people.items() for other, value in row.items()]
        found = [value for one, other, value in pairs if one != other and math.isfinite(value)]
        span = " to ".join(dict.fromkeys(statistic(value) for value in (min(found), max(found)))) if found else ""
        return f"Raters reach {span} against one another on the same rows." if found else ""

    def _copying(self) -> TextTable:
        return self._table(
            "Errors with a text on the target side, beside the examples' and the raters' own", COPYING, lambda line: (
                count(line.copying.predicted), percent(line.copying.example_equal), percent(line.copying.example_near),
                percent(line.copying.gold_equal), percent(line.copying.gold_near), count(line.copying.abstained)),
        ) if self.record.measure == CHARACTER_F1 else TextTable(COPYING, [])  # fmt: skip

    def _alone(self) -> list[str]:
        first = self.record.results[0]
        return [
            f"{first.judge}: {count(alone, 'error')} marked with {policy} alone, {count(copied)} of them equal to an "
            f"error in the examples of {first.policy}."
            for policy, (alone, copied) in self.record.only.items()
            if alone
        ]

    def _shown(self) -> TextTable:
        """Ratings by row of the first judge's policies: candidates, chosen, and left out by reason."""
        lines = [line for line in self.record.results if line.judge == self.record.results[0].judge]
        reasons = dict.fromkeys(reason for line in lines for reason in line.excluded)
        rows = [
            ("candidates: ratings of its source, and drawn ones", *(points(line.candidates, 4) for line in lines)),
            ("shown", *(points(line.examples, 4) for line in lines)),
            *(
                (
                    f"not shown: {reason}",
                    *(points(line.excluded.get(reason, 0) / self.record.ratings, 4) for line in lines),
                )
                for reason in reasons
            ),
        ]
        return TextTable(("mean of a row", *(line.policy for line in lines)), rows, "Ratings that a row is shown")

    def _spent(self) -> list[str]:
        """The requests of all policies together, and the judgements that none came of."""
        used = sum((line.usage for line in self.record.results), Usage())
        tokens = f"{count(used.prompt_tokens)} tokens sent, {count(used.completion_tokens)} received"
        spent = [f"{count(used.requests, 'request')}, {tokens}, {money(used.cost if used.requests else 0.0)}."]
        for line in self.record.results:
            without = {status: n for status, n in line.judgements.items() if n and status not in ("requested", "ok")}
            found = ", ".join(f"{count(n)} {status}" for status, n in without.items())
            spent += [f"{line.judge}, {line.policy}: judgements without a result: {found}."] if found else []
        return spent
