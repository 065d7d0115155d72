"""The judgements of a history's outputs beside those of people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.history import History
from metricsmith.meta_evaluation.jackknife import measure_interval
from metricsmith.meta_evaluation.matrices import FloatArray, measure_value
from metricsmith.meta_evaluation.measures import MEASURES
from metricsmith.meta_evaluation.significance import perm_both
from metricsmith.meta_evaluation.spans import (
    character_f1,
    character_f1_difference,
    character_f1_interval,
    occurrences,
)
from metricsmith.mqm import MQMWeights, mqm_score
from metricsmith.programs.specialist.examples import Shown
from metricsmith.records import ErrorSpan, Judgement
from metricsmith.report.specialist.record import Copying
from metricsmith.stats.resampling import Interval

__all__ = [
    "CHARACTER_F1", "PastRatings", "Predictions", "as_raters", "copying", "marked_texts", "parts_of",
    "people_as_judges", "rows_of",
]  # fmt: skip

CHARACTER_F1 = "character-f1"
Spans = tuple[ErrorSpan, ...]


@dataclass(frozen=True, eq=False)
class PastRatings:
    """The history's rows, what people said about them, and the measure against it."""

    history: History
    measure: str

    @cached_property
    def texts(self) -> list[str]:
        """The outputs."""
        return [one.output for one in self.history.ratings]

    @cached_property
    def segments(self) -> list[str]:
        """The segment of each row, by its source where it has no name."""
        return [one.segment or one.source for one in self.history.ratings]

    @cached_property
    def documents(self) -> list[str]:
        """The document of each row; empty where one of them is not known."""
        known = [one.document for one in self.history.ratings]
        return known if all(known) else []

    @cached_property
    def cells(self) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
        """The place of each row in a matrix of systems by segments and raters, and the number of its columns.

        Sources of one segment, and ratings of one output by one rater or by raters who are not known, have columns of
        their own: none takes another's place.
        """
        columns: dict[tuple[str, str, str, int], int] = {}
        again: Counter[tuple[str, str, str, str]] = Counter()
        places = []
        for one, segment in zip(self.history.ratings, self.segments, strict=True):
            key = (segment, one.source, one.rater)
            column = (*key, again[one.system, *key])
            again[one.system, *key] += 1
            places.append(columns.setdefault(column, len(columns)))
        systems = [self.history.systems.index(one.system) for one in self.history.ratings]
        return np.array(systems), np.array(places), len(columns)

    def matrix(self, values: FloatArray) -> FloatArray:
        """Numbers of the rows, shape (n,), as a matrix of systems by segments and raters."""
        systems, places, columns = self.cells
        matrix = np.full((len(self.history.systems), columns), math.nan)
        matrix[systems, places] = values
        return matrix

    @cached_property
    def numbers(self) -> FloatArray:
        """The ratings, NaN where there is none."""
        return np.array([math.nan if one.rating is None else one.rating for one in self.history.ratings])

    def mean(self, rows: NDArray[np.bool_]) -> float:
        """The mean number of some of the rows, of marked errors as WMT weighs them where no rating has a number."""
        numbers = self.numbers
        if np.isnan(numbers).all():
            weights = MQMWeights.wmt()
            numbers = np.array([mqm_score(one.spans or (), weights) for one in self.history.ratings])
        known = numbers[rows & ~np.isnan(numbers)]
        return float(known.mean()) if known.size else math.nan


@dataclass(frozen=True, eq=False)
class Predictions:
    """The judgements of every row of a history by one judge."""

    gold: PastRatings
    judgements: Sequence[Judgement]

    @cached_property
    def spans(self) -> list[Spans | None]:
        """The marked errors of each row; None where there is no judgement."""
        return [one.spans if one.ok else None for one in self.judgements]

    @cached_property
    def numbers(self) -> FloatArray:
        """The raw numbers, NaN where there is none."""
        return np.array([math.nan if one.raw is None else one.raw for one in self.judgements], dtype=float)

    @cached_property
    def terms(self) -> FloatArray:
        """The terms of character F1, shape (n, 3)."""
        marked = [one.spans for one in self.gold.history.ratings]
        return character_f1(self.spans, marked, self.gold.texts).terms

    def value(self, rows: NDArray[np.bool_] | None = None) -> tuple[float, float, float]:
        """The measure on some of the rows, and precision and recall where it has them."""
        if self.gold.measure == CHARACTER_F1:
            return _f1(self.terms if rows is None else self.terms[rows])
        numbers = self.numbers if rows is None else np.where(rows, self.numbers, math.nan)
        measure = MEASURES[self.gold.measure]
        matrices = self.gold.matrix(numbers), self.gold.matrix(self.gold.numbers)
        return measure_value(measure, *matrices), math.nan, math.nan

    def interval(self, groups: Sequence[str]) -> Interval:
        """95 %, groups of rows left out in turn."""
        if self.gold.measure == CHARACTER_F1:
            return character_f1_interval(self.terms, groups)
        own, gold = self.gold.matrix(self.numbers), self.gold.matrix(self.gold.numbers)
        return measure_interval(MEASURES[self.gold.measure], own, gold, self._of_columns(groups))

    def difference(self, first: Predictions, groups: Sequence[str], seed: int) -> tuple[float, float, Interval]:
        """The value less the first's, the two-sided p-value, and an interval where the measure has one."""
        if self.gold.measure == CHARACTER_F1:
            test, interval = character_f1_difference(self.terms, first.terms, groups, seed=seed)
            return test.observed, test.p_value, interval
        own, others, gold = (self.gold.matrix(numbers) for numbers in (self.numbers, first.numbers, self.gold.numbers))
        shared = ~np.isnan(self.numbers) & ~np.isnan(first.numbers)
        better = self.value(shared)[0] >= first.value(shared)[0]
        pair = (own, others) if better else (others, own)
        test = perm_both(MEASURES[self.gold.measure], *pair, gold, groups=self._of_columns(groups), seed=seed)
        sign = 1.0 if better else -1.0
        p = float(np.minimum(1.0, 2 * test.p_value))  # NaN stays
        return sign * test.observed, p, Interval(math.nan, math.nan)

    def _of_columns(self, groups: Sequence[str]) -> list[str]:
        """The group of each column of a matrix."""
        _, places, columns = self.gold.cells
        found = [""] * columns
        for place, group in zip(places.tolist(), groups, strict=True):
            found[place] = group
        return found


def rows_of(history: History, label: str, name: str) -> NDArray[np.bool_]:
    """True for the rows of one system or rater, shape (n,)."""
    return np.array([getattr(one, label) == name for one in history.ratings])


def parts_of(one: Predictions, label: str, names: Iterable[str]) -> dict[str, float]:
    """The value on the rows of each system or rater alone."""
    return {name: one.value(rows_of(one.gold.history, label, name))[0] for name in names}


def _f1(terms: FloatArray) -> tuple[float, float, float]:
    """F1, precision and recall of the sums of terms; NaN where nothing is marked."""
    credit, marked, true = np.nansum(terms, axis=0).tolist()
    ratio = [credit / whole if whole else math.nan for whole in ((marked + true) / 2, marked, true)]
    return ratio[0], ratio[1], ratio[2]


def people_as_judges(gold: PastRatings) -> Predictions:
    """People in the judge's place: what each said about a row."""
    return Predictions(gold, [Judgement("people", 0.0, 0.0, spans=one.spans or ()) for one in gold.history.ratings])


def as_raters(one: Predictions) -> dict[str, dict[str, float]]:
    """Predictions for rater i's rows against rater j, on the outputs that both rated; NaN without such outputs."""
    history = one.gold.history
    if one.gold.measure != CHARACTER_F1:
        return {}
    of: dict[str, dict[tuple[str, str, str, str], int]] = {}
    for place, rating in enumerate(history.ratings):
        of.setdefault(rating.rater, {})[rating.system, rating.segment, rating.source, rating.output] = place
    found: dict[str, dict[str, float]] = {}
    for rater in history.raters:
        for other in history.raters:
            shared = [(of[rater][key], of[other][key]) for key in of[rater] if key in of[other]]
            marked = [one.spans[own] for own, _ in shared]
            truth = [history.ratings[gold].spans for _, gold in shared]
            value = character_f1(marked, truth, [one.gold.texts[own] for own, _ in shared]).f1 if shared else math.nan
            found.setdefault(rater, {})[other] = value
    return found


def copying(one: Predictions, shown: Sequence[Shown]) -> Copying:
    """The predicted texts beside those of the examples and of the people, on the rows that both judged."""
    hits = np.zeros(4)
    predicted = abstained = 0
    for spans, examples, rating in zip(one.spans, shown, one.gold.history.ratings, strict=True):
        if spans is None or rating.spans is None:  # no judgement is no abstention
            continue
        marked = marked_texts(spans)
        known, gold = (
            {text for other in examples.ratings for text in marked_texts(other.spans)},
            set(marked_texts(rating.spans)),
        )
        predicted += len(marked)
        hits += [
            sum(text in known for text in marked), sum(_near(text, known) for text in marked),
            sum(text in gold for text in marked), sum(_near(text, gold) for text in marked),
        ]  # fmt: skip
        abstained += sum(text not in marked and bool(occurrences(text, rating.output)) for text in known)
    of_examples, near_examples, of_gold, near_gold = (hits / predicted if predicted else np.full(4, math.nan)).tolist()
    return Copying(predicted, of_examples, near_examples, of_gold, near_gold, abstained)


def marked_texts(spans: Spans | None) -> list[str]:
    """The texts of errors on the target side, empty ones left out."""
    return [span.text for span in spans or () if span.side == "target" and span.text]


def _near(text: str, others: set[str]) -> bool:
    return any(text in other or other in text for other in others)
