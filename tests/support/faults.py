"""Faults between a client and a model: a function of content and attempt, never of arrival."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from metricsmith.testing import chat_text

__all__ = ["ANSWERS", "CHOICES", "CODES", "Fault", "Faults", "Odd", "draw", "spoil", "written"]


class Fault(StrEnum):
    """One thing that the server does instead of answering properly."""

    SLOW = "slow"
    THROTTLED = "429"
    RETRY_AFTER = "429 with Retry-After"
    ERROR_500 = "500"
    ERROR_502 = "502"
    ERROR_503 = "503"
    HANG = "no answer within the client's time-out"
    CUT_BEFORE = "cut before the answer"
    CUT_WITHIN = "cut within the body"
    TRUNCATED = "truncated JSON"
    EMPTY_BODY = "empty body"
    HTML = "a page instead of JSON"
    NO_CHOICES = "no choices"
    WRONG_NAMES = "wrong field names"
    WRONG_CASE = "wrong case of the markers"
    PROSE = "prose around the answer"
    OUT_OF_RANGE = "number out of range"
    NAN = "NaN"
    INFINITE = "inf"
    EMPTY = "empty content"
    NULL = "null content"
    CHATTER = "small talk"
    REFUSAL = "refusal in words"
    REFUSAL_FIELD = "refusal field"
    FILTERED = "finish reason content_filter"
    CUT_OFF = "finish reason length"
    GIGANTIC = "gigantic reasons"
    GIGANTIC_NUMBER = "gigantic number"
    TWO_CHOICES = "two choices for one"
    FEWER_CHOICES = "fewer choices than asked for"
    ONE_MALFORMED = "one malformed choice"
    BAD_REQUEST = "400"
    WRONG_KEY = "401"
    FORBIDDEN = "403"
    UNKNOWN = "404"
    NO_CHOICE_OF_N = "400 for n"


CODES: dict[Fault, tuple[int, str]] = {
    Fault.THROTTLED: (429, "Rate limit reached for loopback."),
    Fault.RETRY_AFTER: (429, "Rate limit reached for loopback, try again shortly."),
    Fault.ERROR_500: (500, "The server had an error while processing the request."),
    Fault.ERROR_502: (502, "Bad gateway."),
    Fault.ERROR_503: (503, "The engine is overloaded."),
    Fault.BAD_REQUEST: (400, "The request has a field that loopback does not know."),
    Fault.WRONG_KEY: (401, "Incorrect API key provided."),
    Fault.FORBIDDEN: (403, "This project has no access to loopback."),
    Fault.UNKNOWN: (404, "The model loopback does not exist."),
    Fault.NO_CHOICE_OF_N: (400, "Only n = 1 is supported."),
}
CHOICES = frozenset({Fault.FEWER_CHOICES, Fault.ONE_MALFORMED, Fault.NO_CHOICE_OF_N})  # matter where n > 1 alone
ANSWERS = frozenset(  # what the model may say wrongly, in a well-formed response
    {
        Fault.WRONG_NAMES, Fault.WRONG_CASE, Fault.PROSE, Fault.OUT_OF_RANGE, Fault.NAN, Fault.INFINITE, Fault.EMPTY,
        Fault.CHATTER, Fault.REFUSAL, Fault.GIGANTIC, Fault.GIGANTIC_NUMBER,
    }
)  # fmt: skip
SMALL_TALK = "I would rather talk about the weather."
NO = "I'm sorry, but I can't help with that request."
PAGE = b"<html><head><title>Gateway</title></head><body>Please sign in to the network.</body></html>"


def draw(content: str, attempt: int, seed: int) -> float:
    """A number in [0, 1) that depends on its arguments alone."""
    digest = hashlib.sha256(f"{seed}|{attempt}|{content}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


Plan = Sequence[Fault | None]


@dataclass(frozen=True)
class Faults:
    """A seeded script of faults.

    Parameters
    ----------
    rates : mapping of Fault to float
        Share of the requests that meet each fault; the sum is at most 1.
    script : callable or mapping, optional
        What happens to a prompt, attempt by attempt, instead of `rates`: a function of the prompt, or a list for
        every prompt that holds a piece of text. After its end all goes well; None in it is a good answer.
    retry_after : float
        Seconds that a 429 asks for.
    slow, hang : float
        Seconds until a slow answer, and until a connection without one is closed.
    tail : float
        Shape of a Pareto distribution for the delay of every answer (2 is a heavy tail); 0 for a fixed delay.
    """

    rates: Mapping[Fault, float] = field(default_factory=dict)
    script: Callable[[str], Plan] | Mapping[str, Plan] | None = None
    retry_after: float = 0.02
    slow: float = 0.05
    hang: float = 5.0
    tail: float = 0.0

    def __post_init__(self) -> None:
        if sum(self.rates.values()) > 1 + 1e-9:
            raise ValueError(f"the rates add up to {sum(self.rates.values()):g}, which is above 1")

    def pick(self, prompt: str, attempt: int, seed: int, n: int = 1) -> Fault | None:
        """The fault that the given attempt at a prompt meets, if any."""
        plan = self.planned(prompt)
        if plan is not None:
            fault = plan[attempt] if attempt < len(plan) else None
        else:
            fault = self._drawn(draw(prompt, attempt, seed))
        return None if fault in CHOICES and n == 1 else fault

    def planned(self, prompt: str) -> Plan | None:
        """The list for this prompt, or None where the rates count."""
        if isinstance(self.script, Mapping):
            return next((plan for text, plan in self.script.items() if text in prompt), ())
        return None if self.script is None else self.script(prompt)

    def delay(self, mean: float, prompt: str, attempt: int, seed: int) -> float:
        """Seconds before an answer."""
        if not self.tail or not mean:
            return mean
        return mean * min(100.0, (1 - draw(prompt, attempt, seed + 1)) ** (-1 / self.tail))

    def _drawn(self, chance: float) -> Fault | None:
        for fault, rate in self.rates.items():
            if chance < rate:
                return fault
            chance -= rate
        return None


@dataclass(frozen=True)
class Odd:
    """A response that is not a JSON object with its usual head; `sent` bytes of it go out, all if None.

    With ``sent=0`` nothing goes out: the connection is closed after `hang` seconds.
    """

    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    sent: int | None = None
    hang: float = 0.0


def written(fields: Mapping[str, Any], fault: Fault | None = None) -> str:
    """A model's answer in DSPy's chat format, with what the fault makes of it.

    Faults of numbers change the last field.
    """
    if fault is Fault.EMPTY:
        return ""
    if fault in (Fault.CHATTER, Fault.REFUSAL):
        return SMALL_TALK if fault is Fault.CHATTER else NO
    values = dict(fields)
    last = next(reversed(values), "")
    wrong = {Fault.OUT_OF_RANGE: "9", Fault.NAN: "NaN", Fault.INFINITE: "inf", Fault.GIGANTIC_NUMBER: "7" * 5000}
    if fault in wrong:
        values[last] = wrong[fault]
    if fault is Fault.GIGANTIC:
        values = {name: value if name == last else "word " * 400_000 for name, value in values.items()}
    if fault is Fault.WRONG_NAMES:
        values = {f"my_{name}": value for name, value in values.items()}
    if fault is Fault.WRONG_CASE:
        values = {name.title(): value for name, value in values.items()}
    text = chat_text(values)
    return f"Sure, here is my review.\n\n{text}\n\nI hope that this helps." if fault is Fault.PROSE else text


def spoil(fault: Fault, content: dict[str, Any], faults: Faults) -> dict[str, Any] | Odd:
    """Makes of a good response what a fault of it (not of the answer in it) does."""
    choices = content["choices"]
    if fault is Fault.NO_CHOICES:
        return {**content, "choices": []}
    if fault is Fault.FEWER_CHOICES:
        return {**content, "choices": choices[: max(1, len(choices) // 2)]}
    if fault is Fault.TWO_CHOICES:
        return {**content, "choices": [*choices, _choice(len(choices), written({"reasoning": "Other.", "score": 1}))]}
    if fault in (Fault.NULL, Fault.REFUSAL_FIELD, Fault.FILTERED):
        message = {"role": "assistant", "content": None}
        if fault is Fault.REFUSAL_FIELD:
            message["refusal"] = NO
        reason = "content_filter" if fault is Fault.FILTERED else "stop"
        return {**content, "choices": [{**choice, "message": message, "finish_reason": reason} for choice in choices]}
    if fault is Fault.CUT_OFF:
        return {**content, "choices": [{**choice, "finish_reason": "length"} for choice in choices]}
    if fault in (Fault.HANG, Fault.CUT_BEFORE):
        return Odd(sent=0, hang=faults.hang if fault is Fault.HANG else 0.0)
    body = json.dumps(content).encode()
    bodies = {Fault.TRUNCATED: body[: len(body) // 2], Fault.EMPTY_BODY: b"", Fault.HTML: PAGE}
    if fault in bodies:
        return Odd(bodies[fault])
    if fault is Fault.CUT_WITHIN:
        return Odd(body, sent=len(body) // 2)
    raise ValueError(f"{fault!r} is no fault of a response")


def _choice(index: int, text: str) -> dict[str, Any]:
    return {"index": index, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
