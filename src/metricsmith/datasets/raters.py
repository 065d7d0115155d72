"""Ratings of several people in rows of their own -> one row an output, with the rating of each person.

Ratings left in rows of their own would count an output as often as it was rated, and put one rating of it into the
training rows and another into the test rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.cells import is_blank
from metricsmith.datasets.columns import Columns
from metricsmith.datasets.labels import Labels
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError, OptionError
from metricsmith.records import Scale
from metricsmith.stats.ceiling import Averaging, RaterCeiling, average_ratings, rater_ceiling
from metricsmith.stats.correlation import FloatArray

__all__ = ["Outputs", "People", "RaterEffects", "average_raters", "check_averaging"]

RaterEffects = Literal["none", "centre"]
FAR_APART = 0.1  # of the scale, between raters' means: worth a line


@dataclass(frozen=True)
class People:
    """The ratings that each rater gave to each output.

    Parameters
    ----------
    ratings : tuple of mapping, length n
        By output, the ratings by rater as they enter the average; empty for an output that nobody rated.
    average : str
        ``mean`` or ``median``.
    effects : str
        ``none``, or ``centre`` where each rater's mean was taken off and the mean of all ratings put back.
    """

    ratings: tuple[Mapping[str, float], ...]
    average: Averaging = "mean"
    effects: RaterEffects = "none"

    @property
    def names(self) -> list[str]:
        """Every rater, in the order of the first rating."""
        return list(dict.fromkeys(name for by_rater in self.ratings for name in by_rater))

    def __str__(self) -> str:
        count = sum(map(len, self.ratings))
        centred = ", each rater's mean taken off" if self.effects == "centre" else ""
        return f"{self.average} of {count} ratings by {len(self.names)} raters{centred}"

    def take(self, indices: Sequence[int] | NDArray[np.intp]) -> People:
        """The ratings of the outputs at `indices`."""
        return replace(self, ratings=tuple(self.ratings[int(index)] for index in indices))

    def ceiling(self, groups: Sequence[str]) -> RaterCeiling:
        """The agreement of people, and the ceiling that follows for a metric (`metricsmith.stats.rater_ceiling`)."""
        return rater_ceiling(self.ratings, groups, average=self.average)


@dataclass(frozen=True)
class Outputs:
    """The table with one row by output.

    Parameters
    ----------
    raw : RawTable
        n rows: those in which an output stands first.
    labels : Labels
        Of these rows.
    ratings : float array, shape (n,)
        NaN where nobody rated.
    scores : mapping of str to float array, shape (n,)
        The score columns.
    scale : Scale
        Without step where averages lie between its points, wider where centred ratings leave it.
    people : People or None
        None where it is not known who rated; then every row of the table is an output.
    notes : tuple of str
    """

    raw: RawTable
    labels: Labels
    ratings: FloatArray
    scores: dict[str, FloatArray]
    scale: Scale
    people: People | None = None
    notes: tuple[str, ...] = ()


def check_averaging(average: str, effects: str) -> None:
    """Raise an `OptionError` unless both options are known."""
    for option, value, kinds in (("raters", average, Averaging), ("rater_effects", effects, RaterEffects)):
        if value not in get_args(kinds):
            raise OptionError(
                f"{option}={value!r} is unknown; allowed are {' and '.join(get_args(kinds))}: choose one "
                f"(--{option.replace('_', '-')})"
            )


def average_raters(
    raw: RawTable,
    labels: Labels,
    inputs: Sequence[str],
    ratings: FloatArray,
    scores: Mapping[str, FloatArray],
    scale: Scale,
    *,
    average: Averaging = "mean",
    effects: RaterEffects = "none",
) -> Outputs:
    """Average the ratings of each output over the people who gave them, where a column says who did.

    An output is a source (its input and its cell in the group column), a system if the table names systems, and the
    output's text. An id column that repeats tells outputs apart too, but for an id that stands with two inputs;
    without output texts it must. Outputs of two systems are never one output, even if they are equal. A rater who
    rated an output twice counts once, with the mean of both.

    Parameters
    ----------
    raw : RawTable
        m rows.
    labels : Labels
        Of the rows, with the columns.
    inputs : sequence of str, length m
        What each row's output answers; empty where there is nothing.
    ratings : float array, shape (m,)
        NaN is none.
    scores : mapping of str to float array, shape (m,)
        The score columns. Where rows of one output differ, their mean is taken.
    scale : Scale
        That of `ratings`.
    average : str
        ``mean`` or ``median``, over raters.
    effects : str
        ``none``, or ``centre``: each rater's mean is taken off before, and the mean of all ratings put back.

    Returns
    -------
    Outputs

    Raises
    ------
    DataError
        If the column was named and is blank beside a rating; one that was guessed is not used then.
    """
    columns, nameless = _rater_column(raw, labels.columns, ratings)
    labels = replace(labels, columns=columns)
    if columns.rater is None or columns.target is None:
        return Outputs(raw, labels, ratings, dict(scores), scale, notes=nameless)
    rows = _rows_by_output(raw, labels, inputs)
    by_output, twice = _by_rater(raw, columns.rater, ratings, rows)
    people = People(tuple(by_output), average, effects)
    notes = [
        f"{int((~np.isnan(ratings)).sum())} ratings by {len(people.names)} raters of "
        f"{sum(map(bool, by_output))} outputs: an output counts once, with the {average} of its ratings"
    ]
    if twice:
        notes.append(f"{twice} times someone rated an output again: the mean of theirs counts as one rating")
    means = _means(people)
    if effects == "centre" and means:
        people, centred = _centred(people, means)
        notes.append(centred)
    elif means and max(means.values()) - min(means.values()) > FAR_APART * scale.width:
        notes.append(
            f"{_range(means)}: rater_effects='centre' (--rater-effects centre) takes such levels off, which harms "
            f"where raters saw outputs of different quality"
        )
    values = np.array(
        [average_ratings(np.array(list(given.values())), average) if given else math.nan for given in people.ratings]
    )
    own_scale, scale_notes = _scale_of(values, scale)
    merged, differing = _merged_scores(scores, rows)
    first = [places[0] for places in rows]
    return Outputs(
        raw.take(first), _of_outputs(labels, first), values, merged, own_scale, people,
        (*notes, *scale_notes, *differing, *_texts_apart(raw, columns, rows)),
    )  # fmt: skip


def _rater_column(raw: RawTable, columns: Columns, ratings: FloatArray) -> tuple[Columns, tuple[str, ...]]:
    """The columns without a guessed rater column that is blank beside ratings, and a line on that."""
    if columns.rater is None:
        return columns, ()
    cells = raw.columns[columns.rater]
    nameless = [index for index, cell in enumerate(cells) if is_blank(cell) and not math.isnan(ratings[index])]
    if not nameless:
        return columns, ()
    if "rater" in columns.guessed:
        note = f"the guessed rater column {columns.rater!r} is blank where {len(nameless)} ratings are and is not used"
        return columns.without("rater"), (note,)
    raise DataError(
        f"{raw.place(nameless[0], columns.rater)}: the rating has no rater ({len(nameless)} such rows); every rating "
        f"needs one: fill it in, or leave such rows out with where={columns.rater + '!='!r} (--where)"
    )


def _of_outputs(labels: Labels, first: Sequence[int]) -> Labels:
    """The labels of the rows in which outputs stand first; an id that only raters repeated is the output's own."""
    ids, groups, sources = (tuple(own[i] for i in first) for own in (labels.ids, labels.groups, labels.sources))
    notes, repeats = labels.notes, f"column {labels.columns.id!r} has {len(set(labels.ids))} values over"
    if len(set(ids)) == len(first):
        notes = tuple(note for note in notes if repeats not in note)
        notes += (f"the ids of {labels.columns.id!r} are those of the outputs",) if notes != labels.notes else ()
    return replace(labels, ids=ids, groups=groups, sources=sources, notes=notes)


def _rows_by_output(raw: RawTable, labels: Labels, inputs: Sequence[str]) -> list[list[int]]:
    """The rows of each output, in the order of the first ones."""
    columns = labels.columns
    texts = {name: raw.texts(name) for name in columns.used()}
    group = columns.group if columns.group != columns.id else None
    key = [texts[name] for name in (group, columns.system, columns.output) if name is not None]
    if columns.output is None and columns.id is not None:
        rows = (f"row {number}" for number in raw.numbers)
        key.append(tuple(item or own for item, own in zip(labels.items or labels.ids, rows, strict=True)))
    elif labels.items:
        key.append(labels.items)
    found: dict[tuple[str, ...], list[int]] = {}
    for index, own in enumerate(zip(inputs, *key, strict=True)):
        found.setdefault(own, []).append(index)
    return list(found.values())


def _by_rater(
    raw: RawTable, rater: str, ratings: FloatArray, rows: Sequence[Sequence[int]]
) -> tuple[list[dict[str, float]], int]:
    """The ratings of each output by rater, and the number of ratings of outputs that their rater had rated before."""
    names = raw.texts(rater)
    found, twice = list[dict[str, float]](), 0
    for places in rows:
        given: dict[str, list[float]] = {}
        for index in places:
            if not math.isnan(ratings[index]):
                given.setdefault(names[index], []).append(float(ratings[index]))
        twice += sum(len(values) - 1 for values in given.values())
        found.append({name: math.fsum(values) / len(values) for name, values in given.items()})
    return found, twice


def _means(people: People) -> dict[str, float]:
    """Each rater's mean rating."""
    given: dict[str, list[float]] = {}
    for by_rater in people.ratings:
        for name, value in by_rater.items():
            given.setdefault(name, []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in given.items()}


def _centred(people: People, means: Mapping[str, float]) -> tuple[People, str]:
    given = [value for by_rater in people.ratings for value in by_rater.values()]
    grand = math.fsum(given) / len(given)
    ratings = tuple(
        {name: value - means[name] + grand for name, value in by_rater.items()} for by_rater in people.ratings
    )
    fewest = min(sum(name in by_rater for by_rater in people.ratings) for name in means)
    return replace(people, ratings=ratings), (
        f"{_range(means)}: each is taken off and {grand:.3g} put back (the fewest ratings behind such a mean: {fewest})"
    )


def _range(means: Mapping[str, float]) -> str:
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    return f"raters' means run from {means[low]:.3g} ({low[:40]!r}) to {means[high]:.3g} ({high[:40]!r})"


def _scale_of(values: FloatArray, scale: Scale) -> tuple[Scale, tuple[str, ...]]:
    """The scale of averages, and a line where it is wider than that of the ratings.

    Centred ratings widen the scale: cut at 0 and 1, thumbs would be what they were.
    """
    known = values[~np.isnan(values)]
    if not known.size:
        return scale, ()
    if scale.step is not None:
        steps = (known - scale.low) / scale.step
        scale = scale if np.allclose(steps, np.round(steps), rtol=0, atol=1e-9) else replace(scale, step=None)
    if scale.contains(float(known.min())) and scale.contains(float(known.max())):
        return scale, ()
    wide = replace(scale, low=min(scale.low, float(known.min())), high=max(scale.high, float(known.max())), step=None)
    return wide, (f"centred ratings leave the scale {scale}: it runs from {wide} here",)


def _merged_scores(
    scores: Mapping[str, FloatArray], rows: Sequence[Sequence[int]]
) -> tuple[dict[str, FloatArray], list[str]]:
    """The score columns by output, and a line on those that differ between rows of one output.

    An error would stop tables whose raters answered several questions.
    """
    merged, differing = dict[str, FloatArray](), list[str]()
    for name, values in scores.items():
        parts = [values[list(places)] for places in rows]
        known = [part[~np.isnan(part)] for part in parts]
        apart = sum(part.size > 1 and bool((part != part[0]).any()) for part in known)
        merged[name] = np.array(
            [math.nan if not part.size else part[0] if (part == part[0]).all() else part.mean() for part in known]
        )
        if apart:
            differing.append(f"column {name!r} differs between the rows of {apart} outputs: their mean is used")
    return merged, differing


def _texts_apart(raw: RawTable, columns: Columns, rows: Sequence[Sequence[int]]) -> list[str]:
    """A line for each column of references, context or input whose cells differ between the rows of an output."""
    notes = []
    for name in (name for name in columns.texts() if name != columns.output):
        texts = raw.texts(name)
        apart = sum(len({texts[index] for index in places}) > 1 for places in rows)
        if apart:
            notes.append(f"column {name!r} differs between the rows of {apart} outputs: the first row's text is used")
    return notes
