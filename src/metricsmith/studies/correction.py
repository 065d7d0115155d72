"""The mean rating of many unlabelled rows, from a metric's numbers and the ratings of a few labelled rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.base import BankMetric
from metricsmith.datasets.rating_forms import is_word, parse_rating
from metricsmith.datasets.ratings import infer_scale, takes_words
from metricsmith.datasets.splits import connected_parts, group_of, instructions
from metricsmith.datasets.table import Table
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.metric import Metric, content_hash
from metricsmith.optimizers.own import from_learning
from metricsmith.optimizers.splits import RatedRows
from metricsmith.rating_model.corrected import CorrectedMean, prediction_powered_mean, rogan_gladen
from metricsmith.rating_model.labelled_sample import LabelledSample
from metricsmith.records import Scale, Task
from metricsmith.scoring import score
from metricsmith.scoring.plan import as_metric
from metricsmith.scoring.rows import checked_rows
from metricsmith.stats.correlation import FloatArray, IntArray

__all__ = ["CorrectionRows", "corrected_mean"]

Rows = Table | Sequence[dspy.Example]
BoolArray = NDArray[np.bool_]
METHODS = ("ppi++", "ppi", "rogan-gladen")


def corrected_mean(
    labelled: Rows,
    unlabelled: Rows,
    *,
    metric: Any,
    target: str | None = None,
    scale: Scale | None = None,
    method: Literal["ppi++", "ppi", "rogan-gladen"] = "ppi++",
    positive: float | None = None,
    strata: str | None = None,
    systems: tuple[str, str] | None = None,
    level: float = 0.95,
    **options: Any,
) -> CorrectedMean:
    """The mean rating that people would give the unlabelled rows: a metric's numbers, corrected by labelled rows.

    Parameters
    ----------
    labelled : Table or sequence of dspy.Example
        Rows with ratings, a random sample of the same outputs as `unlabelled`; those without a rating are left out.
    unlabelled : Table or sequence of dspy.Example
        The rows to speak of. Those that are labelled too (equal texts and system) are left out, and the note says so.
    metric : metric, callable or str
        Anything that `score` takes and that gives one number a row, or the name of a bank metric. Its raw numbers may
        be on any scale, in either direction. Groups of rows that it has learned from are left out of both sets.
    target : str, optional
        The rating's name in the rows; by default the table's, or an induced metric's.
    scale : Scale, optional
        Of the ratings; by default the table's, or an induced metric's, or inferred.
    method : str
        ``ppi++``, ``ppi`` (lambda 1: the metric is on the ratings' scale) or ``rogan-gladen`` (verdicts).
    positive : float, optional
        The rating from which on a row counts as 1, the others as 0: the mean is their prevalence. For
        ``rogan-gladen`` the metric's numbers are cut at the same place.
    strata : str, optional
        A label of the rows, such as ``system``, by whose values the labelled rows were drawn.
    systems : (str, str), optional
        Two values of the rows' ``system``: the mean of the first less that of the second.
    level : float
    **options
        ``lm``, ``store``, ``budget``, ``concurrency``, ``max_failure_rate`` and ``progress`` of `score`. A failed
        judgement is no number: the row is left out and counted.

    Returns
    -------
    CorrectedMean

    Raises
    ------
    DataError
        If there is no rating, one is off the scale, or `prediction_powered_mean` or `rogan_gladen` refuses the numbers.
    OptionError
        If an option has no meaning, a system or a label of strata is not in the rows, `positive` is off the scale, or
        the metric gives several numbers a row.
    """
    if method not in METHODS:
        raise OptionError(f"method={method!r} is unknown{nearest(method, METHODS)}: choose one of {', '.join(METHODS)}")
    if strata is not None and systems is not None:
        raise OptionError("strata= and systems= exclude each other: systems are the strata of a difference")
    members = getattr(metric, "members", None)
    if callable(members):
        names = ", ".join(member.name for member in members())
        raise OptionError(f"metric= gives several numbers a row ({names}): give one of its members()")
    one = as_metric(metric)
    data = CorrectionRows.of(labelled, unlabelled, metric=one, target=target, scale=scale)
    data.check(positive, strata, systems)
    table = score([one.fit(data.rows) if isinstance(one, BankMetric) else one], data.rows, **options)
    return data.corrected(
        table.run()[:, 0], method=method, positive=positive, strata=strata, systems=systems, level=level
    )


@dataclass(frozen=True)
class CorrectionRows:
    """The rows of both sets that a correction goes by, ratings taken out of them, in one list: n labelled, N others.

    Parameters
    ----------
    rows : list of dspy.Example, length n + N
    places : int array, shape (n + N,)
        Their places among all rows that were given, labelled rows first.
    ratings : float array, shape (n,)
    groups : list of int, length n + N
        Rows of one group share a group's name, where it means the same in both sets, or an input.
    scale : Scale
    notes : tuple of str
        Rows that were left out, and the reason.
    """

    rows: list[dspy.Example]
    places: IntArray
    ratings: FloatArray
    groups: list[int]
    scale: Scale
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, labelled: Rows, unlabelled: Rows, *, metric: Metric, target: str | None = None, scale: Scale | None = None
    ) -> CorrectionRows:
        """Choose the rows; arguments and errors are those of `corrected_mean`."""
        task = getattr(labelled, "task", None) or getattr(metric, "task", None)
        task = task if isinstance(task, Task) and target in (None, task.target) else None
        if not (target := target or (task.target if task else "")):
            raise DataError("the labelled rows have no rating column: give one, or name it with target=... (--target)")
        sets = [side.rows if isinstance(side, Table) else checked_rows(side) for side in (labelled, unlabelled)]
        everything, first = [row for rows in sets for row in rows], len(sets[0])
        known = np.array([_rating(row, target, place) for place, row in enumerate(sets[0])], dtype=float)
        if np.isnan(known).all():
            raise DataError(f"none of {first} labelled rows has a rating {target!r}: rate some, or name another target")
        given = scale or (task.scale if task else None)
        for number, row in enumerate(sets[0]):
            if given is not None and not takes_words(given) and is_word(row.get(target)):
                raise DataError(
                    f"labelled row {number} is rated {row.get(target)!r}, a verdict, but the scale runs from {given}: "
                    "give a number"
                )
        scale = given or infer_scale(known)
        for place in np.flatnonzero((known < scale.low) | (known > scale.high)):
            raise DataError(
                f"labelled row {place} is rated {known[place]:g}, but the scale runs from {scale}: correct it"
            )
        made_up = any(isinstance(side, Table) and side.columns.group is None for side in (labelled, unlabelled))
        groups = _groups(everything, first if made_up else len(everything))
        kept = np.concatenate([~np.isnan(known), ~_again(sets[0], sets[1], known)])
        twins = int((~kept[first:]).sum())
        learned = from_learning(metric, RatedRows(everything, np.empty(0), list(map(str, groups))))
        left_out = {
            "unlabelled rows are labelled too and count as labelled alone": twins,
            "rows are left out: the metric has learned from their groups": int((kept & learned).sum()),
        }
        places = np.flatnonzero(kept & ~learned)
        rows = [row.without(target) if target in row else row for row in map(everything.__getitem__, places)]
        notes = tuple(f"{count} {what}" for what, count in left_out.items() if count)
        ratings = known[places[places < first]]
        if not 0 < ratings.size < places.size:
            side = "unlabelled" if ratings.size else "labelled"
            raise DataError(f"no {side} row is left ({'; '.join(notes) or 'none was given'}): give others")
        return cls(rows, places, ratings, groups[places].tolist(), scale, notes)

    def check(self, positive: float | None, strata: str | None, systems: tuple[str, str] | None) -> None:
        """Raises an `OptionError` where these options of `corrected_mean` do not fit the rows."""
        if positive is not None and not self.scale.low < positive <= self.scale.high:
            raise OptionError(f"positive={positive:g} divides no ratings from {self.scale}: give one above the least")
        lacking = [] if strata is None else [row for row in self.rows if row.get(strata) is None]
        if lacking:
            raise OptionError(f"strata={strata!r}: {len(lacking)} of {len(self.rows)} rows have no such label")
        written = {str(row.get("system")) for row in self.rows}
        for name in systems or ():
            if name not in written:
                raise OptionError(f"no row is by the system {name!r}{nearest(name, written)}: check systems=")
        if systems is not None and (len(systems) != 2 or systems[0] == systems[1]):
            raise OptionError(f"systems={systems!r}: give two that differ")

    def corrected(
        self,
        predictions: FloatArray,
        *,
        method: str = "ppi++",
        positive: float | None = None,
        strata: str | None = None,
        systems: tuple[str, str] | None = None,
        level: float = 0.95,
    ) -> CorrectedMean:
        """The corrected mean by the metric's raw numbers, shape (n + N,); see `corrected_mean` for the rest."""
        ratings, bounds, n = self.ratings, (self.scale.low, self.scale.high), self.ratings.size
        if positive is not None:
            ratings, bounds = (ratings >= positive).astype(float), (0.0, 1.0)
            if method == "rogan-gladen":
                predictions = np.where(np.isnan(predictions), math.nan, predictions >= positive)
        label = strata if systems is None else "system"
        parts = None if label is None else [str(row.get(label)) for row in self.rows]
        sample = LabelledSample.of(
            ratings, predictions[:n], predictions[n:], groups=self.groups[:n], unlabelled_groups=self.groups[n:],
            strata=parts and parts[:n], unlabelled_strata=parts and parts[n:], difference=systems,
        )  # fmt: skip
        if method == "rogan-gladen":
            found = rogan_gladen(sample, level=level)
        else:
            found = prediction_powered_mean(sample, lam=1.0 if method == "ppi" else None, level=level, bounds=bounds)
        return replace(found, note="; ".join(filter(None, [found.note, *self.notes])))


def _rating(row: dspy.Example, target: str, place: int) -> float:
    try:
        return parse_rating(row.get(target))
    except ValueError as problem:
        name = row.get("id", place)
        raise DataError(
            f"row {name!r}: {target} is {row.get(target)!r}, which is no rating: give a number"
        ) from problem


def _again(labelled: Sequence[dspy.Example], unlabelled: Sequence[dspy.Example], ratings: FloatArray) -> BoolArray:
    """True for unlabelled rows that are a rated one over again, each rated row once; shape (N,)."""

    def key(row: dspy.Example) -> str:
        texts = [row.get(name) for name in ("input", "output", "references", "context", "system")]
        return content_hash(texts, None if row.get("output") else row.get("columns"))

    left = Counter(key(row) for row, rating in zip(labelled, ratings, strict=True) if not math.isnan(rating))
    same = []
    for row in unlabelled:
        same.append(left[own := key(row)] > 0)
        left[own] -= 1
    return np.array(same, dtype=bool)


def _groups(rows: Sequence[dspy.Example], first: int) -> IntArray:
    """Every row's group; names of groups mean something else from the row `first` on."""
    names = [f"{place >= first} {group_of(row, place)}" for place, row in enumerate(rows)]
    inputs = [row.get("input") or "" for row in rows]
    told = instructions(inputs, range(len(rows)))
    return connected_parts(names, [text if text and text not in told else None for text in inputs])
