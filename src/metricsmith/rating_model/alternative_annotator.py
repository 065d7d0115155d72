"""The alternative-annotator test: does a judge go with people at least as well as one of them goes with the others."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.resampling import benjamini_yekutieli, check_level, mean_test, signed_rank_test

__all__ = ["AlternativeAnnotatorTest", "alternative_annotator_test"]

FEW = 30  # items below which ranks are tested in place of the mean


@dataclass(frozen=True, eq=False)
class AlternativeAnnotatorTest:
    """A judge in place of each rater.

    Parameters
    ----------
    raters : tuple of hashable, length r
    items : int array, shape (r,)
        Items that the rater, another one and the judge rated.
    judge_wins, rater_wins : float array, shape (r,)
        Share of items on which this side is at least as near to the other raters; equally near counts for both. NaN
        without items.
    p_values : float array, shape (r,)
        Adjusted by Benjamini and Yekutieli; NaN with fewer than two items.
    winning_rate : float
        Share of raters whom the judge may replace; a rater who could not be tested counts as not replaced.
    advantage_probability : float
        The mean of `judge_wins`: the probability that the judge does at least as well as a rater taken at random.
    passed : bool
        True if the winning rate is at least one half.
    """

    raters: tuple[Hashable, ...]
    items: FloatArray
    judge_wins: FloatArray
    rater_wins: FloatArray
    p_values: FloatArray
    winning_rate: float
    advantage_probability: float
    passed: bool


def alternative_annotator_test(
    human: Ratings, judge: Ratings, *, epsilon: float = 0.2, level: float = 0.95
) -> AlternativeAnnotatorTest:
    """Tests for each rater left out that the judge wins on more items than the rater does, less epsilon.

    A side's nearness to the other raters of an item is the mean Jaccard index of its options and theirs, which for
    forced choices is the share of them who chose the same; of a judge with several samples it is the mean over these.
    The test is Student's paired t, below 30 items Wilcoxon's signed-rank test; items count as independent.

    It asks if the judge does as well as a rater does, less epsilon: with few raters who disagree a weak judge passes
    as well. It is no measure by which to rank judges.

    Parameters
    ----------
    human : Ratings
        Of three raters or more, who may lack any items.
    judge : Ratings
        With the same options; its repetitions are its raters.
    epsilon : float
        In [0, 1): the advantage that a judge gets because it costs less than people: .2 beside experts, .15 beside
        skilled raters, .1 beside crowd workers.
    level : float
        1 less the false discovery rate.

    Raises
    ------
    DataError
        If people's ratings are counts, there are fewer than three raters, options differ, or no rater shares an item
        with the judge and another.
    OptionError
        If a number is out of range.

    References
    ----------
    Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge".
    """
    check_level(level)
    if not 0 <= epsilon < 1:
        raise OptionError(f"epsilon {epsilon:g}: give a number from 0 to below 1, such as .2 beside experts")
    human.check_raters("the alternative-annotator test")
    if len(human.raters) < 3:
        raise DataError(f"{len(human.raters)} raters: the test leaves one out of three at least; gather more ratings")
    if human.options != judge.options:
        raise DataError(f"people have options {human.options}, the judge {judge.options}: give the same")
    lead, known = _leads(human, judge.of_items(human.items))
    if not known.any():
        raise DataError("no rater shares an item with the judge and another rater: check the items' names")
    raters = [lead[known & (human.rater == rater)] for rater in range(len(human.raters))]
    wins = np.array([[(side >= 0).mean() if side.size else np.nan for side in (one, -one)] for one in raters])
    surplus = [np.sign(one) + epsilon for one in raters]
    tested = [mean_test(one, alternative="greater") if one.size >= FEW else signed_rank_test(one) for one in surplus]
    p_values = benjamini_yekutieli(tested)
    rate = float((p_values <= 1 - level + 1e-12).mean())
    return AlternativeAnnotatorTest(
        human.raters, np.array([one.size for one in raters]), wins[:, 0], wins[:, 1], p_values, rate,
        float(np.nanmean(wins[:, 0])), rate >= 0.5,
    )  # fmt: skip


def _leads(human: Ratings, judge: Ratings) -> tuple[FloatArray, FloatArray]:
    """By rating, the judge's nearness to the item's other raters less that of the rater; and where it is defined."""
    patterns, codes = np.unique(np.concatenate([human.given, judge.given]), axis=0, return_inverse=True)
    sets = patterns.astype(float)
    common = sets @ sets.T
    jaccard = common / (sets.sum(axis=1)[:, None] + sets.sum(axis=1) - common)
    own, others = np.split(codes.ravel(), [len(human.item)])
    people, answers = np.zeros((2, len(human.items), len(sets)))
    np.add.at(people, (human.item, own), 1.0)
    np.add.at(answers, (judge.item, others), 1.0)
    size, samples = people.sum(axis=1)[human.item] - 1, answers.sum(axis=1)[human.item]
    near, known = (people @ jaccard)[human.item], (size > 0) & (samples > 0)
    rest = near - jaccard[own]  # of every pattern to the other raters
    of_rater = np.take_along_axis(rest, own[:, None], axis=1)[:, 0]
    of_judge = (answers[human.item] * rest).sum(axis=1) / np.maximum(samples, 1)
    lead = (of_judge - of_rater) / np.maximum(size, 1)
    return np.where(np.abs(lead) < 1e-12, 0.0, lead), known
