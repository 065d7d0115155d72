"""The prompt of a specialist: what holds for every row stands once, its examples change from row to row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import dspy

from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.errors import DataError, JudgementFailed, OptionError
from metricsmith.metric import EMPTY, make_row, unfenced
from metricsmith.programs.specialist.choosing import Judged
from metricsmith.programs.specialist.examples import RowExamples, Shown
from metricsmith.records import MetricCard, Scale, Status

__all__ = ["RowShown", "specialist_words"]


LOW = " (lower is better)"

# Demonstrations by the identity of ratings, beside the history that keeps these alive.
_PAST: WeakKeyDictionary[RowShown, tuple[History, dict[int, dict[str, Any]]]] = WeakKeyDictionary()


class RowShown:
    """The part of a judge that shows each row examples of its own, where `metricsmith.judges.Specialist` made it.

    A base of `metricsmith.programs.judges.base.ModelAsker`, whose attributes it uses.
    """

    settings: Any
    signature: Any
    judge: Any
    example: Any

    @property
    def row_examples(self) -> RowExamples | None:
        """The history that each row's examples are chosen from."""
        raise NotImplementedError

    @property
    def rating_scale(self) -> Scale:
        """The scale of ratings that the judge stands for."""
        raise NotImplementedError

    judged: ClassVar[tuple[str, ...]]

    def question(self) -> Mapping[str, str]:
        """The signature's inputs that are the same for every row."""
        raise NotImplementedError

    @property
    def standing(self) -> Mapping[str, str]:
        """The signature's inputs that a specialist's prompt tells once."""
        return self.question()

    def past_number(self, one: HistoricalRating, history: History) -> float:
        """The number that a rating of the history is shown with, on the scale that is asked.

        Raises
        ------
        DataError
            If the rating has no number on this judge's scale.
        """
        if one.rating is None or history.scale is None:
            raise DataError(
                f"the rating of {one.system!r} by {one.rater!r} has marked errors and no number to show: leave it out "
                "of the history, or specialise an MQMAnnotator"
            )
        own, theirs = (replace(scale, step=None) for scale in (self.rating_scale, history.scale))
        if own != theirs:
            raise DataError(
                f"{history.name} is rated from {theirs}{LOW * (not theirs.higher_is_better)} and {self.settings.name} "
                f"rates from {own}{LOW * (not own.higher_is_better)}, so that a rating would stand for something else: "
                "give a judge, or a history, with the other's scale"
            )
        return one.rating

    def past(self, one: HistoricalRating) -> dict[str, Any]:
        """A rating of the history as a demonstration, without what stands once in the prompt."""
        if self.row_examples is None:
            raise OptionError(f"{self.settings.name} has no history; make a specialist of it with Specialist().compile")
        row = make_row(one.output, input=one.source, spans=one.spans)
        demo = self.example(row, self.past_number(one, self.row_examples.history))
        return {name: value for name, value in demo.items() if name not in self.standing}

    def shown_examples(self, row: Judged) -> Shown:
        """The examples of a row as this judge's prompt has them, looked at a second time.

        Raises
        ------
        OptionError
            If the judge is no specialist.
        DataError
            If no example may be shown, or a rating cannot be.
        LeakedExample
            If a rating would be shown that must not be.
        """
        examples = self.row_examples
        if examples is None:
            raise OptionError(f"{self.settings.name} has no history: make a specialist of it with Specialist().compile")
        answers = tuple(self.signature.output_fields)
        return examples.rendered(
            row,
            self.past if examples.filtered else partial(self._past_once, examples.history),
            self._texts_shown,
            lambda demonstration: {name: demonstration[name] for name in answers if name in demonstration},
        )

    def _past_once(self, history: History, one: HistoricalRating) -> dict[str, Any]:
        """The demonstration of a rating that is part of the history, made once for each judge."""
        of, known = _PAST.get(self, (None, {}))
        if of is not history:  # the judge's state was loaded anew
            known = {}
            _PAST[self] = history, known
        if id(one) not in known:
            known[id(one)] = self.past(one)
        return known[id(one)]

    def specialised(self, row: Judged, inputs: dict[str, Any]) -> dict[str, Any]:
        """The predictor's arguments with the examples of one row, and with what they have in common told once."""
        if self.judge.demos:
            raise OptionError(
                f"{self.settings.name} has {len(self.judge.demos)} fixed examples beside those that change from row to "
                "row, which could give an answer away: tune its instruction only"
            )
        if self.row_examples is not None and self.row_examples.policy.source == "none":
            return inputs
        try:
            shown = self.shown_examples(row)
        except DataError as problem:  # no example, or in a file a rating that this judge cannot show
            raise JudgementFailed(str(problem), Status.SKIPPED) from problem
        standing = self.standing
        return {
            **{name: value for name, value in inputs.items() if name not in standing},
            "signature": _told_once(self.judge.signature, tuple(standing.items())),
            "demos": [dspy.Example(demonstration) for demonstration in shown.demonstrations],
        }

    def _texts_shown(self, demonstration: Mapping[str, Any]) -> tuple[str, str]:
        """The source and the output that a demonstration shows."""
        source, output = (str(demonstration[name]) for name in self.judged)
        return unfenced(source), "" if output in EMPTY else unfenced(output)


@lru_cache(maxsize=64)
def _told_once(signature: type[dspy.Signature], standing: tuple[tuple[str, str], ...]) -> Any:
    """The signature with some of its inputs told at the end of its instruction, in place of once an example."""
    told = "\n".join(
        f"{name} ({signature.input_fields[name].json_schema_extra['desc']}):{_set_off(value)}"
        for name, value in standing
    )
    instruction = (
        f"{signature.instructions}\n\nEvery text to be judged, and every example, has this in common:\n{told}\n\n"
        "The examples are earlier judgements on other works. Judge by the standard that they show; what they found in "
        "another work need not be true of this one."
    )
    for name, _ in standing:
        signature = signature.delete(name)
    return signature.with_instructions(instruction)


def specialist_words(card: MetricCard, examples: RowExamples) -> dict[str, Any]:
    """The fields of a judge's card that a history changes."""
    history, policy = examples.history, examples.policy
    return {
        "name": f"{card.name}, specialised",
        "summary": (
            f"{card.summary} Each row is shown ratings of other outputs out of {len(history):,} ratings of "
            f"{len(history.systems)} systems (source: {policy.source}, rater: {policy.rater})."
        ),
        "limits": (*card.limits, "Judges the sources of its history alone: of others it knows no more than any judge"),
        "papers": (*card.papers, "From Jack of All Trades to Master of One (Finkelstein et al., 2025), section 3"),
    }


def _set_off(value: str) -> str:
    return f"\n{value}" if "\n" in value else f" {value}"
