"""Limits of a run, as plain values that the caller chooses, and estimates of what requests cost."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal, Self

from metricsmith.errors import OptionError
from metricsmith.model_calls.dspy_internals import price_list
from metricsmith.records import Usage

__all__ = [
    "Budget",
    "Concurrency",
    "PerJudge",
    "estimate_tokens",
    "offline_prices",
    "price",
]

MOST = 64  # requests in flight: more gained nothing on two cores, and threads cost memory


@dataclass(frozen=True, slots=True)
class Budget:
    """A hard stop; what is not asked for by then has status ``budget``.

    Requests are counted before they are sent and never overshot. Tokens and dollars are known only
    afterwards, so these may be overshot by what was in flight when the limit was met.

    Parameters
    ----------
    requests : int, optional
        Requests to the model, retries included.
    tokens : int, optional
        Prompt and completion tokens together.
    usd : float, optional
        US dollars; needs a model whose price is known.
    seconds : float, optional
        Wall-clock time from the start; no request is sent and no retry is waited for beyond it.

    Raises
    ------
    OptionError
        If a limit is not above 0, infinite, NaN or no number, or requests or tokens are no whole number.
    """

    requests: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            whole = limit.name in ("requests", "tokens")
            if value is not None and not _is_limit(value, whole):
                kind = "whole number" if whole else "number"
                raise OptionError(
                    f"a budget of {value!r} {limit.name} has no meaning; give a {kind} above 0, or None "
                    f"(no --max-{limit.name}) for no limit"
                )

    def beside(self, usage: Usage) -> list[tuple[bool, str]]:
        """Each limit beside an estimate: True if it does not reach, and so in words.

        Time is not estimated, and where nothing is asked nothing is said.
        """
        tokens, cost = usage.prompt_tokens + usage.completion_tokens, usage.cost
        lines = []
        for name, limit, asked, words in (
            ("requests", self.requests, usage.requests, f"{usage.requests:,} requests"),
            ("tokens", self.tokens, tokens, f"{tokens:,} tokens"),
            ("usd", self.usd, cost or 0.0, f"${cost or 0.0:.2f}"),
        ):
            if limit is None or not usage.requests:
                continue
            if name == "usd" and cost is None:
                lines.append((False, f"the price is unknown, so that --max-usd {limit} cannot be kept"))
                continue
            short = asked > limit
            allows = f"more than --max-{name} {limit} allows" if short else f"within --max-{name} {limit}"
            lines.append((short, f"an estimate of {words} is {allows}"))
        return lines


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How many requests may be in flight, and how many may start in a minute.

    The number in flight adapts between `low` and `high`: it rises by one per round of answers and falls by
    half when the server throttles, or by a fifth when answers take ever longer. ``low == high`` fixes it.

    Parameters
    ----------
    low, high : int
        ``1 <= low <= high``.
    requests_per_minute, tokens_per_minute : float, optional
        The provider's ceilings; requests are spread evenly under them.

    Raises
    ------
    OptionError
        If the bounds are not in order, or a ceiling is not above 0.
    """

    low: int = 1
    high: int = MOST
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def __post_init__(self) -> None:
        if not (_is_number(self.low, True) and _is_number(self.high, True) and 1 <= self.low <= self.high):
            raise OptionError(
                f"concurrency from {self.low!r} to {self.high!r} has no meaning; give whole numbers 1 <= low <= high"
            )
        for name in ("requests_per_minute", "tokens_per_minute"):
            ceiling = getattr(self, name)
            if ceiling is not None and not _is_limit(ceiling):
                option = "--" + name.replace("_", "-")
                raise OptionError(f"{name}={ceiling!r} ({option}) must be a number above 0, or None for no ceiling")

    @classmethod
    def of(cls, value: Literal["auto"] | int | Concurrency) -> Self | Concurrency:
        """Read what `score` takes: ``"auto"`` (adapt), a whole number (fixed) or the bounds themselves.

        Raises
        ------
        OptionError
            For anything else.
        """
        if isinstance(value, Concurrency):
            return value
        if value == "auto":
            return cls()
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return cls(value, value)
        raise OptionError(f"concurrency={value!r} must be 'auto', a whole number from 1, or Concurrency(low, high)")


def _is_limit(value: object, whole: bool = False) -> bool:
    """True if a value is a number that can be kept as a limit: above 0 and finite."""
    return _is_number(value, whole) and 0 < value <= sys.float_info.max  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class PerJudge:
    """A failure rate that each judge has to keep by itself, instead of all together.

    A judge is dropped as soon as it is certain that more than `rate` of its requested judgements are ``unparsable``,
    ``out_of_range`` or ``refused``: its other requests are not sent, and it has no number in the table. Only its own
    answers decide, so that neither their order nor the number in flight nor a new start on a store changes who is
    dropped. A request that fails on its way is no answer: more than `rate` of all requested judgements that end so
    stop the run. It also ends where no metric is left.

    Parameters
    ----------
    rate : float
        In [0, 1].
    strict : bool
        Stop the run where a judge would be dropped.

    Raises
    ------
    OptionError
        If the rate is no share.
    """

    rate: float = 0.2
    strict: bool = False

    def __post_init__(self) -> None:
        if not (_is_number(self.rate) and 0 <= self.rate <= 1):
            raise OptionError(f"max_failure_rate={self.rate!r} must be a share from 0 to 1")


def _is_number(value: object, whole: bool = False) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, int if whole else int | float) and not isinstance(value, bool)


def price(model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """US dollars of so many tokens, None for a model that the list does not know.

    Parameters
    ----------
    model : str
        As DSPy names it, with or without its provider.
    prompt_tokens, completion_tokens : int
    """
    rates = _rates(model)
    return None if rates is None else float(prompt_tokens * rates[0] + completion_tokens * rates[1])


@lru_cache(maxsize=256)
def _rates(model: str) -> tuple[float, float] | None:
    """US dollars a token of prompt and answer."""
    offline_prices()
    prices = price_list()
    entry = prices.get(model) or prices.get(model.split("/", 1)[-1]) or {}
    if "input_cost_per_token" not in entry:
        return None
    return entry["input_cost_per_token"], entry.get("output_cost_per_token", 0.0)


def offline_prices() -> None:
    """Keep DSPy and litellm, which ask the network for prices at first use, to the lists that they bring along."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def estimate_tokens(text: str) -> int:
    """Estimate tokens: four ASCII characters, or one other character, make a token.

    English runs at about four characters a token in the common byte-pair vocabularies; scripts that
    those vocabularies split finely come out too high rather than too low.
    """
    ascii_characters = sum(character.isascii() for character in text)
    return math.ceil(ascii_characters / 4) + len(text) - ascii_characters
