"""A judgement as the store keeps it: status and number in columns, everything else as JSON."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import asdict
from typing import Any

from metricsmith.records import ErrorSpan, Judgement, Status, Usage

__all__ = ["CODES", "STATUSES", "checksum", "pack", "unpack"]

# Written into files: never renumber, only add.
CODES: dict[Status, int] = {
    Status.OK: 0, Status.UNPARSABLE: 1, Status.OUT_OF_RANGE: 2, Status.REFUSED: 3, Status.TRANSPORT: 4,
    Status.BUDGET: 5, Status.SKIPPED: 6,
}  # fmt: skip
STATUSES: dict[int, Status] = {code: status for status, code in CODES.items()}

_encode = json.JSONEncoder(allow_nan=False, check_circular=False).encode


def pack(judgement: Judgement) -> tuple[int, float | None, str]:
    """Status, raw number and JSON text of a judgement.

    The text holds score, feedback, error, usage and, where there are any, spans; surrogates are escaped in it, so any
    text survives. What is not finite has no place in JSON and is kept as null.
    """
    usage = judgement.usage
    content: dict[str, Any] = {
        "score": _number(judgement.score),
        "feedback": judgement.feedback,
        "error": judgement.error,
        "usage": [
            int(usage.requests), int(usage.prompt_tokens), int(usage.completion_tokens), _number(usage.cost),
            _number(usage.seconds) or 0.0,
        ],
    }  # fmt: skip
    if judgement.spans:
        content["spans"] = [asdict(span) for span in judgement.spans]
    return CODES[judgement.status], _number(judgement.raw), _encode(content)


def unpack(name: str, run: int, status: int, raw: float | None, value: str) -> Judgement:
    """The judgement that `pack` and the columns came from.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the entry is damaged.
    """
    content: dict[str, Any] = json.loads(value)
    requests, prompt_tokens, completion_tokens, cost, seconds = content["usage"]
    return Judgement(
        metric=name,
        raw=raw,
        score=content["score"],
        feedback=content["feedback"],
        status=STATUSES[status],
        error=content["error"],
        run=run,
        usage=Usage(requests, prompt_tokens, completion_tokens, cost, seconds),
        spans=tuple(ErrorSpan(**span) for span in content.get("spans", ())),
    )


def checksum(row: int, metric: int, run: int, status: int, raw: float | None, value: str) -> int:
    """CRC-32 over a whole entry: SQLite itself does not notice a changed digit."""
    return zlib.crc32(f"{row} {metric} {run} {status} {raw!r} {value}".encode())


def _number(value: float | None) -> float | None:
    """A plain float, whatever kind of number it was; None for what is not finite."""
    return float(value) + 0.0 if value is not None and math.isfinite(value) else None  # SQLite knows no -0.0
