"""Objectives of a tuning: a statistic of the whole set, and the credit that one row earns towards it.

DSPy's optimisers look at one row at a time. A correlation or a kappa is no mean over rows, so each objective
brings a *credit*: a number in [0, 1] for one row whose mean over rows rises and falls with the statistic. Credits
only guide the search; candidates are chosen by the statistic itself (`metricsmith.optimizers.tuning`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from metricsmith.errors import OptionError, nearest
from metricsmith.rating_model.vectors import hard
from metricsmith.stats.agreement import balanced_accuracy, cohen_kappa, concordance_index, f1, quadratic_kappa
from metricsmith.stats.chance_corrected import table_kappa
from metricsmith.stats.correlation import (
    FloatArray,
    batch_kendall_tau_b,
    batch_pearson,
    batch_spearman,
    kendall_tau_b,
    pearson,
    spearman,
)

__all__ = ["OBJECTIVES", "REPORTED", "Case", "Measure", "Objective", "mean_of", "objective"]

Statistic = Callable[[FloatArray, FloatArray], float]
Answers = Literal["number", "choice", "set"]


@dataclass(frozen=True)
class Case:
    """One judged row among its peers.

    Parameters
    ----------
    value, rating : float, or float array of shape (K,)
        The numbers of the judge and of the raters; of K options what the judge gave, 0 or 1, and the shares of raters.
    peer_values, peer_ratings : float array, shape (m,)
        Other rows, judged by the same candidate. Empty where the objective needs none.
    ratings : float array, shape (n,) or (n, K)
        All ratings that the search may see.
    span : float
        Length of the rating scale, above 0.
    start : float
        The objective's statistic of the judge before tuning; NaN where it is undefined.
    """

    value: Any
    rating: Any
    peer_values: FloatArray
    peer_ratings: FloatArray
    ratings: FloatArray
    span: float
    start: float


@runtime_checkable
class Measure(Protocol):
    """A DSPy metric that measures the answer to an example by its label, as `RankingMetric` and `YieldMetric` do.

    Its requests to a model through `scoring.score` count in the budget of the `JudgeTuner` that uses it.
    """

    success_at: float

    def requests(self, example: Any) -> int:
        """The most requests of one measurement, retries aside."""

    def __call__(
        self, example: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        """A prediction with ``score`` in [0, 1] and ``feedback``; raises where there is none."""


@dataclass(frozen=True)
class Objective:
    """A statistic of (predictions, ratings), higher is better, and its credit for one row.

    Parameters
    ----------
    name : str
    statistic : callable
        Two arrays of shape (n,) -> float, NaN where undefined.
    credit : callable
        `Case` -> number in [0, 1].
    peers : bool
        True if the credit compares a row with others, which the candidate has to judge too.
    labels : bool
        True if predictions must be the raters' own numbers, and not just in their order.
    graded : bool
        With `labels`: true if a near miss counts for more than a far one, so that ratings may lie between labels.
    success_at : float
        Credit from which a row may become a demonstration; with `labels` the judge must hit the raters' number.
    chance : float
        The statistic of a judge without any skill; stands in where the judge before tuning has no statistic.
    bounds : (float, float), optional
        The least and the largest value of `statistic`, for its intervals; None where they are not known.
    batch : callable, optional
        `statistic` along the last axis, leaving out rows that are NaN: many at once are computed faster.
    answers : str
        The answers that it compares: a ``number``, a ``choice`` or a ``set`` of options. Of options `statistic` takes
        two arrays of shape (n, K): what the judge gave, 0 or 1, and the shares of the row's raters who gave the same.
    """

    name: str
    statistic: Statistic
    credit: Callable[[Case], float]
    peers: bool = False
    labels: bool = False
    graded: bool = False
    success_at: float = 0.75
    chance: float = 0.0
    bounds: tuple[float, float] | None = (-1.0, 1.0)
    batch: Callable[..., Any] | None = None
    answers: Answers = "number"


def concordance(case: Case) -> float:
    """Share of the peers with another rating that stand on the right side of the row; a tie counts half.

    With all other rows as peers its mean is the share of concordant pairs: (tau-a + 1) / 2 without ties.
    """
    other = case.peer_ratings != case.rating
    if not other.any():
        return 0.5
    predicted = np.sign(case.value - case.peer_values[other])
    return float(0.5 + 0.5 * np.mean(predicted * np.sign(case.rating - case.peer_ratings[other])))


def rank_product(case: Case) -> float:
    """``1/2 + 2 u v`` with u, v the row's place among its peers by value and by rating, from -1/2 to 1/2.

    Spearman's correlation is 12 times the mean of ``u v`` for many rows without ties.
    """

    def place(value: float, others: FloatArray) -> float:
        return float(0.5 * np.mean(np.sign(value - others))) if others.size else 0.0

    return 0.5 + 2 * place(case.value, case.peer_values) * place(case.rating, case.peer_ratings)


def score_product(case: Case) -> float:
    """``1/2 + z_x z_y / 8``, cut to [0, 1], in standard scores among the row and its peers.

    The mean of ``z_x z_y`` is Pearson's correlation. A row among peers of its own value gets 1/2.
    """

    def standard(value: float, others: FloatArray) -> float:
        everyone = np.append(others, value)
        deviation = float(everyone.std())
        return (value - float(everyone.mean())) / deviation if deviation else 0.0

    product = standard(case.value, case.peer_values) * standard(case.rating, case.peer_ratings)
    return float(np.clip(0.5 + product / 8, 0.0, 1.0))


def agreement_beyond_chance(case: Case) -> float:
    """``(1 + [x = y] - p(x)) / 2`` with p(x) the raters' share of the label x.

    The mean of ``[x = y] - p(x)`` is the numerator of Cohen's kappa.
    """
    share = float(np.mean(case.ratings == case.value))
    return 0.5 * (1.0 + float(case.value == case.rating) - share)


def closeness(case: Case) -> float:
    """``1 - ((x - y) / span)^2``, not below 0: one minus the observed distance in quadratic kappa."""
    return max(0.0, 1.0 - float((case.value - case.rating) / case.span) ** 2)


def balanced_hit(case: Case) -> float:
    """``[x = y]``, weighted by how rare the raters' label is; the rarest weighs 1.

    Its mean is balanced accuracy times a constant.
    """
    return float(case.value == case.rating) * _rarity(case.ratings, case.rating)


def f1_gain(case: Case) -> float:
    """The row's part in the sum over labels of ``(2 tp - F (2 tp + fp + fn)) / 2 g``, scaled to [0, 1].

    F is macro F1 before tuning and g the raters' count of the label. The sum is above 0 where F1 is above F, as far
    as the judge gives each label as often as the raters do (Dinkelbach's reduction of a ratio).
    """
    reached = case.start if case.start == case.start else 0.0
    weight = _rarity(case.ratings, case.rating)
    if case.value == case.rating:
        return reached + (1 - reached) * weight
    return reached * (1 - (weight + _rarity(case.ratings, case.value)) / 2)


def _rarity(ratings: FloatArray, label: float) -> float:
    """Rows of the rarest label, divided by the rows of this one; 1 for a label that no rater gives."""
    sizes = np.unique(ratings, return_counts=True)[1]
    return float(sizes.min()) / max(int(np.sum(ratings == label)), int(sizes.min()))


def share(choices: FloatArray, shares: FloatArray) -> float:
    """The mean share of a row's raters who chose as the judge."""
    return float((choices * shares).sum(axis=1).mean())


def choice_kappa(choices: FloatArray, shares: FloatArray) -> float:
    """Cohen's kappa of the judge with the raters' mode; of options that tie each counts in part.

    NaN where both sides give one and the same option throughout.
    """
    return float(table_kappa(choices.T @ hard(shares)))


def set_closeness(sets: FloatArray, shares: FloatArray) -> float:
    """One minus the mean squared difference between a set, 0 or 1 by option, and the share of raters' sets with it."""
    return 1.0 - float(np.mean((sets - shares) ** 2))


def mode_beyond_chance(case: Case) -> float:
    """``(1 + [x is the mode] - p(x)) / 2`` with p(x) the share of rows whose mode is x, as for plain labels."""
    return float(0.5 * (1.0 + case.value @ (hard(case.rating) - hard(case.ratings).mean(axis=0))))


OBJECTIVES: Mapping[str, Objective] = {
    goal.name: goal
    for goal in (
        Objective("kendall_tau_b", kendall_tau_b, concordance, peers=True, batch=batch_kendall_tau_b),
        Objective("spearman", spearman, rank_product, peers=True, success_at=0.6, batch=batch_spearman),
        Objective("pearson", pearson, score_product, peers=True, success_at=0.55, batch=batch_pearson),
        Objective("pairwise_accuracy", concordance_index, concordance, peers=True, chance=0.5, bounds=(0.0, 1.0)),
        Objective("kappa", cohen_kappa, agreement_beyond_chance, labels=True),
        Objective("quadratic_kappa", quadratic_kappa, closeness, labels=True, graded=True),
        Objective("balanced_accuracy", balanced_accuracy, balanced_hit, labels=True, bounds=(0.0, 1.0)),
        Objective("f1", f1, f1_gain, labels=True, bounds=(0.0, 1.0)),
        Objective("share", share, lambda case: float(case.value @ case.rating), bounds=(0.0, 1.0), answers="choice",
                  success_at=0.5),
        Objective("choice_kappa", choice_kappa, mode_beyond_chance, answers="choice", success_at=0.51),
        Objective("set_closeness", set_closeness, lambda case: 1.0 - float(np.mean((case.value - case.rating) ** 2)),
                  bounds=(0.0, 1.0), answers="set"),
    )
}  # fmt: skip
REPORTED: Mapping[str, Mapping[str, Statistic]] = {  # by answers: before and after a tuning, whatever it searches by
    "choice": {"share": share, "choice_kappa": choice_kappa},
    "set": {
        "set_closeness": set_closeness,
        "set_coverage": lambda sets, shares: float((sets * shares).sum() / shares.sum()),  # of what raters gave
        "set_size": lambda sets, _: float(sets.sum(axis=1).mean()),
    },
}


def objective(goal: str | Statistic | Objective) -> Objective:
    """Read the objective that `JudgeTuner` takes.

    Parameters
    ----------
    goal : str, callable or Objective
        A name of `OBJECTIVES`; a function of (predictions, ratings), whose credit is its own value on the row and
        its peers, taken as lying in [-1, 1]; or an objective.

    Raises
    ------
    OptionError
        For anything else.
    """
    if isinstance(goal, Objective):
        return goal
    if isinstance(goal, str) and goal in OBJECTIVES:
        return OBJECTIVES[goal]
    if callable(goal):
        return Objective(
            getattr(goal, "__name__", type(goal).__name__), goal, _with_peers(goal), peers=True, bounds=None
        )
    known = ", ".join(OBJECTIVES)
    hint = nearest(goal, OBJECTIVES) if isinstance(goal, str) else ""
    raise OptionError(f"objective={goal!r}{hint} must be one of {known}, or a function of (predictions, ratings)")


def mean_of(name: str) -> Objective:
    """The plain mean of a metric's numbers over rows; the metric itself reads the ratings."""
    return Objective(name, lambda values, _: float(np.mean(values)), lambda case: float(case.value), bounds=None)


def _with_peers(statistic: Statistic) -> Callable[[Case], float]:
    def credit(case: Case) -> float:
        value = statistic(np.append(case.peer_values, case.value), np.append(case.peer_ratings, case.rating))
        return float(np.clip((value + 1) / 2, 0.0, 1.0)) if value == value else 0.0

    return credit
