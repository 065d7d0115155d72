"""A judgement as the store keeps it: status and number in columns, everything else as JSON."""

from __future__ import annotations

import json
from typing import Any

from metricsmith.records import Judgement, Status, Usage

__all__ = ["CODES", "STATUSES", "pack", "unpack"]

# Written into files: never renumber, only add.
CODES: dict[Status, int] = {
    Status.OK: 0, Status.UNPARSABLE: 1, Status.OUT_OF_RANGE: 2, Status.REFUSED: 3, Status.TRANSPORT: 4,
    Status.BUDGET: 5, Status.SKIPPED: 6,
}  # fmt: skip
STATUSES: dict[int, Status] = {code: status for status, code in CODES.items()}


def pack(judgement: Judgement) -> str:
    """Score, feedback, error and usage as JSON text; surrogates are escaped, so any text survives."""
    usage = judgement.usage
    return json.dumps(
        {
            "score": judgement.score,
            "feedback": judgement.feedback,
            "error": judgement.error,
            "usage": [usage.requests, usage.prompt_tokens, usage.completion_tokens, usage.cost, usage.seconds],
        }
    )


def unpack(name: str, run: int, status: int, raw: float | None, value: str) -> Judgement:
    """The judgement that `pack` and the columns came from.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the entry is damaged.
    """
    content: dict[str, Any] = json.loads(value)
    return Judgement(
        metric=name,
        raw=raw,
        score=content["score"],
        feedback=content["feedback"],
        status=STATUSES[status],
        error=content["error"],
        run=run,
        usage=Usage(*content["usage"]),
    )
