"""Limits of a run that the caller chooses, the number of requests in flight within them, and estimates of costs."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import lru_cache
from statistics import median
from typing import Literal, Self

from metricsmith.errors import OptionError
from metricsmith.model_calls.dspy_internals import price_list
from metricsmith.records import Usage

__all__ = [
    "FRAME_TOKENS",
    "AdaptiveLimit",
    "Budget",
    "Concurrency",
    "PerJudge",
    "RequestEnd",
    "estimate_tokens",
    "offline_prices",
    "price",
    "total_usage",
]

MOST = 64  # requests in flight: more gained nothing on two cores, and threads cost memory
START = 8  # requests in flight at first
SHRINK, EASE = 0.5, 0.8  # what is left of the limit after throttling, and after slow answers
SLOW = 2.0  # times the quickest round
FORGETTING = 1.001  # the quickest round counts for a little less with every round, so that a run can slow down
SMALLEST_ROUND = 8  # answers whose median says something


@dataclass(frozen=True, slots=True)
class Budget:
    """A hard stop; what is not asked for by then has status ``budget``.

    A limit of 0 is refused: it asks for a run that asks nothing, which is what `estimate` is for.

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
        """Each limit beside an estimate: True if it does not suffice, and the comparison as a text.

        Time is not estimated, and an estimate of no requests gives an empty list.
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
    """The number of requests that may be in flight, and that may start in a minute.

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


class RequestEnd(Enum):
    """The ends of a request that the rate limiter tells apart."""

    ANSWERED = "answered"
    THROTTLED = "throttled"  # 429, 503
    FAILED = "failed"  # other 5xx, transport, time-out
    HOPELESS = "hopeless"  # 400, 401, 402, 403, 404: no retry can help


class AdaptiveLimit:
    """The number of requests that may be in flight, which follows the server within `bounds`.

    It follows by additive increase and multiplicative decrease (Chiu and Jain 1989), with a slow start. Congestion
    shows as throttling, or as answers that take more than twice as long as the quickest.

    Parameters
    ----------
    bounds : Concurrency

    Attributes
    ----------
    limit : int
        The number now.
    epoch : int
        The number of decreases so far; a request that started before one does not cause another.
    """

    def __init__(self, bounds: Concurrency) -> None:
        self.bounds = bounds
        self.epoch = 0
        self._exact = float(bounds.high if bounds.low == bounds.high else max(bounds.low, min(START, bounds.high)))
        self.limit = int(self._exact)
        self._slow_start = True
        self._round: list[float] = []
        self._round_size = max(SMALLEST_ROUND, self.limit)
        self._quickest = float("inf")

    def learn(self, epoch: int, end: RequestEnd, seconds: float, *, full: bool) -> None:
        """Adapt to one ended request, admitted in `epoch`; `full` says that the limit was in use."""
        if self.bounds.low == self.bounds.high or epoch < self.epoch:
            return
        if end is RequestEnd.THROTTLED:
            self._shrink(SHRINK)
        elif end in (RequestEnd.ANSWERED, RequestEnd.FAILED):
            if full and end is RequestEnd.ANSWERED:
                self._exact = min(self.bounds.high, self._exact + (1.0 if self._slow_start else 1.0 / self._exact))
                self.limit = int(self._exact)
            self._round.append(seconds)
            if len(self._round) >= self._round_size:  # each round's median is compared with the quickest so far
                middle = median(self._round)
                self._quickest = min(self._quickest * FORGETTING, middle)
                self._new_round()
                if middle > SLOW * self._quickest:
                    self._shrink(EASE)

    def _shrink(self, share: float) -> None:
        self._exact = max(float(self.bounds.low), self._exact * share)
        self.limit = int(self._exact)
        self._slow_start = False
        self.epoch += 1
        self._new_round()

    def _new_round(self) -> None:
        self._round.clear()
        self._round_size = max(SMALLEST_ROUND, self.limit)


def _is_limit(value: object, whole: bool = False) -> bool:
    """True if a value is a number that can be kept as a limit: above 0 and finite."""
    return _is_number(value, whole) and 0 < value <= sys.float_info.max  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class PerJudge:
    """A failure rate that each judge has to keep by itself, instead of all together.

    Over all judges together 2 failing ones of 12 passed, and 2 of 5 ended the run.

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
    """True if a value is a number, and no truth value."""
    return isinstance(value, int if whole else int | float) and not isinstance(value, bool)


FRAME_TOKENS = 350  # that DSPy's chat adapter writes around the fields of a signature


def price(model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """US dollars of so many tokens, None (and not 0) for a model that the list does not know.

    The list is the one that DSPy bills by, as installed.

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


def total_usage(estimates: Iterable[Usage]) -> Usage:
    """The sum of estimates; ``cost`` is None where the price of one that asks anything is unknown."""
    parts = list(estimates)
    total = sum(parts, Usage())
    return replace(total, cost=None) if any(part.requests and part.cost is None for part in parts) else total


def estimate_tokens(text: str) -> int:
    """Estimate tokens: four ASCII characters, or one other character, make a token.

    English runs at about four characters a token in the common byte-pair vocabularies; scripts that
    those vocabularies split finely come out too high rather than too low.
    """
    ascii_characters = len(text.encode("ascii", "ignore"))
    return math.ceil(ascii_characters / 4) + len(text) - ascii_characters
