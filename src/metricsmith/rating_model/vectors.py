"""Rating vectors: the distributions of choices and of response sets over items, of people or of judges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.model import RatingModel, apply, proper, sensitivity_matrix, sized
from metricsmith.rating_model.ratings import Ratings, places_of
from metricsmith.rating_model.response_sets import ResponseSets, shares_of
from metricsmith.stats.correlation import FloatArray, quotient

__all__ = ["Decision", "RatingVectors", "Ties", "hard"]

Ties = Literal["first", "random", "split", "expected"]
TIE = 1e-13  # shares so near to each other differ by rounding only


@dataclass(frozen=True, eq=False)
class RatingVectors:
    """Distributions of ratings by item; axes before the items are judges. A missing item is NaN throughout.

    Parameters
    ----------
    response_sets : ResponseSets
        K options, Q sets.
    choices : float array, shape (..., n, K)
        O: the share of ratings that choose each option (soft aggregation).
    sets : float array, shape (..., n, Q)
        theta: the share of ratings that give each response set.
    choice_noise, endorsement_noise : float array, shape (..., n)
        Estimated variance of the means, summed over options: of O, and of Omega; 0 for populations, NaN where an item
        has one rating. It is how much a squared distance is too large by.
    """

    response_sets: ResponseSets
    choices: FloatArray
    sets: FloatArray
    choice_noise: FloatArray
    endorsement_noise: FloatArray

    @classmethod
    def of_population(
        cls, response_sets: ResponseSets, choices: ArrayLike, sets: ArrayLike | None = None
    ) -> RatingVectors:
        """Of known distributions O and theta; without theta, each choice counts as the whole set.

        Raises
        ------
        DataError
            If a row is no distribution.
        """
        soft = proper(choices, "choices")
        theta = apply(sensitivity_matrix(response_sets, {}), soft) if sets is None else proper(sets, "response sets")
        if soft.shape[-1] != len(response_sets.options) or theta.shape != (*soft.shape[:-1], len(response_sets.sets)):
            raise DataError(
                f"choices {soft.shape} and response sets {theta.shape} do not fit {len(response_sets.options)} options "
                f"and {len(response_sets.sets)} sets: the last axis counts them, the others are the same"
            )
        none = np.zeros(soft.shape[:-1])
        return cls(response_sets, soft, theta, none, none)

    @classmethod
    def of_model(cls, model: RatingModel, stable: ArrayLike, *, errors: bool = True) -> RatingVectors:
        """Of a model and the shares of stable sets, theta*; with or without the model's errors."""
        sets = model.observed(stable) if errors else np.asarray(stable, dtype=float)
        return cls.of_population(model.response_sets, apply(model.forced_choice, sets), sets)

    @classmethod
    def of_ratings(
        cls,
        response_sets: ResponseSets,
        choices: Ratings | None = None,
        sets: Ratings | None = None,
        *,
        beta: Mapping[str, float] | Mapping[tuple[str, str], float] | None = None,
        reverse_choice: ArrayLike | None = None,
        forced_choice: ArrayLike | None = None,
    ) -> RatingVectors:
        """Of ratings of the same items: forced choices, response sets, or both.

        Parameters
        ----------
        response_sets : ResponseSets
        choices, sets : Ratings
            Where there are no response sets they follow from the choices by `beta` or `reverse_choice`; where there are
            no choices they follow from the sets by `forced_choice` (by default equal shares of a set's options).
        beta : mapping, optional
            As in `sensitivity_matrix`.
        reverse_choice : array_like, shape (Q, K) or (n, Q, K), optional
            F', in place of `beta`.
        forced_choice : array_like, shape (K, Q), optional
            F.

        Raises
        ------
        DataError
            If a response set is not admissible, choices and sets rate different items, their options differ, or F or F'
            gives no distribution.
        OptionError
            If there are no ratings.
        """
        if choices is None and sets is None:
            raise OptionError("neither choices nor response sets: give at least one of them")
        if (choices is not None and choices.sets) or (sets is not None and not sets.sets):
            raise OptionError(
                "choices must be forced choices, and sets response sets: they stand in each other's place"
            )
        if choices is not None and sets is not None and choices.items != sets.items:
            raise DataError("choices and response sets rate different items: align them by of_items")
        if choices is not None and choices.options != response_sets.options:
            raise DataError(f"choices have options {choices.options}, response sets {response_sets.options}: one order")
        lam = response_sets.membership
        if sets is not None:
            theta = response_sets.shares(sets)
            endorsement_noise = _noise(theta, lam, sets.per_item)
        if choices is not None:
            soft = shares_of(choices.counts)
            choice_noise = _noise(soft, np.eye(soft.shape[-1]), choices.per_item)
            if sets is None:
                back = sensitivity_matrix(response_sets, beta or {}) if reverse_choice is None else reverse_choice
                back = sized(back, lam.shape[::-1], "F'")
                theta = proper(apply(back, soft), "response sets by F'")
                endorsement_noise = _noise(soft, lam @ back, choices.per_item)
        elif sets is not None:
            share = sized(shares_of(lam.T).T if forced_choice is None else forced_choice, lam.shape, "F")
            soft, choice_noise = proper(apply(share, theta), "choices by F"), _noise(theta, share, sets.per_item)
        return cls(response_sets, soft, theta, choice_noise, endorsement_noise)

    @classmethod
    def stack(cls, judges: Sequence[RatingVectors]) -> RatingVectors:
        """Several judges of the same items as one object, judges first."""
        if not judges:
            raise DataError("there are no judges to stack: give one at least")
        first = judges[0].response_sets
        if any(judge.response_sets != first for judge in judges):
            raise DataError("judges differ in options or response sets: give all the same, in one order")
        if len({judge.choices.shape for judge in judges}) > 1:
            raise DataError("judges rated different items: align their ratings by of_items")
        names = ("choices", "sets", "choice_noise", "endorsement_noise")
        return cls(first, *(np.stack([getattr(judge, name) for judge in judges]) for name in names))

    def judge(self, place: int) -> RatingVectors:
        """One judge alone."""
        noise = self.choice_noise[place], self.endorsement_noise[place]
        return RatingVectors(self.response_sets, self.choices[place], self.sets[place], *noise)

    def at(self, items: ArrayLike) -> RatingVectors:
        """These items alone, by place or as a mask."""
        kept = np.asarray(items)
        noise = self.choice_noise[..., kept], self.endorsement_noise[..., kept]
        return RatingVectors(self.response_sets, self.choices[..., kept, :], self.sets[..., kept, :], *noise)

    @property
    def endorsements(self) -> FloatArray:
        """Omega = Lambda theta, shape (..., n, K): the share whose response set holds each option; no distribution."""
        return apply(self.response_sets.membership, self.sets)

    def modes(self, ties: Ties = "split", seed: int = 0) -> FloatArray:
        """Hard aggregation: the option chosen most, shape (..., n, K); see `hard`."""
        return hard(self.choices, ties, seed)

    def endorsed(self, threshold: float) -> FloatArray:
        """Hard response sets: 1 where Omega is at least the threshold, shape (..., n, K); NaN where it is missing."""
        omega = self.endorsements
        return np.where(np.isnan(omega), math.nan, omega >= threshold - TIE)


@dataclass(frozen=True)
class Decision:
    """The categorisation of an item that a metric is used for downstream.

    Parameters
    ----------
    positive : tuple of str
        The options that speak for it, at least one.
    threshold : float
        tau in (0, 1]: an item is positive if the share of ratings that speak for it is at least so large.
    rule : {"any", "max", "sum"}
        The share with several positive options: that of response sets which hold any of them (a probability), the
        largest of their Omega, or the sum of these, which can exceed 1.
    strict : bool
        True if the share must be above the threshold.

    Raises
    ------
    OptionError
        If there is no positive option, or the threshold is out of range.
    """

    positive: tuple[str, ...]
    threshold: float = 0.5
    rule: Literal["any", "max", "sum"] = "any"
    strict: bool = False

    def __post_init__(self) -> None:
        if not self.positive or isinstance(self.positive, str):
            raise OptionError(f"positive options {self.positive!r}: give at least one, as a tuple of names")
        if len(set(self.positive)) < len(self.positive):
            raise OptionError(f"positive options {self.positive}: give each once")
        if not (isinstance(self.threshold, Real) and 0 < self.threshold <= 1):
            raise OptionError(f"threshold {self.threshold} is not in (0, 1]: give a share such as .5")
        if self.rule not in ("any", "max", "sum"):
            raise OptionError(f"unknown rule {self.rule!r}: choose any, max or sum")

    def weights(self, response_sets: ResponseSets) -> FloatArray:
        """The weight of each response set in the shares, the largest of which decides; shape (shares, Q)."""
        if self.rule == "any":
            return response_sets.meets(self.positive)[None]
        rows = response_sets.membership[places_of(self.positive, response_sets.options, "positive options")]
        return rows if self.rule == "max" else rows.sum(axis=0, keepdims=True)

    def shares(self, vectors: RatingVectors) -> FloatArray:
        """The share of ratings that speak for each item, shape (..., n); NaN where it is missing."""
        return np.asarray(apply(self.weights(vectors.response_sets), vectors.sets).max(axis=-1))

    def reached(self, shares: FloatArray) -> FloatArray:
        """1 where a share reaches the threshold, 0 elsewhere, NaN where it is missing."""
        positive = shares > self.threshold + TIE if self.strict else shares >= self.threshold - TIE
        return np.where(np.isnan(shares), math.nan, positive)

    def of(self, vectors: RatingVectors) -> FloatArray:
        """The decision on each item, shape (..., n)."""
        return self.reached(self.shares(vectors))


def hard(choices: ArrayLike, ties: Ties = "split", seed: int = 0) -> FloatArray:
    """One-hot vectors of the largest share along the last axis; NaN where a row is missing.

    Parameters
    ----------
    choices : array_like, shape (..., K)
    ties : {"first", "random", "split", "expected"}
        With several largest shares: the first option (which is often the positive one), one at random by `seed`, or
        equal parts of 1 for each. ``"expected"`` gives the same parts; measures then take the mean over all ways to
        break both sides' ties (`metricsmith.rating_model.measures`), kappas that of their table.
    seed : int
    """
    values = np.asarray(choices, dtype=float)
    missing = np.isnan(values).any(axis=-1, keepdims=True)
    largest = np.where(missing, False, values >= values.max(axis=-1, keepdims=True) - TIE)
    if ties == "first":
        found = np.arange(values.shape[-1]) == largest.argmax(axis=-1)[..., None]
    elif ties == "random":
        draw = np.random.default_rng(seed).random(values.shape)
        found = np.arange(values.shape[-1]) == np.where(largest, draw, -1.0).argmax(axis=-1)[..., None]
    elif ties in ("split", "expected"):
        found = largest / np.maximum(largest.sum(axis=-1, keepdims=True), 1)
    else:
        raise OptionError(f"unknown ties {ties!r}: choose first, random, split or expected")
    return np.where(missing, math.nan, found)


def _noise(shares: FloatArray, through: FloatArray, ratings: ArrayLike) -> FloatArray:
    """The variance, summed over the last axis, of the mean over m ratings of the column of `through` that each gives.

    Unbiased: ``(mean of squares - square of mean) / (m - 1)``; NaN for one rating, shape (..., n).
    """
    count = np.asarray(ratings, dtype=float)
    spread = (apply(through**2, shares) - apply(through, shares) ** 2).sum(axis=-1)
    return quotient(spread, count - 1)
