"""Options of every command that asks a model about many rows: a store, limits, and what it will cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.errors import OptionError
from metricsmith.report.terminal import cost_line

if TYPE_CHECKING:
    from metricsmith.scoring import Concurrency

__all__ = [
    "Bounds", "MaxRequests", "MaxSeconds", "MaxTokens", "MaxUsd", "RequestsPerMinute", "StoreFile", "TokensPerMinute",
    "budget", "concurrency", "cost_line",
]  # fmt: skip

StoreFile = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="Keep judgements here; what is there is not asked for again."),
]
Bounds = Annotated[
    str, typer.Option("--concurrency", metavar="auto|N|LOW:HIGH", help="Model requests in flight; auto adapts.")
]
RequestsPerMinute = Annotated[float | None, typer.Option("--requests-per-minute", help="The provider's ceiling.")]
TokensPerMinute = Annotated[float | None, typer.Option("--tokens-per-minute", help="The provider's ceiling.")]
MaxRequests = Annotated[int | None, typer.Option("--max-requests", help="Stop after so many model requests.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help="Stop after so many tokens.")]
MaxUsd = Annotated[float | None, typer.Option("--max-usd", help="Stop after so many US dollars.")]
MaxSeconds = Annotated[float | None, typer.Option("--max-seconds", help="Stop after so much time.")]


def concurrency(bounds: str, requests_per_minute: float | None, tokens_per_minute: float | None) -> Concurrency:
    """Read ``auto``, ``16`` or ``4:64``, with the ceilings.

    Raises
    ------
    OptionError
        For anything else.
    """
    from metricsmith.scoring import Concurrency

    ceilings: dict[str, Any] = {
        "requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute,
    }  # fmt: skip
    if bounds == "auto":
        return Concurrency(**ceilings)
    low, _, high = bounds.partition(":")
    try:
        return Concurrency(int(low), int(high or low), **ceilings)
    except ValueError as problem:
        if isinstance(problem, OptionError):
            raise
        raise OptionError(f"--concurrency {bounds} must be auto, a whole number, or LOW:HIGH such as 4:64") from None


def budget(requests: int | None, tokens: int | None, usd: float | None, seconds: float | None) -> Any:
    """A `Budget`, or None where nothing is limited."""
    from metricsmith.scoring import Budget

    limits = (requests, tokens, usd, seconds)
    return None if all(limit is None for limit in limits) else Budget(*limits)
