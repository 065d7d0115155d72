"""What a meta-evaluation says, as cells and sentences that HTML, Markdown and terminal share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from metricsmith.meta_evaluation.evaluation import WMT24, MetricResult, TaskResult
from metricsmith.meta_evaluation.measures import MEASURES, SegmentAccuracy
from metricsmith.report.formats import MISSING, count, interval, p_value, raw, statistic
from metricsmith.report.meta_evaluation.record import MetaEvaluation
from metricsmith.report.sentences import Verdict

__all__ = [
    "GLOSSARY", "MEANINGS", "caution", "cells", "columns", "label", "lines", "meaning", "overview", "p_values",
    "setting", "verdict",
]  # fmt: skip

UNDEFINED = "undefined"
SIGNIFICANT = 0.05
MOST_NAMES = 3

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
        "person gets. The gold is another one than for the metrics, so that raters have no cluster.",
    ),
)


def setting(record: MetaEvaluation) -> str:
    """What was compared, in one line."""
    documents = f" in {count(record.documents, 'document')}" if record.documents else ""
    metrics = count(len(record.tasks[0].metrics), "metric")
    return (
        f"{metrics} against {record.target}: {count(record.outputs, 'output')} of "
        f"{count(len(record.systems), 'system')} on {count(record.segments, 'segment')}{documents}."
    )


def label(line: MetricResult, task: TaskResult) -> str:
    """A line's name; raters are told apart from metrics."""
    return f"another rater ({line.name})" if line in task.raters else line.name


def lines(task: TaskResult) -> tuple[MetricResult, ...]:
    """Metrics, then raters."""
    return (*task.metrics, *task.raters)


def meaning(task: TaskResult) -> str:
    """What the task measures; empty for one that is not of this package."""
    return MEANINGS.get(task.task, "")


def overview(record: MetaEvaluation) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
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
        rows.append((name, *own, *_figures([task.metrics for task in record.tasks], name)))
    for rater in first.raters:
        figures = _figures([task.raters for task in record.tasks], rater.name)
        rows.append((label(rater, first), *([MISSING, MISSING] * len(averaged)), *figures))
    return tuple(head), rows


def columns(task: TaskResult) -> tuple[str, ...]:
    """Names of the figures of `cells`."""
    extra = [name for name, there in (("ε", _has(task, "epsilon")), ("± draws", _has(task, "error"))) if there]
    return ("cluster", task.task, "95 %", "chance", "p", *extra, "on")


def cells(task: TaskResult, line: MetricResult) -> tuple[str, ...]:
    """One line's figures, in the order of `columns`."""
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


def p_values(task: TaskResult) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the p-values that the metric of the row is better than that of the column; a dash: untested."""
    names = [one.name for one in task.metrics if one.rank is not None]
    rows = [
        (name, *("" if column < place else p_value(number) for column, number in enumerate(row[1:])))
        for place, (name, row) in enumerate(zip(names, task.p_values, strict=True))
    ]
    return ("better than", *names[1:]), rows[:-1]


def caution(record: MetaEvaluation, task: TaskResult) -> str:
    """The error rate of the test behind a task's clusters, where it is above what the test says; else empty."""
    measure = MEASURES.get(task.task)
    exchanged = record.swap == "pairs" and isinstance(measure, SegmentAccuracy) and measure.epsilon is None
    if not exchanged or sum(one.rank is not None for one in task.metrics) < 2:
        return ""
    return (
        f"The clusters of {task.task} rest on WMT's test, which told equally good metrics apart in 17 % of simulated "
        f"runs at .05; the test that exchanges scores (--swap scores) did so in 5.5 %: use it before saying that one "
        f"metric beats another by a little."
    )


def verdict(record: MetaEvaluation) -> Verdict:
    """Which metric agrees best, and on which tasks its lead is more than chance."""
    decisive = [task for task in record.tasks if task.task in WMT24] if record.averages else [record.tasks[0]]
    ranked = [one.name for one in decisive[0].metrics if one.rank is not None]
    if not ranked:
        return Verdict("unsure", f"No metric has a defined agreement with {record.target} on {decisive[0].task}.")
    best = next(iter(record.averages), ranked[0])
    own = {task.task: next(one for one in task.metrics if one.name == best) for task in decisive}
    value = (
        f"average of {_listed(list(own))} {statistic(record.averages[best].value)}"
        if record.averages
        else _known(decisive[0].task, own[decisive[0].task])
    )
    if any(not one.chance.p_value <= SIGNIFICANT for one in own.values()):
        tasks = [task for task, one in own.items() if not one.chance.p_value <= SIGNIFICANT]
        return Verdict("bad", f"{best} comes first ({value}), and may be no better than chance on {_listed(tasks)}.")
    if len(ranked) == 1:
        return Verdict("good", f"{best} agrees with {record.target} better than chance ({value}).")
    parts, alone = [], True
    for task in decisive:
        near = [one.name for one in task.metrics if one.rank == own[task.task].rank and one.name != best]
        alone &= own[task.task].rank == 1 and not near
        if own[task.task].rank != 1:
            parts.append(f"on {task.task} it stands in cluster {own[task.task].rank}")
        elif near:
            parts.append(f"on {task.task} it cannot be told from {_listed(near)}")
        else:
            parts.append(f"on {task.task} its lead is more than chance")
    text = "; ".join(parts)
    return Verdict(
        "good" if alone else "unsure",
        f"{best} agrees best with {record.target} ({value}); {text}.",
    )


def _known(task: str, line: MetricResult) -> str:
    return f"{task} {statistic(line.value)}, 95 % {interval(line.interval.low, line.interval.high)}"


def _figures(tasks: Sequence[Sequence[MetricResult]], name: str) -> list[str]:
    """Rank and value of the line of this name, task after task."""
    found = [next(line for line in group if line.name == name) for group in tasks]
    return [cell for line in found for cell in (_rank(line), _value(line))]


def _rank(line: MetricResult) -> str:
    return MISSING if line.rank is None else str(line.rank)


def _value(line: MetricResult) -> str:
    return UNDEFINED if math.isnan(line.value) else statistic(line.value)


def _has(task: TaskResult, name: str) -> bool:
    return any(not math.isnan(getattr(line, name)) for line in lines(task))


def _listed(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMES:
        return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
