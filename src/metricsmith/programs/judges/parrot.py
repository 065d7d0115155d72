"""The baselines that a specialist has to beat: what people said about other outputs of a source is said again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import dspy

from metricsmith.datasets.history import HistoricalRating
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.meta_evaluation.spans import locate_spans
from metricsmith.metric import make_row, row_text
from metricsmith.mqm import MQMWeights, mqm_score
from metricsmith.programs import schema
from metricsmith.programs.judges.base import MetricProgram
from metricsmith.programs.judges.mqm import WEIGHTS
from metricsmith.programs.kinds import MADE_WITH, SAVED_EXAMPLES
from metricsmith.programs.specialist.choosing import Judged
from metricsmith.programs.specialist.examples import ROW_EXAMPLES, RowExamples, Shown, judged
from metricsmith.programs.state import Settings, module_fingerprint
from metricsmith.records import ErrorSpan, Judgement, MetricCard, Output, Status

__all__ = ["ExampleMean", "FromExamples", "Parrot"]

OCCURRENCES = ("all", "first")


class FromExamples(MetricProgram):
    """A metric that rests on a row's examples alone and asks no model; `Specialist` gives it those."""

    kind: ClassVar[str]
    reads: ClassVar[tuple[str, ...]] = ("system", "rater")
    saves: ClassVar[schema.Checks] = {"name": schema.text(schema.NAME, 1)}

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = Settings(**settings)

    @property
    def row_examples(self) -> RowExamples | None:
        """The history that each row's examples are chosen from."""
        found: RowExamples | None = self.settings.values.get(ROW_EXAMPLES)
        return found

    def marks_of(self, one: HistoricalRating) -> Any:
        """The part of a rating that is used.

        Raises
        ------
        DataError
            If the rating lacks it.
        """
        raise NotImplementedError

    def judgement_by(self, row: dspy.Example, marks: Sequence[Any]) -> Judgement:
        """The judgement of a row by what its examples have."""
        raise NotImplementedError

    def past(self, one: HistoricalRating) -> dict[str, Any]:
        """A rating as it is used."""
        return {"source": one.source, "output": one.output, "marks": self.marks_of(one)}

    def shown_examples(self, row: Judged) -> Shown:
        """The examples of a row, as for a judge."""
        if self.row_examples is None:
            raise OptionError(f"{self.name} has no history: make Specialist(policy).compile({self.name}, history)")
        return self.row_examples.rendered(
            row, self.past, lambda one: (one["source"], one["output"]), lambda one: one["marks"]
        )

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """One judgement a row; a row without examples is ``skipped``."""
        return [replace(self._judgement(row), run=run) for row in rows]

    def _judgement(self, row: dspy.Example) -> Judgement:
        try:
            examples = self.shown_examples(judged(row))
        except DataError as problem:  # no example, or in a file a rating that lacks what is needed
            return Judgement(self.name, status=Status.SKIPPED, error=str(problem))
        return self.judgement_by(row, [one["marks"] for one in examples.demonstrations])

    def forward(self, *, output: str, input: str, system: str = "", rater: str = "") -> dspy.Prediction:
        """The prediction of one row, with its ``spans``."""
        return self._predicted(make_row(output, input=input, system=system, rater=rater))

    async def aforward(self, *, output: str, input: str, system: str = "", rater: str = "") -> dspy.Prediction:
        """The prediction of `forward`, which waits for nobody."""
        return self._predicted(make_row(output, input=input, system=system, rater=rater))

    def _predicted(self, row: dspy.Example) -> dspy.Prediction:
        judgement = self._judgement(row)
        prediction = self.prediction(judgement)
        prediction.spans = judgement.spans
        return prediction

    def fingerprint(self) -> str:
        """A hash of the settings and of the examples."""
        return module_fingerprint(self, self.kind)

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state from which `from_state` builds an equal metric."""
        return {"kind": self.kind, "settings": self.settings.dump_state(), **self.provenance()}

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result, its kind aside."""
        return schema.keys({"made_with": MADE_WITH}, settings=schema.keys({ROW_EXAMPLES: SAVED_EXAMPLES}, **cls.saves))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build a metric from `to_state`'s result."""
        made = cls()
        made.settings.load_state(dict(state["settings"]))
        made.made_with = state.get("made_with", {})
        return made


class Parrot(FromExamples):
    """Marks every error of a row's examples whose text stands in the row's output; it asks no model.

    It sees the examples that a specialist with the same policy sees, and copies. Offsets of the examples are not used.
    ``spans`` holds the copied errors, ``raw`` the negated sum of their weights.

    Parameters
    ----------
    occurrences : "all" or "first"
        Which occurrences of a text are marked. The paper does not say which it took.
    weights : MQMWeights, optional
        The cost of each error; default `MQMWeights.wmt`.
    name : str, optional
        Column name; by default ``parrot_all`` or ``parrot_first``.

    Raises
    ------
    OptionError
        If an argument has no meaning.

    References
    ----------
    Finkelstein et al. (2025), "From Jack of All Trades to Master of One", section 5.4.2.
    """

    kind = "parrot"
    saves: ClassVar[schema.Checks] = {
        **FromExamples.saves, "occurrences": schema.one_of(*OCCURRENCES), "weights": WEIGHTS,
    }  # fmt: skip

    def __init__(
        self, *, occurrences: Literal["all", "first"] = "all", weights: MQMWeights | None = None, name: str = ""
    ) -> None:
        if occurrences not in OCCURRENCES:
            raise OptionError(
                f"unknown occurrences={occurrences!r}{nearest(str(occurrences), OCCURRENCES)}; allowed are all, first"
            )
        costs = (weights or MQMWeights.wmt()).to_dict()
        super().__init__(name=name or f"parrot_{occurrences}", occurrences=occurrences, weights=costs)

    @property
    def output(self) -> Output:
        """0 and below, higher is better."""
        weights = MQMWeights.from_dict(self.settings.weights)
        return Output(self.name, None, 0.0, half=weights.major or 1.0, description="errors that other outputs have")

    @property
    def card(self) -> MetricCard:
        """The generated card."""
        return MetricCard(
            name=f"Parrot ({self.settings.occurrences} occurrences)",
            kind=self.kind,
            summary="Marks what people marked in other outputs of the same source, wherever the same text stands.",
            formula="Minus the sum of the weights of all copied errors.",
            outputs=(self.output,),
            needs=("input",),
            domains=("machine translation",),
            best_for=("Telling what a specialist adds to copying its examples",),
            not_for=("Judging translations",),
            limits=("Knows the sources of its history alone", "Copies an error where the same words are right"),
            related=("mqm",),
            papers=("From Jack of All Trades to Master of One (Finkelstein et al., 2025), section 5.4.2",),
        )

    def marks_of(self, one: HistoricalRating) -> tuple[ErrorSpan, ...]:
        """The marked errors of a rating."""
        if one.spans is None:
            raise DataError(
                f"the rating of {one.system!r} by {one.rater!r} has no marked errors to repeat: leave it out of the "
                "history, or compare numbers with ExampleMean"
            )
        return one.spans

    def judgement_by(self, row: dspy.Example, marks: Sequence[tuple[ErrorSpan, ...]]) -> Judgement:
        """The errors of the examples that stand in the row's output; marks of one place and severity count once."""
        marked = [replace(span, start=None, end=None) for spans in marks for span in spans if span.text]
        copied = locate_spans(marked, row_text(row).output, policy=self.settings.occurrences).spans
        spans = tuple({(span.start, span.end, span.severity): span for span in reversed(copied)}.values())[::-1]
        raw = mqm_score(spans, MQMWeights.from_dict(self.settings.weights))
        feedback = f"{len(spans)} marked errors of other outputs stand in this one"
        return Judgement(self.name, raw, self.output.score(raw), feedback, spans=spans)


class ExampleMean(FromExamples):
    """The mean rating of a row's examples, whatever the output: what a specialist that gives numbers has to beat.

    Parameters
    ----------
    name : str
        Column name.
    """

    kind = "example_mean"

    def __init__(self, *, name: str = "example_mean") -> None:
        super().__init__(name=name)

    @property
    def output(self) -> Output:
        """On the raters' scale, whichever that is."""
        return Output(self.name, None, None, half=1.0, description="mean rating of other outputs of the same source")

    @property
    def card(self) -> MetricCard:
        """The generated card."""
        return MetricCard(
            name="Mean of the examples",
            kind=self.kind,
            summary="The mean rating of other outputs of the same source; the output itself is not looked at.",
            formula="The mean of the ratings of the row's examples.",
            outputs=(self.output,),
            needs=("input",),
            best_for=("Telling what a specialist adds to knowing how hard a source is",),
            not_for=("Judging outputs",),
            limits=(
                "Knows the sources of its history alone",
                "Gives nearly the same number to all outputs of a source",
            ),
        )

    def marks_of(self, one: HistoricalRating) -> float:
        """The number of a rating."""
        if one.rating is None:
            raise DataError(
                f"the rating of {one.system!r} by {one.rater!r} has no number: leave it out of the history, or compare "
                "marked errors with Parrot"
            )
        return one.rating

    def judgement_by(self, row: dspy.Example, marks: Sequence[float]) -> Judgement:
        """The mean of the examples' ratings."""
        if not marks:
            return Judgement(self.name, status=Status.SKIPPED, error="a policy without examples has no mean")
        raw = round(math.fsum(marks) / len(marks), 9)  # means of thirds that are equal tie, whatever their order
        return Judgement(self.name, raw, self.output.score(raw), f"the mean of {len(marks)} ratings")
