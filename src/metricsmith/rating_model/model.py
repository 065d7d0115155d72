"""The rating model: stable response sets, errors in reporting them, and the one option chosen out of a set.

Every matrix holds in column b the probabilities of the results that follow from b, so that each column sums to 1 and a
map is a product from the left. Axes before the last two are items; a matrix without them holds for all items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings, places_of
from metricsmith.rating_model.response_sets import ResponseSets, shares_of
from metricsmith.stats.correlation import FloatArray

__all__ = ["RatingModel", "error_matrix", "estimate_forced_choice", "reverse", "sensitivity_matrix"]

ZeroPolicy = Literal["error", "zero", "prior"]
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class RatingModel:
    """Assumptions 3.1 and 3.2 in numbers: how a stable response set becomes an observed set and one option.

    Parameters
    ----------
    response_sets : ResponseSets
        K options and Q admissible sets.
    forced_choice : array_like, shape (..., K, Q)
        F: the probability of choosing an option (row) out of an observed set (column) that holds it.
    error : array_like, shape (..., Q, Q), optional
        E: the probability of reporting a set (row) in place of the stable set (column); by default never another.

    Raises
    ------
    DataError
        If a column does not sum to 1, or an option is chosen out of a set that does not hold it.

    References
    ----------
    Guerdan et al. (2025), "Validating LLM-as-a-Judge Systems in the Absence of Gold Labels", section 3.
    """

    response_sets: ResponseSets
    forced_choice: FloatArray
    error: FloatArray

    def __init__(self, response_sets: ResponseSets, forced_choice: ArrayLike, error: ArrayLike | None = None) -> None:
        size = len(response_sets.sets)
        put = object.__setattr__
        put(self, "response_sets", response_sets)
        put(self, "forced_choice", stochastic(forced_choice, (len(response_sets.options), size), "F"))
        put(self, "error", stochastic(np.eye(size) if error is None else error, (size, size), "E"))
        outside = (self.forced_choice > 0) & (response_sets.membership == 0)
        if outside.any():
            option, chosen = np.argwhere(outside)[0][-2:]
            raise DataError(
                f"F chooses {response_sets.options[option]!r} out of {sorted(response_sets.sets[chosen])}, which does "
                "not hold it: the entry must be 0"
            )

    def observed(self, stable: ArrayLike) -> FloatArray:
        """Theta = E theta*: the shares of the sets that are reported, of those that are meant; both (..., Q)."""
        return apply(self.error, proper(stable, "theta*"))

    def choices(self, stable: ArrayLike) -> FloatArray:
        """O = F E theta*: the shares of the options that are chosen, shape (..., K)."""
        return apply(self.forced_choice, self.observed(stable))

    def reversed(self, stable: ArrayLike, *, zero: ZeroPolicy = "error") -> tuple[FloatArray, FloatArray]:
        """F' and E' by Bayes, with theta* = E' F' O (Theorem 3.3).

        They hold theta* itself, so that they find nothing that was not known: see `sensitivity_matrix`, `bounds`.

        Parameters
        ----------
        stable : array_like, shape (..., Q)
            theta*, the shares of stable sets; each sums to 1.
        zero : {"error", "zero", "prior"}
            As in `reverse`.

        Returns
        -------
        tuple of arrays, shapes (..., Q, K) and (..., Q, Q)
        """
        return reverse(self.forced_choice, self.observed(stable), zero=zero), reverse(self.error, stable, zero=zero)


def reverse(forward: ArrayLike, prior: ArrayLike, *, zero: ZeroPolicy = "error") -> FloatArray:
    """Bayes' rule: P(b given a) of P(a given b) and P(b).

    Parameters
    ----------
    forward : array_like, shape (..., A, B)
        Columns sum to 1.
    prior : array_like, shape (..., B)
        Sums to 1; a row that is NaN throughout is missing, and NaN is what follows from it.
    zero : {"error", "zero", "prior"}
        The column of a result a that has probability 0: an error, zeros (it then does not sum to 1: harmless where a
        never occurs), or the prior.

    Returns
    -------
    array, shape (..., B, A)

    Raises
    ------
    DataError
        If a result has probability 0 and `zero` is ``"error"``, or something is no distribution.
    """
    if zero not in ("error", "zero", "prior"):
        raise OptionError(f"unknown zero {zero!r}: choose error, zero or prior")
    given = proper(prior, "the prior")
    matrix = stochastic(forward, (np.atleast_2d(forward).shape[-2], given.shape[-1]), "the matrix to reverse")
    joint = np.swapaxes(matrix * given[..., None, :], -1, -2)
    total = joint.sum(axis=-2, keepdims=True)
    if zero == "error" and (total == 0).any():
        raise DataError(
            f"{int((total == 0).sum())} results have probability 0, so that nothing follows from them: choose "
            "zero='zero' or zero='prior', or leave them out"
        )
    fill = np.broadcast_to(given[..., :, None] if zero == "prior" else np.zeros(1), joint.shape)
    return np.asarray(np.divide(joint, total, out=np.array(fill), where=total != 0))


def estimate_forced_choice(
    choices: Ratings, sets: Ratings, response_sets: ResponseSets, *, zero: Literal["error", "prior"] = "error"
) -> FloatArray:
    """F from ratings in which the same rater chose an option and a set for the same item, over all items.

    Parameters
    ----------
    choices, sets : Ratings
        Forced choices and response sets. Only ratings of one item by one rater pair up; answers to separate requests
        of a model are no pairs.
    response_sets : ResponseSets
    zero : {"error", "prior"}
        The column of a set that nobody gave: an error, or equal shares of its options.

    Returns
    -------
    array, shape (K, Q)

    Raises
    ------
    DataError
        If choices are counts, nothing pairs up, a choice is not in its own set, or a set is lacking and `zero` "error".
    OptionError
        If choices are no forced choices among the options, or sets no response sets.
    """
    if choices.options != response_sets.options or not sets.sets:
        raise OptionError(f"give forced choices among {response_sets.options}, then response sets")
    choices.check_raters("pairing choices with response sets")
    keys = [
        [(one.items[item], one.raters[rater]) for item, rater in zip(one.item, one.rater, strict=True)]
        for one in (choices, sets)
    ]
    places = {key: place for place, key in enumerate(keys[1])}
    pairs = [(place, places[key]) for place, key in enumerate(keys[0]) if key in places]
    if not pairs:
        raise DataError("no rater gave both a choice and a response set to one item: F needs such pairs")
    rows, others = (list(side) for side in zip(*pairs, strict=True))
    chosen, held = choices.chosen[rows], response_sets.places(sets)[others]
    outside = response_sets.membership[chosen, held] == 0
    if outside.any():
        raise DataError(f"{int(outside.sum())} of {len(pairs)} choices are not in the rater's own response set")
    counts = np.zeros_like(response_sets.membership)
    np.add.at(counts, (chosen, held), 1.0)
    empty = counts.sum(axis=0) == 0
    if empty.any() and zero != "prior":
        names = [sorted(held) for held, none in zip(response_sets.sets, empty, strict=True) if none]
        raise DataError(f"nobody gave {names}: leave these sets out, or take zero='prior' (equal shares)")
    return shares_of(np.where(empty, response_sets.membership, counts).T).T


def sensitivity_matrix(
    response_sets: ResponseSets, beta: Mapping[str, float] | Mapping[tuple[str, str], float]
) -> FloatArray:
    """F' of an assumption: which share of those who chose one option would also have endorsed another.

    Parameters
    ----------
    response_sets : ResponseSets
    beta : mapping
        ``{added: share}`` for everyone who chose another option, or ``{(chosen, added): share}``; shares in [0, 1].
        Several additions are independent of each other. An empty mapping says that a choice is the whole set.

    Returns
    -------
    array, shape (Q, K)
        theta = F' O. Unlike Table 2 of the paper every set holds the option that was chosen.

    Raises
    ------
    OptionError
        If a share leaves [0, 1], or a set that would be needed is not admissible.
    """
    options, places = response_sets.options, {held: place for place, held in enumerate(response_sets.sets)}
    for key, share in beta.items():
        places_of(key, options, "beta")
        if not 0 <= share <= 1:
            raise OptionError(f"beta {share:g} is no share: give a number from 0 to 1")
    matrix = np.zeros((len(places), len(options)))
    for column, chosen in enumerate(options):
        added = {
            (key[1] if isinstance(key, tuple) else key): float(share)
            for key, share in beta.items()
            if (key[0] == chosen if isinstance(key, tuple) else key != chosen)
        }
        likely = [name for name, share in added.items() if share > 0]
        for size in range(len(likely) + 1):
            for extra in combinations(likely, size):
                share = math.prod(added[name] if name in extra else 1 - added[name] for name in likely)
                held = frozenset([chosen, *extra])
                if share and held not in places:
                    raise OptionError(
                        f"beta needs the response set {sorted(held)}, which is not admissible: declare it, or rate sets"
                    )
                if share:
                    matrix[places[held], column] += share
    return matrix


def error_matrix(
    response_sets: ResponseSets, epsilon: float, skew: float = 0.0, positive: str | None = None
) -> FloatArray:
    """E of raters who report another set than they mean with probability epsilon.

    The other sets are ordered, those with the positive option first for a skew above 0 and last for one below, else as
    declared; the one at rank r gets a share proportional to ``r ** -abs(skew)``.

    Parameters
    ----------
    response_sets : ResponseSets
    epsilon : float
        In [0, 1].
    skew : float
        eta; 0 spreads errors evenly.
    positive : str, optional
        By default the first option.

    Returns
    -------
    array, shape (Q, Q)
    """
    if not 0 <= epsilon <= 1 or math.isnan(skew):
        raise OptionError(f"epsilon {epsilon:g}, skew {skew:g}: give a probability from 0 to 1, and a number")
    size = len(response_sets.sets)
    if size == 1:
        return np.ones((1, 1))
    holds = response_sets.meets([positive or response_sets.options[0]])
    order = np.argsort(-holds if skew >= 0 else holds, kind="stable")
    weights = np.arange(1, size) ** -abs(float(skew))
    matrix = (1 - epsilon) * np.eye(size)
    for column in range(size):
        matrix[order[order != column], column] = epsilon * weights / weights.sum()
    return matrix


def apply(matrix: ArrayLike, vectors: ArrayLike) -> FloatArray:
    """The product of a matrix, shape (..., A, B), with vectors, shape (..., B)."""
    left, right = np.asarray(matrix, dtype=float), np.asarray(vectors, dtype=float)
    if left.shape[-1:] != right.shape[-1:]:
        raise DataError(f"vectors {right.shape} do not fit a matrix {left.shape}: give {left.shape[-1]} numbers each")
    return np.asarray(right @ left.T if left.ndim == 2 else (left @ right[..., None])[..., 0])


def sized(matrix: ArrayLike, shape: tuple[int, int], name: str) -> FloatArray:
    """Checks that the last two axes have this shape."""
    values = np.asarray(matrix, dtype=float)
    if values.shape[-2:] != shape:
        raise DataError(f"{name} has shape {values.shape}: its last two axes must be {shape}")
    return values


def stochastic(matrix: ArrayLike, shape: tuple[int, int], name: str) -> FloatArray:
    """Checks that the last two axes have this shape and that columns are distributions."""
    values = sized(matrix, shape, name)
    proper(np.swapaxes(values, -1, -2), f"the columns of {name}")
    return values


def proper(vectors: ArrayLike, name: str) -> FloatArray:
    """Checks that each vector along the last axis is a distribution; one that is NaN throughout is missing."""
    values = np.asarray(vectors, dtype=float)
    sums = values.sum(axis=-1)
    wrong = ~(np.abs(sums - 1) <= SUM_TOLERANCE) | (values < -SUM_TOLERANCE).any(axis=-1)
    bad = wrong & ~np.isnan(values).all(axis=-1)
    if bad.any():
        place = tuple(int(number) for number in np.argwhere(bad)[0])
        raise DataError(
            f"{name}: {int(bad.sum())} are no distributions, the first at {place} sums to {sums[place]:g}: entries "
            "must be at least 0 and sum to 1"
        )
    return values
