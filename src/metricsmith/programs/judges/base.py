"""What every judge shares: it is a student for DSPy's optimisers and a metric for everybody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import dspy

from metricsmith.errors import DataError, JudgementFailed
from metricsmith.metric import Metric, RowText, row_text
from metricsmith.model_calls.adapters import messages_of, reading_exactly
from metricsmith.model_calls.calls import Call, model_calls
from metricsmith.programs.learned import mark_learned
from metricsmith.programs.state import Saved, Settings, module_fingerprint, module_state, other_model
from metricsmith.programs.texts import marked_anew, shown
from metricsmith.records import Judgement, MetricCard, Output, Scale, Status
from metricsmith.reward import DSPyCallable
from metricsmith.scoring.plan import as_before

__all__ = ["LEVELS", "Judge", "Predictor", "prompt_version", "slug", "without_answer"]

LEVELS = Scale(1, 5, 1)
PROMPT_VERSION = 2  # raise it when the way that texts are shown changes, so that fingerprints change too


def prompt_version() -> int:
    """The version in fingerprints; the one before while judgements of that time are looked for."""
    return PROMPT_VERSION - as_before.get()


class Predictor(dspy.Predict):  # type: ignore[misc]
    """A predictor whose saved demonstrations get today's marks when they are loaded, wherever it stands."""

    demos: list[Any]

    def load_state(self, state: dict[str, Any], **options: Any) -> Predictor:
        """Load as DSPy does, then mark the demonstrations anew."""
        super().load_state(state, **options)
        self.demos = [{name: marked_anew(value) for name, value in dict(demo).items()} for demo in self.demos]
        return self


class Judge(DSPyCallable, Saved):
    """One model call that gives a number on a scale, from 1 to 5 unless the subclass has another, and its reasons.

    Subclasses name their `kind` and `signature`, describe themselves in `card` and say in `question` what
    is asked. `forward` takes the texts of a row by keyword and returns a `dspy.Prediction` with ``score`` in
    [0, 1], ``raw`` on the scale and ``feedback``; it raises `JudgementFailed` where the model gave no such
    number.
    """

    kind: ClassVar[str]
    signature: type[dspy.Signature]
    judged: ClassVar[tuple[str, ...]] = ("input", "output")  # the signature's inputs by which a row is known again

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = Settings(**settings)
        self.judge = Predictor(self.signature)

    @property
    def name(self) -> str:
        """Unique among the metrics of a run; also the name of its column of scores."""
        return str(self.settings.name)

    @property
    def scale(self) -> Scale:
        """Which numbers the model may give."""
        return LEVELS

    @property
    def output(self) -> Output:
        """The scale's range and direction."""
        scale = self.scale
        return Output(self.name, scale.low, scale.high, scale.higher_is_better, description=str(self.settings.meaning))

    @property
    def family_card(self) -> MetricCard:
        """The generated card of a judge whose instruction is its family's."""
        raise NotImplementedError

    def card_with(self, **own: Any) -> MetricCard:
        """A card with what is true of every judge; `own` are the other fields of `MetricCard`."""
        given = {
            "kind": self.kind,
            "outputs": (self.output,),
            "needs": ("model",),
            "cost": "model",
            "multi_reference": "All references are shown, in the order given.",
            "tasks": tuple(filter(None, [self.settings.values.get("task")])),
            "backend": "the language model in force",
            "backend_license": "the model provider's terms",
        }
        return MetricCard(**(given | own))

    @property
    def card(self) -> MetricCard:
        """The generated card; that of a tuned judge shows its instruction before and after."""
        before, after = self.signature.instructions, self.judge.signature.instructions
        return (
            self.family_card
            if before == after
            else replace(self.family_card, instruction_before=before, instruction=after)
        )

    def question(self) -> Mapping[str, str]:
        """The signature's inputs that are the same for every row."""
        return {
            "task": str(self.settings.task),
            "criterion": f"{self.settings.criterion}: {self.settings.meaning}",
        }

    @property
    def examples(self) -> list[Mapping[str, Any]]:
        """The rated examples in the prompt, in order, as DSPy's demos."""
        return list(self.judge.demos)

    def texts(self, text: RowText) -> Mapping[str, str]:
        """The signature's inputs that a row's texts are shown in."""
        return shown(text)

    def example(self, row: dspy.Example, rating: float, reason: str = "") -> Mapping[str, Any]:
        """A rated row as a demo.

        Parameters
        ----------
        row : dspy.Example
            As `metricsmith.metric.make_row` builds it.
        rating : float
            On the scale.
        reason : str
            Why, in the rater's words; without one the demo says that none was given.

        Raises
        ------
        DataError
            If the rating is not on the scale.
        """
        scale = self.scale
        if not scale.contains(rating):
            raise DataError(f"rating {rating!r} is not on the scale {scale}: leave the row out, or give another scale")
        number = int(rating) if float(rating).is_integer() else float(rating)
        why = {"reasoning": reason} if reason else {}
        return dspy.Example(**self.question(), **self.texts(row_text(row)), **why, score=number)  # type: ignore[no-any-return]

    def with_examples(
        self, rows: Sequence[dspy.Example], ratings: Sequence[float], reasons: Sequence[str] | None = None
    ) -> Self:
        """A copy of this judge with these examples and no others.

        Raises
        ------
        DataError
            If lengths differ or a rating is not on the scale.
        """
        words = [""] * len(rows) if reasons is None else list(reasons)
        if not len(rows) == len(ratings) == len(words):
            raise DataError(f"{len(rows)} rows, {len(ratings)} ratings and {len(words)} reasons: give as many of each")
        judge: Self = self.deepcopy()
        judge.judge.demos = [self.example(*parts) for parts in zip(rows, ratings, words, strict=True)]
        mark_learned(judge, rows)
        return judge

    @property
    def request(self) -> Mapping[str, Any]:
        """Settings that each request of this judge carries besides those of the model."""
        return {}

    def forward(
        self, *, output: str, input: str = "", references: Sequence[str] = (), context: str = ""
    ) -> dspy.Prediction:
        """Judge one row."""
        text = RowText(output, input, tuple(references), context)
        with reading_exactly():
            answer = self.judge(**self._arguments(text))
        return self.verdict(answer, text)

    async def aforward(
        self, *, output: str, input: str = "", references: Sequence[str] = (), context: str = ""
    ) -> dspy.Prediction:
        """Judge one row, asynchronously."""
        text = RowText(output, input, tuple(references), context)
        with reading_exactly():
            answer = await self.judge.acall(**self._arguments(text))
        return self.verdict(answer, text)

    def _arguments(self, text: RowText) -> dict[str, Any]:
        """The predictor's arguments for one row."""
        other_model(self, self.judge.lm)
        inputs = {**self.question(), **self.texts(text), "config": dict(self.request)}
        return without_answer(self.judge, inputs, self.judged)

    def verdict(self, answer: Any, text: RowText) -> dspy.Prediction:
        """Read the model's answer about a row: DSPy enforces neither bounds nor finiteness."""
        scale = self.scale
        if not scale.contains(answer.score):
            raise JudgementFailed(f"score {answer.score!r} is not on the scale {scale}", Status.OUT_OF_RANGE)
        return dspy.Prediction(score=scale.unit(answer.score), raw=answer.score, feedback=answer.reasoning)

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Judge rows one after the other on the model in force; `scoring.score` does it concurrently."""
        return [self.ask([self], row, [run])[0][0] for row in rows]

    @property
    def asker(self) -> Self:
        """A judge sends its own requests."""
        return self

    @property
    def numbers(self) -> int:
        """One request brings one number."""
        return 1

    def ask(self, metrics: Sequence[Metric], row: dspy.Example, runs: Sequence[int]) -> list[list[Judgement]]:
        """Judge one row once for each of `runs`; `metrics` holds this judge alone."""
        calls = model_calls(self, runs, **asdict(row_text(row)))
        judgements = [self._judgement(call, run) for call, run in zip(calls, runs, strict=True)]
        return [judgements for _ in metrics]

    def messages(self, row: dspy.Example) -> list[dict[str, Any]]:
        """The chat messages that `ask` sends for `row`."""
        inputs = self._arguments(row_text(row))
        inputs.pop("config")
        demos = inputs.pop("demos", self.judge.demos)
        return messages_of(self.judge.signature, demos, inputs)

    def _judgement(self, call: Call, run: int) -> Judgement:
        if call.prediction is None:
            return Judgement(self.name, status=call.status, error=call.error, run=run, usage=call.usage)
        verdict = call.prediction
        spans = tuple(verdict.get("spans", ()))
        return Judgement(
            self.name, float(verdict.raw), verdict.score, verdict.feedback, run=run, usage=call.usage, spans=spans
        )

    def fingerprint(self) -> str:
        """A hash of the instruction, the demonstrations and the settings."""
        return module_fingerprint(self, self.kind, prompt_version())

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state from which `from_state` builds an equal judge; holds no model and no key."""
        return {"kind": self.kind, "state": module_state(self), **self.provenance()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build a judge from `to_state`'s result."""
        judge = cls(**state["state"]["settings"])
        judge.load_state(dict(state["state"]))
        judge.made_with = state.get("made_with", {})
        return judge


def without_answer(predictor: dspy.Predict, inputs: dict[str, Any], judged: Sequence[str]) -> dict[str, Any]:
    """A predictor's arguments; a row that stands among its demonstrations is judged without the answer to it.

    Parameters
    ----------
    predictor : dspy.Predict
    inputs : dict
        Its arguments so far.
    judged : sequence of str
        The inputs that a row and a demonstration of it have in common.
    """
    same = [all(marked_anew(demo.get(name)) == inputs[name] for name in judged) for demo in predictor.demos]
    if not any(same):
        return inputs
    return {**inputs, "demos": [demo for demo, out in zip(predictor.demos, same, strict=True) if not out]}


def slug(text: str) -> str:
    """Lower-case words joined by underscores, fit for a column name."""
    return "_".join("".join(c if c.isalnum() else " " for c in text.lower()).split()) or "unnamed"
