"""The disagreement clinic: items where judge and people differ, told apart by the likely reason.

Raters who follow two policies differ on the same items, whichever the rest of their errors. So they are tested for a
split first; an item is then held against both hypotheses, one option that is right or one for each group, with each
rater's own consistency as the reference.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.response_sets import shares_of
from metricsmith.rating_model.vectors import hard
from metricsmith.stats.correlation import FloatArray, IntArray
from metricsmith.stats.resampling import check_level, chunks, permutation_p_value

__all__ = ["Clinic", "DisagreementCase", "RaterSplit", "disagreement_clinic", "split_raters"]

Kind = Literal["unstated policy", "judge error", "rater noise", "one rating"]
KINDS: tuple[Kind, ...] = ("unstated policy", "judge error", "rater noise", "one rating")
STEPS = 20  # of a fit; more change nothing that matters
PRIOR = 0.5  # the precision of the logits of raters' and items' chances


@dataclass(frozen=True, eq=False)
class RaterSplit:
    """Two groups of raters, and the test that they are two.

    Parameters
    ----------
    groups : tuple of two tuples
        The raters, the larger group first.
    p_value : float
        Of one policy with any errors of raters, for each option, and any difficulty of items; NaN with fewer than four
        raters or without disagreement.
    found : bool
        True where two groups of two raters or more are claimed.
    consistency : float array, shape (raters,)
        How often each rater chooses as most others of the own group do, shrunk toward one half; in (0, 1).
    differs : float array, shape (n,)
        Probability that the groups decide an item differently, given that there are two; NaN for items without ratings.
    """

    groups: tuple[tuple[Hashable, ...], tuple[Hashable, ...]]
    p_value: float
    found: bool
    consistency: FloatArray
    differs: FloatArray


@dataclass(frozen=True)
class DisagreementCase:
    """One item on which judge and people differ.

    Parameters
    ----------
    item : hashable
    kind : {"unstated policy", "judge error", "rater noise", "one rating"}
        The likely reason; no reason can be told from one rating.
    strength : float
        In [0, 1]: the probability that the groups differ; the share of raters who did not choose as the judge; or the
        share who did.
    judge : str
        The option that the judge gives most often; of several, that which the fewest raters chose.
    raters : tuple of (str, tuple)
        The options that people chose and who did (for counts numbers within the item), the most frequent first.
    reason : str
        In words.
    """

    item: Hashable
    kind: Kind
    strength: float
    judge: str
    raters: tuple[tuple[str, tuple[Hashable, ...]], ...]
    reason: str


@dataclass(frozen=True)
class Clinic:
    """The cases in the order in which to read them: by kind as in `DisagreementCase`, the strongest of each first.

    Parameters
    ----------
    cases : tuple of DisagreementCase
    split : RaterSplit, optional
        None where people's ratings are counts.
    items, left_out : int
        Items that both sides rated, and the others.
    ties : int
        Items without a difference that could be told: a side has several most frequent options, one of which is the
        other side's as well.
    """

    cases: tuple[DisagreementCase, ...]
    split: RaterSplit | None
    items: int
    left_out: int
    ties: int


def disagreement_clinic(
    human: Ratings, judge: Ratings, *, support: float = 0.25, level: float = 0.99, draws: int = 299, seed: int = 0
) -> Clinic:
    """Tells apart the reasons for which a judge and people differ.

    An item is listed where no most frequent option of the judge is one of the people's; also where the raters are
    split into groups that decide it differently, since the judge then differs from one of them. It is *unstated policy*
    in the latter case, else *one rating* where there is no more, else *rater noise* where enough raters chose as the
    judge did, else *judge error*. Ratings of a use are compared after `Ratings.collapsed`.

    Parameters
    ----------
    human, judge : Ratings
        Forced choices with the same options; the judge's repetitions are its raters. People's counts are not looked
        at for groups of raters.
    support : float
        In (0, 1]: the share of raters who chose as the judge did from which an item speaks of the raters' noise.
    level, draws, seed
        As in `split_raters`.

    Raises
    ------
    DataError
        If options differ, or no item was rated by both sides.
    OptionError
        If ratings are response sets, or a number is out of range.
    """
    if human.options != judge.options:
        raise DataError(f"people have options {human.options}, the judge {judge.options}: give the same")
    if not 0 < support <= 1:
        raise OptionError(f"support {support:g} is no share above 0: give a number up to 1, such as .25")
    chosen, people = human.chosen, shares_of(human.counts)
    answered = judge.of_items(human.items).counts
    answers = shares_of(answered)
    both = ~np.isnan(people + answers).any(axis=1)
    if not both.any() or judge.sets:
        raise DataError("no item has a forced choice of a rater and one of the judge: check the items' names")
    split = None if human.counted else split_raters(human, level=level, draws=draws, seed=seed)
    spoken = hard(answers)
    hits = (hard(people) * spoken).sum(axis=1)
    policy = np.zeros(both.size, dtype=bool) if split is None else split.found & (split.differs >= 0.5)
    cases = []
    for place in np.flatnonzero(both & (policy | (hits == 0))):
        best = int(np.where(spoken[place] > 0, people[place], 2.0).argmin())
        own = np.flatnonzero(human.item == place)
        order = np.argsort(-human.counts[place], kind="stable")
        raters = tuple(
            (human.options[option], tuple(human.raters[human.rater[one]] for one in own if chosen[one] == option))
            for option in order[human.counts[place][order] > 0]
        )
        share = float(people[place, best])
        if split is not None and policy[place]:
            kind, strength, reason = KINDS[0], float(split.differs[place]), _policy_reason(split, raters)
        else:
            kind, strength = (KINDS[2], share) if share >= support else (KINDS[1], 1 - share)
            kind = KINDS[3] if own.size == 1 else kind
            reason = _support_reason(round(share * own.size), own.size, human.options[best], answered[place])
        cases.append(DisagreementCase(human.items[place], kind, strength, human.options[best], raters, reason))
    cases.sort(key=lambda case: (KINDS.index(case.kind), -case.strength, -sum(len(names) for _, names in case.raters)))
    ties = both & ~policy & (hits > 0) & (hits < 1)
    return Clinic(tuple(cases), split, int(both.sum()), int((~both).sum()), int(ties.sum()))


def split_raters(ratings: Ratings, *, level: float = 0.99, draws: int = 299, seed: int = 0) -> RaterSplit:
    """Looks for two groups of raters who decide some items differently.

    Marked are the choices that differ from the item's most frequent one. Under one policy a rater guesses with a
    probability that grows with the item's difficulty and falls with the rater's care (for each option), so that even
    on the hardest item no more marks are to be expected than guessing gives. Two raters' common marks beyond that, in
    standard deviations, make a matrix: its largest eigenvalue is the statistic, held against ratings drawn from the
    fitted model and fitted anew, and the signs of its eigenvector are the groups. For each item the likelihood of one
    right option is then held against that of one for each group, with the share of such items estimated.

    Simulated with one policy (6 to 20 raters, errors .05 to .25, equal or not), p was below .01 in .007 and below .05
    in .04 of 400 runs. Where errors range from .02 to .48 among six raters it was below .01 in .03 to .06.

    Parameters
    ----------
    ratings : Ratings
        Forced choices; raters may lack any items.
    level : float
        1 less the probability of claiming a split where there is none.
    draws : int
        Tables of ratings, at least ``1 / (1 - level) - 1``.
    seed : int
        Of the tables, and of equally frequent options.

    Raises
    ------
    DataError
        If ratings are counts.
    OptionError
        If ratings are response sets, or a number is out of range.
    """
    ratings.check_raters("the test for two policies")
    check_level(level)
    if draws + 1 < 1 / (1 - level) - 1e-9:
        raise OptionError(f"{draws} draws cannot reach p = {1 - level:g}: give at least {1 / (1 - level) - 1:.0f}")
    table, size, random = ratings.table().T, len(ratings.options), np.random.default_rng(seed)
    marks, modes = _marks(table[None], size, random)
    if len(table) < 4 or not marks.any():
        nobody = np.full(len(ratings.items), math.nan)
        return RaterSplit((ratings.raters, ()), math.nan, False, np.full(len(table), math.nan), nobody)
    observed, vectors, chances = _surplus(marks, modes, table >= 0, size)
    null = []
    for count in chunks(draws, table.size):
        wrong = (modes + random.integers(1, size, (count, *table.shape))) % size
        drawn = np.where(random.random(wrong.shape) < chances, wrong, modes)
        null.append(_surplus(*_marks(np.where(table >= 0, drawn, -1), size, random), table >= 0, size)[0])
    test = permutation_p_value(float(observed[0]), np.concatenate(null), "greater")
    second = vectors[0] > 0
    second = ~second if second.sum() * 2 > second.size else second
    consistency = _consistency(ratings, second)
    first, other = (tuple(ratings.raters[place] for place in np.flatnonzero(side)) for side in (~second, second))
    found = bool(test.p_value <= 1 - level + 1e-9 and second.sum() > 1)
    return RaterSplit((first, other), test.p_value, found, consistency, _differs(ratings, second, consistency))


def _marks(tables: IntArray, size: int, random: np.random.Generator) -> tuple[NDArray[np.bool_], IntArray]:
    """Choices that differ from the item's most frequent one, (draws, r, n), and that one, (draws, 1, n); ties drawn."""
    counts = np.stack([(tables == option).sum(axis=1) for option in range(size)], axis=-1)
    modes = (counts + random.random(counts.shape) / 2).argmax(axis=-1)[:, None]
    return (tables >= 0) & (tables != modes), modes


def _surplus(
    marks: NDArray[np.bool_], modes: IntArray, present: NDArray[np.bool_], size: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The largest eigenvalue of raters' common marks beyond chance, its vector, and the chance of each mark."""
    chances = _chances(marks, modes, present, size)
    rest, variance = (marks - chances) * present, chances * (1 - chances) * present
    common = rest @ rest.swapaxes(1, 2)
    spread = np.sqrt(variance @ variance.swapaxes(1, 2))
    scaled = np.divide(common, spread, out=np.zeros_like(common), where=spread > 1e-9)
    values, vectors = np.linalg.eigh(scaled * (1 - np.eye(marks.shape[1])))
    return values[:, -1], vectors[:, :, -1], chances


def _chances(marks: NDArray[np.bool_], modes: IntArray, present: NDArray[np.bool_], size: int) -> FloatArray:
    """The fitted chance of a mark, ``(1 - 1/K) / (1 + exp(-rater - item))`` with a rater's number for each mode.

    Fisher scoring of raters and items in turn; both are held near the common level by a normal prior.
    """
    most = 1 - 1 / size
    rate = np.clip((marks.sum(axis=(1, 2)) + 0.5) / (present.sum() + 1) / most, 0.01, 0.99)[:, None, None]
    classes = (modes.swapaxes(1, 2) == np.arange(size)).astype(float)  # (draws, n, K)
    raters, items = np.zeros((*marks.shape[:2], size)), np.zeros((len(marks), 1, marks.shape[2]))

    def guessing() -> FloatArray:
        return np.asarray(1 / (1 + (1 / rate - 1) * np.exp(-raters @ classes.swapaxes(1, 2) - items)))

    for step in range(2 * STEPS):
        guess = guessing()
        weight = present * (1 - guess) / (1 - most * guess)
        slope, curve = (marks - most * guess) * weight, most * guess * (1 - guess) * weight
        if step % 2:
            items += (slope.sum(axis=1, keepdims=True) - PRIOR * items) / (curve.sum(axis=1, keepdims=True) + PRIOR)
        else:
            raters += (slope @ classes - PRIOR * raters) / (curve @ classes + PRIOR)
    return most * guessing()


def _consistency(ratings: Ratings, second: NDArray[np.bool_]) -> FloatArray:
    """The share of each rater's choices that most others of the group made; one hit and one miss are added."""
    counts = np.zeros((2, len(ratings.items), len(ratings.options)))
    side = second[ratings.rater].astype(int)
    np.add.at(counts, (side, ratings.item), ratings.given)
    others = counts[side, ratings.item] - ratings.given
    hits, known = (hard(others) * ratings.given).sum(axis=1), others.sum(axis=1) > 0
    hit, of = (np.bincount(ratings.rater, kept, minlength=len(second)) for kept in (hits * known, known))
    return np.asarray((hit + 1) / (of + 2))


def _differs(ratings: Ratings, second: NDArray[np.bool_], consistency: FloatArray) -> FloatArray:
    """The probability that each group has an option of its own on an item, shape (n,)."""
    size = len(ratings.options)
    right = consistency[ratings.rater, None]
    logs = np.zeros((2, len(ratings.items), size))
    given = np.log(np.where(ratings.given, right, (1 - right) / (size - 1)))
    np.add.at(logs, (second[ratings.rater].astype(int), ratings.item), given)
    joint = logs[0][:, :, None] + logs[1][:, None, :]
    same = np.eye(size, dtype=bool)
    one = np.logaddexp.reduce(joint[:, same], axis=1) - math.log(size)
    two = np.logaddexp.reduce(joint[:, ~same], axis=1) - math.log(size * (size - 1))
    rated, share = ratings.per_item > 0, 0.5
    for _ in range(STEPS):
        differs = 1 / (1 + np.exp(np.clip(one - two, -700, 700)) * (1 - share) / share)
        share = float(np.clip(differs[rated].mean(), 1e-6, 1 - 1e-6))
    return np.where(rated, differs, math.nan)


def _support_reason(support: int, raters: int, option: str, answers: FloatArray) -> str:
    """The raters who chose as the judge did: ``1 of 4 raters said 'yes', as the judge did in 5 of 8 answers``."""
    often = f" in {answers.max():g} of {answers.sum():g} answers" if answers.sum() > 1 else ""
    if raters == 1:
        return f"the one rater said otherwise than the judge{often}"
    return f"{support} of {raters} raters said {option!r}, as the judge did{often}"


def _policy_reason(split: RaterSplit, raters: tuple[tuple[str, tuple[Hashable, ...]], ...]) -> str:
    """The choices by group: ``of 5 raters of the first group 5 said 'yes'; ...``."""
    parts = []
    for name, group in zip(("first", "second"), split.groups, strict=True):
        counts = [(sum(rater in group for rater in names), option) for option, names in raters]
        said = " and ".join(f"{count} said {option!r}" for count, option in counts if count)
        parts.append(f"of {sum(count for count, _ in counts)} raters of the {name} group {said or 'none rated it'}")
    return "; ".join(parts)
