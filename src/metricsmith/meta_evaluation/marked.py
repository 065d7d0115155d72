"""Judges that mark errors beside people's marks: character F1 of each, and every two compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from metricsmith.meta_evaluation.spans import (
    SEVERITIES,
    STATISTICS,
    character_f1,
    character_f1_difference,
    character_f1_interval,
)
from metricsmith.records import ErrorSpan
from metricsmith.stats.resampling import Interval

__all__ = ["COUNTED", "MarkedComparison", "MarkedErrors", "MarkedRows", "MarksOfJudge", "evaluate_marks"]

COUNTED = frozenset(SEVERITIES)
"""The severities that character F1 knows."""

Marks = tuple[ErrorSpan, ...] | None


@dataclass(frozen=True, slots=True)
class MarkedRows:
    """The errors marked in n rated outputs, one row by rating.

    Parameters
    ----------
    judges : mapping of str to sequence of length n of (tuple of ErrorSpan or None)
        None for an output that the judge has not judged.
    gold : tuple, the same
        One rating's; None where nobody rated, which does not count.
    texts, documents, segments : tuple of str, length n
        The outputs, their documents and their segments; where a document is blank, the segment stands for it.
    left_out : tuple of str
        Judges that mark nothing.
    notes : tuple of str
    """

    judges: Mapping[str, Sequence[Marks]] = field(repr=False)
    gold: tuple[Marks, ...] = field(repr=False)
    texts: tuple[str, ...] = field(repr=False)
    documents: tuple[str, ...] = field(repr=False)
    segments: tuple[str, ...] = field(repr=False)
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MarksOfJudge:
    """One judge's marks: F1, precision and recall of characters in [0, 1], each with its 95 % interval by document.

    NaN where undefined; `unlocated` errors quote words that do not stand in the text, and mark nothing.
    """

    name: str
    f1: float
    precision: float
    recall: float
    f1_interval: Interval
    precision_interval: Interval
    recall_interval: Interval
    unlocated: int


@dataclass(frozen=True, slots=True)
class MarkedComparison:
    """Character F1 of `best` minus that of `other`, with its 95 % interval and the two-sided p of the paired test."""

    best: str
    other: str
    difference: float
    interval: Interval
    p_value: float


@dataclass(frozen=True, slots=True)
class MarkedErrors:
    """The marks of all judges, measured on the ratings of the outputs that all of them have judged.

    Parameters
    ----------
    judges : tuple of MarksOfJudge
        Best first.
    comparisons : tuple of MarkedComparison
        Every two judges, the better one first.
    ratings, missing, documents : int
        Ratings that count, those that do not because some judge has not judged the output, and documents; 0 if
        these are not known.
    left_out : tuple of str
        Judges that mark nothing.
    """

    judges: tuple[MarksOfJudge, ...]
    comparisons: tuple[MarkedComparison, ...]
    ratings: int
    missing: int
    documents: int
    left_out: tuple[str, ...] = ()


def evaluate_marks(rows: MarkedRows, *, permutations: int = 1000, seed: int = 0) -> MarkedErrors:
    """Measure each judge's marks against people's (`character_f1`), and test every two judges.

    Every rating is a row of its own, as one marks what another leaves: a judge is measured against each. Intervals
    leave out whole documents, and tests swap them.

    Parameters
    ----------
    rows : MarkedRows
    permutations, seed : int
        Of the test.

    Raises
    ------
    DataError
        If a mark does not lie in its text.
    """
    rated = [place for place, own in enumerate(rows.gold) if own is not None]
    both = [place for place in rated if all(marks[place] is not None for marks in rows.judges.values())]
    gold = [rows.gold[place] for place in both]
    texts, known = ([of[place] for place in both] for of in (rows.texts, rows.documents))
    documents = [known[at] or f"segment {rows.segments[place]}" for at, place in enumerate(both)]
    measured = {
        name: character_f1([marks[place] for place in both], gold, texts)
        for name, marks in (rows.judges if both else {}).items()
    }
    order = sorted(measured, key=lambda name: (math.isnan(measured[name].f1), -np.nan_to_num(measured[name].f1)))
    judges = []
    for name in order:
        one = measured[name]
        f1, precision, recall = (character_f1_interval(one.terms, documents, statistic=kind) for kind in STATISTICS)
        ends = f1, precision, recall
        judges.append(MarksOfJudge(name, one.f1, one.precision, one.recall, *ends, one.unlocated_predicted))
    comparisons = []
    for best, other in combinations(order, 2):
        terms = measured[best].terms, measured[other].terms
        test, interval = character_f1_difference(*terms, documents, permutations=permutations, seed=seed)
        comparisons.append(MarkedComparison(best, other, float(test.observed), interval, test.p_value))
    return MarkedErrors(
        tuple(judges),
        tuple(comparisons),
        len(both),
        len(rated) - len(both),
        len(set(known)) * all(known),
        rows.left_out,
    )
