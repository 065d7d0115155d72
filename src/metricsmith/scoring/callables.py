"""Any function that DSPy's Evaluate takes, as a metric."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy
from dspy.utils.exceptions import DSPyError

from metricsmith.errors import JudgementFailed, OptionError
from metricsmith.metric import EVERY_LABEL, Labels, content_hash
from metricsmith.records import Judgement, MetricCard, Output, Status, Usage
from metricsmith.reward import DSPyCallable

__all__ = ["CallableMetric"]


class CallableMetric(DSPyCallable):
    """Wraps ``function(example, pred)``, which returns a number, a bool or a Prediction with ``score``.

    `example` is the row, `pred` a Prediction with the row's own fields. Further parameters have defaults, as in
    DSPy's ``(example, pred, trace=None, pred_name=None, pred_trace=None)``. A function that raises, returns no
    number, or returns NaN gives a failed judgement (``unparsable``: nothing that could be read as a number) whose
    error names the function and what it raised or returned. Requests that the function sends itself are its own
    affair: no budget counts them.

    A file keeps the name and the range, never the code: `metricsmith.load(path, functions={name: function})`.

    Parameters
    ----------
    function : callable
        Takes two positional arguments, as DSPy's Evaluate passes them; no coroutine and no module.
    name : str, optional
        Column name; by default the function's.
    output : Output, optional
        Range and direction; by default unbounded, more being better.
    version : str, optional
        Change it whenever the function changes. Without it a store never keeps the judgements, because
        nothing tells when they are stale.
    hidden : collection of str
        Fields that the function never sees, neither in the row nor among its columns: in an induction the rating
        and what it was made of.

    Raises
    ------
    OptionError
        If `function` cannot be called with an example and a prediction.
    """

    reads: Labels = EVERY_LABEL  # a function may look at any field, so rows with equal texts need not score alike

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        output: Output | None = None,
        version: str | None = None,
        hidden: Collection[str] = (),
    ) -> None:
        _check_signature(function)
        self.function = function
        self._name = name or str(getattr(function, "__name__", type(function).__name__))
        self._output = output or Output(self._name, low=None, high=None, half=1.0)
        self.version = version
        self.hidden = tuple(sorted(hidden))
        self.storable = version is not None

    @classmethod
    def of(cls, function: Any) -> CallableMetric:
        """The function as a metric, if it is none yet."""
        return function if isinstance(function, cls) else cls(function)

    def among(self, name: str, hidden: Collection[str]) -> CallableMetric:
        """The same function under this name, without sight of these fields."""
        output = replace(self.output, name=name)
        return CallableMetric(self.function, name=name, output=output, version=self.version, hidden=hidden)

    @property
    def name(self) -> str:
        """The name of the column."""
        return self._name

    @property
    def output(self) -> Output:
        """The range of the number, and which end is better."""
        return self._output

    @property
    def card(self) -> MetricCard:
        """A card with all that is known: the name."""
        return MetricCard(
            name=self.name,
            kind="callable",
            summary=f"The number that the function {self.name} returns.",
            formula="Whatever the function computes.",
            outputs=(self.output,),
            cost="model",
            backend="the caller",
            backend_license="unknown",
        )

    def fingerprint(self) -> str:
        """A hash of name and version; without a version, of this very object."""
        blind = [list(self.hidden)] if self.hidden else []
        return content_hash("callable", self.name, self.version or f"unversioned {id(self.function)}", *blind)

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Call the function on rows, one after the other."""
        return [self._judge(row, run) for row in rows]

    def _judge(self, row: dspy.Example, run: int) -> Judgement:
        started = time.perf_counter()
        blind = [name for name in self.hidden if name in row]
        row = self._visible(row)
        try:
            answer = self.function(row, dspy.Prediction(**row.toDict()))
        except JudgementFailed as problem:
            return self._failed(Status(problem.status), str(problem), run, problem.usage or Usage())
        except DSPyError as problem:
            return self._failed(Status.TRANSPORT, _one_line(problem), run)
        except Exception as problem:  # the caller's own code, of which one bad row must not cost all the others
            said = f"the function {self.name} raised {type(problem).__name__}: {_one_line(problem)}"
            unseen = f"; hidden from it: {', '.join(blind)}" if blind else ""
            return self._failed(Status.UNPARSABLE, said + unseen, run)
        return self._judgement(answer, run, time.perf_counter() - started)

    def _visible(self, row: dspy.Example) -> dspy.Example:
        """The row without hidden fields and columns."""
        if self.hidden:
            row = row.without(*(name for name in self.hidden if name in row))
            if "columns" in row:
                row["columns"] = {name: one for name, one in row["columns"].items() if name not in self.hidden}
        return row

    def _judgement(self, answer: Any, run: int, seconds: float) -> Judgement:
        feedback = str(answer.get("feedback") or "") if isinstance(answer, dspy.Prediction) else ""
        number = answer.get("score") if isinstance(answer, dspy.Prediction) else answer
        usage = Usage(seconds=seconds)
        if isinstance(answer, dspy.Prediction) and "score" not in answer:
            return self._failed(Status.UNPARSABLE, f"{self.name} returned a Prediction without score", run, usage)
        raw = _number(number)
        if raw is None:
            return self._failed(Status.UNPARSABLE, f"{self.name} returned {str(number)[:100]!r}, no number", run, usage)
        low, high = self.output.low, self.output.high
        if not math.isfinite(raw):
            return self._failed(Status.UNPARSABLE, f"{self.name} returned {raw}", run, usage)
        if (low is not None and raw < low) or (high is not None and raw > high):
            return self._failed(Status.OUT_OF_RANGE, f"{self.name} returned {raw:g}, outside its range", run, usage)
        return Judgement(self.name, raw, self.output.score(raw), feedback, run=run, usage=usage)

    def _failed(self, status: Status, error: str, run: int, usage: Usage | None = None) -> Judgement:
        return Judgement(self.name, status=status, error=error, run=run, usage=usage or Usage())

    def to_state(self) -> dict[str, Any]:
        """Name, hidden fields and range; no code."""
        own = self.output
        span = {"low": own.low, "high": own.high, "half": own.half, "higher_is_better": own.higher_is_better}
        return {"kind": "callable", "name": self.name, "hidden": list(self.hidden), "output": span}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], function: Callable[..., Any]) -> CallableMetric:
        """Build a metric from `to_state`'s result and the function that it stands for."""
        own, name = cls.of(function), state["name"]
        output = Output(name, **state["output"])
        return cls(own.function, name=name, output=output, version=own.version, hidden=state["hidden"])


def _check_signature(function: Any) -> None:
    """Refuse a value that cannot be called with an example and a prediction; builtins without a signature pass."""
    name = getattr(function, "__name__", None) or repr(function)
    wanted = "give a function of (example, pred) that returns a number; further parameters need defaults"
    if not callable(function):
        raise OptionError(f"{function!r} is no function; {wanted}")
    if isinstance(function, dspy.Module):
        raise OptionError(f"{type(function).__name__} is a program, which takes texts by keyword; {wanted}")
    if inspect.iscoroutinefunction(function):
        raise OptionError(f"{name} is a coroutine function, which returns no number; {wanted}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind("example", "pred")
    except TypeError as problem:
        raise OptionError(f"{name}{signature} cannot be called as (example, pred): {problem}; {wanted}") from problem


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
