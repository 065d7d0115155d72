"""Any metric's judgements of rows, taken apart where it is made of weighted components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy

from metricsmith.metric import Explanation, Metric
from metricsmith.scoring.engine import score
from metricsmith.scoring.table import ScoreTable

__all__ = ["explained", "explanations", "scored_metrics"]


def scored_metrics(metric: Metric) -> Sequence[Metric]:
    """The metrics whose judgements make up those of `metric`: an induced metric's components, else itself."""
    components: Sequence[Metric] | None = getattr(metric, "components", None)
    return [metric] if components is None else components


def explanations(metric: Metric, table: ScoreTable) -> list[Explanation]:
    """One explanation for each row of a table of `scored_metrics`; without components it has no parts, and 0 to add."""
    combine = getattr(metric, "combine", None)
    if combine is not None:
        made: list[Explanation] = combine(table)
        return made
    return [Explanation(judgement, 0.0, ()) for judgement in table.column(0)]


def explained(metric: Metric, rows: Sequence[dspy.Example], **options: Any) -> list[Explanation]:
    """Judge rows by `metric` and take the judgements apart; options and errors as for `score`."""
    return explanations(metric, score(scored_metrics(metric), rows, **options))
