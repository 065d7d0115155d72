"""A specialist's evaluation as data: every policy by holding out one system after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from metricsmith.formats import jsonable
from metricsmith.records import Usage
from metricsmith.report.notebook import NotebookRecord
from metricsmith.stats.resampling import Interval

__all__ = ["SCHEMA_VERSION", "BesideCopying", "Copying", "PolicyResult", "SpecialistEvaluation", "SystemResult"]

SCHEMA_VERSION = 1
UNDEFINED = Interval(math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class Copying:
    """The marked errors of a judge beside those of its examples and those that people marked in the row itself.

    Parameters
    ----------
    predicted : int
        Errors with a text on the target side, over all rows that judge and people marked.
    example_equal, example_near : float
        Shares of these whose text equals that of an example's error, and whose text equals, lies in or contains one;
        NaN without a prediction.
    gold_equal, gold_near : float
        The same, beside people's errors.
    abstained : int
        Errors of examples whose text stands in the output and was not marked.
    """

    predicted: int = 0
    example_equal: float = math.nan
    example_near: float = math.nan
    gold_equal: float = math.nan
    gold_near: float = math.nan
    abstained: int = 0


@dataclass(frozen=True, slots=True)
class BesideCopying:
    """The first judge's first policy less a baseline that rests on the same examples alone, on the rows of both.

    `judge` is the baseline's name and `value` its own; intervals and p-values are those of the difference, two-sided.
    """

    judge: str
    value: float
    difference: float
    by_segment: Interval
    p_by_segment: float
    by_document: Interval = UNDEFINED
    p_by_document: float = math.nan


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """One judge with one policy. Numbers are NaN where they are undefined.

    Parameters
    ----------
    judge, policy : str
    examples, errors, candidates : float
        Means of a row: its examples, their errors on either side, and the ratings of its source.
    value, precision, recall : float
        The measure over the whole corpus, and its two parts where it is character F1; for a policy that draws, means
        over its seeds.
    spread : float
        Standard deviation over the seeds; NaN with one.
    seeds : int
    by_segment, by_document : Interval
        95 %, each segment or document left out in turn, of the first seed.
    difference : float
        The value minus that of the same judge's first policy, of the first seed; NaN for that policy itself.
    difference_by_segment, difference_by_document : Interval
    p_by_segment, p_by_document : float
        Two-sided, the two policies exchanged in whole segments or documents.
    systems, raters : mapping of str to float
        The value on the rows of one system or rater alone.
    excluded, fallbacks : mapping of str to int
        Ratings of the rows' sources that were not shown, and rows for which a rule could not be followed, by reason.
    judgements : mapping of str to int
        By status, over all seeds, with ``requested``.
    usage : Usage
    copying : Copying
    baseline : bool
        True for a judge that rests on the examples alone and asks no model.
    """

    judge: str
    policy: str
    examples: float
    errors: float
    candidates: float = math.nan
    value: float = math.nan
    precision: float = math.nan
    recall: float = math.nan
    spread: float = math.nan
    seeds: int = 1
    by_segment: Interval = UNDEFINED
    by_document: Interval = UNDEFINED
    difference: float = math.nan
    difference_by_segment: Interval = UNDEFINED
    difference_by_document: Interval = UNDEFINED
    p_by_segment: float = math.nan
    p_by_document: float = math.nan
    systems: Mapping[str, float] = field(default_factory=dict)
    raters: Mapping[str, float] = field(default_factory=dict)
    excluded: Mapping[str, int] = field(default_factory=dict)
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    judgements: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    copying: Copying = field(default_factory=Copying)
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class SystemResult:
    """A system of the history: its mean MQM score or rating, its ratings, and the name that it shares with others.

    The mean is NaN where others have numbers and it has none.
    """

    name: str
    mean: float
    ratings: int
    joined: str = ""


@dataclass(frozen=True)
class SpecialistEvaluation(NotebookRecord):
    """Judges and policies side by side on one history.

    Parameters
    ----------
    history : str
        Where the ratings come from.
    measure : str
    ratings, sources, documents : int
    systems : tuple of SystemResult
        Best first.
    raters : tuple of str
    results : tuple of PolicyResult
        In the order in which they were asked for.
    curve : mapping of str to tuple of (int, float)
        By judge and source of the examples: the value with at most so many examples, each set part of the next.
    as_rater : mapping of str to mapping of str to float
        ``as_rater[i][j]``: the first judge prompted with rater i's examples, against rater j, on the rows of both.
    people : mapping of str to mapping of str to float
        Rater i against rater j on the same rows.
    only : mapping of str to tuple of (int, int)
        For two policies of the first judge: the errors that the named one alone predicts, on rows that both judged,
        and those among them that equal an error of the first policy's examples.
    beside : tuple of BesideCopying
        The first judge beside each baseline that was evaluated with it; empty where it is a baseline itself.
    signature : str
        The line that makes every number reproducible.
    notes, warnings : tuple of str
    title : str
    """

    history: str
    measure: str
    ratings: int
    sources: int
    documents: int
    systems: tuple[SystemResult, ...]
    raters: tuple[str, ...]
    results: tuple[PolicyResult, ...]
    curve: Mapping[str, tuple[tuple[int, float], ...]]
    as_rater: Mapping[str, Mapping[str, float]]
    people: Mapping[str, Mapping[str, float]]
    signature: str
    only: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    beside: tuple[BesideCopying, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    title: str = "Specialists held against their history"

    def as_dict(self) -> dict[str, Any]:
        """The content of ``specialist.json``: JSON-ready, NaN as None."""
        return dict(jsonable({"schema_version": SCHEMA_VERSION, **asdict(self)}))
