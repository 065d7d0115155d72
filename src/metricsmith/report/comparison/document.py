"""A comparison laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path

from metricsmith.records import Usage
from metricsmith.report.blocks import (
    Across,
    Block,
    Box,
    Cell,
    Document,
    Figure,
    Heading,
    Items,
    Markdown,
    Page,
    Paragraph,
    Section,
    Terms,
    TextTable,
    Verdict,
    Warnings,
    header,
    isolated,
    joined,
)
from metricsmith.report.comparison.record import Comparison, MethodResult
from metricsmith.report.formats import (
    MISSING,
    count,
    duration,
    excerpt,
    interval,
    money,
    p_value,
    single_line,
    statistic,
)
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.raters import ceiling_lines
from metricsmith.report.render import escape, write_document
from metricsmith.stats.resampling import Interval

__all__ = [
    "COLUMNS", "COMPARISON_FILES", "COSTS", "ComparisonDocument", "comparison_verdict", "cost_lines", "method_cells",
    "sections", "write_comparison",
]  # fmt: skip

COMPARISON_FILES = ("compare.html", "compare.md", "compare.json")

COLUMNS = ("tau-b ± seeds", "95 % rows", "95 % rows, seeds", "behind by", "95 %", "p", "p (Holm)")
COSTS = ("requests", "tokens sent", "tokens received", "cost", "time", "failed")
SIGNIFICANT = 0.05
Cells = Callable[[MethodResult], tuple[str, ...]]

GLOSSARY = (
    (
        "tau-b ± seeds",
        "is the mean of Kendall's tau-b with the raters over the repetitions, and half the width of Student's 95 % "
        "interval of that mean, or the interval itself where it had to be cut to −1 and 1. It holds the test rows "
        "fixed and says only how much a method differs from run to run: a method without chance in it has ± .000, "
        "however few the rows. Methods are measured on the test rows for which all of them have a prediction.",
    ),
    (
        "95 % rows",
        "is where the mean may lie for other test rows: each group is left out in turn, the repetitions stay. Of one "
        "run it is the interval of the induction report.",
    ),
    (
        "95 % rows, seeds",
        "adds how much repetitions differ. It is the one to quote, and with repetitions that differ a little too wide.",
    ),
    (
        "behind by",
        "is how far the method stays behind the reference on the same rows, with the 95 % interval for other rows and "
        "repetitions, in which the difference is taken anew without each group. Below 0 the method is ahead.",
    ),
    (
        "p",
        "is how often the difference would be this large if the two methods were interchangeable: they are swapped in "
        "whole groups. Holm's correction allows for the number of methods. A large p is no proof that two methods are "
        "equally good: there may be too few test rows to tell them apart.",
    ),
)


def write_comparison(record: Comparison, folder: str | PathLike[str]) -> None:
    """Write ``compare.html``, ``compare.md`` and ``compare.json``.

    Parameters
    ----------
    record : Comparison
    folder : path
        Made if it does not exist.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    write_document(ComparisonDocument(record), folder)


class ComparisonDocument(Document[Comparison]):
    """A comparison as a page, as Markdown and in the terminal."""

    stem = "compare"

    def page(self) -> Page:
        """The verdict beside a plot, the table of the paper, and how each method came to its numbers."""
        record = self.record
        title, target = single_line(record.title), single_line(record.task.target)
        skipped = [
            joined(isolated(single_line(line.label)), ": ", single_line(line.skipped)) for line in record.skipped
        ]
        agreement = self._table(COLUMNS, partial(method_cells, record), on_page=True)
        costs = self._table(COSTS, _cost_cells, on_page=True)
        figures = [
            Paragraph(self._compared()),
            Warnings([single_line(warning) for warning in record.warnings]),
            replace(agreement, caption="Agreement in figures", label="Agreement in figures", bold=1),
            *([Paragraph(single_line(" ".join(self._ceiling())))] if record.raters else ()),
            *([Heading("Not run"), Items(skipped)] if skipped else ()),
            Heading("How to read the table"),
            Terms.glossary(GLOSSARY),
        ]
        label = "All repetitions together"
        main = [
            Section("table", "Agreement with the raters", figures),
            Section("made", "What they made", [Terms([_made(line) for line in record.run])]),
            Section(
                "costs",
                "Cost and failures",
                [*map(Paragraph, cost_lines(record)), replace(costs, caption=label, label=label, own=())],
            ),
        ]
        notes = [Items([single_line(note) for note in record.notes])]
        return Page(
            title=f"{title}: {target}",
            skip="Skip to the comparison",
            header=[
                *header(
                    "metricsmith comparison",
                    isolated(title),
                    joined("for ", isolated(target), f", {record.task.scale}"),
                    record.task.description,
                ),
                Box("hero", [comparison_verdict(record), self._figure()]),
            ],
            main=[*main, *([Section("notes", "Notes", notes)] if record.notes else ())],
        )

    def markdown(self) -> list[Block]:
        """The page's tables and lists."""
        record = self.record
        skipped = [Markdown(f"{escape(line.label)}: {escape(line.skipped)}") for line in record.skipped]
        made = [Markdown(f"{escape(line.label)}: {escape(remark)}") for line in record.run for remark in line.remarks]
        return [
            Heading(record.title, level=1),
            Paragraph(self._compared()),
            comparison_verdict(record),
            Warnings(record.warnings),
            self._table(COLUMNS, partial(method_cells, record)),
            *map(Paragraph, self._ceiling()),
            *([Paragraph("Not run:"), Items(skipped)] if skipped else ()),
            Heading("What they made", level=2),
            Items(made),
            Heading("Cost and failures", level=2),
            self._table(COSTS, _cost_cells),
            Markdown("\n".join(cost_lines(record))),
            Heading("How to read the table", level=2),
            Terms.glossary(GLOSSARY),
            Items(record.notes),
        ]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The table in the paper's layout, methods that were not run, costs, and the place of the page."""
        record = self.record
        return [
            self._compared(),
            self._table(COLUMNS, partial(method_cells, record)),
            *(f"not run: {line.label}: it {line.skipped}" for line in record.skipped),
            comparison_verdict(record).sentence,
            *self._ceiling(),
            *cost_lines(record),
            *self.ending(folder, "comparison"),
        ]

    def _compared(self) -> str:
        rows, task, seeds = self.record.rows, self.record.task, self.record.seeds
        times = "one run each" if seeds == 1 else f"{seeds} repetitions of each method"
        return (
            f"Kendall tau-b with {task.target} ({task.scale}) on {count(rows['test'], 'test row')} in "
            f"{count(rows['test_groups'], 'group')}, {times}, all on one split ({count(rows['train'])} training and "
            f"{count(rows['validation'])} validation rows)."
        )

    def _ceiling(self) -> list[str]:
        return ceiling_lines(self.record.raters, {line.label: line.tau for line in self.record.run})

    def _table(self, columns: tuple[str, ...], cells: Cells, *, on_page: bool = False) -> TextTable:
        """Methods under the name of their section; for a page names are isolated and the reference's line is shaded."""
        rows: list[Sequence[str] | Across] = []
        own = []
        for title, lines in sections(self.record):
            rows.append(Across(single_line(title) if on_page else title))
            for line in lines:
                own += [len(rows)] if line.key == self.record.reference else []
                rows.append((isolated(single_line(line.label)) if on_page else line.label, *cells(line)))
        return TextTable(("Method" if on_page else "method", *columns), rows, own=own)

    def _figure(self) -> Figure:
        estimates = [
            Estimate(
                line.label, line.tau, line.over_both.low, line.over_both.high, main=line.key == self.record.reference
            )
            for line in self.record.run
        ]
        plot = forest("methods", estimates, "Agreement of each method with the raters")
        return Figure(plot, "Mean over repetitions, with the 95\u00a0% interval over test rows and repetitions.")


def _made(line: MethodResult) -> tuple[str, Sequence[str]]:
    """A method and what it chose or generated."""
    remarks = [excerpt(remark, 600) for remark in line.remarks]
    return isolated(single_line(line.label)), remarks or [Cell("nothing to choose or to generate", "muted")]


def sections(record: Comparison) -> list[tuple[str, list[MethodResult]]]:
    """The methods that were run, first those without a model, then those with one; empty sections are left out."""
    without = [line for line in record.run if not line.model]
    asking = [line for line in record.run if line.model]
    named = [("Without a language model", without), (f"With {record.model}", asking)]
    return [(title, lines) for title, lines in named if lines]


def method_cells(record: Comparison, line: MethodResult) -> tuple[str, ...]:
    """One method's figures, in the order of `COLUMNS`."""
    return (
        _mean(line),
        _interval(line.over_rows),
        _interval(line.over_both),
        "reference" if line.key == record.reference else statistic(line.difference, signed=True),
        _interval(line.difference_interval),
        p_value(line.p_value),
        p_value(line.p_adjusted),
    )


def _cost_cells(line: MethodResult) -> tuple[str, ...]:
    """The costs of one method, in the order of `COSTS`."""
    usage = line.usage
    return (
        count(usage.requests),
        count(usage.prompt_tokens),
        count(usage.completion_tokens),
        money(0.0 if not usage.requests else usage.cost),
        duration(usage.seconds),
        count(line.failed),
    )


def cost_lines(record: Comparison) -> list[str]:
    """The bound computed beforehand, and the actual requests, price and time."""
    if not (record.usage.requests or record.estimated.requests):
        return ["No language model was asked."]
    expected = record.estimated
    return [
        f"Expected at most: {count(expected.requests, 'request')}, {_price(expected)}. Actual: "
        f"{count(record.usage.requests, 'request')}, {_price(record.usage)}, {duration(record.usage.seconds)}."
    ]


def comparison_verdict(record: Comparison) -> Verdict:
    """The method that agrees best, and if the reference's place beside it is more than chance."""
    ranked = sorted((line for line in record.run if not math.isnan(line.tau)), key=lambda line: -line.tau)
    if not ranked:
        return Verdict("unsure", "No method has a defined agreement with the raters on these test rows.")
    best = ranked[0]
    known = f"tau-b {statistic(best.tau)}, 95 % {_interval(best.over_both)} over test rows and repetitions"
    sentence = f"{best.label} agrees best with the raters ({known})."
    if not record.reference or len(ranked) == 1:
        return Verdict("unsure", sentence)
    if best.key == record.reference:
        open_ = [line.label for line in ranked[1:] if not line.p_adjusted <= SIGNIFICANT]
        if open_:
            return Verdict("unsure", f"{sentence} Its lead over {_listed(open_)} could be chance.")
        return Verdict("good", f"{sentence} Its lead over every other method is more than chance.")
    name = record.method(record.reference).label
    ends = interval(-best.difference_interval.high, -best.difference_interval.low, 2)
    gap = statistic(-best.difference) if ends == MISSING else f"{statistic(-best.difference)} (95 % {ends})"
    behind = f"{name} is {gap} behind" if best.difference < 0 else f"{name} comes after it"
    if best.p_adjusted <= SIGNIFICANT:
        return Verdict("bad", f"{sentence} {behind}, which is more than chance (p {p_value(best.p_adjusted)}).")
    return Verdict("unsure", f"{sentence} {behind}, which could be chance (p {p_value(best.p_adjusted)}).")


def _price(usage: Usage) -> str:
    return money(usage.cost) if usage.cost is not None else "price unknown"


def _mean(line: MethodResult) -> str:
    low, high = line.over_seeds.low, line.over_seeds.high
    if math.isnan(line.tau) or math.isnan(low):
        return statistic(line.tau)
    if high > low and max(-low, high) >= 1:
        return f"{statistic(line.tau)} ({_interval(line.over_seeds)})"
    return f"{statistic(line.tau)} ± {statistic((high - low) / 2)}"


def _interval(found: Interval) -> str:
    return interval(found.low, found.high, 2)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
