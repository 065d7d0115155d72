"""The rating model: stable response sets, errors in reporting them, and the one option chosen out of a set.

Every matrix holds in column b the probabilities of the results that follow from b, so that each column sums to 1 and a
map is a product from the left. Axes before the last two are items; a matrix without them holds for all items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings, check_options, places_of
from metricsmith.stats.correlation import FloatArray

__all__ = ["RatingModel", "ResponseSets", "error_matrix", "estimate_forced_choice", "reverse", "sensitivity_matrix"]

ZeroPolicy = Literal["error", "zero", "prior"]
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class ResponseSets:
    """The admissible response sets of a task, as they are declared: none is added by guess.

    Parameters
    ----------
    options : tuple of str
        The K options, in their order.
    sets : tuple of frozenset of str
        The Q admissible sets; none empty, none twice.

    Raises
    ------
    OptionError
        If a set is empty, named twice or has an option that was not declared.

    Examples
    --------
    >>> ResponseSets.of(("yes", "no"), [["yes"], ["no"], ["yes", "no"]]).membership.tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """

    options: tuple[str, ...]
    sets: tuple[frozenset[str], ...]

    def __post_init__(self) -> None:
        check_options(self.options)
        for chosen in self.sets:
            places_of(chosen, self.options, "response sets")
        if not self.sets or not all(self.sets) or len(set(self.sets)) < len(self.sets):
            raise OptionError(f"response sets {[sorted(chosen) for chosen in self.sets]}: give each once, none empty")

    @classmethod
    def of(cls, options: Sequence[str], sets: Sequence[Sequence[str] | frozenset[str]]) -> ResponseSets:
        """The given sets of options."""
        return cls(tuple(options), tuple(map(frozenset, sets)))

    @classmethod
    def single(cls, options: Sequence[str]) -> ResponseSets:
        """One set for each option: the sets of a fully specified task."""
        return cls(tuple(options), tuple(frozenset([option]) for option in options))

    @classmethod
    def every(cls, options: Sequence[str]) -> ResponseSets:
        """Every set of options, by size and then in the order of the options: ``2^K - 1`` sets."""
        check_options(options)
        if len(options) > 12:
            raise OptionError(f"{len(options)} options have {2 ** len(options) - 1} sets: name the admissible ones")
        sizes = range(1, len(options) + 1)
        return cls(tuple(options), tuple(frozenset(chosen) for m in sizes for chosen in combinations(options, m)))

    @cached_property
    def membership(self) -> FloatArray:
        """Lambda, shape (K, Q): 1 where the set in the column has the option in the row."""
        return np.array([[option in chosen for chosen in self.sets] for option in self.options], dtype=float)

    @property
    def fully_specified(self) -> bool:
        """True if each option is a set and no other set is admissible (Definition 2.1, with "less than" in it)."""
        return {*self.sets} == {frozenset([option]) for option in self.options}

    def meets(self, positive: Sequence[str]) -> FloatArray:
        """1 for each set that holds one of these options, shape (Q,)."""
        return np.asarray(self.membership[places_of(positive, self.options, "positive options")].max(axis=0))

    def shares(self, ratings: Ratings) -> FloatArray:
        """Share of the ratings of each item that give each set, shape (n, Q); NaN for items without ratings.

        Raises
        ------
        DataError
            If a rating is no admissible set.
        """
        if ratings.options != self.options:
            raise DataError(f"ratings have options {ratings.options}, response sets {self.options}: give the same")
        match = (ratings.given[:, :, None] == (self.membership > 0)).all(axis=1)
        bad = np.flatnonzero(~match.any(axis=1))
        if bad.size:
            names = [option for option, held in zip(self.options, ratings.given[bad[0]], strict=True) if held]
            raise DataError(
                f"item {ratings.items[ratings.item[bad[0]]]!r} was rated {names}, which is no admissible response set "
                f"({bad.size} ratings are none): declare it, or correct the rating"
            )
        counts = np.zeros((len(ratings.items), len(self.sets)))
        np.add.at(counts, ratings.item, match)
        return shares_of(counts)


def shares_of(counts: FloatArray) -> FloatArray:
    """Divides by the sums along the last axis; NaN where that is 0."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(counts, totals, out=np.full_like(counts, math.nan), where=totals > 0))


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
        return apply(self.error, stable)

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
        sets = proper(stable, "theta*")
        return (
            reverse(self.forced_choice, apply(self.error, sets), zero=zero),
            reverse(self.error, sets, zero=zero),
        )


def reverse(forward: ArrayLike, prior: ArrayLike, *, zero: ZeroPolicy = "error") -> FloatArray:
    """Bayes' rule: P(b given a) of P(a given b) and P(b).

    Parameters
    ----------
    forward : array_like, shape (..., A, B)
        Columns sum to 1.
    prior : array_like, shape (..., B)
    zero : {"error", "zero", "prior"}
        The column of a result a that has probability 0: an error, zeros (it then does not sum to 1: harmless where a
        never occurs), or the prior.

    Returns
    -------
    array, shape (..., B, A)

    Raises
    ------
    DataError
        If a result has probability 0 and `zero` is ``"error"``.
    """
    given = np.asarray(prior, dtype=float)
    joint = np.swapaxes(np.asarray(forward, dtype=float) * given[..., None, :], -1, -2)
    total = joint.sum(axis=-2, keepdims=True)
    if zero == "error" and (total == 0).any():
        raise DataError(
            f"{int((total == 0).sum())} results have probability 0, so that nothing follows from them: choose "
            "zero='zero' or zero='prior', or leave them out"
        )
    fill = np.broadcast_to(given[..., :, None] if zero == "prior" else np.zeros(1), joint.shape)
    return np.asarray(np.divide(joint, total, out=np.array(fill), where=total > 0))


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
        If choices are counts, no rating pairs up, a choice is not in its own set, or a set was not given and `zero` is
        ``"error"``.
    """
    choices.check_raters("pairing choices with response sets")
    places = {
        (sets.items[item], sets.raters[rater]): place
        for place, (item, rater) in enumerate(zip(sets.item.tolist(), sets.rater.tolist(), strict=True))
    }
    pairs = [
        (place, places[key])
        for place, (item, rater) in enumerate(zip(choices.item.tolist(), choices.rater.tolist(), strict=True))
        if (key := (choices.items[item], choices.raters[rater])) in places
    ]
    if not pairs:
        raise DataError("no rater gave both a choice and a response set to one item: F needs such pairs")
    chosen, given = (
        ratings.given[list(rows)] for ratings, rows in zip((choices, sets), zip(*pairs, strict=True), strict=True)
    )
    outside = ~(chosen & given).any(axis=1)
    if outside.any():
        raise DataError(f"{int(outside.sum())} of {len(pairs)} choices are not in the rater's own response set")
    match = (given[:, :, None] == (response_sets.membership > 0)).all(axis=1)
    if not match.any(axis=1).all():
        raise DataError(f"{int((~match.any(axis=1)).sum())} of {len(pairs)} response sets are not admissible")
    counts = chosen.T.astype(float) @ match
    empty = counts.sum(axis=0) == 0
    if empty.any() and zero == "error":
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
    matrix = np.zeros((len(places), len(options)))
    for column, chosen in enumerate(options):
        added = {
            (key[1] if isinstance(key, tuple) else key): float(share)
            for key, share in beta.items()
            if (key[0] == chosen if isinstance(key, tuple) else key != chosen)
        }
        places_of(added, options, "beta")
        for share in added.values():
            if not 0 <= share <= 1:
                raise OptionError(f"beta {share:g} is no share: give a number from 0 to 1")
        likely = [name for name, share in added.items() if share > 0]
        for size in range(len(likely) + 1):
            for extra in combinations(likely, size):
                share = math.prod(added[name] if name in extra else 1 - added[name] for name in likely)
                held = frozenset([chosen, *extra])
                if share and held not in places:
                    raise OptionError(
                        f"beta needs the response set {sorted(held)}, which is not admissible: admit it, or take beta 0"
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
    if not 0 <= epsilon <= 1:
        raise OptionError(f"epsilon {epsilon:g} is no probability: give a number from 0 to 1")
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
    return np.asarray(right @ left.T if left.ndim == 2 else (left @ right[..., None])[..., 0])


def stochastic(matrix: ArrayLike, shape: tuple[int, int], name: str) -> FloatArray:
    """Checks that the last two axes have this shape and that columns are distributions."""
    values = np.asarray(matrix, dtype=float)
    if values.shape[-2:] != shape:
        raise DataError(f"{name} has shape {values.shape}: its last two axes must be {shape}")
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
