"""People and judges on the same items, as they were rated, and their vectors under an assumption."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.measures import Sides
from metricsmith.rating_model.ratings import Ratings, places_of
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.vectors import Decision, RatingVectors, Ties

__all__ = ["Beta", "Rated", "RatedSides", "beta_of", "check_types"]

Rated = Ratings | RatingVectors | tuple[Ratings, Ratings]
"""Forced choices or response sets, both by the same raters (choices first), or vectors of known distributions."""
Beta = float | Mapping[str, float] | Mapping[tuple[str, str], float]

MOST_MISSING = 0.5  # share of people's items that a judge may lack and still be compared


@dataclass(frozen=True, eq=False)
class RatedSides:
    """People and the judges that are compared with them, on the items that all of them rated.

    Parameters
    ----------
    human : Rated
    judges : mapping of str to Rated
        Those that rated more than half of people's items.
    kept : bool array, shape (n,)
        The items that are compared: rated by people, by each of these judges, and in `target`.
    items, labels : list
        Names and groups of these.
    left_out : mapping of str to str
        The other judges, each with the reason.
    response_sets, decision, added, target, ties, seed
        As in `select_judge`.
    """

    human: Rated
    judges: Mapping[str, Rated]
    response_sets: ResponseSets
    decision: Decision | None
    added: str | None
    target: RatingVectors | None
    ties: Ties
    seed: int
    kept: NDArray[np.bool_]
    items: Sequence[str]
    labels: Sequence[Hashable]
    left_out: Mapping[str, str]

    @classmethod
    def of(
        cls,
        human: Rated,
        judges: Mapping[str, Rated],
        *,
        response_sets: ResponseSets | None,
        decision: Decision | None,
        added: str | None,
        target: RatingVectors | None,
        beta: Beta,
        groups: Sequence[Hashable] | None,
        ties: Ties,
        seed: int,
    ) -> RatedSides:
        """Choose the judges that are compared, and the items.

        Raises
        ------
        OptionError
            If there are fewer than two judges.
        DataError
            If fewer than two judges rated more than half of people's items, or fewer than two items are left.
        """
        check_types(human, judges, beta)
        response_sets = response_sets or sets_of(human)
        if len(judges) < 2:
            raise OptionError(f"number of judges: {len(judges)}; give at least two to choose from")
        names = _items(human)
        everything = (response_sets, decision, added, target, ties, seed)
        whole = cls(human, judges, *everything, np.zeros(0, dtype=bool), [], [], {})
        rated = _present(whole.vectors(human, beta))
        if target is not None and target.choices.shape != (rated.size, len(response_sets.options)):
            raise DataError(f"target {target.choices.shape} does not fit {rated.size} items of people: one row each")
        rated &= True if target is None else _present(target)
        if names is None and len({_items(one) for one in judges.values()} - {None}) > 1:
            raise DataError("people's vectors name no items, and judges' differ: give these one order by of_items")
        answered = {name: _present(whole.vectors(one, beta)) for name, one in judges.items()}
        for name, valid in answered.items():
            if valid.shape != rated.shape:
                raise DataError(f"judge {name!r} has {valid.size} items, people {rated.size}: align them")
        enough = [name for name, ok in answered.items() if (ok & rated).sum() > (1 - MOST_MISSING) * rated.sum()]
        left_out = {
            name: f"valid ratings of {int((answered[name] & rated).sum())} of people's {int(rated.sum())} items"
            for name in judges
            if name not in enough
        }
        kept = rated & np.all([answered[name] for name in enough], axis=0)
        if len(enough) < 2 or kept.sum() < 2:
            why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            raise DataError(
                f"judges that can be compared: {len(enough)}, items that they share with people: {int(kept.sum())}; "
                "two of each are needed" + (f" ({why})" if why else "")
            )
        labels = _groups(human, groups, rated.size)
        places = np.flatnonzero(kept).tolist()
        ids = [str(place if names is None else names[place]) for place in places]
        compared = {name: judges[name] for name in enough}
        return cls(human, compared, *everything, kept, ids, [labels[place] for place in places], left_out)

    @property
    def names(self) -> list[str]:
        """The judges that are compared."""
        return list(self.judges)

    def sides(self, beta: Beta) -> Sides:
        """Everyone's vectors; response sets that are not known follow from the choices, for all by the same beta."""
        judges = RatingVectors.stack([self.vectors(judge, beta) for judge in self.judges.values()]).at(self.kept)
        human = self.vectors(self.human, beta).at(self.kept)
        target = None if self.target is None else self.target.at(self.kept)
        threshold = self.decision.threshold if self.decision else 0.5
        return Sides(human, judges, target, threshold, self.ties, self.seed)

    def vectors(self, rated: Rated, beta: Beta) -> RatingVectors:
        """The vectors of one side on all of people's items."""
        if isinstance(rated, RatingVectors):
            return rated
        choices, sets = _pair(rated)
        items = _items(self.human)
        if items is not None:
            choices, sets = (one if one is None else one.of_items(items) for one in (choices, sets))
        additions: Mapping[Any, float]
        additions = beta if isinstance(beta, Mapping) else self.additions(float(beta))
        return RatingVectors.of_ratings(self.response_sets, choices, sets, beta=additions)

    def additions(self, beta: float) -> Mapping[tuple[str, str], float]:
        """The additions that one beta means."""
        if not beta:
            return {}
        if self.decision is None:
            raise OptionError("one number as beta needs a decision: give positive options, or beta as a mapping")
        return beta_of(self.decision, self.response_sets.options, beta, self.added)

    def redrawn(self, rng: np.random.Generator, beta: Beta) -> RatingVectors:
        """People's vectors of ratings drawn again within items.

        Raises
        ------
        OptionError
            If people are given as vectors.
        """
        if isinstance(self.human, RatingVectors):
            raise OptionError("vectors have no raters to draw: give people's ratings, or leave out raters=True")
        first, *others = [one for one in _pair(self.human) if one is not None]
        places = first.redraw(rng)
        drawn = [first.drawn(places)]
        for other in others:  # the same raters where the two ratings go together
            together = np.array_equal(first.item, other.item) and np.array_equal(first.rater, other.rater)
            drawn.append(other.drawn(places if together else other.redraw(rng)))
        return self.vectors(drawn[0] if len(drawn) == 1 else (drawn[0], drawn[1]), beta).at(self.kept)

    def knows_sets(self, rated: Rated) -> bool:
        """True where response sets were given and do not rest on an assumption."""
        return not isinstance(rated, Ratings) or rated.sets

    def notes(self) -> Iterator[str]:
        """Everything that a reader has to know of the data."""
        lost = int((~self.kept).sum())
        if lost:
            sides = [("people", self.human), *((f"judge {name}", one) for name, one in self.judges.items())]
            absent = {who: int((~_present(self.vectors(one, 0.0))).sum()) for who, one in sides}
            named = ", ".join(f"{who} {n}" for who, n in absent.items() if n)
            yield f"{lost} of {self.kept.size} items are left out, for want of a valid rating: {named}"
        for name, rated in [("", self.human), *self.judges.items()]:
            if isinstance(rated, RatingVectors):
                continue
            ratings = rated if isinstance(rated, Ratings) else rated[0]
            if ratings.missing:
                who = f"judge {name}" if name else "people"
                given = ratings.missing + ratings.item.size
                yield f"{who}: {ratings.missing} of {given} ratings have no valid answer"
            single = int((ratings.per_item[self.kept] == 1).sum()) if not name else 0
            if single:
                yield (
                    f"{single} of {len(self.items)} items have one human rating: one rater decides unlike most on "
                    "a quarter of items, where any share of raters is as likely as any other"
                )


def beta_of(
    decision: Decision, options: Sequence[str], beta: float, added: str | None = None
) -> dict[tuple[str, str], float]:
    """The additions that one beta means: an option beside the choice of each option that is not positive.

    Parameters
    ----------
    decision : Decision
    options : sequence of str
    beta : float
    added : str, optional
        By default the first positive option.
    """
    places_of(decision.positive, options, "positive options")
    extra = added or decision.positive[0]
    places_of([extra], options, "the added option")
    return {(chosen, extra): float(beta) for chosen in options if chosen not in decision.positive and chosen != extra}


def check_types(human: Any, judges: Any, beta: Any) -> None:
    """Raise an `OptionError` where something else than ratings, a mapping of judges or a beta was given."""
    if not isinstance(judges, Mapping):
        raise OptionError(f"judges are a {type(judges).__name__}: give a mapping of their names to ratings")
    for who, rated in [("people", human), *((f"judge {name!r}", one) for name, one in judges.items())]:
        pair = isinstance(rated, tuple) and len(rated) == 2 and all(isinstance(one, Ratings) for one in rated)
        if not (pair or isinstance(rated, Ratings | RatingVectors)):
            raise OptionError(
                f"ratings of {who} are a {type(rated).__name__}: give Ratings (Ratings.from_rows makes them), "
                "RatingVectors, or a tuple of choices and response sets"
            )
    if not isinstance(beta, Real | Mapping):
        raise OptionError(f"beta {beta!r} is neither a number nor a mapping of options to numbers: give .2, say")


def _present(vectors: RatingVectors) -> NDArray[np.bool_]:
    """True for items with choices and response sets."""
    return np.asarray(~np.isnan(np.concatenate([vectors.choices, vectors.sets], axis=-1)).any(axis=-1))


def sets_of(rated: Rated) -> ResponseSets:
    """The response sets of vectors, and a single one for each option of ratings."""
    if isinstance(rated, RatingVectors):
        return rated.response_sets
    return ResponseSets.single((rated if isinstance(rated, Ratings) else rated[0]).options)


def _pair(rated: Ratings | tuple[Ratings, Ratings]) -> tuple[Ratings | None, Ratings | None]:
    """Choices and response sets."""
    if isinstance(rated, tuple):
        return rated
    return (None, rated) if rated.sets else (rated, None)


def _items(rated: Rated) -> tuple[Hashable, ...] | None:
    """The items of ratings; None for vectors, which have none."""
    if isinstance(rated, RatingVectors):
        return None
    return rated.items if isinstance(rated, Ratings) else rated[0].items


def _groups(human: Rated, groups: Sequence[Hashable] | None, n: int) -> Sequence[Hashable]:
    own = groups
    if own is None and not isinstance(human, RatingVectors):
        own = (human if isinstance(human, Ratings) else human[0]).groups
    if own is not None and len(own) != n:
        raise DataError(f"{len(own)} groups for {n} items: give one group per item of people's ratings")
    return list(range(n)) if own is None else own
