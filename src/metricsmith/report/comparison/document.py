"""A comparison laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path

from metricsmith.formats import (
    cost_stated,
    count,
    duration,
    ends,
    enumerated,
    excerpt,
    interval_stated,
    money,
    p_stated,
    p_value,
    single_line,
    statistic,
)
from metricsmith.report.blocks import (
    Block,
    Cell,
    Figure,
    Heading,
    Items,
    Paragraph,
    Terms,
    TextTable,
    Verdict,
    Warnings,
    isolated,
    joined,
)
from metricsmith.report.comparison.record import Comparison, MethodResult
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.raters import ceiling_lines
from metricsmith.report.render import write_document
from metricsmith.stats.resampling import Interval

__all__ = [
    "COMPARISON_FILES", "COSTS", "SEEDS", "SIGNIFICANT", "ComparisonDocument", "by_tau", "columns",
    "comparison_verdict", "cost_lines", "mean_over_seeds", "method_cells", "write_comparison",
]  # fmt: skip

COMPARISON_FILES = ("compare.html", "compare.md", "compare.json")

COSTS = ("requests", "tokens sent", "tokens received", "cost", "time", "failed")
SIGNIFICANT = 0.05
Cells = Callable[[MethodResult], tuple[str, ...]]

SEEDS = (
    "tau-b ± seeds",
    "is the mean of Kendall's tau-b with the raters over the repetitions, and half the width of Student's 95 % "
    "interval of that mean, or the interval itself where it had to be cut to −1 and 1. It holds the test rows "
    "fixed and says only how much a method differs from run to run: a method without chance in it has ± .000, "
    "however few the rows. Methods are measured on the test rows for which all of them have a prediction.",
)
GLOSSARY = (
    SEEDS,
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
        "minus this",
        "is the reference's tau-b less the method's on the same rows: above 0 the reference agrees better, below 0 the "
        "method. Its 95 % interval is for other rows and repetitions: the difference is taken anew without each group.",
    ),
    (
        "p",
        "is how often the difference would be this large if the two methods were interchangeable: they are swapped in "
        "whole groups. Holm's correction allows for the number of methods. A large p is no proof that two methods are "
        "equally good: there may be too few test rows to tell them apart.",
    ),
)


def write_comparison(record: Comparison, folder: str | PathLike[str]) -> None:
    """Write ``compare.html``, ``compare.md`` and ``compare.json``, as `write_document` does."""
    write_document(ComparisonDocument(record), folder)


class ComparisonDocument(PartedDocument[Comparison]):
    """A comparison as a page, as Markdown and in the terminal."""

    stem = "compare"

    def opening(self) -> Opening:
        """The verdict beside a plot."""
        record, task = self.record, self.record.task
        beside = joined("for ", isolated(single_line(task.target)), f", {task.scale}")
        tab = f"{record.title}: {task.target}"
        return Opening(record.title, comparison_verdict(record), beside, task.description, self._figure(), tab)

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """The table of the paper, how each method came to its numbers, and costs."""
        record = self.record

        def name(line: MethodResult) -> str:
            return isolated(single_line(line.label)) if page else line.label

        skipped = [
            joined(name(line), ": ", single_line(line.skipped)) if page else f"{line.label}: {line.skipped}"
            for line in record.skipped
        ]
        agreement = self._table(columns(record), partial(method_cells, record), "Agreement in figures")
        figures: list[Block] = [
            Paragraph(self._compared()),
            Warnings(record.warnings),
            replace(agreement, bold=1),
            *([Paragraph(single_line(" ".join(self._ceiling())))] if record.raters else ()),
            *([Heading("Not run"), Items(skipped)] if skipped else ()),
            Heading("How to read the table"),
            Terms.glossary(GLOSSARY),
        ]
        made = [(name(line), _remarks(line)) for line in by_tau(record)]
        costs = replace(self._table(COSTS, _cost_cells, "All repetitions together"), own=())
        return [
            ("table", "Agreement with the raters", figures),
            ("made", "What they made", [Terms(made)]),
            ("costs", "Cost and failures", [*map(Paragraph, cost_lines(record)), costs]),
            ("notes", "Notes", [Items(record.notes)] if record.notes else []),
        ]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, the methods in its order, those that were not run, costs, and the place of the page."""
        record = self.record
        return [
            comparison_verdict(record).sentence,
            self._compared(),
            self._table(columns(record), partial(method_cells, record)),
            *(f"not run: {line.label}: it {line.skipped}" for line in record.skipped),
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
            f"{count(rows['validation'])} validation rows).{self._asking()}"
        )

    def _asking(self) -> str:
        """The methods that asked the language model, in a sentence."""
        asking = [line.label for line in by_tau(self.record) if line.model]
        return f" {enumerated(asking)} asked {self.record.model}; the others ask no model." if asking else ""

    def _ceiling(self) -> list[str]:
        return ceiling_lines(self.record.raters, {line.label: line.tau for line in self.record.run})

    def _table(self, columns: tuple[str, ...], cells: Cells, caption: str = "") -> TextTable:
        """The methods as `by_tau`, the reference's line shaded."""
        lines = by_tau(self.record)
        own = [place for place, line in enumerate(lines) if line.key == self.record.reference]
        return TextTable(("method", *columns), [(line.label, *cells(line)) for line in lines], caption, own=own)

    def _figure(self) -> Figure:
        estimates = [
            Estimate(
                line.label, line.tau, line.over_both.low, line.over_both.high, main=line.key == self.record.reference
            )
            for line in by_tau(self.record)
        ]
        plot = forest("methods", estimates, "Agreement of each method with the raters")
        return Figure(plot, "Mean over repetitions, with the 95\u00a0% interval over test rows and repetitions.")


def _remarks(line: MethodResult) -> Sequence[str]:
    """The choices of a method, and what it generated."""
    remarks = [excerpt(remark, 600) for remark in line.remarks]
    return remarks or [Cell("nothing to choose or to generate", "muted")]


def by_tau(record: Comparison) -> list[MethodResult]:
    """The methods that were run, the best first; those with an undefined tau-b come last, as they were asked for."""
    return sorted(record.run, key=lambda line: math.inf if math.isnan(line.tau) else -line.tau)


def columns(record: Comparison) -> tuple[str, ...]:
    """The names of `method_cells`; the difference is named after its sign."""
    less = f"{single_line(record.method(record.reference).label)} minus this" if record.reference else "difference"
    return ("tau-b ± seeds", "95 % rows", "95 % rows, seeds", less, "95 %", "p", "p (Holm)")


def method_cells(record: Comparison, line: MethodResult) -> tuple[str, ...]:
    """One method's figures, as `columns` names them."""
    return (
        mean_over_seeds(line.tau, line.over_seeds),
        ends(line.over_rows),
        ends(line.over_both),
        "reference" if line.key == record.reference else statistic(line.difference, signed=True),
        ends(line.difference_interval),
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
    both = (record.estimated, record.usage)
    bound, spent = (f"{count(one.requests, 'request')}, {cost_stated(one.cost)}" for one in both)
    return [f"Expected at most: {bound}. Actual: {spent}, {duration(record.usage.seconds)}."]


def comparison_verdict(record: Comparison) -> Verdict:
    """The method that agrees best, and if the reference's place beside it is more than chance."""
    best, *others = by_tau(record)
    others = [line for line in others if not math.isnan(line.tau)]
    if math.isnan(best.tau):
        return Verdict("unsure", "No method has a defined agreement with the raters on these test rows.")
    known = f"tau-b {statistic(best.tau, 2)}, {_stated(best.over_both)} over test rows and repetitions"
    sentence = f"{best.label} agrees best with the raters ({known})."
    if not record.reference or not others:
        return Verdict("unsure", sentence)
    if best.key == record.reference:
        open_ = [line.label for line in others if not line.p_adjusted <= SIGNIFICANT]
        if open_:
            return Verdict("unsure", f"{sentence} Its lead over {enumerated(open_)} could be chance.")
        return Verdict("good", f"{sentence} Its lead over every other method is more than chance.")
    if math.isnan(best.difference):
        return Verdict("unsure", f"{sentence} {record.method(record.reference).label} cannot be held against it.")
    name, sure = record.method(record.reference).label, best.p_adjusted <= SIGNIFICANT
    apart = f"{statistic(best.difference, 2, signed=True)} ({_stated(best.difference_interval)}"
    chance = f"which {'is more than' if sure else 'could be'} chance"
    sentence = f"{sentence} {name} minus it is {apart}, {p_stated(best.p_adjusted)}), {chance}."
    return Verdict("bad" if sure else "unsure", sentence)


def mean_over_seeds(tau: float, over_seeds: Interval) -> str:
    """A mean with half the width of its interval over seeds, or that interval itself where it was cut to -1 and 1."""
    low, high = over_seeds.low, over_seeds.high
    if math.isnan(tau) or math.isnan(low):
        return statistic(tau)
    if high > low and max(-low, high) >= 1:
        return f"{statistic(tau)} ({ends(over_seeds)})"
    return f"{statistic(tau)} ± {statistic((high - low) / 2)}"


def _stated(found: Interval) -> str:
    return interval_stated(found.low, found.high)
