"""People and judges who rate by a known model: the generator of section 6 and appendix D of the paper.

Stable response sets of each item are drawn, then reported with errors and narrowed to one option; judges stray from the
people by more or less. Everything is drawn for all items and judges at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import OptionError
from metricsmith.rating_model.model import RatingModel, error_matrix, reverse, sized
from metricsmith.rating_model.ratings import Ratings, places_of
from metricsmith.rating_model.response_sets import ResponseSets, shares_of
from metricsmith.rating_model.vectors import RatingVectors
from metricsmith.stats.correlation import FloatArray

__all__ = ["Simulation", "decaying_choice", "project_simplex", "selection_effect", "simulate"]


@dataclass(frozen=True, eq=False)
class Simulation:
    """People and J judges on the same n items, with the truth behind them.

    Parameters
    ----------
    model, judge_model : RatingModel
        Of the people, with their errors, and of the judges, who make none.
    stable : float array, shape (n, Q)
        theta* of the people.
    judge_stable : float array, shape (J, n, Q)
        theta* of the judges.
    spreads : float array, shape (J,)
        sigma of each judge: 0 would be the people's own theta*.
    """

    model: RatingModel
    judge_model: RatingModel
    stable: FloatArray
    judge_stable: FloatArray
    spreads: FloatArray

    @property
    def human(self) -> RatingVectors:
        """The people's population, as reported: O = F E theta* and theta = E theta*."""
        return RatingVectors.of_model(self.model, self.stable)

    @property
    def target(self) -> RatingVectors:
        """The people's population as it would be without errors; decisions are to be taken by it."""
        return RatingVectors.of_model(self.model, self.stable, errors=False)

    @property
    def judges(self) -> RatingVectors:
        """The judges' populations, judges first."""
        return RatingVectors.of_model(self.judge_model, self.judge_stable)

    def rated(self, ratings: int, seed: int = 0) -> RatingVectors:
        """The people as seen by a few forced choices of each item.

        Response sets follow from the choices by the item's true F', as in the paper; nobody has it outside a
        simulation.

        Parameters
        ----------
        ratings : int
            m, of each item; at least one.
        seed : int
        """
        if ratings < 1:
            raise OptionError(f"{ratings} ratings of an item: give at least one")
        people = self.human
        counts = np.random.default_rng(seed).multinomial(ratings, people.choices)
        back = reverse(self.model.forced_choice, people.sets, zero="zero")
        choices = Ratings.from_counts(counts, people.response_sets.options)
        return RatingVectors.of_ratings(people.response_sets, choices, reverse_choice=back)


def simulate(
    response_sets: ResponseSets,
    *,
    items: int = 100,
    judges: int = 50,
    decays: tuple[float, float] = (0.0, 0.0),
    error: float = 0.0,
    skew: float = 0.0,
    spread: tuple[float, float] = (0.02, 0.4),
    noise: float = 0.0,
    seed: int = 0,
) -> Simulation:
    """Draw people and judges.

    Parameters
    ----------
    response_sets : ResponseSets
        K options, the first of which is the positive one, and Q sets.
    items, judges : int
        n and J.
    decays : (float, float)
        gamma of the people and of the judges, as in `decaying_choice`; selection effects of opposite signs are
        *asymmetric*.
    error, skew : float
        epsilon and eta of the people, as in `metricsmith.rating_model.model.error_matrix`.
    spread : (float, float)
        A judge's theta* of an item is the people's plus normal noise, projected onto the simplex. Its standard
        deviation is drawn for each judge, uniformly between these two.
    noise : float
        Standard deviation of what is added to the entries of F, for each item (and judge) anew: .05 in the authors'
        code, nothing in their paper.
    seed : int
        One seed gives the same theta* of people and judges, whatever the decays and errors.

    Raises
    ------
    OptionError
        If a number is out of range.

    References
    ----------
    Guerdan et al. (2025), "Validating LLM-as-a-Judge Systems in the Absence of Gold Labels", section 6, appendix D.

    Examples
    --------
    >>> simulate(ResponseSets.every(("yes", "no")), items=3, judges=2).judges.choices.shape
    (2, 3, 2)
    """
    if items < 1 or judges < 1:
        raise OptionError(f"{items} items and {judges} judges: give at least one of each")
    if not (0 <= spread[0] <= spread[1] < math.inf and 0 <= noise < math.inf):
        raise OptionError(f"spread {spread} and noise {noise:g}: give two numbers from 0 in order, and a number from 0")
    draw = np.random.default_rng(seed)
    size = len(response_sets.sets)
    stable = draw.dirichlet(np.ones(size), items)
    spreads = draw.uniform(*spread, judges)
    strayed = stable + spreads[:, None, None] * draw.standard_normal((judges, items, size))
    choices = [decaying_choice(response_sets, decay) for decay in decays]
    if noise:
        choices = [_disturbed(choices[0], noise, (items,), draw), _disturbed(choices[1], noise, (judges, items), draw)]
    return Simulation(
        RatingModel(response_sets, choices[0], error_matrix(response_sets, error, skew)),
        RatingModel(response_sets, choices[1]),
        stable, project_simplex(strayed), spreads,
    )  # fmt: skip


def decaying_choice(response_sets: ResponseSets, decay: float) -> FloatArray:
    """F that falls off over the options of a set: ``exp(-gamma r)`` for the one at rank r, in the order declared.

    Parameters
    ----------
    response_sets : ResponseSets
    decay : float
        gamma: above 0 favours the options declared first, below 0 those declared last, 0 none.

    Returns
    -------
    array, shape (K, Q)
    """
    if not math.isfinite(decay):
        raise OptionError(f"decay {decay}: give a finite number, 0 for equal shares of a set's options")
    held = response_sets.membership
    place = np.cumsum(held, axis=0)
    ranks = np.maximum(place - 1, 0) if decay >= 0 else held.sum(axis=0) - place  # from the favoured end
    return shares_of((held * np.exp(-abs(decay) * ranks)).T).T


def selection_effect(response_sets: ResponseSets, forced_choice: ArrayLike, option: str | None = None) -> float:
    """Gamma: how much more often an option is chosen out of a set than by chance.

    The mean of ``|S| P(option | S)`` over the sets S that hold the option and another one: 1 by chance, 2 for twice as
    often. The paper prints a factor ``1 / |S|``, by which it could never exceed 1; its text means this.

    Parameters
    ----------
    response_sets : ResponseSets
    forced_choice : array_like, shape (..., K, Q)
        F.
    option : str, optional
        By default the first one.

    Returns
    -------
    float
        From 0; NaN where no set holds the option and another one.
    """
    place = 0 if option is None else places_of([option], response_sets.options, "option")[0]
    sizes = response_sets.membership.sum(axis=0)
    wider = (response_sets.membership[place] > 0) & (sizes > 1)
    chosen = sized(forced_choice, response_sets.membership.shape, "F")[..., place, :]
    return float((sizes * chosen)[..., wider].mean()) if wider.any() else math.nan


def project_simplex(points: ArrayLike) -> FloatArray:
    """The nearest distributions by Euclidean distance, over the last axis.

    Parameters
    ----------
    points : array_like, shape (..., Q)

    Returns
    -------
    array, shape (..., Q)
        Entries from 0, sums of 1; NaN throughout where a coordinate is.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer and Chandra (2008), "Efficient projections onto the l1-ball for learning in high
    dimensions", figure 1.
    """
    values = np.asarray(points, dtype=float)
    values = np.where(np.isnan(values).any(axis=-1, keepdims=True), math.nan, values)
    falling = -np.sort(-values, axis=-1)
    shifts = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, values.shape[-1] + 1)
    last = (falling > shifts).sum(axis=-1, keepdims=True) - 1
    return np.maximum(values - np.take_along_axis(shifts, last, axis=-1), 0.0)


def _disturbed(choice: FloatArray, noise: float, leading: tuple[int, ...], draw: np.random.Generator) -> FloatArray:
    """F for each item with noise on its entries; a column that the noise leaves nothing of stays as it was."""
    strayed = np.maximum(choice + noise * draw.standard_normal((*leading, *choice.shape)), 0.0) * (choice > 0)
    kept = np.where(strayed.sum(axis=-2, keepdims=True) > 0, strayed, choice)
    return np.asarray(kept / kept.sum(axis=-2, keepdims=True))
