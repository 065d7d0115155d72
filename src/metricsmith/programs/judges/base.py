"""The bases of judges: one predictor and its settings, the texts of a row in, a number with its reasons out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import dspy

from metricsmith.errors import DataError, JudgementFailed
from metricsmith.metric import Metric, RowText, fenced_texts, labels_of, marked_anew, row_text
from metricsmith.model_calls.adapters import in_form, messages_of, reading_exactly
from metricsmith.model_calls.calls import Call, model_calls
from metricsmith.programs.kinds import asker_state
from metricsmith.programs.learned import mark_learned
from metricsmith.programs.schema import Check, Checks
from metricsmith.programs.specialist.choosing import Judged
from metricsmith.programs.specialist.examples import ROW_EXAMPLES, RowExamples
from metricsmith.programs.specialist.prompts import RowShown, specialist_words
from metricsmith.programs.state import (
    Saved,
    Settings,
    module_fingerprint,
    module_state,
    other_model,
    prompt_version,
)  # fmt: skip
from metricsmith.records import Judgement, MetricCard, Output, Scale, Status
from metricsmith.reward import DSPyCallable
from metricsmith.scoring import score

__all__ = ["LEVELS", "Judge", "MetricProgram", "ModelAsker", "ModelMetric", "Predictor", "slug"]

LEVELS = Scale(1, 5, 1)


class Predictor(dspy.Predict):  # type: ignore[misc]
    """A predictor whose saved demonstrations get today's marks when they are loaded, wherever it stands.

    Attributes
    ----------
    form : dspy.Adapter or None
        The adapter of its requests, whatever adapter is in force, where its model knows no other form.
    """

    demos: list[Any]
    form: dspy.Adapter | None = None

    def load_state(self, state: dict[str, Any], **options: Any) -> Predictor:
        """Load as DSPy does, then mark the demonstrations anew."""
        super().load_state(state, **options)
        self.demos = [{name: marked_anew(value) for name, value in dict(demo).items()} for demo in self.demos]
        return self


class MetricProgram(DSPyCallable, Saved):
    """A metric that is a module: a student of DSPy's optimisers, a metric for everybody else, and one file.

    Its settings have its `name`. `judge_batch` is that of a `metricsmith.metric.Composite`, whose parts the scoring
    engine asks. Called by keyword, it answers as its ``forward`` does: it remains a student.
    """

    settings: Settings

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Judge ``(example, pred, trace, pred_name, pred_trace)`` as `Reward` does, or answer as a module.

        A text alone is the output: ``judge(output, input=...)`` is ``judge(output=output, input=...)``.
        """
        if isinstance(kwargs.get("references"), str):  # which would fall into its letters
            kwargs["references"] = [kwargs["references"]]
        if len(args) == 1 and isinstance(args[0], str):
            return dspy.Module.__call__(self, output=args[0], **kwargs)
        return super().__call__(*args, **kwargs) if args else dspy.Module.__call__(self, **kwargs)

    @property
    def name(self) -> str:
        """Unique among the metrics of a run; also the name of its column of scores."""
        return str(self.settings.values["name"])

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """One judgement per row; the parts are asked concurrently, on the model in force."""
        return score([self], rows, first_run=run, progress=False, max_failure_rate=1.0).column(0)


class ModelAsker(RowShown, Saved):
    """An asker with one predictor, `judge`, and its settings: the base of judges and panels.

    Subclasses name their `kind`, give the question in `question`, and check an answer in `read`.
    """

    kind: ClassVar[str]
    signature: type[dspy.Signature]
    saves: ClassVar[Checks]  # the settings in a file, each with its check
    may_save: ClassVar[Checks] = {}  # those that not every file has
    judged: ClassVar[tuple[str, ...]] = ("input", "output")  # the signature's inputs by which a row is known again
    versions: ClassVar[tuple[int, ...]] = ()  # in the fingerprint, besides that of the prompts
    shows_examples: ClassVar[bool] = True  # has a place for demonstrations
    settings: Settings
    judge: Predictor

    @property
    def row_examples(self) -> RowExamples | None:
        """The history that each row's examples are chosen from; None for a judge that is no specialist."""
        found: RowExamples | None = self.settings.values.get(ROW_EXAMPLES)
        return found

    @property
    def reads(self) -> tuple[str, ...]:
        """The labels of a row that a judgement depends on besides its texts."""
        chosen = self.row_examples is not None and self.row_examples.policy.source != "none"
        return ("system", "rater") if chosen else ()

    def question(self) -> Mapping[str, str]:
        """The signature's inputs that are the same for every row."""
        raise NotImplementedError

    def texts(self, text: RowText) -> Mapping[str, str]:
        """The signature's inputs that a row's texts are shown in."""
        return fenced_texts(text)

    @property
    def request(self) -> Mapping[str, Any]:
        """Settings that each request carries besides those of the model."""
        return {}

    def lacking(self, text: RowText) -> str:
        """The reason why a row cannot be judged; empty if it can."""
        return ""

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """Check the model's answer about a row; returns the prediction of `forward`, or raises `JudgementFailed`."""
        raise NotImplementedError

    def forward(
        self,
        *,
        output: str,
        input: str = "",
        references: Sequence[str] = (),
        context: str = "",
        system: str = "",
        rater: str = "",
    ) -> dspy.Prediction:
        """Judge one row; a specialist chooses its examples by `system` and `rater`, which others do not look at."""
        text = RowText(output, input, tuple(references), context)
        self._check(text)
        arguments = self._arguments(text, system, rater)
        with reading_exactly(self.judge.form):
            answer = self.judge(**arguments)
        return self.read(answer, text)

    async def aforward(
        self,
        *,
        output: str,
        input: str = "",
        references: Sequence[str] = (),
        context: str = "",
        system: str = "",
        rater: str = "",
    ) -> dspy.Prediction:
        """Judge one row as `forward` does, asynchronously."""
        text = RowText(output, input, tuple(references), context)
        self._check(text)
        arguments = self._arguments(text, system, rater)
        with reading_exactly(self.judge.form):
            answer = await self.judge.acall(**arguments)
        return self.read(answer, text)

    def _check(self, text: RowText) -> None:
        lacking = self.lacking(text)
        if lacking:
            raise JudgementFailed(lacking, Status.SKIPPED)

    def _arguments(self, text: RowText, system: str = "", rater: str = "") -> dict[str, Any]:
        """The predictor's arguments; a row that stands among its demonstrations is judged without the answer to it.

        Otherwise training rows would be scored by copying the answer, and a regression would trust the judge for it.
        Other outputs to the same input stay.
        """
        if self.made_with:
            other_model(self, self.judge.lm)
        inputs = {"config": dict(self.request), **self.question(), **self.texts(text)}
        if self.row_examples is not None:
            return self.specialised(Judged(text.input, text.output, system, rater), inputs)
        if not self.judge.demos:
            return inputs
        others = [
            demo
            for demo in self.judge.demos
            if not all(marked_anew(demo.get(name)) == inputs[name] for name in self.judged)
        ]
        return inputs if len(others) == len(self.judge.demos) else {**inputs, "demos": others}

    def messages(self, row: dspy.Example) -> list[dict[str, Any]]:
        """The chat messages that `ask` sends for `row`."""
        inputs = self._arguments(row_text(row), **labels_of(row, self.reads))
        inputs.pop("config")
        signature = inputs.pop("signature", self.judge.signature)
        return messages_of(signature, inputs.pop("demos", self.judge.demos), inputs, self.judge.form)

    def fingerprint(self) -> str:
        """A hash of the instruction, the demonstrations and the settings."""
        return module_fingerprint(self, self.kind, prompt_version(), *self.versions)

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state from which `from_state` builds an equal object; holds no model and no key."""
        return {"kind": self.kind, "state": module_state(self), **self.provenance()}

    @classmethod
    def saved(cls) -> Check:
        """The check of `to_state`'s result, its kind aside."""
        return asker_state(cls.signature, cls.may_save, **cls.saves)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build an object from `to_state`'s result."""
        settings = {name: value for name, value in state["state"]["settings"].items() if name != ROW_EXAMPLES}
        made = cls.from_settings(settings)
        made.load_state(dict(state["state"]))
        made.made_with = state.get("made_with", {})
        return made

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build an object with these settings, before its state is loaded."""
        return cls(**settings)


class ModelMetric(MetricProgram, ModelAsker):
    """A metric with a predictor of its own and a card: the base of judges of numbers and of options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = Settings(**settings)
        self.judge = Predictor(self.signature)

    @property
    def output(self) -> Output:
        """Range and direction of the number."""
        raise NotImplementedError

    @property
    def numbers(self) -> int:
        """One request brings one number, or one answer for all options."""
        return 1

    @property
    def family_card(self) -> MetricCard:
        """The generated card of a judge whose instruction is its family's."""
        raise NotImplementedError

    def card_with(self, **own: Any) -> MetricCard:
        """A card with the fields that are equal for every judge; `own` are the other fields of `MetricCard`."""
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
        card, before, after = self.family_card, self.signature.instructions, self.judge.signature.instructions
        if self.row_examples is not None:
            card = replace(card, **specialist_words(card, self.row_examples))
        return card if before == after else replace(card, instruction_before=before, instruction=after)


class Judge(ModelMetric):
    """One model call that gives a number on a scale, from 1 to 5 unless the subclass has another, and its reasons.

    Subclasses name their `kind` and `signature`, describe themselves in `card` and give the question in
    `question`. `forward` takes the texts of a row by keyword and returns a `dspy.Prediction` with ``score`` in
    [0, 1], ``raw`` on the scale and ``feedback``; it raises `JudgementFailed` where the model gave no such
    number.
    """

    @property
    def scale(self) -> Scale:
        """The numbers that the model may give."""
        return LEVELS

    @property
    def rating_scale(self) -> Scale:
        """The scale of the ratings that it learns from."""
        return self.scale

    @property
    def output(self) -> Output:
        """The scale's range and direction."""
        scale = self.scale
        meaning = str(self.settings.values["meaning"])
        return Output(self.name, scale.low, scale.high, scale.higher_is_better, description=meaning)

    def question(self) -> Mapping[str, str]:
        """The signature's inputs that are the same for every row."""
        values = self.settings.values
        return {"task": str(values["task"]), "criterion": f"{values['criterion']}: {values['meaning']}"}

    @property
    def examples(self) -> list[Mapping[str, Any]]:
        """The rated examples in the prompt, in order, as DSPy's demos."""
        return list(self.judge.demos)

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
        why = [""] * len(rows) if reasons is None else reasons
        if not len(rows) == len(ratings) == len(why):
            raise DataError(f"{len(rows)} rows, {len(ratings)} ratings and {len(why)} reasons: give as many of each")
        judge: Self = self.deepcopy()
        judge.judge.demos = [self.example(*parts) for parts in zip(rows, ratings, why, strict=True)]
        mark_learned(judge, rows)
        return judge

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """The score of an answer about a row, on the scale: DSPy enforces neither bounds nor finiteness."""
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

    def ask(self, metrics: Sequence[Metric], row: dspy.Example, runs: Sequence[int]) -> list[list[Judgement]]:
        """Judge one row once for each of `runs`, or name the text that it lacks; `metrics` holds this judge alone."""
        text = row_text(row)
        lacking = self.lacking(text)
        if lacking:
            judgements = [Judgement(self.name, status=Status.SKIPPED, error=lacking, run=run) for run in runs]
        else:
            reads = self.reads
            inputs: dict[str, Any] = {**asdict(text), **(labels_of(row, reads) if reads else {})}
            with in_form(self.judge.form):
                calls = model_calls(self, runs, **inputs)
            judgements = [self._judgement(call, run) for call, run in zip(calls, runs, strict=True)]
        return [judgements] * len(metrics)

    def _judgement(self, call: Call, run: int) -> Judgement:
        if call.prediction is None:
            return Judgement(self.name, status=call.status, error=call.error, run=run, usage=call.usage)
        answer = call.prediction
        spans = tuple(answer.get("spans", ()))
        return Judgement(
            self.name, float(answer.raw), answer.score, answer.feedback, run=run, usage=call.usage, spans=spans
        )


def slug(text: str) -> str:
    """Lower-case words joined by underscores, fit for a column name."""
    return "_".join("".join(c if c.isalnum() else " " for c in text.lower()).split()) or "unnamed"
