"""What a comparison says, as cells and sentences that HTML, Markdown and terminal share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from metricsmith.records import Usage
from metricsmith.report.comparison.record import Comparison, MethodResult
from metricsmith.report.formats import MISSING, count, duration, interval, money, p_value, statistic
from metricsmith.report.raters import ceiling_lines
from metricsmith.report.sentences import Verdict
from metricsmith.stats.resampling import Interval

__all__ = [
    "COLUMNS", "COSTS", "GLOSSARY", "Cells", "ceiling", "cells", "cost_cells", "cost_lines", "sections", "setting",
    "verdict",
]  # fmt: skip

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


def setting(record: Comparison) -> str:
    """What was compared, in one line."""
    rows = record.rows
    times = "one run each" if record.seeds == 1 else f"{record.seeds} repetitions of each method"
    return (
        f"Kendall tau-b with {record.task.target} ({record.task.scale}) on {count(rows['test'], 'test row')} in "
        f"{count(rows['test_groups'], 'group')}, {times}, all on one split ({count(rows['train'])} training and "
        f"{count(rows['validation'])} validation rows)."
    )


def ceiling(record: Comparison) -> list[str]:
    """Lines on the agreement of people, the ceiling that follows, and the methods above it."""
    return ceiling_lines(record.raters, {line.label: line.tau for line in record.run})


def sections(record: Comparison) -> list[tuple[str, list[MethodResult]]]:
    """The methods that were run, first those without a model, then those with one; empty sections are left out."""
    without = [line for line in record.run if not line.model]
    asking = [line for line in record.run if line.model]
    named = [("Without a language model", without), (f"With {record.model}", asking)]
    return [(title, lines) for title, lines in named if lines]


def cells(record: Comparison, line: MethodResult) -> tuple[str, ...]:
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


def cost_cells(line: MethodResult) -> tuple[str, ...]:
    """What one method cost, in the order of `COSTS`."""
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
    """What was expected at most, and what it came to."""
    if not (record.usage.requests or record.estimated.requests):
        return ["No language model was asked."]
    expected = record.estimated
    return [
        f"Expected at most: {count(expected.requests, 'request')}, {_price(expected)}. Actual: "
        f"{count(record.usage.requests, 'request')}, {_price(record.usage)}, {duration(record.usage.seconds)}."
    ]


def verdict(record: Comparison) -> Verdict:
    """Which method agrees best, and whether the reference's place beside it is more than chance."""
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
