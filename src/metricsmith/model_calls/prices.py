"""The price of requests to a model, by the list that DSPy brings along and bills by."""

from __future__ import annotations

import os
from functools import lru_cache

from metricsmith.model_calls.dspy_internals import price_list

__all__ = ["offline_prices", "price"]


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
