"""The costs of a run beside their estimate, and how its judgements ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from metricsmith.records import Usage
from metricsmith.report.formats import count, duration, money
from metricsmith.report.induction.record import RunRecord

__all__ = ["STATUSES", "CostLine", "panel_savings", "run_costs"]

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
