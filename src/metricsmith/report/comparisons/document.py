"""Methods on several data sets laid out for page, Markdown and terminal: the paper's Table 2, with its intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from metricsmith.formats import cost_stated, count, ends, single_line
from metricsmith.report.blocks import Block, Heading, Items, Paragraph, Terms, TextTable, Verdict, Warnings
from metricsmith.report.comparison.document import SEEDS, by_tau, comparison_verdict, mean_over_seeds
from metricsmith.report.comparison.record import MethodResult
from metricsmith.report.comparisons.record import Comparisons
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.render import write_document

__all__ = ["COMPARISONS_FILES", "ComparisonsDocument", "write_comparisons"]

COMPARISONS_FILES = ("comparisons.html", "comparisons.md", "comparisons.json")

GLOSSARY = (
    SEEDS,
    (
        "95 % rows, seeds",
        "speaks of other rows and other runs: each group of test rows is left out of all repetitions at once, and the "
        "variance between repetitions is added. It is the one to quote.",
    ),
)


def write_comparisons(record: Comparisons, folder: str | PathLike[str]) -> None:
    """Write ``comparisons.html``, ``comparisons.md`` and ``comparisons.json``, as `write_document` does."""
    write_document(ComparisonsDocument(record), folder)


class ComparisonsDocument(PartedDocument[Comparisons]):
    """Several comparisons as a page, as Markdown and in the terminal."""

    stem = "comparisons"

    def opening(self) -> Opening:
        """The data sets on which each method agrees best."""
        record = self.record
        if len(record.sets) == 1:
            return Opening(record.title, comparison_verdict(next(iter(record.sets.values()))))
        firsts = [by_tau(one)[0] for one in record.sets.values()]
        best = [line.label for line in firsts if not math.isnan(line.tau)]
        counted = ", ".join(f"{label} on {best.count(label)}" for label in dict.fromkeys(best))
        sentence = (
            f"Of {count(len(record.sets), 'data set')}, agreement with the raters is best with {counted}; what could "
            "be chance stands with each data set."
        )
        if not best:
            sentence = "No method has a defined agreement with the raters on any data set."
        return Opening(record.title, Verdict("unsure", sentence))

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """The paper's table, the same with the intervals for other rows, and a verdict for each data set."""
        record = self.record
        skipped = self._skipped()
        verdicts = [f"{name}: {single_line(comparison_verdict(one).sentence)}" for name, one in record.sets.items()]
        tables: list[Block] = [
            Warnings(record.warnings),
            *self._tables(),
            *([Heading("Not run"), Items(skipped)] if skipped else ()),
            Heading("How to read the tables"),
            Terms.glossary(GLOSSARY),
        ]
        notes = [f"{name}: {note}" for name, one in record.sets.items() for note in one.notes]
        return [
            ("table", "Agreement with the raters", tables),
            ("sets", "Each data set", [Items(verdicts), Paragraph(self._cost())]),
            ("notes", "Notes", [Items(notes)] if notes else []),
        ]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """Both tables, the verdict of each data set, the cost, and the place of the page."""
        return [
            *self._tables(),
            *(f"{name}: {comparison_verdict(one).sentence}" for name, one in self.record.sets.items()),
            *(f"not run: {one}" for one in self._skipped()),
            self._cost(),
            *self.ending(folder, "comparisons"),
        ]

    def _skipped(self) -> list[str]:
        """The methods that were not run, each with its reason."""
        found = ((label, line.skipped) for label, lines in self.record.methods.items() for line in lines)
        return list(dict.fromkeys(f"{label}: it {why}" for label, why in found if why))

    def _tables(self) -> list[TextTable]:
        """The means as in the paper, and the intervals for other rows."""
        figures: dict[str, Callable[[MethodResult], str]] = {
            "tau-b ± seeds": lambda line: mean_over_seeds(line.tau, line.over_seeds),
            "95 % rows, seeds": lambda line: ends(line.over_both),
        }
        tables = []
        for name, figure in figures.items():
            rows = [
                (label, *("not run" if line.skipped else figure(line) for line in lines))
                for label, lines in self.record.methods.items()
            ]
            tables.append(TextTable((name, *self.record.sets), rows, f"Methods by data set: {name}", name))
        return tables

    def _cost(self) -> str:
        usage = self.record.usage
        asked = f"{count(usage.requests, 'request')}, {cost_stated(usage.cost)}"
        return asked if usage.requests else "No language model was asked."
