"""A metric in the shape that DSPy calls: a score in [0, 1], and the faults of the output in words."""

from __future__ import annotations

import copy
import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypedDict, Unpack, cast, runtime_checkable

import dspy

from metricsmith.errors import DataError, JudgementFailed, MetricsmithError, NeedsError, OptionError
from metricsmith.metric import Explanation, FieldNames, Metric, RowText, content_hash, judged_row, make_row, row_text
from metricsmith.outcomes import FailedRow, Outcome, RewardCheck
from metricsmith.records import Judgement, Status, Usage
from metricsmith.rendering import bounded, render_output
from metricsmith.threads import Memo

__all__ = ["DSPyCallable", "DSPyMetric", "Reward", "RewardOptions"]

SHORTEST = 100  # characters of feedback below which not even the score and a reason fit
TURN_SHARE = 4  # at most this part of the feedback shows the predictor's output: the reasons matter more
FIRST_WARNINGS = 10  # failed rows that are named one by one in the log; from there on every tenfold number
ROUNDING = 1e-9  # a share that is exactly the least one passes, however its weights were added up
OWN: Any = object()  # no prediction was passed: the example's own output; a program that crashed passes None
COLUMNS = {"input": "inputs", "output": "output", "references": "reference", "context": "context"}
"""Our names of the texts, and the options of `read_table` that name their columns."""
_log = logging.getLogger(__name__)


class RewardOptions(TypedDict, total=False):
    """The options of `Reward` beside the metric."""

    input: FieldNames
    output: FieldNames
    references: FieldNames
    context: FieldNames
    success_at: float
    feedback_chars: int
    least_weight: float
    lm: Any


class DSPyMetric:
    """Base of the metrics that DSPy's Evaluate and optimisers call with five arguments.

    A subclass measures; this class gives the number the form that its caller needs. A `dspy.Prediction` with
    ``score`` and ``feedback`` is the rule. While DSPy bootstraps demonstrations (`trace` given, `pred_name` not) it is
    the bool ``score >= success_at``, because a Prediction is always truthy; to BestOfN and Refine, which pass the
    program's inputs as a dict, it is the score as a float.
    """

    success_at: float
    judges_own_output: ClassVar[bool] = False

    def measured(self, example: Any, pred: Any, pred_name: Any, pred_trace: Any) -> tuple[float | None, str]:
        """Returns score and feedback for one answer; a score of None is allowed where `pred_name` is given."""
        raise NotImplementedError

    def __call__(
        self, example: Any, pred: Any = OWN, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        """Measure `pred`, the answer of a program to `example`; with `pred_name`, for this predictor of it."""
        if pred is OWN and not self.judges_own_output:
            raise TypeError(f"{type(self).__name__}.__call__() missing 1 required positional argument: 'pred'")
        score, feedback = self.measured(example, pred, pred_name, pred_trace)
        if pred_name is None and score is not None:
            if trace is not None:
                return score >= self.success_at
            if isinstance(example, Mapping):  # Refine shows the number to a model, and cannot show a Prediction
                return score
        return dspy.Prediction(score=score, feedback=feedback)


@dataclass(frozen=True, slots=True)
class _Result:
    """The reward of one output with its reasons, or the failure; `score` is None where there is no reward."""

    score: float | None
    lines: tuple[str, ...] = ()
    status: Status = Status.OK
    error: str = ""
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class _Explains(Protocol):
    """A metric that can take its number apart, as `InducedMetric` does."""

    def explain(self, rows: Sequence[dspy.Example], /) -> Sequence[Explanation]: ...


class _Ledger:
    """The memory of a reward, shared with its copies: DSPy may copy a metric, and nothing must get lost in them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.memo: Memo[_Result] = Memo()
        self.calls = self.judged = 0
        self.failed: dict[str, FailedRow] = {}
        self.failing: dict[str, _Result] = {}
        self.told: set[str] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Ledger:
        return self

    def __reduce__(self) -> tuple[type[_Ledger], tuple[()]]:
        return _Ledger, ()  # a pickled metric begins anew


class Reward(DSPyMetric):
    """A metric in the shape that Evaluate, GEPA, MIPROv2, SIMBA, BootstrapFewShot, BestOfN and Refine call.

    Called with an example and a prediction it returns a `dspy.Prediction` with ``score`` in [0, 1] and
    ``feedback``. While DSPy bootstraps demonstrations (`trace` given, `pred_name` not) it returns the bool
    ``score >= success_at`` instead, because a Prediction is always truthy; to BestOfN and Refine, which pass the
    program's inputs as a dict, it returns the score as a float. Called with an example alone it judges the
    example's own output. Equal outputs of a row are judged once by a model and its settings; the second call that
    GEPA makes to get feedback for one predictor (`pred_name` given) never sends a request.

    An induced metric is taken apart: components without a value are left out, the weights of the others scaled
    up to the same total (`Explanation.renormalised`), and the feedback names those left out and then the
    components that cost the output rating points, the costliest first, with the judges' reasons. Any other
    metric's own feedback is passed on.

    DSPy books an output without a reward as its ``failure_score``, 0 unless told otherwise. `failures` lists
    them; the first ten are logged as warnings, and from there on every tenfold number. `check` measures a
    compiled program without them.

    Parameters
    ----------
    metric : Metric
    input, output, references, context : str or sequence of str
        The caller's names of these fields. Several names stand for these fields together, each under its name;
        those of `references` for the references of each. By default the columns of the table that an induced
        metric was trained on, where example or prediction have them, and else our own names. What is no text is
        rendered by `metricsmith.rendering.render_output`.
    success_at : float
        The bar for a bootstrapped demonstration, in [0, 1].
    feedback_chars : int
        The longest feedback, in characters, at least 100. Longer ones end at a word, and say so.
    least_weight : float
        The share of an induced metric's absolute weight, in (0, 1], that must have a value for a reward.
    lm : dspy.LM, optional
        The model that judges; by default the one in force, which in an optimiser is the program's own.

    Raises
    ------
    JudgementFailed
        When called: if there is no output, too little of the weight has a value, or the judgement failed. A
        feedback call raises nothing then, for an error would take the whole proposal with it; its ``score`` is None,
        which GEPA replaces by its own.
    NeedsError
        When called: if the metric needs references and a dict of inputs has none. An induced metric only logs it,
        and leaves out what needs them.
    OptionError
        If an option is out of range.
    """

    judges_own_output = True

    def __init__(
        self,
        metric: Metric,
        *,
        input: FieldNames | None = None,
        output: FieldNames | None = None,
        references: FieldNames | None = None,
        context: FieldNames | None = None,
        success_at: float = 0.5,
        feedback_chars: int = 2000,
        least_weight: float = 0.5,
        lm: Any = None,
    ) -> None:
        if feedback_chars < SHORTEST:
            raise OptionError(f"feedback_chars={feedback_chars} is too short to say anything: give {SHORTEST} or more")
        for name, share in (("success_at", success_at), ("least_weight", least_weight)):
            if not 0 <= share <= 1 or (name == "least_weight" and share == 0):
                raise OptionError(f"{name}={share} is no share: give a number from 0 to 1, say 0.5")
        self.metric = metric
        names = {"input": input, "output": output, "references": references, "context": context}
        self.fields = {ours: theirs for ours, theirs in names.items() if theirs is not None}
        self.success_at = success_at
        self.feedback_chars = feedback_chars
        self.least_weight = least_weight
        self.lm = lm
        self._ledger = _Ledger()

    def __deepcopy__(self, memo: dict[int, Any]) -> Reward:
        twin = copy.copy(self)
        twin.metric = copy.deepcopy(self.metric, memo)
        return twin

    def measured(self, example: Any, pred: Any, pred_name: Any, pred_trace: Any) -> tuple[float | None, str]:
        """Judge `pred` for `example`; errors as for the class."""
        inputs = isinstance(example, Mapping)
        if not inputs and not isinstance(example, dspy.Example):
            raise DataError(
                f"{self.metric.name} was called with {example!r:.80}, which is no example: give a dspy.Example or dict "
                "of inputs, then the prediction; a metric itself takes a text: metric(output, input=...)"
            )
        result = self._result(dspy.Example(dict(example)) if inputs else example, pred, pred_name is None, inputs)
        head, *lines = result.lines
        if pred_name is not None:
            turn = f"This is about the step {pred_name!r} of the program"
            given = pred_trace[-1][2] if pred_trace else None  # an entry is (predictor, inputs, output)
            shown = "" if given is None else bounded(render_output(given), self.feedback_chars // TURN_SHARE)
            lines = [f"{turn}." if given is None else f"{turn}, which gave:\n{shown}", *lines]
        elif result.score is None:
            raise JudgementFailed(result.error, result.status, result.usage)
        return result.score, bounded("\n".join([head, *lines]), self.feedback_chars)

    def text(self, example: Any, pred: Any = OWN) -> RowText:
        """The texts to judge: `pred` or the example's own output, and the example's other texts."""
        reading, fields = getattr(self.metric, "reading", {}), dict(self.fields)
        for ours, option in COLUMNS.items():
            source = example if ours != "output" or pred is OWN else pred
            if ours not in fields and isinstance(source, dspy.Example | Mapping):
                columns = reading.get(option) or ()
                named = [columns] if isinstance(columns, str) else list(columns)
                there = [name for name in named if source.get(name) is not None]
                if there:
                    fields[ours] = there if len(named) > 1 else there[0]
        return row_text(example, fields, None if pred is OWN else pred)

    @property
    def failures(self) -> tuple[FailedRow, ...]:
        """Every output that got no reward, in the order of its first failure."""
        with self._ledger.lock:
            return tuple(self._ledger.failed.values())

    def report(self) -> str:
        """The numbers of calls and judgements, and the rows that got no reward, in words."""
        failures, ledger = self.failures, self._ledger
        lines = [f"{ledger.calls} calls, {ledger.judged} judged, {len(failures)} outputs without a reward"]
        return "\n".join([lines[0] + (", which DSPy booked as 0:" if failures else ""), *map("  {}".format, failures)])

    def check(self, program: Any, rows: Sequence[dspy.Example], *, num_threads: int | None = None) -> RewardCheck:
        """Run `program` on rows and reward it, failures apart, which `dspy.Evaluate` counts as 0 in its mean.

        Do this with every compiled program. An output that the optimiser had judged is not judged again. A program
        with failures is logged as a warning.

        Parameters
        ----------
        program : callable
            Takes a row's inputs by keyword.
        rows : sequence of dspy.Example
            With their inputs marked.
        num_threads : int, optional
            DSPy's setting by default.
        """
        runner = dspy.Parallel(
            num_threads=num_threads or dspy.settings.num_threads, max_errors=len(rows) + 1, access_examples=False,
            disable_progress_bar=True, timeout=0,
        )  # fmt: skip
        checked = RewardCheck(tuple(runner([(lambda row: self._outcome(program, row), row) for row in rows])))
        if checked.failures:
            _log.warning("%s", checked)
        return checked

    def _outcome(self, program: Any, row: dspy.Example) -> Outcome:
        try:
            prediction = program(**row.inputs())
        except Exception as problem:  # the caller's program, of which one bad row must not cost all the others
            return Outcome(row, None, math.nan, f"the program failed: {type(problem).__name__}: {problem!s:.300}")
        try:
            return Outcome(row, prediction, float(self(row, prediction).score))
        except MetricsmithError as problem:
            return Outcome(row, prediction, math.nan, str(problem))

    def _result(self, example: Any, pred: Any, again: bool, inputs: bool) -> _Result:
        """The result for this output, remembered or new; a failed judgement is made anew only with `again`."""
        ledger = self._ledger
        with ledger.lock:
            ledger.calls += 1
        key, output = content_hash(example.toDict()), ""
        try:
            if pred is None:
                raise JudgementFailed("the program gave no output", Status.SKIPPED)
            text = self.text(example, pred)
            row = judged_row(self.metric, example, text, own=pred is OWN)
            key, output = content_hash(self.metric.fingerprint(), row.toDict(), self._models()), text.output
            if inputs and not any(text.references):
                self._without_references(example)
            failing = None if again else ledger.failing.get(key)
            result = failing or ledger.memo.get(key, lambda: self._judge(row), lambda new: new.score is not None)
        except Exception as problem:  # raised again: DSPy books a row for whatever is raised here, so it is listed
            self._book(key, example, output, str(getattr(problem, "status", type(problem).__name__)), str(problem))
            raise
        if result.score is not None:
            ledger.failing.pop(key, None)
        elif again:
            ledger.failing[key] = result
            self._book(key, example, output, result.status, result.error)
        return result

    def _models(self) -> list[Any]:
        """The models that may judge, with their settings: another one is asked anew."""
        own = [one.lm for one in self.metric.predictors()] if isinstance(self.metric, dspy.Module) else []
        return [
            [str(lm.model), {key: value for key, value in lm.kwargs.items() if key != "rollout_id"}]
            for lm in (self.lm or dspy.settings.lm, *own)
            if lm is not None
        ]

    def _without_references(self, inputs: dspy.Example) -> None:
        """Refuse or warn where the metric needs references: a dict of a program's inputs rarely has them."""
        if "references" not in self.metric.card.needs:
            return
        problem = (
            f"{self.metric.name} needs references, and the inputs {sorted(inputs.keys())}, as dspy.BestOfN and "
            "dspy.Refine pass them, have none: make them an input of the program and name it with references=..., or "
            "take a metric that needs none"
        )
        if not isinstance(self.metric, _Explains):
            raise NeedsError(problem)
        if problem not in self._ledger.told:
            self._ledger.told.add(problem)
            _log.warning("%s; until then the components that need them are left out", problem)

    def _judge(self, row: dspy.Example) -> _Result:
        with self._ledger.lock:
            self._ledger.judged += 1
        own = {"lm": self.lm} if self.lm else {}
        with dspy.context(trace=[], caller_modules=[], **own):  # the program's trace and history are not for judges
            if isinstance(self.metric, _Explains):
                return self._weighed(self.metric.explain([row])[0])
            judgement = self.metric.judge_batch([row])[0]
        if judgement.score is None:
            return self._failed(judgement.error, judgement.status, judgement.usage)
        reasons = [judgement.feedback] if judgement.feedback else []
        return _Result(judgement.score, (_head(judgement.score), *reasons), usage=judgement.usage)

    def _weighed(self, explanation: Explanation) -> _Result:
        """The renormalised score, the components left out of it, and those that cost the output most."""
        raw, missing, prediction = explanation.renormalised, explanation.missing, explanation.prediction
        absent = [part for part in explanation.parts if not part.judgement.ok]
        if math.isnan(raw) or 1 - missing < self.least_weight - ROUNDING:
            lacking = f"only {1 - missing:.0%} of the weight has a value, {self.least_weight:.0%} is needed: "
            statuses = [part.judgement.status for part in absent]  # a model's failure comes before a mere lack
            status = next((status for status in statuses if status is not Status.SKIPPED), statuses[0])
            return self._failed(lacking + "; ".join(map(str, absent)), status, prediction.usage)
        costly = sorted((part for part in explanation.parts if part.cost >= 0.005), key=lambda part: -part.cost)
        lines = [f"Left out of the score, the other weights scaled up: {part}" for part in absent]
        score = prediction.score if not missing and prediction.score is not None else self.metric.output.score(raw)
        reasons = [str(part) for part in costly] or ["No component sees a loss."]
        return _Result(score, (_head(score), *lines, *reasons), usage=prediction.usage)

    def _failed(self, error: str, status: Status, usage: Usage) -> _Result:
        error = f"{self.metric.name}: {error}"
        lines = (f"This output could not be judged, so nothing is known of its quality. {error}",)
        return _Result(None, lines, status, error, usage)

    def _book(self, key: str, row: Any, output: str, status: str, error: str) -> None:
        ledger = self._ledger
        with ledger.lock:
            known = ledger.failed.get(key)
            failed = replace(known, times=known.times + 1) if known else FailedRow(row, output, status, error)
            ledger.failed[key] = failed
            count = len(ledger.failed)
        if known is None and (count <= FIRST_WARNINGS or math.log10(count).is_integer()):
            _log.warning("no reward for %s, DSPy books it as a failure (%d so far)", failed, count)


class DSPyCallable:
    """Base of the metrics that DSPy calls: called with rows or predictions, a metric is its own `Reward`.

    One that is a module is called by keyword as a student besides: `metricsmith.programs.judges.base.MetricProgram`.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Judge ``(example, pred, trace, pred_name, pred_trace)`` as `Reward` does, or one bare text.

        A text is the output, with the row's other fields by keyword: ``metric(output, references=...)``.
        """
        if len(args) == 1 and isinstance(args[0], str):
            return self.prediction(cast(Metric, self).judge_batch([make_row(args[0], **kwargs)])[0])
        reward = self.as_metric()
        reward._ledger = self.__dict__.setdefault("_ledger", reward._ledger)
        return reward(*args, **kwargs)

    def prediction(self, judgement: Judgement) -> dspy.Prediction:
        """A judgement as a Prediction with ``score``, ``raw`` and ``feedback``, or `JudgementFailed`."""
        if not judgement.ok:
            raise JudgementFailed(judgement.error, judgement.status, judgement.usage)
        return dspy.Prediction(score=judgement.score, raw=judgement.raw, feedback=judgement.feedback)

    def as_metric(self, **options: Unpack[RewardOptions]) -> Reward:
        """The five-argument callable for DSPy's Evaluate and optimisers; options as for `metricsmith.Reward`."""
        return Reward(cast(Metric, self), **options)

    as_reward = as_metric


def _head(score: float) -> str:
    return f"Score {score:.2f} on a scale from 0 (worst) to 1 (best)."
