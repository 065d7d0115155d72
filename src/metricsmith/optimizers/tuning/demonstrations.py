"""Rated rows as demonstrations for a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.metric import row_text
from metricsmith.optimizers.rated import Rated
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.raters import RatersJudge
from metricsmith.programs.texts import marked_anew
from metricsmith.records import Scale

__all__ = ["example_of", "showing", "shown_numbers", "stands_in_demos"]

FloatArray = NDArray[np.float64]


def shown_numbers(judge: dspy.Module, side: Rated, scale: Scale | None, target: str, among: FloatArray) -> Rated:
    """The same rows and ratings, the rows with the numbers that a judge of ours is asked for: what any prompt may show.

    Parameters
    ----------
    judge : dspy.Module
        Rows for a module that is none of ours stay as they are.
    side : Rated
    scale : Scale, optional
        The raters'; by default the judge's.
    target : str
        The rows' field with the rating.
    among : float array, shape (m,)
        Ratings of the rows to learn from, in whose order the others stand on a made grid.
    """
    if not isinstance(judge, Judge):
        return side
    own = judge.rating_scale if isinstance(judge, RatersJudge) else judge.scale
    on, beside = (
        np.array([_mapped(one, scale or own, own) for one in part.tolist()]) for part in (side.ratings, among)
    )
    numbers = judge.asked_numbers(on, beside) if isinstance(judge, RatersJudge) else on
    rows = [
        row if number == rating else row.copy(**{target: number})
        for row, number, rating in zip(side.rows, numbers.tolist(), side.ratings.tolist(), strict=True)
    ]
    return replace(side, rows=rows)


def example_of(judge: dspy.Module) -> Callable[[dspy.Example, float], Any] | None:
    """The function that makes a demonstration of a row and a number of `shown_numbers`; None if nobody can say how.

    Parameters
    ----------
    judge : dspy.Module
        One of our judges; or a module with one predictor whose inputs are a row's inputs and whose outputs hold
        ``score``.
    """
    if isinstance(judge, Judge):
        return lambda row, number: judge.example(row, number, _reason(row))
    predictors = judge.predictors()
    if len(predictors) != 1 or "score" not in predictors[0].signature.output_fields:
        return None
    wanted = set(predictors[0].signature.input_fields)

    def show(row: dspy.Example, rating: float) -> Any:
        number = int(rating) if float(rating).is_integer() else float(rating)
        said = {"reasoning": _reason(row)} if _reason(row) else {}
        return dspy.Example(
            **{name: text for name, text in row.inputs().items() if name in wanted}, **said, score=number
        )

    return show


def stands_in_demos(judge: dspy.Module) -> Callable[[dspy.Example], bool]:
    """A test whether a judge's demonstrations show a row or, where rows have inputs, another output to the same one."""
    demos = [demo for predictor in judge.predictors() for demo in predictor.demos]

    def stands(row: dspy.Example) -> bool:
        texts = judge.texts(row_text(row)) if isinstance(judge, Judge) else dict(row.inputs().items())
        asked = judge.judged[0] if isinstance(judge, Judge) else "input"
        main = {asked: texts[asked]} if texts.get(asked) and row.get("input") else texts
        return any(all(marked_anew(demo.get(name)) == text for name, text in main.items()) for demo in demos)

    return stands


def _mapped(rating: float, raters: Scale, own: Scale) -> float:
    """A rating on the judge's scale: by its place between the ends, to the judge's nearest step."""
    if (raters.low, raters.high) == (own.low, own.high) and raters.higher_is_better == own.higher_is_better:
        return rating
    share = raters.unit(rating) if own.higher_is_better else 1 - raters.unit(rating)
    value = own.low + share * own.width
    return value if own.step is None else own.low + round((value - own.low) / own.step) * own.step


def _reason(row: dspy.Example) -> str:
    return str(row.get("reason") or "")


def showing(judge: dspy.Module, demos: Sequence[Any]) -> dspy.Module:
    """A copy of a judge whose first predictor has these demonstrations."""
    copy = judge.deepcopy()
    copy.predictors()[0].demos = list(demos)
    return copy
