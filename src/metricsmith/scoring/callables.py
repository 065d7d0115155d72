"""Any function that DSPy's Evaluate takes, as a metric."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import dspy
from dspy.utils.exceptions import DSPyError

from metricsmith.errors import JudgementFailed, OptionError, StateError
from metricsmith.metric import content_hash
from metricsmith.records import Judgement, MetricCard, Output, Status, Usage
from metricsmith.reward import DSPyCallable

__all__ = ["CallableMetric"]


class CallableMetric(DSPyCallable):
    """Wraps ``function(example, pred, ...)``, which returns a number, a bool or a Prediction with ``score``.

    `example` is the row, `pred` a Prediction with the row's own fields. A function that raises, returns no
    number, or returns NaN gives a failed judgement and never a number. Requests that the function sends itself
    are its own affair: no budget counts them.

    Parameters
    ----------
    function : callable
        As DSPy's Evaluate takes it.
    name : str, optional
        Column name; by default the function's.
    output : Output, optional
        Range and direction; by default unbounded, more being better.
    version : str, optional
        Change it whenever the function changes. Without it a store never keeps the judgements, because
        nothing tells when they are stale.
    """

    reads_whole_row = True  # a function may look at any field, so rows with equal texts need not score alike

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        output: Output | None = None,
        version: str | None = None,
    ) -> None:
        if not callable(function):
            raise OptionError(f"{function!r} is no function; give one as DSPy's Evaluate takes it")
        self.function = function
        self._name = name or str(getattr(function, "__name__", type(function).__name__))
        self._output = output or Output(self._name, low=None, high=None, half=1.0)
        self.version = version
        self.storable = version is not None

    @property
    def name(self) -> str:
        """Column name."""
        return self._name

    @property
    def output(self) -> Output:
        """Range and direction."""
        return self._output

    @property
    def card(self) -> MetricCard:
        """A card that says what is known: the name."""
        return MetricCard(
            name=self._name,
            kind="callable",
            summary=f"The number that the function {self._name} returns.",
            formula="Whatever the function computes.",
            outputs=(self._output,),
            cost="model",
            backend="the caller",
            backend_license="unknown",
        )

    def fingerprint(self) -> str:
        """A hash of name and version; without a version, of this very object."""
        return content_hash("callable", self._name, self.version or f"unversioned {id(self.function)}")

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Call the function on rows, one after the other."""
        return [self._judge(row, run) for row in rows]

    def _judge(self, row: dspy.Example, run: int) -> Judgement:
        started = time.perf_counter()
        try:
            answer = self.function(row, dspy.Prediction(**row.toDict()))
        except JudgementFailed as problem:
            return self._failed(Status(problem.status), str(problem), run, problem.usage or Usage())
        except DSPyError as problem:
            return self._failed(Status.TRANSPORT, _one_line(problem), run)
        except Exception as problem:  # the caller's own code, of which one bad row must not cost all the others
            return self._failed(Status.UNPARSABLE, f"{type(problem).__name__}: {_one_line(problem)}", run)
        return self._judgement(answer, run, time.perf_counter() - started)

    def _judgement(self, answer: Any, run: int, seconds: float) -> Judgement:
        feedback = str(answer.get("feedback") or "") if isinstance(answer, dspy.Prediction) else ""
        number = answer.get("score") if isinstance(answer, dspy.Prediction) else answer
        usage = Usage(seconds=seconds)
        if isinstance(answer, dspy.Prediction) and "score" not in answer:
            return self._failed(Status.UNPARSABLE, f"{self._name} returned a Prediction without score", run, usage)
        raw = _number(number)
        if raw is None:
            return self._failed(
                Status.UNPARSABLE, f"{self._name} returned {str(number)[:100]!r}, no number", run, usage
            )
        low, high = self._output.low, self._output.high
        if not math.isfinite(raw):
            return self._failed(Status.UNPARSABLE, f"{self._name} returned {raw}", run, usage)
        if (low is not None and raw < low) or (high is not None and raw > high):
            return self._failed(Status.OUT_OF_RANGE, f"{self._name} returned {raw:g}, outside its range", run, usage)
        return Judgement(self._name, raw, self._output.score(raw), feedback, run=run, usage=usage)

    def _failed(self, status: Status, error: str, run: int, usage: Usage | None = None) -> Judgement:
        return Judgement(self._name, status=status, error=error, run=run, usage=usage or Usage())

    def to_state(self) -> dict[str, Any]:
        """Not possible: code is no data.

        Raises
        ------
        StateError
            Always.
        """
        raise StateError(f"{self._name} is a Python function, which no file can hold; save a metric made of others")


def _number(value: Any) -> float | None:
    """A number as a float, None for anything else; digits in a text are a text."""
    if isinstance(value, str | bytes):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:300]
