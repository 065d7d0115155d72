"""Which rows are learned from and which select, and whether a judge's numbers can be held against the ratings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.splits import holdout
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import content_hash
from metricsmith.optimizers.objectives import Objective
from metricsmith.optimizers.rated import Rated, shared_source
from metricsmith.programs.asked_scale import nearest_points
from metricsmith.programs.judges.raters import RatersJudge
from metricsmith.records import Scale

__all__ = ["FEWEST_GROUPS", "check_labels", "episode_sides", "rated_sides", "scale_of", "sign_of"]

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
