"""The answers of a judge beside those of the raters: numbers, or for each option what the judge and the raters gave."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np

from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.optimizers.objectives import OBJECTIVES, Answers, Objective
from metricsmith.optimizers.splits import RatedRows
from metricsmith.optimizers.tuning.splits import check_labels, scale_of, shown_numbers, sign_of
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.choice import OptionsJudge
from metricsmith.records import Task
from metricsmith.stats.correlation import FloatArray

__all__ = ["LONGEST_REASON", "OptionReader", "PredictionReader", "cut", "number_reader"]

LONGEST_REASON = 400  # characters of a judge's or a rater's reasons
SUM = 1e-6  # by which shares may miss 1
FORMS = {"choice": "such as ['yes', 'no', 'yes']", "set": "such as [['yes'], ['yes', 'no']]"}


@dataclass(frozen=True)
class PredictionReader:
    """Reads the number of a judge's prediction, in the direction of the raters.

    Parameters
    ----------
    sign : float
        -1 where judge and raters count in opposite directions, otherwise 1.
    span : float
        Length of the rating scale.
    shown : str
        The rows' field with the rating in the judge's own numbers, by which feedback names it. Empty if there is
        none; then feedback names the raters' number.
    """

    sign: float = 1.0
    span: float = 4.0
    shown: str = ""

    def value(self, row: dspy.Example, prediction: Any) -> float:
        """The number of a prediction: ``raw`` where there is one, otherwise ``score``; NaN if it is none."""
        for name in ("raw", "score"):
            number = prediction.get(name)
            if isinstance(number, bool):
                return float(number)
            if isinstance(number, int | float | np.number):
                return self.sign * float(number) if np.isfinite(number) else math.nan
        return math.nan


def number_reader(
    judge: dspy.Module, task: Task | None, goal: Objective, learn: RatedRows, select: RatedRows
) -> tuple[PredictionReader, RatedRows, RatedRows]:
    """The reader of a judge's numbers, and the rows with the numbers that a prompt may show.

    Raises
    ------
    OptionError
        If the objective wants labels that the judge cannot give.
    """
    target, scale = (task.target, task.scale) if task else ("rating", scale_of(judge))
    ratings = np.concatenate([learn.ratings, select.ratings])
    check_labels(judge, goal, ratings, scale)
    shown = target if isinstance(judge, Judge) else ""
    reader = PredictionReader(sign_of(judge, scale), scale.width if scale else float(np.ptp(ratings)), shown)
    learn, select = (shown_numbers(judge, split, scale, target, learn.ratings) for split in (learn, select))
    return reader, learn, select


@dataclass(frozen=True)
class OptionReader:
    """Reads the options that a judge's prediction gives, and the shares of raters who gave them.

    Parameters
    ----------
    options : tuple of str
        The K options.
    answers : str
        ``choice`` for raters who gave one option each, or ``set``.
    part : str
        The prediction's field with the judge's.
    """

    options: tuple[str, ...]
    answers: Answers
    part: str
    span = 1.0
    sign = 1.0
    shown = ""

    @classmethod
    def of(cls, judge: dspy.Module, goal: Objective) -> OptionReader | None:
        """The reader for a judge of options, None for a judge of numbers.

        Raises
        ------
        OptionError
            If the objective compares other answers than the judge gives.
        """
        parts = judge.fields if isinstance(judge, OptionsJudge) else {"number": ""}
        if goal.answers not in parts:
            known = ", ".join(name for name, one in OBJECTIVES.items() if one.answers in parts)
            raise OptionError(
                f"objective={goal.name!r} compares a {goal.answers} with the raters', and {judge!r:.80} gives a "
                f"{' and a '.join(parts)}: take {known}"
            )
        return cls(judge.options, goal.answers, parts[goal.answers]) if isinstance(judge, OptionsJudge) else None

    def value(self, row: dspy.Example, prediction: Any) -> FloatArray:
        """The judge's options, shape (K,): 1 for each that it gave, else 0."""
        given = prediction[self.part]
        held = given if isinstance(given, frozenset) else {given}
        return np.array([option in held for option in self.options], dtype=float)

    def shares(self, rating: Any, where: str) -> FloatArray | None:
        """The share of a row's raters who gave each option, shape (K,); None without raters.

        Parameters
        ----------
        rating : mapping of str to float, or sequence
            The shares themselves; or the answers one by one, each an option or, of sets, a list of options.
        where : str
            The row, for messages.

        Raises
        ------
        DataError
            If an option was not declared, shares are none or of choices do not sum to 1, or a set is empty.
        """
        if not isinstance(rating, str) and (rating is None or str(rating) in ("nan", "<NA>", "[]", "()", "{}")):
            return None
        if not isinstance(rating, str | Mapping | Sequence):
            raise DataError(f"{where}: {rating!r:.80} must map options to shares, or be a list of the raters' answers")
        each = [rating] if isinstance(rating, str | Mapping) else rating
        given = [[one] if self.answers == "choice" and isinstance(one, str) else one for one in each]
        for one in given:
            if not isinstance(one, Collection) or isinstance(one, str) or not one:
                raise DataError(
                    f"{where}: {one!r:.80} is no {self.answers}: give one {self.answers} a rater, {FORMS[self.answers]}"
                )
            if unknown := [option for option in one if option not in self.options]:
                hint = nearest(str(unknown[0]), self.options)
                raise DataError(
                    f"{where}: {unknown[0]!r:.80} was not declared{hint}; options are {', '.join(self.options)}"
                )
        weights = [one if isinstance(one, Mapping) else dict.fromkeys(one, 1.0) for one in given]
        try:
            shares = np.array([[float(one.get(each, 0)) for each in self.options] for one in weights]).mean(axis=0)
        except (TypeError, ValueError):
            shares = np.full(1, math.nan)
        most = 1.0 if self.answers == "choice" else math.inf
        if not (((shares >= 0) & (shares <= 1)).all() and 1 - SUM <= shares.sum() <= most + SUM):
            sums = "1" if self.answers == "choice" else "1 or more"
            raise DataError(f"{where}: {rating!r:.80} are no shares of raters: give numbers from 0 to 1, in all {sums}")
        return np.asarray(shares)

    def feedback(self, row: dspy.Example, shares: FloatArray, value: FloatArray, prediction: Any) -> str:
        """The answers of raters and judge with their reasons, and the options on which most raters did otherwise."""
        raters = ", ".join(f"{one} ({part:.0%})" for one, part in zip(self.options, shares, strict=True) if part)
        reason = str(row.get("reason") or "")
        lines = [
            f"The raters gave {raters}{f' and said: {cut(reason, LONGEST_REASON)}' if reason else ''}.",
            f"The judge gave {cut(str(prediction.feedback), LONGEST_REASON)}.",
        ]
        for option, part, given in zip(self.options, shares, value, strict=True):
            if abs(given - part) > 0.5:
                lines.append(f"{part:.0%} of the raters gave {option}; the judge {'did' if given else 'did not'}.")
        return "\n".join(lines)


def cut(text: str, longest: int) -> str:
    """A text without its last full stop, cut short at a word."""
    text = text.strip().rstrip(".")
    return text if len(text) <= longest else text[:longest].rsplit(" ", 1)[0] + " [...]"
