"""The admissible response sets of a task, and the shares of ratings that give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings, check_options, places_of
from metricsmith.stats.correlation import FloatArray, IntArray, quotient

__all__ = ["ResponseSets"]


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

    def places(self, ratings: Ratings) -> IntArray:
        """The place of the set that each rating gives, shape (N,).

        Raises
        ------
        DataError
            If a rating is no admissible set, or options differ.
        """
        if ratings.options != self.options:
            raise DataError(f"ratings have options {ratings.options}, response sets {self.options}: give the same")
        patterns, codes = np.unique(ratings.given, axis=0, return_inverse=True)
        match = (patterns[:, :, None] == (self.membership > 0)).all(axis=1)
        bad = np.flatnonzero(~match.any(axis=1)[codes.ravel()])
        if bad.size:
            names = [option for option, held in zip(self.options, ratings.given[bad[0]], strict=True) if held]
            raise DataError(
                f"item {ratings.items[ratings.item[bad[0]]]!r} was rated {names}, which is no admissible response set "
                f"({bad.size} ratings are none): declare it, or correct the rating"
            )
        return np.asarray(match.argmax(axis=1)[codes.ravel()])

    def shares(self, ratings: Ratings) -> FloatArray:
        """Share of the ratings of each item that give each set, shape (n, Q); NaN without ratings; see `places`."""
        counts = np.zeros((len(ratings.items), len(self.sets)))
        np.add.at(counts, (ratings.item, self.places(ratings)), 1.0)
        return shares_of(counts)


def shares_of(counts: FloatArray) -> FloatArray:
    """Divides by the sums along the last axis; NaN where that is 0."""
    return quotient(counts, counts.sum(axis=-1, keepdims=True))
