"""The costs of a run beside their estimate, how its judgements ended, and the last two sections of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from metricsmith.formats import (
    count,
    duration,
    excerpt,
    money,
    percent,
    single_line,
)
from metricsmith.records import Usage
from metricsmith.report.blocks import (
    Block,
    Box,
    Code,
    Heading,
    Items,
    Markup,
    Paragraph,
    Section,
    TextTable,
    Warnings,
    element,
    joined,
)
from metricsmith.report.induction.record import Component, RunRecord
from metricsmith.report.render import cost_line

__all__ = [
    "STATUSES", "CostLine", "cost_section", "local_cost_lines", "note_section", "panel_savings", "run_cost_lines",
    "run_costs", "run_facts", "usage_example",
]  # fmt: skip

STATUSES = {
    "requested": "requested",
    "ok": "gave a number",
    "unparsable": "answer could not be read",
    "out_of_range": "number outside the allowed range",
    "refused": "the model refused",
    "transport": "the call failed on its way",
    "budget": "not asked: the budget was spent",
    "skipped": "not asked: the row lacks what it needs, the number is undefined, or the judge was dropped",
}


@dataclass(frozen=True, slots=True)
class CostLine:
    """One kind of cost, as estimated before the run and as it came out; an en dash where unknown."""

    name: str
    estimated: str
    actual: str


def run_costs(record: RunRecord) -> list[CostLine]:
    """Requests, tokens, cost and time, estimated beside actual."""
    actual, estimated = _mapping(record.usage), _mapping(record.usage.get("estimated"))
    # `Usage` has 0 where nobody estimated a time.
    estimated = {**estimated, "seconds": estimated.get("seconds") or None}
    lines = (
        ("Requests to the model", "requests", count),
        ("Tokens sent", "prompt_tokens", count),
        ("Tokens received", "completion_tokens", count),
        ("Cost", "cost", money),
        ("Time", "seconds", duration),
    )
    return [CostLine(name, write(estimated.get(key)), write(actual.get(key))) for name, key, write in lines]


def _mapping(usage: Any) -> Mapping[str, Any]:
    if isinstance(usage, Usage):
        return asdict(usage)
    return usage if isinstance(usage, Mapping) else {}


def panel_savings(record: RunRecord) -> str:
    """The prompt tokens saved by asking all judges together; empty without a panel."""
    tokens = record.panel
    if tokens is None:
        return ""
    if not (math.isfinite(tokens.joint) and tokens.joint > 0 and math.isfinite(tokens.single)):
        return f"One request a row asked for all {count(tokens.criteria)} criteria of the panel."
    return (
        f"One request a row asked for all {count(tokens.criteria)} criteria of the panel: about "
        f"{count(round(tokens.joint))} prompt tokens a row, where the same judges one by one take about "
        f"{count(round(tokens.single))} ({tokens.single / tokens.joint:.1f} times as many). Both are estimates at "
        "four characters a token, answers not counted."
    )


def run_facts(record: RunRecord) -> Markup:
    """Rows, components, requests, cost and time in a line."""
    requests, _, _, cost, time = (line.actual for line in run_costs(record))
    facts = {
        "Rated rows": count(record.rows.get("rated")),
        "Fitted on": count(record.rows.get("train")),
        "Tested on": count(record.test.n if record.tested else 0),
        "Without a rating": count(record.rows.get("unrated")),
        "Components": count(len(record.components)),
        "Model requests": requests,
        "Cost": cost,
        "Time": time,
    }
    pairs = [element("div", element("dt", term), element("dd", text)) for term, text in facts.items()]
    return element("dl", *pairs, class_="facts")


def cost_section(record: RunRecord) -> Section:
    """The costs beside their estimate, how judgements ended, and failures by kind."""
    kinds: list[Block] = [
        TextTable(
            (element("span", "Kind", class_="unseen"), "Estimated", "Actual"),
            [(line.name, line.estimated, line.actual) for line in run_costs(record)],
            "What the run used, beside the estimate made before it",
            bold=2,
        )
    ]
    requested = record.judgements.get("requested")
    if requested:
        ended = [
            (single_line(STATUSES.get(status, status)), count(number), percent(number / requested))
            for status, number in record.judgements.items()
        ]
        caption = "Judgements: one metric on one row. A failed one never enters as a number"
        kinds.append(TextTable(("Ended as", "Count", "Share"), ended, caption, bold=1))
    else:
        kinds.append(Paragraph("No judgements were recorded."))
    failures, local = [excerpt(line, 600) for line in record.failures], local_cost_lines(record.components)
    blocks = [
        Box("pair", kinds),
        *([Paragraph(panel_savings(record))] if record.panel is not None else ()),
        *([Heading("Weights on this machine"), Items(local)] if local else ()),
        *([Heading("Failures by kind"), Items(failures, "failures")] if failures else ()),
    ]
    return Section("costs", "Cost and failures", blocks)


def note_section(record: RunRecord) -> Section:
    """Warnings, notes, and lines of Python that put the metric to work."""
    model = [
        "The judges inside need a language model: set one with ", element("code", "dspy.configure(lm=…)"), " first. ",
    ]  # fmt: skip
    asks = any(component.card.cost == "model" for component in record.components)
    files = joined(
        *(model if asks else ()), "Every row's numbers stand in ", element("code", "scores.csv"),
        " beside this page, the figures in ", element("code", "report.json"), ".",
    )  # fmt: skip
    blocks = [
        *([Heading("Warnings"), Warnings(record.warnings)] if record.warnings else ()),
        *([Heading("Notes"), Items(record.notes)] if record.notes else ()),
        Heading("Put it to work"),
        Code(usage_example(record)),
        Paragraph(files, "muted small"),
    ]
    return Section("notes", "Warnings, notes and use", blocks)


def usage_example(record: RunRecord) -> str:
    """Three lines of Python that put the saved metric to work."""
    lines = ["import metricsmith", 'metric = metricsmith.load("metric.json")']
    if any(component.kind == "column" for component in record.components):
        return "\n".join([*lines, "judgements = metric.judge_batch(rows)  # rows that bring the same columns along"])
    needs = {need for component in record.components for need in component.card.needs}
    if "extra:code" in needs:
        lines.insert(0, "# its code runs in the sandbox: pip install 'metricsmith[code]'")
    if "weights" in needs:
        lines[-1] = 'metric = metricsmith.load("metric.json")  # local={name: path} where weights lie elsewhere'
    judged = any(component.kind.endswith("_judge") for component in record.components)
    texts = ["output=text"]
    texts += ["input=source"] if judged or "input" in needs else []
    texts += ["references=[gold]"] if "references" in needs else []
    return "\n".join([*lines, f"print(metric({', '.join(texts)}).score)  # 0 to 1, higher is better"])


def local_cost_lines(components: Sequence[Component]) -> list[str]:
    """A line for each component with weights: the time of a row on this machine."""
    return [
        f"{single_line(item.name)} ({single_line(item.weights)}): "
        + (
            f"{count(1000 * item.seconds)} ms a row on this machine"
            if item.seconds > 0
            else "its time was not measured"
        )
        for item in components
        if item.weights
    ]


def run_cost_lines(usage: Mapping[str, Any]) -> list[str]:
    """The estimate and the actual cost, if a model was asked."""
    estimated = usage.get("estimated", {})
    if not usage.get("requests") and not estimated.get("requests"):
        return []
    expected, actual = (
        Usage(
            part.get("requests", 0), part.get("prompt_tokens", 0), part.get("completion_tokens", 0), part.get("cost")
        )
        for part in (estimated, usage)
    )  # fmt: skip
    return [cost_line("estimated", expected), cost_line("actual", actual)]
