"""Which rows are learned from and which select, and whether a judge's numbers can be held against the ratings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.splits import holdout
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import content_hash, row_text
from metricsmith.optimizers.objectives import Objective
from metricsmith.optimizers.rated import Rated, shared_source
from metricsmith.programs.asked_scale import nearest_points
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.raters import RatersJudge
from metricsmith.programs.texts import marked_anew
from metricsmith.records import Scale

__all__ = [
    "FEWEST_GROUPS",
    "check_labels",
    "episode_sides",
    "example_of",
    "rated_sides",
    "scale_of",
    "showing",
    "shown_numbers",
    "sign_of",
    "stands_in_demos",
]

FEWEST_GROUPS = 4  # to select by: fewer give no standard error to speak of


def rated_sides(
    trainset: Sequence[dspy.Example],
    valset: Sequence[dspy.Example] | None,
    target: str,
    fraction: float,
    seed: int,
    stands_in_demos: Callable[[dspy.Example], bool] = lambda _: False,
) -> tuple[Rated, Rated]:
    """Rows to learn from and to select by, disjoint by group; without `valset` a share of the first.

    Groups with a row that the judge already shows are not selected by.

    Raises
    ------
    DataError
        If there are too few rated rows or groups, or the ratings of a side are constant.
    OptionError
        If a group, input or output stands on both sides.
    """
    train = _rated(trainset, target)
    shown = _groups_where(train, stands_in_demos)
    if valset is None:
        texts = [content_hash(dict(row.inputs().items())) for row in train.rows]
        split = holdout(train.groups, texts, fraction=fraction, seed=seed, ratings=train.ratings)
        shown_too = [place for place in split.test if train.groups[place] in shown]
        learn = train.take([*split.train, *shown_too])
        select = train.take([place for place in split.test if train.groups[place] not in shown])
    else:
        learn, select = train, _rated(valset, target)
        shared = shared_source(learn, select) or _shared_inputs(learn, select)
        if shared:
            raise OptionError(f"{shared} stands in trainset and valset: what is learned from cannot select")
        shown = (shown | _groups_where(select, stands_in_demos)) & set(select.groups)
        if shown:
            raise OptionError(
                f"{len(shown)} groups of valset, such as {min(shown)[:60]!r}, are among the judge's demonstrations: "
                "what is shown cannot select; leave these groups out of valset, or the demonstrations out of the judge"
            )
    for name, side in (("learn from", learn), ("select by", select)):
        if len(side) < 2 or np.ptp(side.ratings) == 0:
            raise DataError(
                f"the {len(side)} rows to {name} have {len(np.unique(side.ratings))} different ratings under "
                f"{target!r}: at least two rows with different ratings are needed on either side"
            )
    _check_groups(select.groups)
    return learn, select


def episode_sides(trainset: Sequence[dspy.Example], valset: Sequence[dspy.Example] | None) -> tuple[Rated, Rated]:
    """Episodes to learn from and to select by; their ratings are in their labels.

    Raises
    ------
    OptionError
        If there is no `valset`, or an output that is held out in one side is held out in the other too.
    DataError
        If there are too few episodes.
    """
    if valset is None:
        raise OptionError(
            "episodes of one table overlap, so that no share can be held out: pass valset=, from other tables"
        )
    if not trainset:
        raise DataError("there is no episode to learn from")
    if len(valset) < FEWEST_GROUPS:
        raise DataError(f"{len(valset)} episodes to select by are too few: at least {FEWEST_GROUPS} are needed")
    shared = _held_out(trainset) & _held_out(valset)
    if shared:
        raise OptionError(
            f"the output {min(shared)[:60]!r} is held out in trainset and valset: take other tables for one"
        )
    return _numbered(trainset, "train"), _numbered(valset, "val")


def scale_of(judge: dspy.Module) -> Scale | None:
    """The scale that a judge of ours says its ratings are on, which need not be the one that it is asked on."""
    scale = getattr(judge, "rating_scale", getattr(judge, "scale", None))
    return scale if isinstance(scale, Scale) else None


def sign_of(judge: dspy.Module, scale: Scale | None) -> float:
    """-1 if judge and raters count in opposite directions."""
    output = getattr(judge, "output", None)
    return (
        -1.0 if output is not None and scale is not None and output.higher_is_better != scale.higher_is_better else 1.0
    )


def check_labels(judge: dspy.Module, objective: Objective, ratings: NDArray[np.float64], scale: Scale | None) -> None:
    """Refuse an objective in labels for a judge that cannot give the raters' numbers.

    Raises
    ------
    OptionError
    """
    if not objective.labels:
        return
    advice = "take ExampleJudge with the raters' scale, or a rank objective such as kendall_tau_b"
    if isinstance(judge, RatersJudge) and judge.asked.points:
        raise OptionError(
            f"the judge is asked for {judge.scale}, fifths by rank, since people do not count in numbers from "
            f"{judge.rating_scale}; {objective.name} compares numbers: take a rank objective such as kendall_tau_b"
        )
    if sign_of(judge, scale) < 0:
        raise OptionError(
            f"judge and raters count in opposite directions, but {objective.name} compares numbers: {advice}"
        )
    own = scale_of(judge)
    stray = [rating for rating in ratings.tolist() if own is not None and not own.contains(rating)]
    if stray:
        raise OptionError(f"the judge rates from {own}, but raters gave {stray[0]:g}: for {objective.name} {advice}")
    points = ratings if own is None else nearest_points(ratings, replace(own, step=own.step or 1.0))
    if not objective.graded and not np.array_equal(points, ratings):
        raise OptionError(
            f"the ratings are no labels but a continuum: {ratings[points != ratings][0]:g} is no point from {own}; "
            f"{objective.name} counts exact hits: take quadratic_kappa, or a rank objective such as kendall_tau_b"
        )


def _rated(rows: Sequence[dspy.Example], target: str) -> Rated:
    kept = [row for row in rows if not _is_missing(row.get(target), target)]
    if not kept:
        raise DataError(f"none of {len(rows)} rows has a rating under {target!r}: name it with task=Task(...)")
    return Rated.of(kept, target)


def _is_missing(rating: object, target: str) -> bool:
    if rating is None or str(rating) == "<NA>":  # pandas' own, which cannot be compared
        return True
    if isinstance(rating, int | float | np.number | np.bool_):
        return bool(np.isnan(rating))
    raise DataError(f"the rating {rating!r} under {target!r} is no number: turn words into numbers first")


def _groups_where(rated: Rated, holds: Callable[[dspy.Example], bool]) -> set[str]:
    return {group for row, group in zip(rated.rows, rated.groups, strict=True) if holds(row)}


def _shared_inputs(learn: Rated, select: Rated) -> str:
    """Rows that ask a judge the same, whatever their fields are called."""
    known = {content_hash(dict(row.inputs().items())) for row in learn.rows}
    same = [row for row in select.rows if content_hash(dict(row.inputs().items())) in known]
    return f"a row with the inputs {str(dict(same[0].inputs().items()))[:80]}" if same else ""


def _check_groups(groups: Sequence[str]) -> None:
    if len(set(groups)) < FEWEST_GROUPS:
        raise DataError(
            f"the rows to select by form {len(set(groups))} groups: at least {FEWEST_GROUPS} are needed for a standard "
            "error; rate rows of more sources, or pass a valset that has them"
        )


def _held_out(episodes: Sequence[dspy.Example]) -> set[str]:
    labels = [getattr(episode, "label", None) for episode in episodes]
    return {str(row.get("output")) for label in labels for row in getattr(label, "rows", ())}


def _numbered(episodes: Sequence[dspy.Example], side: str) -> Rated:
    return Rated(list(episodes), np.zeros(len(episodes)), [f"{side} {number}" for number in range(len(episodes))])


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
