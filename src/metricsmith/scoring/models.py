"""What is known of a language model: what tells its answers apart, how it samples, what it costs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from metricsmith.errors import OptionError

__all__ = ["check_sampling", "identity", "price", "redact"]

COOLEST = 0.15  # at or below this temperature repetitions are one answer over and over

# Settings that say how to reach the model and how to keep book, and change no answer. Whatever is not named
# here counts as sampling, so that an unknown setting can make a judgement be asked again but never be stale.
CONNECTION = frozenset({
    "api_key", "api_base", "base_url", "api_version", "headers", "extra_headers", "timeout", "organization",
    "project", "num_retries", "max_retries", "rollout_id", "cache", "metadata", "user", "n", "prompt_cache",
    "aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_region_name", "vertex_credentials",
    "vertex_project", "vertex_location", "azure_ad_token",
})  # fmt: skip
KEYS = re.compile(r"\b[sp]k-[A-Za-z0-9_\-*]{6,}|\b[Bb]earer\s+\S+")


def identity(lm: Any) -> dict[str, Any]:
    """What tells one model's answers from another's: name, kind and sampling parameters, JSON-ready.

    The address is not among them: a server that moves keeps its judgements.
    """
    settings: Mapping[str, Any] = getattr(lm, "kwargs", None) or {}
    sampling = {name: settings[name] for name in sorted(settings) if name not in CONNECTION}
    return {
        "model": str(getattr(lm, "model", type(lm).__name__)),
        "model_type": str(getattr(lm, "model_type", "")),
        **{name: _plain(value) for name, value in sampling.items() if value is not None},
    }


def _plain(value: Any) -> Any:
    """The value itself if JSON can hold it, its class or text otherwise; never an address in memory."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, type) or callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


def check_sampling(lm: Any) -> None:
    """Refuse a model that would give one answer over and over.

    Raises
    ------
    OptionError
        Unless a temperature above .15 is set on the model.
    """
    temperature = (getattr(lm, "kwargs", None) or {}).get("temperature")
    if temperature is None or not temperature > COOLEST:
        raise OptionError(
            f"repeated runs need independent samples, but {getattr(lm, 'model', lm)} has temperature={temperature}; "
            f"set one above {COOLEST} on it, say dspy.LM(..., temperature=1.0)"
        )


def price(model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """US dollars by litellm's price list as installed, None for a model that it does not know."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # otherwise its import asks the network
    import litellm

    entry: Mapping[str, Any] = litellm.model_cost.get(model) or litellm.model_cost.get(model.split("/", 1)[-1]) or {}
    if "input_cost_per_token" not in entry:
        return None
    return float(
        prompt_tokens * entry["input_cost_per_token"] + completion_tokens * entry.get("output_cost_per_token", 0.0)
    )


def redact(text: str, lm: Any = None) -> str:
    """`text` without the model's key and without whatever else looks like a key."""
    key = (getattr(lm, "kwargs", None) or {}).get("api_key")
    if isinstance(key, str) and len(key) > 4:
        text = text.replace(key, "[key]")
    return KEYS.sub("[key]", text)
