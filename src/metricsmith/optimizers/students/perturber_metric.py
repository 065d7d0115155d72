"""A metric for DSPy's optimisers whose student is a perturber: what another metric makes of its outputs."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dspy

from metricsmith.errors import DataError, JudgementFailed, ModelFailure
from metricsmith.metric import Memo, content_hash, make_row, row_text
from metricsmith.model_calls.calls import Call, model_call
from metricsmith.model_calls.models import using
from metricsmith.optimizers.students.episodes import Originals
from metricsmith.programs.perturbers.base import Source
from metricsmith.programs.perturbers.generated import MOST, Worsen, told_apart
from metricsmith.programs.perturbers.generation import (
    concurrently,
    worded,
)
from metricsmith.programs.state import module_fingerprint
from metricsmith.records import Usage
from metricsmith.scoring import score
from metricsmith.scoring.plan import as_metric, plan
from metricsmith.signatures.perturbation import Strategy

__all__ = ["PerturberMetric"]

THREADS = 8


@dataclass(frozen=True, slots=True)
class Change:
    """What the metric says of one changed output: raw numbers and scores, or why there is nothing to say."""

    strategy: str
    before: float
    after: float
    lost: bool = False
    moved: float = 0.0
    declined: str = ""


class PerturberMetric:
    """Measures what `Worsen`, `Preserve` or `DegradationStrategies` did, by another metric.

    Damaged outputs: the share that scores strictly below the original; one that was given back unchanged or twice is
    none of them. Preserved outputs: one minus the absolute change of the score in [0, 1]; where the output was not
    changed, or the model declined, 0, because nothing was shown. Strategies: `worsen` applies them to the outputs
    that the example keeps for it.

    Parameters
    ----------
    metric : Metric
        Or a panel's member, or a function as DSPy's Evaluate takes it. One that people agree with: a student learns
        to fool whatever stands here.
    worsen : Worsen, optional
        Applies strategies; a tuned one, say.
    lm : dspy.LM, optional
        For `metric` and `worsen`; None takes the one in force.
    success_at : float
        The bar for a bootstrapped demonstration.
    **scoring
        Options of `scoring.score`, such as ``store`` and ``concurrency``.

    Attributes
    ----------
    failures : int
        How many calls had no value: DSPy books those as 0.
    usage : Usage
        What all measurements have cost.
    """

    def __init__(
        self, metric: Any, *, worsen: Worsen | None = None, lm: Any = None, success_at: float = 0.5, **scoring: Any
    ) -> None:
        self.metric = as_metric(metric)
        self.worsen = worsen or Worsen()
        self.lm = lm
        self.success_at = success_at
        self.scoring = scoring
        self.failures = 0
        self.usage = Usage()
        self._lock = threading.Lock()
        self._memo: Memo[tuple[float, str]] = Memo()

    def __deepcopy__(self, memo: dict[int, Any]) -> PerturberMetric:
        return PerturberMetric(
            self.metric, worsen=self.worsen, lm=self.lm, success_at=self.success_at, **copy.copy(self.scoring)
        )

    def requests(self, example: Any) -> int:
        """How many requests one measurement takes at most, retries aside."""
        with using(self.lm):
            judged = sum(len(group.by_run) for group in plan([self.metric]).groups)
        if "examples" in example:
            originals = len(_originals(example).sources)
            return originals * (1 + (1 + MOST) * judged)
        return (1 + len(example.get("strategies") or [""])) * judged

    def __call__(
        self, example: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        """Measure one answer; equal answers to one example are measured once.

        Raises
        ------
        JudgementFailed, ModelFailure
            If an output has no score, or cannot be made.
        DataError
            If the prediction is none of the three, or the example has no outputs to try strategies on.
        NeedsError
            If a language model is needed and none is set.
        """
        key = content_hash(
            self.metric.fingerprint(), module_fingerprint(self.worsen), _content(example), _content(pred)
        )
        try:
            with using(self.lm):
                found, feedback = self._memo.get(key, lambda: self._measure(example, pred), lambda _: True)
        except (JudgementFailed, ModelFailure):
            with self._lock:
                self.failures += 1
            raise
        if trace is not None and pred_name is None:
            return found >= self.success_at
        return dspy.Prediction(score=found, feedback=feedback)

    def _measure(self, example: Any, pred: Any) -> tuple[float, str]:
        if "strategies" in pred:
            sources, plans = _originals(example).sources, list(pred.strategies)
            names = [one.name for one in plans]
            return _lost(self._changes(sources, [names] * len(sources), self._applied(example, plans)))
        if "outputs" in pred:
            names = [one.name for one in example.strategies]
            return _lost(self._changes([_source(example)], [names], [pred.outputs]))
        if "declined" not in pred:
            raise DataError(
                f"a prediction with {', '.join(pred.keys()) or 'no fields'} is not from Worsen, Preserve or "
                "DegradationStrategies: give one of these as the student"
            )
        if pred.declined:
            return 0.0, f"The model declined, so that nothing was shown: {pred.declined}"
        return _moved(self._changes([_source(example)], [["preserve"]], [[pred.output]])[0])

    def _applied(self, example: Any, strategies: Sequence[Strategy]) -> list[Sequence[str]]:
        """Outputs by source, made by `worsen`."""
        label = _originals(example)

        def ask(source: Source) -> Call:
            return model_call(
                self.worsen, task=label.task, dimension=worded(label.axis), strength=label.strength,
                strategies=strategies, output=source.output, input=source.input, references=source.references,
                context=source.context,
            )  # fmt: skip

        calls = concurrently([partial(ask, source) for source in label.sources], THREADS)
        self._pay(sum((call.usage for call in calls), Usage()))
        return [call.result().outputs for call in calls]

    def _changes(
        self, sources: Sequence[Source], names: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]
    ) -> list[Change]:
        """Score originals and changed outputs in one run; `JudgementFailed` where one has no score.

        What was declined scores as the original does, and so is no loss.
        """
        told = [
            told_apart(given, named, source.output)
            for source, named, given in zip(sources, names, outputs, strict=True)
        ]
        rows = [
            _row(source, output)
            for source, kept in zip(sources, told, strict=True)
            for output in (None, *(output for output, _ in kept))
        ]
        table = score([self.metric], rows, **{"progress": False, **self.scoring})
        self._pay(table.usage)
        failed = next((judgement for judgement in table.column(0) if not judgement.ok), None)
        if failed is not None:
            raise JudgementFailed(f"{self.metric.name}: {failed.error}", failed.status)
        values = iter(table.run()[:, 0].tolist())
        return [
            self._change(name, before, next(values), reason)
            for place, kept in enumerate(told)
            for before in [next(values)]
            for name, (_, reason) in zip(names[place], kept, strict=True)
        ]

    def _change(self, name: str, before: float, after: float, reason: str) -> Change:
        output = self.metric.output
        lost = after < before if output.higher_is_better else after > before
        return Change(name, before, after, lost, abs(output.score(after) - output.score(before)), reason)

    def _pay(self, usage: Usage) -> None:
        with self._lock:
            self.usage += usage


def _originals(example: Any) -> Originals:
    label = getattr(example, "label", None)
    if not isinstance(label, Originals):
        raise DataError("the example has no outputs to try strategies on: make episodes with strategy_episodes")
    return label


def _source(example: Any) -> Source:
    text = row_text(example)
    return Source(text.output, text.input, text.context, text.references)


def _row(source: Source, output: str | None) -> dspy.Example:
    """The source with another output, or with its own."""
    text = source.output if output is None else output
    return make_row(text, input=source.input, references=source.references, context=source.context)


def _content(thing: Any) -> Any:
    label = getattr(thing, "label", None)
    return [thing.toDict(), repr(label.sources) if isinstance(label, Originals) else ""]


def _lost(changes: Sequence[Change]) -> tuple[float, str]:
    """The share of the outputs that score lower, and which strategies do it, in words."""
    lines = [
        f"{sum(change.lost for change in changes)} of {len(changes)} damaged outputs score worse than the original."
    ]
    for name in dict.fromkeys(change.strategy for change in changes):
        own = [change for change in changes if change.strategy == name]
        told = "; ".join(
            change.declined or f"{change.before:.4g} -> {change.after:.4g}{'' if change.lost else ', not worse'}"
            for change in own
        )
        lines.append(f"{name!r}, worse in {sum(change.lost for change in own)} of {len(own)}: {told}.")
    return math.fsum(change.lost for change in changes) / len(changes), " ".join(lines)


def _moved(change: Change) -> tuple[float, str]:
    if change.declined:
        return 0.0, f"Nothing was shown: {change.declined}."
    return 1 - change.moved, f"The score moved by {change.moved:.2f}: {change.before:.4g} -> {change.after:.4g}."
