"""Bounds of what forced choices leave open: every mass of (response set, choice) that gives the observed choices.

The unknown of an item is the joint mass x of the response set v and the choice k out of it, ``x >= 0``, 0 where v does
not hold k, ``sum over v of x[v, k] = O[k]``. A linear function of it is a linear programme that falls apart by choice:
its optimum puts the mass of each choice on one set, the cheapest that holds it, so that no solver is needed. Nothing is
assumed of how people choose (F is free by item) but that they report the sets that they mean. What one F for all items
would rule out is therefore still inside: the bounds are outer ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.vectors import Decision, RatingVectors
from metricsmith.stats.correlation import FloatArray

__all__ = ["SetRange", "consistency_difference_bounds", "linear_bounds", "set_range", "squared_error_difference_bounds"]


@dataclass(frozen=True, eq=False)
class SetRange:
    """The range of one side, over all response sets that its choices allow.

    Parameters
    ----------
    choices : float array, shape (n, K)
    low, high : float array, shape (n, K)
        Of Omega.
    decided_low, decided_high : float array, shape (n,)
        0 or 1: the least and the largest decision; NaN for missing items.
    known : bool
        True where the response sets were given, so that both ends are the same.
    response_sets : ResponseSets
    """

    choices: FloatArray
    low: FloatArray
    high: FloatArray
    decided_low: FloatArray
    decided_high: FloatArray
    known: bool
    response_sets: ResponseSets


def linear_bounds(response_sets: ResponseSets, choices: ArrayLike, costs: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The least and the largest ``sum over sets of cost * theta`` that the choices allow.

    Parameters
    ----------
    response_sets : ResponseSets
    choices : array_like, shape (..., n, K)
    costs : array_like, shape (Q,) or (..., n, Q)

    Returns
    -------
    tuple of arrays, shape (..., n)
        NaN for missing items, and where an option that was chosen is in no admissible set.
    """
    shares, costs = np.asarray(choices, dtype=float), np.asarray(costs, dtype=float)
    ends = []
    for sign in (1.0, -1.0):
        best = [
            (sign * costs[..., held]).min(axis=-1) if held.any() else np.full(costs.shape[:-1], math.nan)
            for held in response_sets.membership > 0
        ]
        parts = shares * np.stack(best, axis=-1)
        ends.append(sign * np.where(shares == 0, 0.0, parts).sum(axis=-1))
    return ends[0], ends[1]


def set_range(vectors: RatingVectors, decision: Decision | None, *, known: bool) -> SetRange:
    """The range of one side; of one point where its response sets are known.

    With several positive options and the rule ``"max"`` the lower end of the share is that of the best single option,
    which no one distribution need reach.
    """
    sets, shares = vectors.response_sets, vectors.choices
    low = high = vectors.endorsements
    decided = (np.full(shares.shape[:-1], math.nan),) * 2
    if not known:
        ends = [linear_bounds(sets, shares, row) for row in sets.membership]
        low, high = (np.stack(side, axis=-1) for side in zip(*ends, strict=True))
    if decision is not None and known:
        decided = (decision.of(vectors),) * 2
    elif decision is not None:
        weights = decision.weights(sets)
        speaking = [linear_bounds(sets, shares, row) for row in weights]
        least, largest = (np.max(side, axis=0) for side in zip(*speaking, strict=True))
        decided = decision.reached(least), decision.reached(largest)
    return SetRange(shares, low, high, decided[0], decided[1], known, sets)


def consistency_difference_bounds(human: SetRange, first: SetRange, second: SetRange) -> tuple[float, float]:
    """Bounds of the decision consistency of one judge less that of another; items that are missing are left out."""
    ends = []
    for best, pick in ((-2.0, np.fmax), (2.0, np.fmin)):
        found = np.full(human.decided_low.shape, best)
        for people in (0.0, 1.0):
            one, other = (
                _alike(judge, people, most=(pick is np.fmax) == (judge is first)) for judge in (first, second)
            )
            allowed = (human.decided_low <= people) & (people <= human.decided_high)
            found = np.where(allowed, pick(found, one - other), found)
        missing = np.isnan(human.decided_low + first.decided_low + second.decided_low)
        ends.append(math.nan if missing.all() else float(found[~missing].mean()))
    return ends[1], ends[0]


def squared_error_difference_bounds(human: SetRange, first: SetRange, second: SetRange) -> tuple[float, float]:
    """Bounds of the squared error (srs/srs) of one judge less that of another.

    Exact where both judges' response sets are known: the difference is linear in those of the people. Else each option
    ranges by itself, which widens the bounds.
    """
    if first.known and second.known and not human.known:
        gap = first.low - second.low
        low, high = linear_bounds(human.response_sets, human.choices, -2 * gap @ human.response_sets.membership)
        rest = (first.low**2 - second.low**2).sum(axis=-1)
        return _mean(low + rest), _mean(high + rest)
    return -_largest(human, second, first), _largest(human, first, second)


def _alike(judge: SetRange, people: float, *, most: bool) -> FloatArray:
    """The largest or the least agreement of a judge's decision with this one of the people."""
    ends = np.stack([judge.decided_low == people, judge.decided_high == people]).astype(float)
    return np.asarray(ends.max(axis=0) if most else ends.min(axis=0))


def _largest(human: SetRange, far: SetRange, near: SetRange) -> float:
    """The largest ``|h - far|^2 - |h - near|^2``, option by option; it is convex in h, so that an end of h has it."""
    found = [
        np.maximum((at - far.low) ** 2, (at - far.high) ** 2) - (at - np.clip(at, near.low, near.high)) ** 2
        for at in (human.low, human.high)
    ]
    return _mean(np.max(found, axis=0).sum(axis=-1))


def _mean(values: FloatArray) -> float:
    present = values[~np.isnan(values)]
    return float(present.mean()) if present.size else math.nan
