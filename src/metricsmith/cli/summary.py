"""What a person wants to know in the terminal after a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metricsmith.cli.limits import cost_line
from metricsmith.records import Usage
from metricsmith.report.digest import jackknifed
from metricsmith.report.raters import run_ceiling
from metricsmith.report.sentences import few_groups
from metricsmith.report.systems import systems_caution, systems_lines

if TYPE_CHECKING:
    from metricsmith.optimizers.recording import RunResult
    from metricsmith.records import Agreement
    from metricsmith.report.record import Component, RunRecord

__all__ = ["summary"]


def summary(done: RunResult, out: Path) -> str:
    """Components, agreement beside the baselines, warnings, and where everything was written."""
    record = done.record
    side = "held-out rows" if record.tested else "training rows only"
    blocks = {f"induced metric, {side}": record.headline, **record.baselines}
    lines = [
        f"{record.title}: {len(record.components)} components{_tested(record)}",
        *_components(record.components),
        *_agreements(blocks),
        *few_groups(jackknifed(record)),
        *run_ceiling(record),
        *systems_lines(record.new_systems, record.headline),
        systems_caution(record.new_systems, record.headline),
        *_costs(record.usage),
        *_probe(record),
        *(f"warning: {warning}" for warning in record.warnings),
        record.synthetic,
        f"report: {out / 'report.html'}",
        f"metric: {out / 'metric.json'}",
        record.signature,
    ]
    return "\n".join(line for line in lines if line)


def _tested(record: RunRecord) -> str:
    """The test in words, for the first line."""
    words = {"holdout": "held-out rows", "file": "rows of their own", "cv": "rows held out in turn (cross-validation)"}
    test = record.test
    said = (
        f", tested on {test.n} {words[record.evaluation]} of {test.groups} groups" if record.tested else ", not tested"
    )
    return f"{said}. {record.split}" if record.split else said


def _probe(record: RunRecord) -> list[str]:
    from metricsmith.report.probe import words

    return [] if record.probe is None else [f"probe: {words.verdict(record.probe).sentence} {words.cost(record.probe)}"]


def _costs(usage: Mapping[str, Any]) -> list[str]:
    """What was expected and what it came to, if a model was asked."""
    if not usage.get("requests") and not usage.get("estimated", {}).get("requests"):
        return []
    return [cost_line("estimated", _usage(usage.get("estimated", {}))), cost_line("actual", _usage(usage))]


def _usage(values: Mapping[str, Any]) -> Usage:
    return Usage(
        values.get("requests", 0),
        values.get("prompt_tokens", 0),
        values.get("completion_tokens", 0),
        values.get("cost"),
    )


def _components(components: tuple[Component, ...]) -> list[str]:
    width = max((len(component.name) for component in components), default=0)
    return [
        f"  {component.weight:+8.3f}  {component.name:{width}}  (alone: tau-b {_signed(component.tau_train)} train, "
        f"{_signed(component.tau_test)} test)"
        for component in components
    ]


def _agreements(blocks: dict[str, Agreement]) -> list[str]:
    width = max(map(len, blocks))
    return [
        f"{name:{width}}  tau-b {_signed(block.kendall_tau_b)}  {_spread(block)}  "
        f"({block.n} rows, {block.groups} groups)"
        for name, block in blocks.items()
    ]


def _spread(block: Agreement) -> str:
    if math.isnan(block.ci_low) and math.isnan(block.p_value):
        return "no interval, no p"
    ends = f"95 % {_signed(block.ci_low)} to {_signed(block.ci_high)}" if math.isfinite(block.ci_low) else "no interval"
    return f"{ends}  p {_p(block.p_value)}"


def _signed(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:+.3f}"


def _p(value: float) -> str:
    return "undefined" if math.isnan(value) else "<.001" if value < 0.001 else f"{value:.3f}"
