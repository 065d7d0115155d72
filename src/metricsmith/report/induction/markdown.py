"""The report as Markdown: the page's content, shortened, for a terminal, a pull request or a notebook."""

from __future__ import annotations

from metricsmith.records import Agreement
from metricsmith.report import digest, sentences
from metricsmith.report.formats import (
    count,
    excerpt,
    interval,
    p_value,
    percent,
    points,
    rating,
    statistic,
)
from metricsmith.report.markdown import markdown_lines
from metricsmith.report.old_markdown import escape, table
from metricsmith.report.probe.write import ProbeDocument
from metricsmith.report.raters import run_ceiling
from metricsmith.report.record import RunRecord
from metricsmith.report.systems import systems_lines

__all__ = ["render_markdown"]


def render_markdown(record: RunRecord) -> str:
    """The report as Markdown.

    Parameters
    ----------
    record : RunRecord
        The finished run. Undefined numbers appear as an en dash.

    Returns
    -------
    str
        Sections in the page's order, without plots; texts are shortened and escaped.
    """
    sections = (_head, _components, _agreement, _probe, _outlook, _disagreements, _costs, _notes)
    return "\n".join(line for section in sections for line in section(record)).rstrip() + "\n"


def _head(record: RunRecord) -> list[str]:
    verdict = sentences.verdict(record)
    lines = [f"# {escape(record.title)} for {escape(record.task.target)} ({record.task.scale})", ""]
    if record.synthetic:
        mark = "" if record.synthetic.startswith("Synthetic data") else "**Synthetic data.** "
        lines += [f"> {mark}{escape(record.synthetic)}", ""]
    if record.task.description:
        lines += [escape(record.task.description), ""]
    lines += [f"**{escape(verdict.sentence)}**", ""]
    lines += [f"> Warning: {escape(caution)}\n" for caution in verdict.cautions]
    evaluation = sentences.EVALUATIONS.get(record.evaluation, "")
    words = {"rated": "rated", "train": "train", "test": "test", "unrated": "without a rating"}
    counts = [f"{count(record.rows.get(key))} {word}" for key, word in words.items()]
    division = f"{escape(record.split)} " if record.split else ""
    return [*lines, f"{division}{evaluation} Rows: {', '.join(counts)}.", ""]


def _components(record: RunRecord) -> list[str]:
    if not record.components:
        return ["## What was induced", "", "No component was selected.", ""]
    width = digest.weight_width(record)
    rows = [
        (
            escape(item.name),
            sentences.KINDS.get(item.kind, escape(item.kind)),
            points(item.weight, width, signed=True),
            sentences.direction(item),
            statistic(item.tau_train),
            statistic(item.tau_test),
            count(item.missing),
            percent(item.selected_share),
        )
        for item in record.components
    ]
    head = ("component", "kind", "weight", "direction", "tau-b train", "tau-b test", "missing", "again")
    prose = [
        escape(record.combiner),
        escape(sentences.fidelity(record)),
        sentences.stability(record.components),
        sentences.alone(record),
    ]
    return [
        "## What was induced", "",
        *table(head, rows, right_from=4), "",
        "Weight: rating points that one standard deviation of the component adds. "
        "Again: share of refits on resampled rows that choose it.", "",
        " ".join(filter(None, prose)), "",
    ]  # fmt: skip


def _agreement(record: RunRecord) -> list[str]:
    blocks = [("induced metric, held-out rows", record.test)] if record.tested else []
    blocks += [("induced metric, training rows", record.train)]
    rows = [(name, *_figures(block)) for name, block in blocks]
    rows += [(escape(name), *_figures(block)) for name, block in record.baselines.items()]
    head = ("predictor", "rows", "groups", "tau-b", "95 % interval", "p", "Pearson", "Spearman")
    undefined = sentences.undefined_reasons([*blocks, *record.baselines.items()])
    lines = ["## Agreement with the raters", "", *table(head, rows, right_from=1), ""]
    remarks = [*undefined, *sentences.few_groups(digest.jackknifed(record))]
    lines += [f"- {escape(line)}" for line in remarks] + ([""] if remarks else [])
    reliability = sentences.reliability(digest.reliability_bins(record), record.task.scale)
    said = (*run_ceiling(record), sentences.comparison(record), reliability)
    lines += [line for text in said if text for line in (escape(text), "")]
    systems = [f"- {escape(line)}" for line in systems_lines(record.new_systems, record.headline)]
    return lines + (["### New systems", "", *systems, ""] if systems else [])


def _figures(block: Agreement) -> tuple[str, ...]:
    return (
        count(block.n),
        count(block.groups),
        statistic(block.kendall_tau_b),
        interval(block.ci_low, block.ci_high),
        p_value(block.p_value).replace("<", "&lt;"),
        statistic(block.pearson),
        statistic(block.spearman),
    )


def _probe(record: RunRecord) -> list[str]:
    if record.probe is None:
        return []
    return ["## Outputs changed on purpose", "", *markdown_lines(ProbeDocument(record.probe).text_findings(3)), ""]


def _outlook(record: RunRecord) -> list[str]:
    prospects = digest.outlook(record.headline) if record.tested else []
    lines = [sentences.prospect(prospects), ""] if prospects else []
    lines += [
        f"- fitted on {count(point.rows, 'row')}: tau-b {statistic(point.kendall_tau_b, 2)} "
        f"({interval(point.low, point.high, 2)} over draws)"
        for point in record.learning
    ]
    return ["## What more labels would buy", "", *lines, ""] if lines else []


def _disagreements(record: RunRecord) -> list[str]:
    width = record.task.scale.width
    lines = []
    for case in digest.disagreements(record):
        where = "" if case.held_out else " (training row)"
        lines.append(
            f"- **{escape(excerpt(case.row.id, 60))}**{where}: raters {rating(case.rating, width)}, "
            f"metric {points(case.prediction, width)}. {escape(excerpt(case.row.output, 160))}"
        )
        lines += [
            f"  - {escape(name)} says: {escape(excerpt(reason, 160))}"
            for name, reason in case.row.feedback.items()
            if reason.strip()
        ]
    return ["## Where metric and raters disagree most", "", *lines, ""] if lines else []


def _costs(record: RunRecord) -> list[str]:
    used = [(line.name, line.estimated, line.actual) for line in digest.costs(record)]
    lines = ["## Cost and failures", "", *table(("", "estimated", "actual"), used, right_from=1), ""]
    ended = [
        f"{count(number)} {escape(sentences.STATUSES.get(status, status))}"
        for status, number in record.judgements.items()
        if number
    ]
    lines += [f"Judgements: {'; '.join(ended) or 'none'}.", ""]
    lines += [sentences.panel(record), ""] if record.panel is not None else []
    return lines + [f"- {escape(excerpt(line, 300))}" for line in record.failures] + [""]


def _notes(record: RunRecord) -> list[str]:
    lines = ["## Warnings, notes and use", ""]
    lines += [f"- **Warning:** {escape(line)}" for line in record.warnings]
    lines += [f"- {escape(line)}" for line in record.notes]
    lines += ["", "```python", sentences.usage_example(record), "```", ""]
    return [*lines, f"Signature: {escape(record.signature)}", ""]
