"""Ratings of items: who gave which option, or which set of options, to what."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.stats.correlation import FloatArray, IntArray

__all__ = ["Ratings"]


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings in long form, one entry for each that was given; what is missing has none.

    Parameters
    ----------
    options : tuple of str
        The K possible ratings, in their order.
    items, raters : tuple of hashable
        The n items and the raters; the repetitions of a judge are its raters.
    item, rater : int array, shape (N,)
        The places of each rating's item and rater.
    given : bool array, shape (N, K)
        The options of each rating: exactly one of a forced choice, at least one of a response set.
    sets : bool
        True for response sets.
    missing : int
        Ratings without an answer, which have no entry.
    groups : tuple of hashable, length n, optional
        The group of each item, such as its source; by default each stands alone.
    counted : bool
        True where only counts are known: a rater is then a number within one item, and nobody in particular.
    """

    options: tuple[str, ...]
    items: tuple[Hashable, ...]
    raters: tuple[Hashable, ...]
    item: IntArray
    rater: IntArray
    given: NDArray[np.bool_]
    sets: bool = False
    missing: int = 0
    groups: tuple[Hashable, ...] | None = None
    counted: bool = False

    def __post_init__(self) -> None:
        check_options(self.options)
        if self.groups is not None and len(self.groups) != len(self.items):
            raise DataError(f"{len(self.groups)} groups for {len(self.items)} items: give one group per item")

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[Hashable, Hashable, Any]],
        options: Sequence[str],
        *,
        sets: bool = False,
        groups: Mapping[Hashable, Hashable] | None = None,
    ) -> Ratings:
        """Make them of (item, rater, rating).

        Parameters
        ----------
        rows : iterable of tuple
            The rating is an option, for `sets` an iterable of options, or None where it is missing.
        options : sequence of str
            At least two, none twice.
        sets : bool
        groups : mapping, optional
            Of each item.

        Raises
        ------
        DataError
            If an option was not declared, a set is empty, a rater rated an item twice, or an item has no group.
        OptionError
            If options are fewer than two or named twice.
        """
        check_options(options)
        items: dict[Hashable, int] = {}
        raters: dict[Hashable, int] = {}
        cells: dict[tuple[int, int], list[bool]] = {}
        missing = 0
        for number, (item, rater, answer) in enumerate(rows, 1):
            place = items.setdefault(item, len(items)), raters.setdefault(rater, len(raters))
            if answer is None:
                missing += 1
            elif place in cells:
                raise DataError(f"rating {number}: {rater!r} rated item {item!r} twice; keep one, or name repetitions")
            else:
                cells[place] = _given(answer, options, sets, f"rating {number} (item {item!r}, rater {rater!r})")
        lacking = [item for item in items if groups is not None and item not in groups]
        if lacking:
            raise DataError(f"item {lacking[0]!r} has no group ({len(lacking)} have none): give each item one")
        places = np.array(list(cells), dtype=np.int64).reshape(-1, 2)
        given = np.array(list(cells.values()), dtype=bool).reshape(-1, len(options))
        of_items = None if groups is None else tuple(groups[item] for item in items)
        return cls(
            tuple(options), tuple(items), tuple(raters), places[:, 0], places[:, 1], given, sets, missing, of_items
        )  # fmt: skip

    @classmethod
    def from_counts(cls, counts: ArrayLike, options: Sequence[str], items: Sequence[Hashable] | None = None) -> Ratings:
        """Make forced choices of how often each option was chosen, shape (n, K); raters are numbers within items.

        Raises
        ------
        DataError
            If a count is no whole number from 0, the shape is another, or items are not named once each.
        """
        table = np.asarray(counts, dtype=float)
        if table.ndim != 2 or table.shape[1] != len(options):
            raise DataError(f"counts of shape {table.shape} for {len(options)} options: give (items, options)")
        if not (np.isfinite(table) & (table >= 0) & (table == np.round(table))).all():
            raise DataError("a count is negative or no whole number: give how many raters chose each option")
        names = tuple(range(len(table))) if items is None else tuple(items)
        if len(set(names)) != len(table) or len(names) != len(table):
            raise DataError(f"{len(names)} names ({len(set(names))} different) for {len(table)} items: name each once")
        totals = table.sum(axis=1).astype(int)
        chosen = np.repeat(np.tile(np.arange(table.shape[1]), len(table)), table.astype(int).ravel())
        rater = np.concatenate([np.arange(total) for total in totals]) if len(table) else np.zeros(0, dtype=int)
        most = tuple(range(int(totals.max(initial=0))))
        item = np.repeat(np.arange(len(table)), totals)
        given = np.eye(len(options), dtype=bool)[chosen]
        return cls(tuple(options), names, most, item, rater.astype(np.int64), given, counted=True)

    @property
    def counts(self) -> FloatArray:
        """Number of ratings that have each option, shape (n, K)."""
        counts = np.zeros((len(self.items), len(self.options)))
        np.add.at(counts, self.item, self.given)
        return counts

    @property
    def per_item(self) -> IntArray:
        """Ratings of each item, shape (n,)."""
        return np.bincount(self.item, minlength=len(self.items))

    @property
    def chosen(self) -> IntArray:
        """The place of the option of each rating, shape (N,); forced choices."""
        if self.sets:
            raise OptionError("response sets have no one option per rater: give forced choices")
        return np.asarray(self.given.argmax(axis=1))

    def of_items(self, items: Sequence[Hashable]) -> Ratings:
        """The ratings of these items, in this order; an item that nobody rated has none."""
        wanted = {item: place for place, item in enumerate(items)}
        if len(wanted) < len(items):
            raise DataError(f"{len(items)} items, of which {len(wanted)} differ: name each once")
        place = np.array([wanted.get(item, -1) for item in self.items], dtype=np.int64)
        kept = place[self.item] >= 0 if self.items else np.zeros(0, dtype=bool)
        group = None if self.groups is None else dict(zip(self.items, self.groups, strict=True))
        return replace(
            self,
            items=tuple(items), item=place[self.item][kept], rater=self.rater[kept], given=self.given[kept],
            groups=None if group is None else tuple(group.get(item, item) for item in items),
        )  # fmt: skip

    def collapsed(self, positive: Sequence[str]) -> Ratings:
        """Forced choices of two options: the rating has one of these options or more, or it has none of them.

        Raises
        ------
        OptionError
            If one of these options was not declared.
        """
        speaks = self.given[:, places_of(positive, self.options, "positive options")].any(axis=1)
        name = " or ".join(positive)
        return replace(self, options=(name, f"not {name}"), given=np.stack([speaks, ~speaks], axis=1), sets=False)

    def check_raters(self, what: str) -> None:
        """Raise a `DataError` if only counts are known, for something that takes the same raters on several items."""
        if self.counted:
            raise DataError(
                f"{what} needs to know who rated, which counts do not say: give each rating with its rater "
                "(Ratings.from_rows)"
            )

    def drawn(self, places: IntArray) -> Ratings:
        """The ratings at these places of the long form, any of them several times."""
        return replace(self, item=self.item[places], rater=self.rater[places], given=self.given[places])

    def redraw(self, rng: np.random.Generator) -> IntArray:
        """Places of a bootstrap draw of ratings within each item, for `drawn`."""
        order, per_item = np.argsort(self.item, kind="stable"), self.per_item
        first = np.repeat(np.cumsum(per_item) - per_item, per_item)
        within = rng.random(order.size) * np.repeat(per_item, per_item)
        return np.asarray(order[first + within.astype(np.int64)])

    def table(self) -> IntArray:
        """The place of the option that each rater chose, shape (n, raters), -1 where there is none; forced choices."""
        places = np.full((len(self.items), len(self.raters)), -1)
        places[self.item, self.rater] = self.chosen
        return places


def check_options(options: Sequence[str]) -> None:
    """Raise an `OptionError` unless there are two options or more, all of them different."""
    if len(options) < 2 or len(set(options)) < len(options) or isinstance(options, str):
        raise OptionError(f"options {options!r}: give at least two, each once, as a list of names")


def places_of(names: Iterable[str], options: Sequence[str], what: str = "options") -> list[int]:
    """Returns the places of these options; raises an `OptionError` for none, and for one that was not declared."""
    wanted = [names] if isinstance(names, str) else list(names)
    if not wanted:
        raise OptionError(f"{what}: none was given; options are {options}")
    for name in wanted:
        if name not in options:
            raise OptionError(f"{what}: {name!r} is no option{nearest(str(name), options)}; options are {options}")
    return [options.index(name) for name in wanted]


def _given(answer: Any, options: Sequence[str], sets: bool, where: str) -> list[bool]:
    several = sets and isinstance(answer, Iterable) and not isinstance(answer, str)
    chosen = list(answer) if several else [answer]
    unknown = [name for name in chosen if name not in options]
    if unknown:
        raise DataError(
            f"{where}: {unknown[0]!r} was not declared{nearest(str(unknown[0]), options)}; options are "
            f"{', '.join(options)}: correct the rating or declare the option"
        )
    if not chosen:
        raise DataError(f"{where}: an empty response set; leave the rating out where no option was given")
    return [option in chosen for option in options]
