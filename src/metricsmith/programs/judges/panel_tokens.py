"""The tokens that a panel saves: its prompt beside those of its judges one by one."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from metricsmith.metric import Asker
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.programs.judges.panel import Panel
from metricsmith.report.induction.record import PanelTokens

__all__ = ["prompt_tokens", "tokens_per_row"]

SAMPLE = 50  # rows whose prompts are written out; their mean stands for all


def tokens_per_row(panel: Panel, rows: Sequence[dspy.Example]) -> PanelTokens:
    """Estimate prompt tokens a row, asked together and one by one, from the prompts themselves.

    Answers, retries and criteria that are asked again alone are not counted.

    Parameters
    ----------
    panel : Panel
    rows : sequence of dspy.Example
        n rows; of more than 50, 50 spread evenly stand for all. With none, both figures are NaN.
    """
    sample = [rows[place * len(rows) // SAMPLE] for place in range(SAMPLE)] if len(rows) > SAMPLE else rows
    judges = panel.judges
    return PanelTokens(len(judges), prompt_tokens([panel], sample), prompt_tokens(judges, sample))


def prompt_tokens(askers: Sequence[Asker], rows: Sequence[dspy.Example]) -> float:
    """Mean over rows of the tokens of all prompts that `askers` send for one row; NaN without rows."""
    if not rows:
        return float("nan")
    prompts = [message["content"] for row in rows for asker in askers for message in asker.messages(row)]
    return sum(estimate_tokens(str(prompt)) for prompt in prompts) / len(rows)
