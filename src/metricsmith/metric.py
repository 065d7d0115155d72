"""What every metric has in common: the protocol, the texts of a row, and the callable that DSPy takes.

Bank metrics, judges and induced metrics are interchangeable because they share this contract
and nothing else; there is no base class.
"""

from __future__ import annotations

import copy
import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError, JudgementFailed
from metricsmith.records import Judgement, MetricCard, Output

__all__ = ["Asker", "Composite", "DSPyMetric", "Metric", "RowText", "content_hash", "make_row", "row_text"]


@runtime_checkable
class Metric(Protocol):
    """Anything that gives one number per row."""

    @property
    def name(self) -> str:
        """The output's name, unique among the metrics of a run."""

    @property
    def card(self) -> MetricCard:
        """The card of the metric's family."""

    @property
    def output(self) -> Output:
        """Range and direction of this metric's number."""

    def fingerprint(self) -> str:
        """A hash of everything that changes the number."""

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """One judgement per row, in order; failures are judgements too, never exceptions."""

    def as_metric(self, *, success_at: float = 0.5, **fields: str) -> DSPyMetric:
        """The five-argument callable for DSPy; `fields` maps our names to the caller's."""

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state with its ``kind``, from which `metricsmith.load` builds an equal metric."""


@runtime_checkable
class Composite(Protocol):
    """A metric that asks nothing itself: its number follows from those of its parts.

    The scoring engine judges the parts (each once, however many metrics share it) and puts them together.
    """

    def parts(self, run: int) -> Sequence[tuple[Metric, int]]:
        """The p metrics that repetition `run` rests on, each with the repetition of its own to take."""

    def combined(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raw numbers from those of the parts, shape (n, p) -> (n,); NaN in for a missing part, NaN out for none."""

    def verdict(self, parts: Sequence[Judgement], run: int) -> Judgement:
        """The judgement of one row from those of its p parts; its usage is the sum of theirs."""


@runtime_checkable
class Asker(Protocol):
    """Who sends the request that answers for one metric, or for several at once.

    A metric that costs model calls names its asker in the attribute ``asker``: a judge names itself, the
    members of a panel name their panel.
    """

    @property
    def numbers(self) -> int:
        """How many numbers one answer holds, whatever part of them is wanted: the number of criteria asked for."""

    def fingerprint(self) -> str:
        """A hash of everything that changes the answer, the language model aside."""

    def ask(self, metrics: Sequence[Metric], row: dspy.Example, runs: Sequence[int]) -> list[list[Judgement]]:
        """Judge one row by the given metrics of this asker, once for each of `runs`.

        With one run this is one request (retries and repairs aside); with several, one request carries them
        all where the provider takes ``n``.

        Returns
        -------
        list of list of Judgement
            ``result[j][r]`` is metric j in ``runs[r]``; failures are judgements too, never exceptions. What a
            request cost stands in exactly one of the judgements that it answered.
        """

    def messages(self, row: dspy.Example) -> list[dict[str, Any]]:
        """The chat messages that `ask` sends for `row`, for estimates and tests."""


@dataclass(frozen=True, slots=True)
class RowText:
    """The texts of one row. `input` and `context` are empty where the row has none."""

    output: str
    input: str = ""
    references: tuple[str, ...] = ()
    context: str = ""


def make_row(
    output: str, *, input: str = "", references: Sequence[str] = (), context: str = "", **labels: Any
) -> dspy.Example:
    """Build a row: a `dspy.Example` whose inputs are the texts and whose labels are everything else.

    Parameters
    ----------
    output : str
        The text to judge.
    input, context : str
        What the output answers; left out of the row when empty.
    references : sequence of str
        Gold outputs, in order.
    **labels
        ``id``, ``group``, ``system``, ``rater``, the rating under the task's target name, and so on.
    """
    texts: dict[str, Any] = {"output": output}
    if input:
        texts["input"] = input
    if references:
        texts["references"] = list(references)
    if context:
        texts["context"] = context
    return dspy.Example(**labels, **texts).with_inputs(*texts)


def row_text(row: Any, fields: Mapping[str, str] | None = None, pred: Any = None) -> RowText:
    """Read the texts of `row`, the output from `pred` if one is given.

    Parameters
    ----------
    row : dspy.Example or Prediction
        Has the texts under our names, or under those that `fields` gives.
    fields : mapping of str to str, optional
        Ours to theirs, for example ``{"input": "question", "output": "answer"}``.
    pred : dspy.Prediction or str, optional
        The new output; None means the row's own.

    Raises
    ------
    DataError
        If there is no output text.
    """
    names = {"input": "input", "output": "output", "references": "references", "context": "context"}
    names.update(fields or {})
    source = row if pred is None else pred
    output = source if isinstance(source, str) else source.get(names["output"])
    if output is None:
        raise DataError(
            f"no field {names['output']!r} in {sorted(source.keys())}: name the output field with output=..."
        )
    references = row.get(names["references"]) or ()
    if isinstance(references, str):
        references = (references,)
    return RowText(
        output=str(output),
        input=str(row.get(names["input"]) or ""),
        references=tuple(str(reference) for reference in references),
        context=str(row.get(names["context"]) or ""),
    )


class DSPyMetric:
    """A metric in the shape that DSPy's Evaluate and optimisers call.

    Returns a `dspy.Prediction` with ``score`` in [0, 1] and ``feedback``. While DSPy bootstraps
    demonstrations (``trace`` given, ``pred_name`` not) it returns ``score >= success_at`` instead,
    because a Prediction is always truthy. Equal texts are judged once (GEPA asks twice and pays twice),
    as long as the metric's instructions and settings stay the same.

    Parameters
    ----------
    metric : Metric
        Who judges.
    fields : mapping of str to str
        Our names (``input``, ``output``, ``references``, ``context``) to the caller's.
    success_at : float
        The bar for a bootstrapped demonstration.

    Attributes
    ----------
    failures : int
        How many calls had no value. DSPy books those as 0: discard a candidate that has any.

    Raises
    ------
    JudgementFailed
        When the judgement has no value.
    """

    def __init__(self, metric: Metric, fields: Mapping[str, str] | None = None, success_at: float = 0.5) -> None:
        self.metric = metric
        self.fields = dict(fields or {})
        self.success_at = success_at
        self.failures = 0
        self._known: dict[str, Judgement] = {}
        self._lock = threading.Lock()
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def __deepcopy__(self, memo: dict[int, Any]) -> DSPyMetric:
        return DSPyMetric(copy.deepcopy(self.metric, memo), self.fields, self.success_at)

    def __call__(
        self, example: Any, pred: Any = None, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        """Judge `pred` (or the example's own output, with the columns that it brings along)."""
        columns = example.get("columns") if pred is None else None
        judgement = self._judge(row_text(example, self.fields, pred), columns)
        if judgement.score is None:
            with self._lock:
                self.failures += 1
            raise JudgementFailed(f"{self.metric.name}: {judgement.error}", judgement.status, judgement.usage)
        if trace is not None and pred_name is None:
            return judgement.score >= self.success_at
        return dspy.Prediction(score=judgement.score, feedback=judgement.feedback)

    def _judge(self, text: RowText, columns: Mapping[str, float] | None) -> Judgement:
        """Judge once per text and state of the metric, also when several threads ask at the same time."""
        key = content_hash(
            self.metric.fingerprint(), text.input, text.output, list(text.references), text.context, columns
        )
        with self._lock:
            asking = self._asking[key]
        with asking:
            known = self._known.get(key)
            if known is None:
                labels = {"columns": columns} if columns else {}
                row = make_row(
                    text.output, input=text.input, references=text.references, context=text.context, **labels
                )
                known = self.metric.judge_batch([row])[0]
                if known.ok:
                    self._known[key] = known
        return known


def content_hash(*parts: Any) -> str:
    """A 16-hex-digit hash of JSON-ready parts; order counts and parts never run together."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=_whole)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _whole(value: Any) -> Any:
    """What JSON does not know: arrays in full (as text they are cut short), everything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
