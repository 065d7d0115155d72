"""The baseline that a specialist has to beat: whatever people marked in other outputs of a source is marked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import dspy

from metricsmith.datasets.history import HistoricalRating
from metricsmith.errors import DataError, JudgementFailed, OptionError, nearest
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

__all__ = ["Parrot"]

OCCURRENCES = ("all", "first")


class Parrot(MetricProgram):
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

    kind: ClassVar[str] = "parrot"
    reads: ClassVar[tuple[str, ...]] = ("system", "rater")

    def __init__(
        self, *, occurrences: Literal["all", "first"] = "all", weights: MQMWeights | None = None, name: str = ""
    ) -> None:
        super().__init__()
        if occurrences not in OCCURRENCES:
            raise OptionError(
                f"unknown occurrences={occurrences!r}{nearest(str(occurrences), OCCURRENCES)}; allowed are all, first"
            )
        costs = (weights or MQMWeights.wmt()).to_dict()
        self.settings = Settings(name=name or f"parrot_{occurrences}", occurrences=occurrences, weights=costs)

    @property
    def row_examples(self) -> RowExamples | None:
        """The history that each row's examples are chosen from."""
        found: RowExamples | None = self.settings.values.get(ROW_EXAMPLES)
        return found

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

    def past(self, one: HistoricalRating) -> dict[str, Any]:
        """The marked errors of a rating.

        Raises
        ------
        DataError
            If nobody marked errors.
        """
        if one.spans is None:
            raise DataError(
                f"the rating of {one.system!r} by {one.rater!r} has no marked errors, which a parrot repeats"
            )
        return {"source": one.source, "output": one.output, "spans": one.spans}

    def shown_examples(self, row: Judged) -> Shown:
        """The examples of a row, as for a judge."""
        if self.row_examples is None:
            raise OptionError(f"{self.name} has no history to repeat: make Specialist(policy).compile(parrot, history)")
        return self.row_examples.rendered(
            row, self.past, lambda one: (one["source"], one["output"]), lambda one: one["spans"]
        )

    def copied(self, row: dspy.Example) -> tuple[ErrorSpan, ...]:
        """The errors of a row's examples that stand in its output, with their offsets there.

        Raises
        ------
        OptionError
            If it has no history: `metricsmith.judges.Specialist` gives it one.
        DataError
            If no example may be shown for the row.
        """
        texts, examples = row_text(row), self.shown_examples(judged(row))
        spans = [
            replace(span, start=None, end=None) for one in examples.demonstrations for span in one["spans"] if span.text
        ]
        return locate_spans(spans, texts.output, policy=self.settings.occurrences).spans

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """One judgement a row; a row without examples is ``skipped``."""
        return [self._judgement(row, run) for row in rows]

    def _judgement(self, row: dspy.Example, run: int) -> Judgement:
        try:
            spans = self.copied(row)
        except DataError as problem:  # no example, or in a file a rating without marked errors
            return Judgement(self.name, status=Status.SKIPPED, error=str(problem), run=run)
        raw = mqm_score(spans, MQMWeights.from_dict(self.settings.weights))
        feedback = f"{len(spans)} marked errors of other outputs stand in this one"
        return Judgement(self.name, raw, self.output.score(raw), feedback, run=run, spans=spans)

    def forward(self, *, output: str, input: str, system: str = "", rater: str = "") -> dspy.Prediction:
        """The prediction of one row, with its ``spans``."""
        judgement = self._judgement(make_row(output, input=input, system=system, rater=rater), 0)
        if not judgement.ok:
            raise JudgementFailed(judgement.error, judgement.status)
        return dspy.Prediction(**{name: getattr(judgement, name) for name in ("score", "raw", "feedback", "spans")})

    def fingerprint(self) -> str:
        """A hash of the settings and of the examples."""
        return module_fingerprint(self, self.kind)

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state from which `from_state` builds an equal metric."""
        return {"kind": self.kind, "settings": self.settings.dump_state(), **self.provenance()}

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result, its kind aside."""
        settings = schema.keys(
            {ROW_EXAMPLES: SAVED_EXAMPLES}, name=schema.text(schema.NAME, 1),
            occurrences=schema.one_of(*OCCURRENCES), weights=WEIGHTS,
        )  # fmt: skip
        return schema.keys({"made_with": MADE_WITH}, settings=settings)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build a metric from `to_state`'s result."""
        made = cls()
        made.settings.load_state(dict(state["settings"]))
        made.made_with = state.get("made_with", {})
        return made
