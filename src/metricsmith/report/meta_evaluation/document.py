"""A meta-evaluation laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from statistics import fmean

from metricsmith.formats import (
    MISSING,
    count,
    enumerated,
    interval,
    interval_stated,
    p_value,
    raw,
    single_line,
    statistic,
)
from metricsmith.meta_evaluation.evaluation import WMT24, MetricResult, TaskResult
from metricsmith.meta_evaluation.measures import MEASURES, SegmentAccuracy
from metricsmith.meta_evaluation.ranking import FEW_METRICS
from metricsmith.meta_evaluation.significance import ChanceFloor, Swap
from metricsmith.report.blocks import (
    Block,
    Box,
    Details,
    Figure,
    Items,
    Paragraph,
    Terms,
    TextTable,
    Verdict,
    Warnings,
    isolated,
    joined,
)
from metricsmith.report.meta_evaluation.marked import marked_blocks, marked_parts
from metricsmith.report.meta_evaluation.record import MetaEvaluation
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.render import write_document
from metricsmith.stats.resampling import Interval

__all__ = [
    "GLOSSARY", "MEANINGS", "META_EVALUATION_FILES", "MetaEvaluationDocument", "compared_metrics", "mean_rater",
    "meta_evaluation_verdict", "metric_cells", "overview", "p_value_blocks", "p_value_table", "page_table",
    "task_blocks", "task_caution", "task_columns", "write_meta_evaluation",
]  # fmt: skip

META_EVALUATION_FILES = ("meta_evaluation.html", "meta_evaluation.md", "meta_evaluation.json")
UNDEFINED = "undefined"
ANOTHER = "another rater (mean)"
SIGNIFICANT = 0.05
MOST_NAMES = 3
ELSEWHERE = "  p-values of every two metrics: the report (--out) and --json have them"
Figures = tuple[tuple[str, ...], list[tuple[str, ...]]]  # head and rows of a table

MEANINGS: Mapping[str, str] = {
    "spa": "Soft pairwise accuracy: how alike metric and gold are in their confidence about which of two systems is "
    "better. 1 is gold itself, 0.5 a metric that is undecided where gold is sure.",
    "acc-t": "Pairwise accuracy with tie calibration: the share of pairs of outputs of one segment that the metric "
    "orders, or ties, as gold does; differences up to the best threshold ε are ties. 1 is gold itself; see "
    "chance for what knowing nothing gets.",
    "system-accuracy": "The share of pairs of systems whose mean scores stand in the gold order. 0.5 is chance.",
    "system-pearson": "Pearson correlation of the systems' mean scores. 0 is chance; a few systems make it volatile.",
    "acc": "As acc-t, without a threshold: only equal scores are ties.",
    "tau-b": "Kendall's tau-b over all outputs. It mixes easy and hard segments with good and bad systems.",
    "tau-b-item": "Kendall's tau-b across the systems of one segment, averaged over segments.",
    "pearson": "Pearson correlation over all outputs.",
    "pearson-item": "Pearson correlation across the systems of one segment, averaged over segments.",
    "spearman": "Spearman correlation over all outputs.",
    "spearman-item": "Spearman correlation across the systems of one segment, averaged over segments.",
}
"""What each measure is, by its name."""

GLOSSARY = (
    (
        "cluster",
        "Going down the table a metric opens a new cluster when one of the present cluster is significantly better (p "
        "up to .05, not corrected for the number of tests, as in WMT). Metrics of one cluster may still differ: there "
        "may be too few segments to tell. The test of acc-t exchanges what two metrics decide about pairs, at fixed "
        "thresholds, as in WMT since 2023: a small lead is easily significant there. For all other measures, and if "
        "the signature says that tests exchange scores, scores are exchanged (PERM-BOTH).",
    ),
    (
        "95 %",
        "is where the value may lie for other segments, whole documents of them where documents are known. The systems "
        "stay as they are.",
    ),
    (
        "chance",
        "is the mean that the metric's own scores get when they are laid at random beside the outputs, 200 times; p is "
        "how often that is at least as good.",
    ),
    (
        "on",
        "says how many segments the value rests on and, behind a plus sign, how many were left out, because too few "
        "systems have scores there or, for correlations, because all scores are alike.",
    ),
    (
        "another rater",
        "is one rater measured against the mean of the others, where outputs have several ratings: what a careful "
        "person gets. The row has the mean over raters; its interval has the mean ends of theirs, a little too wide "
        "for a mean, and its p is their largest. The gold is another one than for the "
        "metrics, so that raters have no cluster. meta_evaluation.json has each rater.",
    ),
)


def write_meta_evaluation(record: MetaEvaluation, folder: str | PathLike[str]) -> None:
    """Write ``meta_evaluation.html``, ``meta_evaluation.md`` and ``meta_evaluation.json``, as `write_document` does."""
    write_document(MetaEvaluationDocument(record), folder)


class MetaEvaluationDocument(PartedDocument[MetaEvaluation]):
    """A meta-evaluation as a page, as Markdown and in the terminal."""

    stem = "meta_evaluation"

    def opening(self) -> Opening:
        """The verdict."""
        record, found = self.record, meta_evaluation_verdict(self.record)
        beside = joined("for ", isolated(single_line(record.target)))
        verdict = Verdict(found.tone, single_line(found.sentence))
        return Opening(record.title, verdict, beside, tab=f"{record.title}: {record.target}")

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """The table of all tasks, and a part for each task."""
        record = self.record
        averaged = ", and the average of spa and acc-t" if record.averages else ""
        overall = page_table(page, f"Rank and value of each task{averaged}", *overview(record))
        return [
            ("overview", "All tasks", [Paragraph(compared_metrics(record)), Warnings(record.warnings), overall]),
            *(
                (f"task-{at}", task.task, task_blocks(task, f"task-{at}", record.swap, page=page))
                for at, task in enumerate(record.tasks, 1)
            ),
            ("marked", "Marked errors", [] if record.marked is None else marked_blocks(record.marked)),
            ("reading", "How to read this", [Terms.glossary(GLOSSARY)]),
            ("notes", "Notes", [Items(record.notes)] if record.notes else []),
        ]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, a table of all tasks and one for each, warnings, notes, and the place of the page."""
        record = self.record
        lines: list[str | TextTable] = [meta_evaluation_verdict(record).sentence, compared_metrics(record), ""]
        lines += [TextTable(*overview(record))]
        for task in record.tasks:
            (_, *columns), rows = _figures(task)
            lines += ["", TextTable((task.task, *("value" if c == task.task else c for c in columns)), rows)]
            caution, (names, tests) = task_caution(record.swap, task), p_value_table(_ranked(task), task.p_values)
            few = len(task.metrics) <= FEW_METRICS
            lines += [TextTable(names, tests) if few else ELSEWHERE] if tests else []
            lines += [f"  {caution}"] if caution else []
        if record.marked is not None:
            lines += [
                "",
                *(block.text if isinstance(block, Paragraph) else block for block in marked_parts(record.marked)),
            ]
        return [*lines, "", *self.ending(folder, notes=record.notes)]


def task_blocks(task: TaskResult, key: str, swap: Swap, *, page: bool) -> list[Block]:
    """A task's plot, figures, caution and p-values; `key` is the plot's address, and unique on the page."""
    estimates = [
        Estimate(name, line.value, line.interval.low, line.interval.high, main=line.rank == 1, chance=line.chance.mean)
        for name, line in _named_lines(task)
    ]
    plot = forest(key, estimates, f"{task.task} of each metric", measure=task.task, from_zero=False)
    caption = "Value with its 95\u00a0% interval. Discs are the first cluster; the upright line is chance."
    first = range(sum(line.rank == 1 for line in task.metrics))
    caution = task_caution(swap, task)
    return [
        Box("pair", [Paragraph(MEANINGS.get(task.task, "")), Figure(plot, caption)]),
        replace(page_table(page, f"{task.task} in figures; the first cluster is shaded", *_figures(task)), own=first),
        *([Paragraph(caution)] if caution else ()),
        *p_value_blocks(_ranked(task), task.p_values, page=page),
    ]


def p_value_blocks(names: Sequence[str], p_values: Sequence[Sequence[float]], *, page: bool) -> list[Block]:
    """The p-values of every two metrics, to be opened; nothing without tests."""
    table = p_value_table(names, p_values)
    better = "One-sided p-value that the metric of the row is better than that of the column"
    return [Details("p-values of two metrics", [page_table(page, better, *table)])] if table[1] else []


def _named_lines(task: TaskResult) -> list[tuple[str, MetricResult]]:
    """Metrics, then the mean of the raters, each with its name."""
    lines = [*task.metrics, *([mean_rater(task)] if task.raters else [])]
    return [(line.name, line) for line in lines]


def mean_rater(task: TaskResult) -> MetricResult:
    """One line for all raters of a task: means over those whose value is defined, and their largest p.

    The mean ends of intervals lie no nearer than those of the mean would, however much raters have in common.
    """
    known = [line for line in task.raters if not math.isnan(line.value)]
    if not known:
        return replace(task.raters[0], name=ANOTHER)
    ends = Interval(fmean(line.interval.low for line in known), fmean(line.interval.high for line in known))
    chance, largest = fmean(line.chance.mean for line in known), max(line.chance.p_value for line in known)
    floor = ChanceFloor(math.nan, chance, math.nan, math.nan, largest, 0, 0)
    return MetricResult(
        ANOTHER, fmean(line.value for line in known), ends, floor, error=fmean(line.error for line in known),
        used=min(line.used for line in known), dropped=max(line.dropped for line in known),
    )  # fmt: skip


def _figures(task: TaskResult) -> Figures:
    """Head and rows of a task's table."""
    return ("metric", *task_columns(task)), [(name, *metric_cells(task, line)) for name, line in _named_lines(task)]


def page_table(page: bool, caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> TextTable:
    """A table whose head does not break at a hyphen of a page."""
    names = [name.replace("-", "\N{NON-BREAKING HYPHEN}") for name in head] if page else head
    return TextTable(names, rows, caption)


def compared_metrics(record: MetaEvaluation) -> str:
    """The metrics, and the gold rating and outputs that they were measured on, in one line."""
    documents = f" in {count(record.documents, 'document')}" if record.documents else ""
    metrics = count(len(record.tasks[0].metrics), "metric")
    return (
        f"{metrics} against {_gold(record)}: {count(record.outputs, 'output')} of "
        f"{count(len(record.systems), 'system')} on {count(record.segments, 'segment')}{documents}."
    )


def _gold(record: MetaEvaluation) -> str:
    """The name of the rating, told apart from a metric of the same name."""
    same = any(line.name == record.target for line in record.tasks[0].metrics)
    return f"the gold rating {record.target}" if same else record.target


def overview(record: MetaEvaluation) -> Figures:
    """Head and rows in the form of Table 2 of GEMBA-MQM V2: rank and value of the average and of each task.

    The rank of a task is the cluster, where the paper has the place.
    """
    first = record.tasks[0]
    averaged = ("average",) if record.averages else ()
    head = ["metric", *(cell for name in (*averaged, *(task.task for task in record.tasks)) for cell in ("#", name))]
    names = [*record.averages, *(one.name for one in first.metrics if one.name not in record.averages)]
    rows = []
    for name in names:
        mean = record.averages.get(name)
        own = [str(mean.rank), statistic(mean.value)] if mean else [MISSING, UNDEFINED] * len(averaged)
        rows.append((name, *own, *_ranks_and_values([task.metrics for task in record.tasks], name)))
    if first.raters:
        values = [mean_rater(task).value for task in record.tasks if task.task in WMT24]
        average = [MISSING, statistic(fmean(values))] if averaged else []
        figures = _ranks_and_values([[mean_rater(task)] for task in record.tasks], ANOTHER)
        rows.append((ANOTHER, *average, *figures))
    return tuple(head), rows


def task_columns(task: TaskResult) -> tuple[str, ...]:
    """Names of the figures of `metric_cells`."""
    extra = [name for name, there in (("ε", _has(task, "epsilon")), ("± draws", _has(task, "error"))) if there]
    return ("cluster", task.task, "95 %", "chance", "p", *extra, "on")


def metric_cells(task: TaskResult, line: MetricResult) -> tuple[str, ...]:
    """One line's figures, in the order of `task_columns`."""
    extra = [raw(line.epsilon)] * _has(task, "epsilon") + [statistic(line.error, 4)] * _has(task, "error")
    used = MISSING if line.used < 2 else count(line.used) + (f" + {count(line.dropped)}" if line.dropped else "")
    return (
        _rank(line),
        _value(line),
        interval(line.interval.low, line.interval.high),
        statistic(line.chance.mean),
        p_value(line.chance.p_value),
        *extra,
        used,
    )


def p_value_table(names: Sequence[str], p_values: Sequence[Sequence[float]]) -> Figures:
    """Head and rows of the p-values that the metric of the row is better than that of the column; a dash: untested."""
    rows = [
        (name, *("" if column < place else p_value(number) for column, number in enumerate(row[1:])))
        for place, (name, row) in enumerate(zip(names, p_values, strict=True))
    ]
    return ("better than", *names[1:]), rows[:-1]


def task_caution(swap: Swap, task: TaskResult) -> str:
    """The error rate of the test behind a task's clusters, where it is above what the test says; else empty."""
    measure = MEASURES.get(task.task)
    exchanged = swap == "pairs" and isinstance(measure, SegmentAccuracy) and measure.epsilon is None
    if not exchanged or len(_ranked(task)) < 2:
        return ""
    return (
        f"The clusters of {task.task} rest on WMT's test, which told equally good metrics apart in 17\u00a0% of "
        f"simulated runs at .05; the test that exchanges scores (--swap scores) did so in 5.5\u00a0%: use it before "
        f"saying that one metric beats another by a little."
    )


def meta_evaluation_verdict(record: MetaEvaluation) -> Verdict:
    """The metric that agrees best, and the tasks on which its lead is more than chance."""
    decisive = [task for task in record.tasks if task.task in WMT24] if record.averages else [record.tasks[0]]
    ranked = _ranked(decisive[0])
    if not ranked:
        return Verdict("unsure", f"No metric has a defined agreement with {record.target} on {decisive[0].task}.")
    best, gold = next(iter(record.averages), ranked[0]), _gold(record)
    own = {task.task: next(one for one in task.metrics if one.name == best) for task in decisive}
    only = own[decisive[0].task]
    value = (
        f"average of {enumerated(list(own), MOST_NAMES)} {statistic(record.averages[best].value, 2)}"
        if record.averages
        else f"{decisive[0].task} {statistic(only.value, 2)}, {interval_stated(only.interval.low, only.interval.high)}"
    )
    if any(not one.chance.p_value <= SIGNIFICANT for one in own.values()):
        tasks = [task for task, one in own.items() if not one.chance.p_value <= SIGNIFICANT]
        return Verdict(
            "bad", f"{best} comes first ({value}), and may be no better than chance on {enumerated(tasks, MOST_NAMES)}."
        )
    if len(ranked) == 1:
        return Verdict("good", f"{best} agrees with {gold} better than chance ({value}).")
    said, lead = dict[str, list[str]](), "its lead is more than chance"
    for task in decisive:
        near = [one.name for one in task.metrics if one.rank == own[task.task].rank and one.name != best]
        place = f"it cannot be told from {enumerated(near, MOST_NAMES)}" if near else lead
        place = place if own[task.task].rank == 1 else f"it stands in cluster {own[task.task].rank}"
        said.setdefault(place, []).append(task.task)
    parts = "; ".join(f"on {enumerated(tasks, MOST_NAMES)} {place}" for place, tasks in said.items())
    return Verdict("good" if [*said] == [lead] else "unsure", f"{best} agrees best with {gold} ({value}); {parts}.")


def _ranks_and_values(tasks: Sequence[Sequence[MetricResult]], name: str) -> list[str]:
    """Rank and value of the line of this name, task after task."""
    found = (line for group in tasks for line in group if line.name == name)
    return [cell for line in found for cell in (_rank(line), _value(line))]


def _ranked(task: TaskResult) -> list[str]:
    """The metrics that have a rank, best first."""
    return [one.name for one in task.metrics if one.rank is not None]


def _rank(line: MetricResult) -> str:
    return MISSING if line.rank is None else str(line.rank)


def _value(line: MetricResult) -> str:
    return UNDEFINED if math.isnan(line.value) else statistic(line.value)


def _has(task: TaskResult, name: str) -> bool:
    return any(not math.isnan(getattr(line, name)) for line in (*task.metrics, *task.raters))
