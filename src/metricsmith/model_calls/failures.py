"""The meaning of a failed request: whose fault it is, whether to ask again, and what may be told of it.

The table was found out with DSPy 3.4 and a server that speaks raw sockets; "native" is DSPy's own client,
"litellm" the one that carries several answers in a request. From the errors of the native one over token counts and a
second choice, `dspy_internals.AnswerTracker` keeps it from.

=====================================  =======================  =======================  =====================
the server                             native                   litellm                  here
=====================================  =======================  =======================  =====================
cuts before or within head or body     LMTransportError         LMServerError 500        asked again
hangs beyond the time-out              LMTransportError         LMTimeoutError 408       asked again
sends what is not HTTP, or bad gzip    LMTransportError         LMServerError 500        asked again
200, JSON truncated, empty, not UTF-8  LMProviderError 200      LMServerError 500        asked again
200, an HTML page                      LMProviderError 200      LMServerError 500        asked again
200, JSON that is no object, too deep  LMUnexpectedError        LMServerError 500        asked again
200, token counts that are no counts   LMUnexpectedError        read, or LMServer- 500   read; litellm: again
200, an error object                   LMServerError            LMUnexpectedError        asked again
200, two choices for one               LMUnsupportedFeature-    the first is read        the first is read
500, 501, 502                          LMServerError            LMServerError            asked again
408, 504                               LMTimeoutError           LMTimeoutError           asked again
429, 503, 529                          LMRateLimit-, -Server-   LMRateLimit-, -Server-   asked again, throttled
429 with code insufficient_quota       LMBillingError           LMBillingError           hopeless, stopping
401, 402, 403, 404                     LMAuth-, LMBilling-,...  the same, or LMInvalid-  hopeless, stopping
400, 405, 409, 422, 451                LMInvalidRequest-, ...   LMInvalidRequest-, ...   hopeless
400 with code content_filter           LMInvalidRequestError    LMInvalidRequestError    refused
400, context length; 413               ContextWindow-, ...      ContextWindow-, ...      failed, this row alone
200, ``choices: []``                   AdapterParseError        no output at all         repaired
200, content null or empty             AdapterParseError        AdapterParseError        repaired
200, 50 MB of text                     AdapterParseError, 1 s   AdapterParseError        repaired, cut
200, finish_reason content_filter      read, if there is text   the same                 refused
200, finish_reason length              read as far as it goes   the same                 repaired
200, a ``refusal``                     AdapterParseError        AdapterParseError        refused
=====================================  =======================  =======================  =====================
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMError,
    LMInvalidRequestError,
    LMProviderError,
    LMRateLimitError,
    LMUnexpectedError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
    is_retryable_lm_error,
)

from metricsmith.model_calls.dspy_internals import answer_part, finish_reason, member
from metricsmith.model_calls.limits import RequestEnd
from metricsmith.model_calls.models import redact
from metricsmith.records import Status

__all__ = [
    "Failure", "delay", "error_text", "failure", "redact_error", "refusal", "rejects_choices",
    "short_line",
]  # fmt: skip

LONGEST_TEXT = 300  # characters of an error message
LONGEST_PAUSE = 30.0  # seconds, where the server names none
REFUSALS = frozenset({"content_filter", "content_policy_violation"})  # codes of providers
LOCAL = (LMConfigurationError, LMUnsupportedFeatureError)  # raised before anything is sent
STOPPING = (LMAuthError, LMBillingError, LMUnsupportedModelError, *LOCAL)  # no request of this run can succeed
STOPPING_CODES = frozenset({401, 402, 403, 404})
PASSING = frozenset({408, 425, 429})  # the 4xx that may pass
THROTTLING = frozenset({429, 503, 529})

# How a refusal in plain English opens: an apology, or that one cannot, will not or may not, and what.
UNABLE = (
    r"i (?:can't|cannot|can not|won't|will not|must decline|have to decline|am unable|am not able|am not comfortable)"
    r"(?: to)?"
)
DEED = (
    r"(?:help|assist|comply|provide|fulfill?|rate|evaluate|judge|score|assess|answer|respond|do (?:this|that|so)"
    r"|engage|discuss|continue|complete|participate|process|review|share|generate|create|write|say|this|that|with)"
)
OPENINGS = re.compile(
    rf"(?:(?:i am |i'm )?(?:very |so |really )?sorry|i apologi[sz]e|unfortunately|as an ai[^.]{{0,40}}?)?\W{{0,3}}"
    rf"(?:but |however )?{UNABLE} {DEED}\b"
    r"|(?:i am |i'm )(?:very |so |really )?sorry\W{1,3}but\b"
    r"|(?:this|your|the) (?:request|content) (?:violates|goes against|is against)\b"
)
_chance = random.Random()  # of its own, so that a caller's seed means what it meant before


@dataclass(frozen=True, slots=True)
class Failure:
    """The consequences of a request that brought no answer.

    Parameters
    ----------
    status : Status
    end : RequestEnd
        The end that the rate limiter books.
    again : bool
        Whether the same request may succeed later.
    sent : bool
        Whether a request left this machine.
    stopping : bool
        Whether no request of this run can succeed.
    """

    status: Status
    end: RequestEnd
    again: bool = False
    sent: bool = True
    stopping: bool = False


def failure(problem: LMError) -> Failure:
    """Classify the error that DSPy raised for one request, by the table above."""
    http = problem.status
    if problem.provider_code in REFUSALS:
        return Failure(Status.REFUSED, RequestEnd.ANSWERED)
    if isinstance(problem, ContextWindowExceededError) or http == 413:
        return Failure(
            Status.TRANSPORT, RequestEnd.ANSWERED
        )  # the row is too long; key, model and server are all right
    if isinstance(problem, STOPPING) or http in STOPPING_CODES:
        return Failure(Status.TRANSPORT, RequestEnd.HOPELESS, sent=not isinstance(problem, LOCAL), stopping=True)
    if isinstance(problem, LMInvalidRequestError) or (http and 400 <= http < 500 and http not in PASSING):
        return Failure(Status.TRANSPORT, RequestEnd.HOPELESS)
    if isinstance(problem, LMRateLimitError) or http in THROTTLING:
        return Failure(Status.TRANSPORT, RequestEnd.THROTTLED, again=True)
    again = is_retryable_lm_error(problem) or isinstance(problem, LMUnexpectedError | LMProviderError)
    return Failure(Status.TRANSPORT, RequestEnd.FAILED, again)


def rejects_choices(problem: BaseException | None) -> bool:
    """True if a request for several answers may have failed because it asked for several."""
    if isinstance(problem, LMUnsupportedFeatureError):
        return True
    asked_wrongly = isinstance(problem, LMInvalidRequestError) and problem.status in (400, 422)
    return asked_wrongly and failure(problem).end is RequestEnd.HOPELESS


def delay(problem: BaseException, tries: int, first: float) -> float:
    """Seconds to wait before the next try: the server's wish, or `first` doubled per try, with jitter."""
    wish: float | None = getattr(problem, "retry_after", None)
    wish = _litellm_wish(problem) if wish is None else wish
    if wish is not None and wish > 0:
        return wish
    return min(LONGEST_PAUSE, first * 2.0 ** (tries - 1)) * _chance.uniform(0.5, 1.0)


def _litellm_wish(problem: BaseException) -> float | None:
    """The server's Retry-After as litellm keeps it, where DSPy does not look."""
    cause: BaseException | None = problem
    while cause is not None:
        headers = getattr(cause, "litellm_response_headers", None)
        if headers is not None:
            try:
                return float(headers.get("retry-after"))
            except (TypeError, ValueError):
                return None
        cause = cause.__cause__ or cause.__context__
    return None


def refusal(response: Any, choice: int, answer: str, fields: Iterable[str] | None, lm: Any = None) -> str:
    """The text of a refusal, for an answer that could not be used; empty if it is none.

    Parameters
    ----------
    response : object
        As DSPy's history keeps it, from its native client or from litellm.
    choice : int
        The place of the answer among several.
    answer : str
        Its text.
    fields : iterable of str or None
        The fields that were asked for: an answer that has one of them is a try, not a refusal. None where they could
        be read: only an answer that was filtered is a refusal then.
    lm : dspy.LM, optional
        The model whose keys are not repeated.
    """
    if finish_reason(response, choice) == "content_filter":
        return short_line(redact(f"the answer was filtered: {answer}".rstrip(": "), lm))
    if fields is None:
        return ""
    part = answer_part(response, choice)
    message = member(part, "message")
    refused = member(message, "refusal") or member(member(message, "provider_specific_fields"), "refusal")
    for piece in member(message, "parts") or ():
        refused = refused or (member(piece, "text") if member(piece, "type") == "refusal" else None)
    if refused:
        return short_line(redact(str(refused), lm))
    opening = answer[:200].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lstrip(" \n\t\"'*#>-").lower()
    opening = opening.replace("i'm ", "i am ")
    if OPENINGS.match(opening) and not any(
        mark in answer for name in fields for mark in (f"[[ ## {name} ## ]]", f'"{name}":', f"<{name}>")
    ):
        return short_line(redact(answer, lm))
    return ""


def error_text(problem: BaseException, lm: Any) -> str:
    """The server's message: one line, without secrets."""
    text = redact(str(problem).strip(), lm)
    return short_line(text.splitlines()[0]) if text else type(problem).__name__


def redact_error(problem: BaseException | None, lm: Any) -> None:
    """Take secrets out of an error and of its causes: logs and tracebacks show both."""
    seen: set[int] = set()
    while problem is not None and id(problem) not in seen:
        seen.add(id(problem))
        problem.args = tuple(redact(part, lm) if isinstance(part, str) else part for part in problem.args)
        if isinstance(message := vars(problem).get("message"), str):
            problem.__dict__["message"] = redact(message, lm)
        problem = problem.__cause__ or problem.__context__


def short_line(text: str) -> str:
    """The text on one line, at most 300 characters."""
    return " ".join(text[: 2 * LONGEST_TEXT].split())[:LONGEST_TEXT]
