"""Rated rows for an example-based judge: balanced over the ratings, as many as fit, drawn by the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.stats.correlation import IntArray

__all__ = ["draw_examples", "rating_strata"]


def rating_strata(ratings: ArrayLike, strata: int = 5) -> IntArray:
    """Divide rows by rating into strata as equal in size as ties allow.

    Equal ratings are never parted. With no more different ratings than strata each rating is one (thumbs give
    two, whatever is asked for); otherwise neighbouring ratings are joined so that the sum of the squared sizes is
    least, which for continuous ratings gives quantiles.

    Parameters
    ----------
    ratings : array_like, shape (n,)
        Finite.
    strata : int
        At most so many, at least 1.

    Returns
    -------
    int array, shape (n,)
        Stratum of each row, from 0 for the lowest ratings without a gap.

    Raises
    ------
    OptionError
        If `strata` is below 1.
    DataError
        If there is no rating, or one is not finite.

    Examples
    --------
    >>> rating_strata([1, 1, 1, 1, 2, 3, 4, 5], 3).tolist()
    [0, 0, 0, 0, 1, 1, 2, 2]
    """
    values = np.asarray(ratings, dtype=float)
    if strata < 1:
        raise OptionError(f"strata={strata} must be 1 or more")
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise DataError("strata need at least one rating, and finite ones only; leave unrated rows out")
    _, level, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return _partition(sizes, min(strata, sizes.size))[level]


def _partition(sizes: IntArray, parts: int) -> IntArray:
    """The part of each of the given runs, cut so that the sum of squared part sizes is least."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    best = np.full(ends.size, np.inf)
    best[0] = 0.0
    cuts = np.zeros((parts, ends.size), dtype=np.int64)
    for part in range(parts):
        costs = np.where(
            np.tri(ends.size, k=-1, dtype=bool), best[None, :] + (ends[:, None] - ends[None, :]) ** 2, np.inf
        )  # [end, start]: each part has at least one run
        cuts[part], best = costs.argmin(axis=1), costs.min(axis=1)
    places = np.empty(sizes.size, dtype=np.int64)
    end = sizes.size
    for part in reversed(range(parts)):
        start = int(cuts[part, end])
        places[start:end] = part
        end = start
    return places


def draw_examples(
    examples: Sequence[Mapping[str, Any]],
    ratings: Sequence[float],
    *,
    tokens: int,
    strata: int = 5,
    each: int = 2,
    draws: int = 5,
    seed: int = 0,
) -> list[list[int]]:
    """Draw sets of examples to show a judge, each balanced over the ratings and within a number of tokens.

    Each draw goes round the strata and takes a random example of each in turn, as long as it fits; one that does
    not fit is passed over for another of its stratum. The examples are then put in random order, so that no trend
    in the ratings can be read off.

    Parameters
    ----------
    examples : sequence of mapping, length n
        As `Judge.example` writes them: field to text.
    ratings : sequence of float, length n
        On any scale.
    tokens : int
        How many the examples may take together, by `metricsmith.model_calls.limits.estimate_tokens`.
    strata : int
        As in `rating_strata`.
    each : int
        At most so many of one stratum.
    draws : int
        How many sets; equal ones are given once.
    seed : int

    Returns
    -------
    list of list of int
        Places in `examples`, for each draw.

    Raises
    ------
    OptionError
        If `each` or `draws` is below 1, or not even one example fits.
    DataError
        If lengths differ, or a rating is not finite.
    """
    if each < 1 or draws < 1:
        raise OptionError(f"each={each} and draws={draws} must be 1 or more")
    if len(examples) != len(ratings):
        raise DataError(f"{len(examples)} examples and {len(ratings)} ratings: give as many of each")
    # a field's marker takes about eight tokens
    costs = [sum(estimate_tokens(str(text)) + 8 for text in example.values()) for example in examples]
    if not costs or min(costs) > tokens:
        least = f"; the shortest takes {min(costs)}" if costs else ""
        raise OptionError(f"no example fits into {tokens} tokens{least}: give more, or shorter rows")
    members = [np.flatnonzero(rating_strata(ratings, strata) == part) for part in range(strata)]
    random = np.random.default_rng(seed)
    found = (_draw([part for part in members if part.size], costs, tokens, each, random) for _ in range(draws))
    return list({tuple(sorted(places)): places for places in found}.values())


def _draw(
    members: Sequence[IntArray], costs: Sequence[int], tokens: int, each: int, random: np.random.Generator
) -> list[int]:
    waiting = [random.permutation(part).tolist() for part in members]
    chosen: list[int] = []
    for _ in range(each):
        for part in waiting:
            place = next((place for place in part if costs[place] <= tokens), None)
            if place is not None:
                part.remove(place)
                chosen.append(place)
                tokens -= costs[place]
    return [chosen[position] for position in random.permutation(len(chosen))]
