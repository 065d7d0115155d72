"""The rows of a tuning: the splits to learn from and to select by, in the numbers of raters and judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import dspy
import numpy as np

from metricsmith.datasets.splits import group_of, holdout
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import content_hash, marked_anew, row_text
from metricsmith.optimizers.examples import draw_examples
from metricsmith.optimizers.objectives import Objective
from metricsmith.optimizers.splits import RatedRows, shared_source
from metricsmith.programs.asked_scale import nearest_points
from metricsmith.programs.judges.base import Judge, ModelMetric
from metricsmith.programs.judges.raters import RatersJudge
from metricsmith.records import Scale
from metricsmith.stats.correlation import FloatArray

__all__ = [
    "FEWEST_GROUPS",
    "check_labels",
    "demonstration_draws",
    "episode_splits",
    "rated_splits",
    "row_inputs",
    "scale_of",
    "shown_numbers",
    "sign_of",
    "stands_in_demos",
]

FEWEST_GROUPS = 4  # to select by: fewer give no standard error to speak of


def rated_splits(
    trainset: Sequence[dspy.Example],
    valset: Sequence[dspy.Example] | None,
    target: str,
    fraction: float,
    seed: int,
    is_shown: Callable[[dspy.Example], bool] = lambda _: False,
    read: Callable[[Any, str], Any] | None = None,
) -> tuple[RatedRows, RatedRows]:
    """Rows to learn from and to select by, disjoint by group; without `valset` a share of the first selects.

    Groups with a row that the judge already shows are not selected by. `read` makes a rating of what stands under
    `target` in a row, None where there is none; by default it must be a number.

    Raises
    ------
    DataError
        If there are too few rated rows or groups, or the ratings of a split are constant.
    OptionError
        If a group, input or output stands in both splits.
    """
    read = read or _number
    train = _rated(trainset, target, read)
    shown = _groups_where(train, is_shown)
    if valset is None:
        texts = [content_hash(row_inputs(row)) for row in train.rows]
        different = np.unique(train.ratings, axis=0, return_inverse=True)[1].reshape(-1).astype(float)
        split = holdout(train.groups, texts, fraction=fraction, seed=seed, ratings=different)
        shown_too = [place for place in split.test if train.groups[place] in shown]
        learn = train.take([*split.train, *shown_too])
        select = train.take([place for place in split.test if train.groups[place] not in shown])
    else:
        learn, select = train, _rated(valset, target, read)
        shared = shared_source(learn, select) or _shared_inputs(learn, select)
        if shared:
            raise OptionError(f"{shared} stands in trainset and valset: what is learned from cannot select")
        shown = (shown | _groups_where(select, is_shown)) & set(select.groups)
        if shown:
            raise OptionError(
                f"{len(shown)} groups of valset, such as {min(shown)[:60]!r}, are among the judge's demonstrations: "
                "what is shown cannot select; leave these groups out of valset, or the demonstrations out of the judge"
            )
    for name, rated in (("learn from", learn), ("select by", select)):
        if len(found := np.unique(rated.ratings, axis=0)) < 2:
            raise DataError(
                f"the {len(rated)} rows to {name} have {len(found)} different ratings under "
                f"{target!r}: at least two rows with different ratings are needed on either side"
            )
    if len(set(select.groups)) < FEWEST_GROUPS:
        raise DataError(
            f"the rows to select by form {len(set(select.groups))} groups: at least {FEWEST_GROUPS} are needed for a "
            "standard error; rate rows of more sources, or pass a valset that has them"
        )
    return learn, select


def _rated(rows: Sequence[dspy.Example], target: str, read: Callable[[Any, str], Any]) -> RatedRows:
    read_rows = [(row, read(row.get(target), f"{target!r} of row {row.get('id', n)!r}")) for n, row in enumerate(rows)]
    kept = [(row, rating) for row, rating in read_rows if rating is not None]
    if not kept:
        raise DataError(f"none of {len(rows)} rows has a rating under {target!r}: name it with task=Task(...)")
    ratings = np.array([rating for _, rating in kept], dtype=float)
    return RatedRows([row for row, _ in kept], ratings, [group_of(row, n) for n, (row, _) in enumerate(kept)])


def _number(rating: Any, where: str) -> float | None:
    if rating is None or str(rating) == "<NA>":  # pandas' own, which cannot be compared
        return None
    if not isinstance(rating, int | float | np.number | np.bool_):
        raise DataError(f"the rating {rating!r} under {where} is no number: turn words into numbers first")
    return None if np.isnan(rating) else float(rating)


def _groups_where(rated: RatedRows, holds: Callable[[dspy.Example], bool]) -> set[str]:
    return {group for row, group in zip(rated.rows, rated.groups, strict=True) if holds(row)}


def _shared_inputs(learn: RatedRows, select: RatedRows) -> str:
    """A row of `select` with the inputs of a learning row, under any field names; empty if there is none."""
    known = {content_hash(row_inputs(row)) for row in learn.rows}
    same = next((row for row in select.rows if content_hash(row_inputs(row)) in known), None)
    return "" if same is None else f"a row with the inputs {str(row_inputs(same))[:80]}"


def row_inputs(row: dspy.Example) -> dict[str, Any]:
    """A row's inputs by field name: all that a judge is asked about it."""
    return dict(row.inputs().items())


def episode_splits(
    trainset: Sequence[dspy.Example], valset: Sequence[dspy.Example] | None
) -> tuple[RatedRows, RatedRows]:
    """Episodes to learn from and to select by; their ratings are in their labels.

    Raises
    ------
    OptionError
        If there is no `valset`, or an output is held out in both splits.
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
    held_out = []
    for episodes in (trainset, valset):
        labels = [getattr(episode, "label", None) for episode in episodes]
        held_out.append({str(row.get("output")) for label in labels for row in getattr(label, "rows", ())})
    shared = held_out[0] & held_out[1]
    if shared:
        raise OptionError(
            f"the output {min(shared)[:60]!r} is held out in trainset and valset: take other tables for one"
        )
    train, val = (
        RatedRows(list(episodes), np.zeros(len(episodes)), [f"{name} {number}" for number in range(len(episodes))])
        for name, episodes in (("train", trainset), ("val", valset))
    )
    return train, val


def scale_of(judge: dspy.Module) -> Scale | None:
    """The rating scale of a judge of ours, which may differ from its asked scale; None for any other module."""
    scale = getattr(judge, "rating_scale", getattr(judge, "scale", None))
    return scale if isinstance(scale, Scale) else None


def sign_of(judge: dspy.Module, scale: Scale | None) -> float:
    """-1 if judge and raters count in opposite directions, otherwise 1."""
    output = getattr(judge, "output", None)
    if output is None or scale is None or output.higher_is_better == scale.higher_is_better:
        return 1.0
    return -1.0


def check_labels(judge: dspy.Module, objective: Objective, ratings: FloatArray, scale: Scale | None) -> None:
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


def shown_numbers(
    judge: dspy.Module, split: RatedRows, scale: Scale | None, target: str, among: FloatArray
) -> RatedRows:
    """The same rows and ratings, where the rows hold the numbers that a prompt may show: those the judge is asked for.

    Statistics keep the raters' numbers, so that fifths cost no resolution where candidates are compared.

    Parameters
    ----------
    judge : dspy.Module
        Rows for a module that is none of ours stay as they are.
    split : RatedRows
    scale : Scale, optional
        The raters'; by default the judge's.
    target : str
        The rows' field with the rating.
    among : float array, shape (m,)
        Ratings of the rows to learn from; by their order the others find their points on an asked scale of ranks.
    """
    if not isinstance(judge, Judge):
        return split
    own = judge.rating_scale if isinstance(judge, RatersJudge) else judge.scale
    on, beside = (
        np.array([_on_scale(one, scale or own, own) for one in part.tolist()]) for part in (split.ratings, among)
    )
    numbers = judge.asked_numbers(on, beside) if isinstance(judge, RatersJudge) else on
    rows = [
        row if number == rating else row.copy(**{target: number})
        for row, number, rating in zip(split.rows, numbers.tolist(), split.ratings.tolist(), strict=True)
    ]
    return replace(split, rows=rows)


def _on_scale(rating: float, raters: Scale, own: Scale) -> float:
    """A rating on the judge's scale: by its place between the ends, to the judge's nearest step."""
    if (raters.low, raters.high) == (own.low, own.high) and raters.higher_is_better == own.higher_is_better:
        return rating
    share = raters.unit(rating) if own.higher_is_better else 1 - raters.unit(rating)
    value = own.low + share * own.width
    return value if own.step is None else own.low + round((value - own.low) / own.step) * own.step


def demonstration_draws(
    judge: dspy.Module, learn: RatedRows, target: str, *, tokens: int, draws: int, seed: int
) -> list[Callable[[], dspy.Module]]:
    """Balanced draws of rated rows as demonstrations, as many as fit.

    Parameters
    ----------
    judge : dspy.Module
        One of our judges; or a module with one predictor whose inputs are a row's inputs and whose outputs hold
        ``score``.
    learn : RatedRows
        Rows with the numbers of `shown_numbers`.
    target : str
        The rows' field with these numbers.
    tokens : int
        The most that a draw may add to a prompt.
    draws : int
        The most draws.
    seed : int

    Returns
    -------
    list of callable
        Each gives a copy of the judge whose first predictor shows one draw. Empty for a module that cannot show any.
    """
    predictors = judge.predictors()
    if isinstance(judge, Judge):
        demos = [judge.example(row, row[target], str(row.get("reason") or "")) for row in learn.rows]
    elif len(predictors) == 1 and "score" in predictors[0].signature.output_fields:
        demos = [_demonstration(row, row[target], set(predictors[0].signature.input_fields)) for row in learn.rows]
    else:
        return []

    def showing(places: Sequence[int]) -> dspy.Module:
        copy = judge.deepcopy()
        copy.predictors()[0].demos = [demos[place] for place in places]
        return copy

    drawn = draw_examples(demos, learn.ratings.tolist(), tokens=tokens, draws=draws, seed=seed)
    return [partial(showing, places) for places in drawn]


def _demonstration(row: dspy.Example, rating: float, wanted: set[str]) -> dspy.Example:
    """A demonstration for a module that is none of ours, with the row's reason as its reasoning."""
    shown: dict[str, Any] = {name: text for name, text in row.inputs().items() if name in wanted}
    if row.get("reason"):
        shown["reasoning"] = str(row["reason"])
    return dspy.Example(**shown, score=int(rating) if float(rating).is_integer() else float(rating))


def stands_in_demos(judge: dspy.Module) -> Callable[[dspy.Example], bool]:
    """A test for rows that a judge's demonstrations show, with the same output or, where rows have inputs, another."""
    demos = [demo for predictor in judge.predictors() for demo in predictor.demos]

    def stands(row: dspy.Example) -> bool:
        texts = judge.texts(row_text(row)) if isinstance(judge, ModelMetric) else row_inputs(row)
        asked = judge.judged[0] if isinstance(judge, ModelMetric) else "input"
        main = {asked: texts[asked]} if texts.get(asked) and row.get("input") else texts
        return any(all(marked_anew(demo.get(name)) == text for name, text in main.items()) for demo in demos)

    return stands
