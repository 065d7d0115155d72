"""Log-probabilities as OpenAI's chat completions send them, for a text whose tokens are words and marks."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["SPREAD", "entry", "logprobs"]

SPREAD = "*spread*"  # under this name an answer says how probable each token is at the place of its last field
TOKENS = re.compile(r"\n+| ?[^\W\d]+|\d| ?[^\w\s]+|\s")
VALUE = re.compile(r"\]\]\n(?=[^\n]*\n\n\[\[ ## completed)")


def logprobs(text: str, spread: Mapping[str, float], top: int = 20) -> dict[str, Any]:
    """The ``logprobs`` of a choice; every token but the one under `spread` is certain.

    The token of the text is the one that is sent, whatever `spread` says; `top` alternatives are listed.
    """
    value = VALUE.search(text)
    content, place = [], 0
    for token in TOKENS.findall(text):
        here = value is not None and place == value.end()
        content.append(entry(token, spread if here else {token: 1.0}, top))
        place += len(token)
    return {"content": content, "refusal": None}


def entry(token: str, spread: Mapping[str, float], top: int = 20) -> dict[str, Any]:
    """One token with its alternatives, most probable first."""
    listed = sorted(spread, key=lambda text: -spread[text])[:top]
    return {**_one(token, spread.get(token, 1e-9)), "top_logprobs": [_one(text, spread[text]) for text in listed]}


def _one(token: str, probability: float) -> dict[str, Any]:
    logprob = math.log(probability) if probability > 0 else -9999.0
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
