"""Judges in the raters' place, by examples or guideline: they answer in the raters' numbers, or in fifths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import dspy
import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.datasets.ratings import as_scale
from metricsmith.errors import DataError, OptionError
from metricsmith.programs import schema
from metricsmith.programs.asked_scale import Asked, asked_scale, nearest_points, rating_map
from metricsmith.programs.judges.base import Judge, slug
from metricsmith.records import MetricCard, Scale
from metricsmith.signatures.judgement import JudgeByExamples, JudgeByGuideline

__all__ = ["ExampleJudge", "GuidelineJudge", "RatersJudge"]


class RatersJudge(Judge):
    """A judge that is asked for the raters' rating, on their scale or on one that people use (`asked_scale`).

    Parameters
    ----------
    name : str
        Column name.
    measure : str
        What the rating measures, in a few words; a column name will do.
    task : str
        What the outputs are made for.
    scale : Scale, str or mapping
        The raters' scale, in text ``LOW:HIGH`` or ``LOW:HIGH:STEP``. Answers off the scale that is asked fail.
    decimals : bool
        Whether the judge is asked on the raters' scale with two decimals, for ratings that are averages over raters.
    **settings
        The settings of the subclass.

    Raises
    ------
    OptionError
        If `scale` is none.
    """

    saves: ClassVar[schema.Checks] = {
        "name": schema.text(schema.NAME, 1), "task": schema.text(), "measure": schema.text(), "meaning": schema.text(),
        "scale": schema.SCALE,
    }  # fmt: skip
    may_save: ClassVar[schema.Checks] = {  # where the scale that is asked is not the raters'
        "asked": schema.SCALE,
        "points": schema.list_of(schema.text(schema.NAME), 11),
        "decimals": schema.one_of(True),
        "map": schema.same_length(
            schema.keys(
                knots=schema.list_of(schema.number(), schema.NUMBERS, 1),
                values=schema.list_of(schema.number(), schema.NUMBERS),
            ),
            "knots",
            "values",
        ),
    }

    def __init__(
        self,
        *,
        name: str,
        measure: str,
        task: str,
        scale: Scale | str | Mapping[str, Any],
        decimals: bool = False,
        **settings: Any,
    ) -> None:
        raters = as_scale(scale)
        meaning = f"{measure} as its raters see it"
        asked = Asked(replace(raters, step=None)) if decimals else asked_scale(raters)
        settings |= {"decimals": True} if decimals else {}
        other = {"asked": asdict(asked.scale)} if asked.scale != raters else {}
        points = {"points": list(asked.points)} if asked.points else {}
        super().__init__(
            name=name, measure=measure, meaning=meaning, task=task, scale=asdict(raters), **other, **points, **settings
        )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build a judge with these settings; one saved without ``asked`` is asked on its raters' scale."""
        derived = ("meaning", "asked", "points", "map")
        return cls(**{name: value for name, value in settings.items() if name not in derived})

    @property
    def rating_scale(self) -> Scale:
        """The raters' scale."""
        return Scale(**self.settings.scale)

    @property
    def asked(self) -> Asked:
        """The scale that is asked, with its points in words where it is a made one."""
        values = self.settings.values
        return Asked(Scale(**values.get("asked", values["scale"])), tuple(values.get("points", ())))

    @property
    def scale(self) -> Scale:
        """The scale that is asked; ``raw`` stands on it."""
        return self.asked.scale

    def question(self) -> Mapping[str, str]:
        """Task and scale."""
        asked, raters = self.asked, self.rating_scale
        if asked.points:
            low = asked.scale.low
            points = "; ".join(f"{low + place:g}: {point}" for place, point in enumerate(asked.points))
            numbers = f", told by rank in place of the raters' numbers: a whole number from {asked.scale}. {points}"
        else:
            best = raters.high if raters.higher_is_better else raters.low
            steps = "" if raters.step is None else f" in steps of {asked.scale.step:g}" if asked.scale.step else ""
            steps = " with two decimals" if self.settings.values.get("decimals") else steps
            numbers = f": a number from {raters}{steps}; {best:g} is best"
        return {"task": str(self.settings.task), "scale": f"{self.settings.measure}{numbers}"}

    def asked_numbers(self, ratings: ArrayLike, among: ArrayLike | None = None) -> NDArray[np.float64]:
        """Raters' numbers, shape (n,), as the numbers that this judge is asked for.

        The nearest point of the scale; on a made one the place by mid-rank in `among`, by default `ratings`.

        Raises
        ------
        DataError
            If a rating is not on the raters' scale.
        """
        scale = self.rating_scale
        stray = [rating for rating in np.asarray(ratings, dtype=float).tolist() if not scale.contains(rating)]
        if stray:
            raise DataError(
                f"rating {stray[0]!r} is not on the scale {scale}: leave the row out, or give another scale"
            )
        return self.asked.numbers(ratings, scale, among)

    def example(self, row: dspy.Example, rating: float, reason: str = "") -> Mapping[str, Any]:
        """A rated row as a demo; `rating` is a number on the scale that is asked and goes to its nearest point."""
        on = self.scale.contains(rating)
        shown = round(rating, 2) if self.settings.values.get("decimals") else nearest_points([rating], self.scale)[0]
        return super().example(row, float(shown) if on else rating, reason)

    def with_examples(
        self, rows: Sequence[dspy.Example], ratings: Sequence[float], reasons: Sequence[str] | None = None
    ) -> Self:
        """A copy of this judge with these examples and no others, their ratings shown as `asked_numbers`.

        Raises
        ------
        DataError
            If lengths differ or a rating is not on the raters' scale.
        """
        return super().with_examples(rows, self.asked_numbers(ratings).tolist() if len(ratings) else [], reasons)

    def with_rating_map(self, numbers: ArrayLike, ratings: ArrayLike) -> Self:
        """A copy that knows which ratings its numbers stood for: an isotonic map, saved along and on the card.

        Parameters
        ----------
        numbers, ratings : array_like, shape (n,)
            This judge's numbers for rated rows, as ``raw``, and the raters' own; NaN rows are left out.
        """
        judge: Self = self.deepcopy()
        falling = self.scale.higher_is_better != self.rating_scale.higher_is_better
        judge.settings.values["map"] = rating_map(numbers, ratings, falling=falling)
        return judge

    def as_ratings(self, numbers: ArrayLike) -> NDArray[np.float64]:
        """Numbers of this judge, shape (n,), in the raters' numbers; NaN stays NaN.

        Raises
        ------
        OptionError
            If the scale that is asked is a made one and no map to the raters' was fitted.
        """
        values, known = np.asarray(numbers, dtype=float), self.settings.values.get("map")
        if known is not None:
            return np.asarray(np.interp(values, known["knots"], known["values"]))
        if self.asked.points:
            raise OptionError(
                f"{self.name} answers from {self.scale} and has no map to the raters' scale {self.rating_scale}: fit "
                "one on rated rows with judge.with_rating_map(numbers, ratings); JudgeTuner does so itself"
            )
        return values

    def past_number(self, one: HistoricalRating, history: History) -> float:
        """The rating as the number that is asked for; on a made scale by its place among all ratings of the history."""
        rating = super().past_number(one, history)
        return _asked_once(self.asked, self.rating_scale, history)[rating]

    @property
    def card(self) -> MetricCard:
        """The generated card, with the scale that is asked where it is not the raters' and the map to theirs."""
        asked, known = self.asked, self.settings.values.get("map", {"knots": [], "values": []})
        told = f"{asked.scale}, by fifths in place of the raters' own numbers" if asked.points else ""
        if self.settings.values.get("decimals"):
            told = f"{asked.scale} with two decimals, as averages of ratings have them"
        elif not told and asked.scale != self.rating_scale:
            told = f"{asked.scale} in steps of {asked.scale.step:g}: the raters' points, without their averages"
        return replace(super().card, asked=told, rating_map=tuple(zip(known["knots"], known["values"], strict=True)))

    def fingerprint(self) -> str:
        """A hash as for every judge, without the map to the raters' numbers, which changes no request."""
        if "map" not in self.settings.values:
            return super().fingerprint()
        plain: Self = self.deepcopy()
        del plain.settings.values["map"]
        return plain.fingerprint()


class ExampleJudge(RatersJudge):
    """Gives the number that the raters would give (the "examples" judge of AutoMetrics).

    Parameters
    ----------
    measure : str
        What the rating measures, in a few words; a column name will do.
    task : str
        What the outputs are made for.
    scale : Scale, str or mapping
        The raters' scale, in text ``LOW:HIGH`` or ``LOW:HIGH:STEP``; from it follows the one that is asked
        (`asked_scale`).
    name : str, optional
        Column name; by default made from the measure.
    decimals : bool
        Whether it is asked on the raters' scale with two decimals, for ratings that are averages over raters.

    Examples
    --------
    >>> judge = ExampleJudge(measure="Helpfulness", task="Answer questions.", scale=Scale(1, 5, 1))
    >>> judge.name, len(judge.examples)
    ('helpfulness_by_examples', 0)
    """

    kind = "example_judge"
    signature = JudgeByExamples

    def __init__(
        self, *, measure: str, task: str, scale: Scale | str | Mapping[str, Any], name: str = "", decimals: bool = False
    ) -> None:
        name = name or f"{slug(measure)}_by_examples"
        super().__init__(name=name, measure=measure, task=task, scale=scale, decimals=decimals)

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        count = len(self.examples)
        return self.card_with(
            name=f"{self.settings.measure} (by examples)",
            summary=f"A language model that has seen {count} rated outputs gives {self.settings.meaning}.",
            formula=f"The number from {self.scale} that the model gives after comparing with the rated examples.",
            best_for=(f"Predicting {self.settings.measure.lower()} where it is easier shown than said",),
            not_for=("Saying which quality an output lacks: its examples carry ratings, not criteria",),
            limits=(
                f"Rests on {count} examples: what they do not show it cannot learn",
                "Every request carries all examples, which costs tokens",
            ),
            failure_cases=("Outputs unlike all examples", "Examples that contradict one another"),
            papers=("AutoMetrics, section 3.1 and appendix (examples)",),
        )


class GuidelineJudge(RatersJudge):
    """Rates by the guideline that the raters were given (the "LLM-Judge" baseline of AutoMetrics, section 4.2).

    Parameters
    ----------
    measure : str
        What the rating measures, in a few words; a column name will do.
    guideline : str
        The instruction to the raters, word for word.
    task : str
        What the outputs are made for.
    scale : Scale, str or mapping
        The raters' scale, in text ``LOW:HIGH`` or ``LOW:HIGH:STEP``; from it follows the one that is asked
        (`asked_scale`).
    name : str, optional
        Column name; by default made from the measure.

    Raises
    ------
    OptionError
        If the guideline is empty or `scale` is none.

    Examples
    --------
    >>> text = "Give 5 if a reader could act on the notice at once, 1 if not."
    >>> GuidelineJudge(measure="Clarity", guideline=text, task="Rewrite notices.", scale=Scale(1, 5, 1)).name
    'clarity_by_guideline'
    """

    kind = "guideline_judge"
    signature = JudgeByGuideline
    saves: ClassVar[schema.Checks] = {**RatersJudge.saves, "guideline": schema.text(least=1)}

    def __init__(
        self, *, measure: str, guideline: str, task: str, scale: Scale | str | Mapping[str, Any], name: str = ""
    ) -> None:
        if not guideline.strip():
            raise OptionError("the guideline is empty; give the text that the raters were given")
        super().__init__(
            name=name or f"{slug(measure)}_by_guideline", measure=measure, task=task, scale=scale, guideline=guideline
        )

    def question(self) -> Mapping[str, str]:
        """Task, guideline and scale."""
        return {**super().question(), "guideline": str(self.settings.guideline)}

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        return self.card_with(
            name=f"{self.settings.measure} (by guideline)",
            summary=f"A language model that has read the raters' guideline gives {self.settings.meaning}.",
            formula=f"The number from {self.scale} that the model gives after stating its reasons.",
            best_for=(f"A first guess at {self.settings.measure.lower()} where nothing has been rated yet",),
            not_for=("Learning from ratings: it has seen none",),
            limits=(
                "Knows what the raters were told, not what they did",
                "Uses another part of the scale than the raters may have used: calibrate it before reading its numbers",
            ),
            failure_cases=("Guidelines that leave the decisive question open", "Texts beyond the model's context"),
            papers=("AutoMetrics, section 4.2 and appendix C (LLM-Judge)",),
        )


@lru_cache(maxsize=4)
def _asked_once(asked: Asked, scale: Scale, history: History) -> Mapping[float, float]:
    """The numbers that are asked for the ratings of a history, on a made scale by their places among all of them."""
    known = [one.rating for one in history.ratings if one.rating is not None]
    return dict(zip(known, asked.numbers(known, scale).tolist(), strict=True))
