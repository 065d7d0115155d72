"""One model call, with every request counted: the only place where a model may fail.

DSPy's own retries and its fallback to a second adapter are off in here, so that our count of requests
is what the server saw. A failure becomes a status; what no retry can mend (a wrong key, an unknown
model) stops the run with the server's own words.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.exceptions import (
    AdapterParseError,
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMError,
    LMUnsupportedModelError,
    is_retryable_lm_error,
)

from metricsmith.errors import JudgementFailed, ModelFailure, NeedsError
from metricsmith.records import Status, Usage

__all__ = ["Call", "model_call"]

HOPELESS = (LMAuthError, LMBillingError, LMConfigurationError, LMUnsupportedModelError)
FIRST_PAUSE = 0.5  # seconds before the second try of a transport failure; doubles from there
_threads = threading.local()


@dataclass(frozen=True)
class Call:
    """How a call ended: `prediction` is None unless `status` is ok."""

    prediction: Any
    status: Status
    error: str
    usage: Usage

    def result(self) -> Any:
        """The prediction, or `JudgementFailed`."""
        if self.prediction is None:
            raise JudgementFailed(self.error, self.status, self.usage)
        return self.prediction


def model_call(module: dspy.Module, /, *, tries: int = 3, parse_tries: int = 2, run: int = 0, **inputs: Any) -> Call:
    """Call a module on the language model in force and account for every request.

    Parameters
    ----------
    module : dspy.Module
        Makes one language-model request per call.
    tries : int
        Requests at most in all; transport failures and server errors are tried again after a pause.
    parse_tries : int
        How many unusable answers are borne before the call counts as failed.
    run : int
        Repetition number; runs after the first get their own place in the cache.
    **inputs
        The module's inputs.

    Raises
    ------
    NeedsError
        If no language model is set.
    ModelFailure
        If no retry can help: wrong key, no credit, unknown model.
    """
    module, lm = _detached(module)
    started, usage, unusable = time.perf_counter(), Usage(), 0
    status, error = Status.TRANSPORT, ""
    for attempt in range(tries):
        with _private(lm, fresh=attempt > 0, run=run) as private:
            try:
                prediction = module(**inputs)
            except HOPELESS as problem:
                raise ModelFailure(f"the model refuses to work: {_first_line(problem)}") from problem
            except JudgementFailed as problem:
                status, error = Status(problem.status), str(problem)
            except AdapterParseError as problem:
                status, error = Status.UNPARSABLE, _unread(problem)
            except (RecursionError, OverflowError) as problem:
                status, error = Status.UNPARSABLE, f"the answer cannot be read: {_first_line(problem)}"
            except LMError as problem:
                status, error = _transport_status(problem), _first_line(problem)
                usage += Usage(requests=1)
                if not is_retryable_lm_error(problem):
                    break
                if attempt + 1 < tries:
                    time.sleep(FIRST_PAUSE * 2**attempt)
                continue
            else:
                usage += _spent(private)
                return Call(prediction, Status.OK, "", _timed(usage, started))
            usage += _spent(private)
            unusable += 1
            if unusable >= parse_tries:
                break
    return Call(None, status, error, _timed(usage, started))


def _detached(module: dspy.Module) -> tuple[dspy.Module, Any]:
    """The module without a model of its own, and the model to use (its own before the one in force)."""
    own = [predictor.lm for _, predictor in module.named_predictors() if predictor.lm is not None]
    if own:
        module = module.deepcopy()
        module.set_lm(None)
    lm = own[0] if own else dspy.settings.lm
    if lm is None:
        raise NeedsError("no language model is set: pass lm=dspy.LM('provider/model') or call dspy.configure(lm=...)")
    return module, lm


@contextmanager
def _private(lm: Any, *, fresh: bool, run: int) -> Iterator[Any]:
    """Put a copy of `lm` in force that this thread alone uses: no retries, its own history."""
    copies: dict[tuple[int, bool, int], tuple[Any, Any]] = _threads.__dict__.setdefault("copies", {})
    key = (id(lm), fresh, run)
    if key not in copies:
        settings: dict[str, Any] = {"num_retries": 0}
        if fresh:
            settings["cache"] = False  # a cached unusable answer would come back unchanged
        if run:
            settings["rollout_id"] = run
        copies[key] = (lm, lm.copy(**settings))
    private = copies[key][1]
    private.history.clear()
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    with dspy.context(lm=private, adapter=adapter, disable_history=False, max_history_size=100):
        yield private


def _spent(private: Any) -> Usage:
    """What the requests in this copy's history cost; an answer from the cache costs nothing."""
    total = Usage()
    for entry in private.history:
        tokens = entry.get("usage") or {}
        if _cached(entry):
            continue
        total += Usage(
            1,
            int(tokens.get("prompt_tokens") or 0),
            int(tokens.get("completion_tokens") or 0),
            entry.get("cost"),
        )
    return total


def _cached(entry: dict[str, Any]) -> bool:
    """DSPy books no usage for an answer from its cache, though the answer itself knows its tokens."""
    known = getattr(getattr(entry.get("response"), "usage", None), "total_tokens", None)
    return not entry.get("usage") and known is not None


def _timed(usage: Usage, started: float) -> Usage:
    return usage + Usage(seconds=time.perf_counter() - started)


def _transport_status(problem: LMError) -> Status:
    refused = getattr(problem, "provider_code", None) in {"content_filter", "content_policy_violation"}
    return Status.REFUSED if refused else Status.TRANSPORT


def _unread(problem: AdapterParseError) -> str:
    """What was wanted and what came."""
    fields = ", ".join(problem.signature.output_fields)
    answer = " ".join(str(problem.lm_response).split())
    return f"no {fields} in the answer {answer[:120]!r}{'...' if len(answer) > 120 else ''}"


def _first_line(problem: Exception) -> str:
    text = str(problem).strip()
    return text.splitlines()[0][:300] if text else type(problem).__name__
