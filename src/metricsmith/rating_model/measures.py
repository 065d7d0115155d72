"""Measures of how judges agree with people when ratings are distributions, for all judges at once.

A measure turns each item into *terms*, takes their mean over items, and makes a number of it: so one product with a
matrix of weights gives all its resamples. Which aggregation stands on either side is part of a measure: h (mode), s
(share of choices), hrs (options that enough response sets hold) or srs (share of response sets with each option).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.rating_model.vectors import Decision, RatingVectors, Ties
from metricsmith.stats.chance_corrected import table_ac1, table_kappa, table_pi
from metricsmith.stats.correlation import FloatArray, quotient

__all__ = [
    "DOWNSTREAM", "MEASURES", "RatingMeasure", "Sides", "best_place", "downstream_measures", "judge_agreement",
    "as_loss", "rating_measures", "weighted_values",
]  # fmt: skip


@dataclass(frozen=True)
class Sides:
    """People and J judges on the same n items, with what measures are taken by.

    Parameters
    ----------
    human : RatingVectors
        Shape (n, ...).
    judges : RatingVectors
        Shape (J, n, ...).
    target : RatingVectors, optional
        The people's vectors that decisions are taken by, such as those without errors; by default `human`.
    threshold : float
        Of the options in a hard response set.
    ties : {"split", "expected", "random", "first"}
        As in `metricsmith.rating_model.vectors.hard`.
    seed : int
        Of random ties.
    epsilon : float
        Shares below it count as this large inside logarithms, so that an option nobody expected costs at most
        ``-log(epsilon)``.
    unbiased : bool
        Take from squared errors what the judges' repetitions add to them by chance, where an item has two or more.
    """

    human: RatingVectors
    judges: RatingVectors
    target: RatingVectors | None = None
    threshold: float = 0.5
    ties: Ties = "split"
    seed: int = 0
    epsilon: float = 1e-10
    unbiased: bool = True

    def __post_init__(self) -> None:
        people, judges, decided = self.human.choices.shape, self.judges.choices.shape, self.people.choices.shape
        fits = self.human.response_sets == self.judges.response_sets == self.people.response_sets
        if not fits or len(judges) != 3 or judges[1:] != people or decided != people or 0 in judges:
            raise DataError(
                f"people {people}, judges {judges} and target {decided} do not fit: give (items, options) and (judges, "
                "items, options), one item and one judge at least, with the same response sets"
            )
        if not (0 < self.threshold <= 1 and 0 < self.epsilon < 1):
            raise OptionError(
                f"threshold {self.threshold:g}, epsilon {self.epsilon:g}: give a share above 0, and a small one"
            )

    @property
    def people(self) -> RatingVectors:
        """People's vectors that decisions are taken by."""
        return self.human if self.target is None else self.target

    @cached_property
    def modes(self) -> tuple[FloatArray, FloatArray]:
        """Hard aggregation of both sides."""
        return self.human.modes(self.ties, self.seed), self.judges.modes(self.ties, self.seed + 1)

    @cached_property
    def logs(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of both sides' choices, not below that of `epsilon`."""
        return (
            np.log(np.maximum(self.human.choices, self.epsilon)),
            np.log(np.maximum(self.judges.choices, self.epsilon)),
        )

    @cached_property
    def endorsements(self) -> tuple[FloatArray, FloatArray]:
        """Omega of both sides."""
        return self.human.endorsements, self.judges.endorsements

    @cached_property
    def endorsed(self) -> tuple[FloatArray, FloatArray]:
        """Hard response sets of both sides."""
        return self.human.endorsed(self.threshold), self.judges.endorsed(self.threshold)

    def excess(self, noise: FloatArray) -> FloatArray | float:
        """The part of a squared error that comes of the repetitions; 0 where it is not known or not wanted."""
        return np.nan_to_num(noise) if self.unbiased else 0.0


Terms = Callable[[Sides], FloatArray]
Value = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class RatingMeasure:
    """One definition of performance: two aggregations and a measure.

    Parameters
    ----------
    name : str
    sides : str
        Aggregation of the judge and of the people, such as ``"h/hrs"``.
    terms : callable
        `Sides` -> (J, n) or (J, n, P); NaN for an item that is missing on either side.
    higher_is_better : bool
    bounds : (float, float), optional
        The least and the largest value.
    value : callable, optional
        Means of the terms, (..., P), and the number of items, (...), -> (...); by default the mean of a single term.
    """

    name: str
    sides: str
    terms: Terms
    higher_is_better: bool = True
    bounds: tuple[float, float] | None = None
    value: Value | None = None

    def values(self, means: FloatArray, items: FloatArray) -> FloatArray:
        """The values of means of terms."""
        return means[..., 0] if self.value is None else self.value(means, items)


def _total(values: FloatArray) -> FloatArray:
    """The sum over options, as a product: far faster than a sum along a short axis."""
    return np.asarray(values @ np.ones(values.shape[-1]))


def _squared(one: FloatArray, other: FloatArray) -> FloatArray:
    return _total((one - other) ** 2)


def _tables(sides: Sides) -> FloatArray:
    """The share of each pair of labels, people's in rows, shape (J, n, K * K)."""
    people, judges = sides.modes
    pairs = people[None, :, :, None] * judges[:, :, None, :]
    return np.asarray(pairs.reshape(*judges.shape[:2], -1))


def _of_table(statistic: Callable[[FloatArray], FloatArray], means: FloatArray, *_: FloatArray) -> FloatArray:
    size = math.isqrt(means.shape[-1])
    return statistic(means.reshape(*means.shape[:-1], size, size))


def _alpha(means: FloatArray, items: FloatArray) -> FloatArray:
    """Krippendorff's alpha of two coders: pi with the correction for few items."""
    pi = _of_table(table_pi, means)
    return pi + (1 - pi) / (2 * items)


def _hits(sides: Sides) -> FloatArray:
    people, judges = sides.modes
    return _total(people * judges)


def _hard_error(sides: Sides) -> FloatArray:
    return 2 * (1 - _hits(sides)) if sides.ties == "expected" else _squared(*sides.modes)


def _cross_entropy(people_first: bool, divergence: bool, sides: Sides) -> FloatArray:
    """Of the people's shares under the judge's, or the other way round; less their own entropy for a divergence."""
    (human, judges), (log_human, log_judges) = (sides.human.choices, sides.judges.choices), sides.logs
    weights, own, other = (human, log_human, log_judges) if people_first else (judges, log_judges, log_human)
    if not divergence:
        return -_total(weights * other)
    return _total(np.maximum(weights, sides.epsilon) * (own - other))


def _jensen_shannon(sides: Sides) -> FloatArray:
    people, judges = sides.human.choices, sides.judges.choices
    middle = (people + judges) / 2
    half = _total(people * sides.logs[0]) + _total(judges * sides.logs[1])
    mixed = _total(middle * np.log(np.maximum(middle, sides.epsilon)))
    return np.asarray(np.clip(half / 2 - mixed, 0.0, math.log(2)))


def _soft_error(sides: Sides) -> FloatArray:
    error = _squared(sides.human.choices, sides.judges.choices)
    return error - sides.excess(sides.judges.choice_noise)


def _brier(sides: Sides) -> FloatArray:
    """The expected squared distance of the judge's shares from one rater's choice."""
    return _soft_error(sides) + 1 - _total(sides.human.choices**2)


def _set_error(sides: Sides) -> FloatArray:
    return _squared(*sides.endorsements) - sides.excess(sides.judges.endorsement_noise)


def _binary_cross_entropy(sides: Sides) -> FloatArray:
    people, judges = sides.endorsed[0], sides.endorsements[1]
    yes, no = (np.log(np.clip(share, sides.epsilon, 1.0)) for share in (judges, 1 - judges))
    return np.asarray(-_total(people * yes + (1 - people) * no) / people.shape[-1])


def _overlap(whole: int, sides: Sides) -> FloatArray:
    """Options that both sides endorse, and those that one of them does."""
    people, judges = sides.endorsed
    both = people * judges
    total = np.where(np.isnan(both), math.nan, sides.endorsed[whole])
    return np.stack([_total(both), _total(total)], axis=-1)


def _ratio(means: FloatArray, *_: FloatArray) -> FloatArray:
    return quotient(means[..., 0], means[..., 1])


def _share_of_item(whole: int, sides: Sides) -> FloatArray:
    return _ratio(_overlap(whole, sides))


def _covered(sides: Sides) -> FloatArray:
    """1 where every option that the judge endorses is endorsed by people."""
    people, judges = sides.endorsed
    return np.where(np.isnan(people * judges).any(axis=-1), math.nan, (judges <= people).all(axis=-1))


SHARE = (0.0, 1.0)
SURPLUS = (-1.0, 1.0)
_ALL = (
    RatingMeasure("hit_rate", "h/h", _hits, bounds=SHARE),
    RatingMeasure("cohen_kappa", "h/h", _tables, bounds=SURPLUS, value=partial(_of_table, table_kappa)),
    RatingMeasure(
        "linear_kappa", "h/h", _tables, True, SURPLUS, partial(_of_table, partial(table_kappa, weights="linear"))
    ),
    RatingMeasure(
        "weighted_kappa", "h/h", _tables, True, SURPLUS, partial(_of_table, partial(table_kappa, weights="quadratic"))
    ),
    RatingMeasure("scott_pi", "h/h", _tables, bounds=SURPLUS, value=partial(_of_table, table_pi)),
    RatingMeasure("krippendorff_alpha", "h/h", _tables, bounds=SURPLUS, value=_alpha),
    RatingMeasure("gwet_ac1", "h/h", _tables, bounds=SURPLUS, value=partial(_of_table, table_ac1)),
    RatingMeasure("squared_error_modes", "h/h", _hard_error, False, (0.0, 2.0)),
    RatingMeasure("kl_human_judge", "s/s", partial(_cross_entropy, True, True), False),
    RatingMeasure("kl_judge_human", "s/s", partial(_cross_entropy, False, True), False),
    RatingMeasure("cross_entropy_human_judge", "s/s", partial(_cross_entropy, True, False), False),
    RatingMeasure("cross_entropy_judge_human", "s/s", partial(_cross_entropy, False, False), False),
    RatingMeasure("js_divergence", "s/s", _jensen_shannon, False, (0.0, math.log(2))),
    RatingMeasure("js_distance", "s/s", lambda one: _jensen_shannon(one) ** 0.5, False, (0.0, math.log(2) ** 0.5)),
    RatingMeasure("squared_error_choices", "s/s", _soft_error, False),
    RatingMeasure("brier_score", "s/h", _brier, False),
    RatingMeasure("log_score", "s/h", lambda sides: -_cross_entropy(True, False, sides)),
    RatingMeasure("coverage", "h/hrs", lambda sides: _total(sides.endorsed[0] * sides.modes[1]), bounds=SHARE),
    RatingMeasure("expected_coverage", "h/srs", lambda both: _total(both.endorsements[0] * both.modes[1]), True, SHARE),
    RatingMeasure("set_coverage", "hrs/hrs", _covered, bounds=SHARE),
    RatingMeasure("predictive_efficiency", "hrs/-", lambda sides: _total(sides.endorsed[1]), False),
    RatingMeasure("precision", "hrs/hrs", partial(_overlap, 1), bounds=SHARE, value=_ratio),
    RatingMeasure("recall", "hrs/hrs", partial(_overlap, 0), bounds=SHARE, value=_ratio),
    RatingMeasure("macro_precision", "hrs/hrs", partial(_share_of_item, 1), bounds=SHARE),
    RatingMeasure("macro_recall", "hrs/hrs", partial(_share_of_item, 0), bounds=SHARE),
    RatingMeasure("binary_cross_entropy", "srs/hrs", _binary_cross_entropy, False),
    RatingMeasure("squared_error_sets", "srs/srs", _set_error, False),
)  # fmt: skip
MEASURES: Mapping[str, RatingMeasure] = {measure.name: measure for measure in _ALL}


DOWNSTREAM = ("decision_consistency", "prevalence_bias")


def rating_measures(names: Sequence[str] | None = None) -> list[RatingMeasure]:
    """The measures of these names; all without names.

    Raises
    ------
    OptionError
        If there is no such measure.
    """
    asked = [names] if isinstance(names, str) else list(MEASURES if names is None else names)
    for name in asked:
        if name not in MEASURES:
            raise OptionError(f"unknown measure {name!r}{nearest(name, MEASURES)}; known are {', '.join(MEASURES)}")
    return [MEASURES[name] for name in asked]


def downstream_measures(decision: Decision) -> list[RatingMeasure]:
    """Decision consistency C and prevalence bias B of the paper's section 2.2.2.

    Consistency is the share of items that the judge and the people (`Sides.target`) decide alike. The bias is the
    judge's share of positive items less that of the people; its size is to be small.
    """

    def decided(sides: Sides) -> tuple[FloatArray, FloatArray]:
        return decision.of(sides.people), decision.of(sides.judges)

    def alike(sides: Sides) -> FloatArray:
        people, judges = decided(sides)
        return np.where(np.isnan(people + judges), math.nan, people == judges)

    def lead(sides: Sides) -> FloatArray:
        people, judges = decided(sides)
        return judges - people

    return [
        RatingMeasure(DOWNSTREAM[0], "srs/srs", alike, bounds=SHARE),
        RatingMeasure(DOWNSTREAM[1], "srs/srs", lead, False, bounds=SURPLUS),
    ]


def as_loss(measure: RatingMeasure, values: FloatArray) -> FloatArray:
    """The values so that lower is better: a bias counts by its size."""
    if measure.name == DOWNSTREAM[1]:
        return np.abs(values)
    return -values if measure.higher_is_better else values


def best_place(measure: RatingMeasure, values: FloatArray) -> int | None:
    """The place of the best of some values, the first of equals; None where all are NaN."""
    return None if np.isnan(values).all() else int(np.nanargmin(as_loss(measure, values)))


def weighted_values(measures: Sequence[RatingMeasure], sides: Sides, weights: ArrayLike | None = None) -> FloatArray:
    """The measures of every judge, for each row of weights over items.

    Parameters
    ----------
    measures : sequence of RatingMeasure
    sides : Sides
    weights : array_like, shape (B, n), optional
        How often each item counts; by default each once.

    Returns
    -------
    array, shape (M, B, J)
        Items that are missing for a measure and judge are left out; NaN where nothing is left or the measure is
        undefined.
    """
    counts = np.ones((1, len(sides.human.choices))) if weights is None else np.asarray(weights, dtype=float)
    if counts.ndim != 2 or counts.shape[1] != len(sides.human.choices) or not (counts >= 0).all():
        raise DataError(f"weights {counts.shape}: give (draws, {len(sides.human.choices)}) numbers from 0")
    means: dict[Terms, tuple[FloatArray, FloatArray]] = {}
    found = []
    for measure in measures:
        if measure.terms not in means:
            means[measure.terms] = _means(measure.terms(sides), counts)
        found.append(measure.values(*means[measure.terms]))
    return np.array(found).reshape(len(found), len(counts), len(sides.judges.choices))


def judge_agreement(
    human: RatingVectors, judges: RatingVectors, measures: Sequence[str] | None = None, **settings: object
) -> FloatArray:
    """All measures of all judges.

    Parameters
    ----------
    human : RatingVectors
        Of n items.
    judges : RatingVectors
        Of J judges and the same items; `RatingVectors.stack` makes one of many.
    measures : sequence of str, optional
        Names out of `MEASURES`; by default all.
    settings
        Those of `Sides`.

    Returns
    -------
    array, shape (M, J)
        NaN where a measure is undefined.
    """
    sides = Sides(human, judges, **settings)  # type: ignore[arg-type]
    return np.asarray(weighted_values(rating_measures(measures), sides)[:, 0])


def _means(terms: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted means of terms (J, n[, P]) without missing items, shape (B, J, P), and the weight left, (B, J)."""
    values = terms[..., None] if terms.ndim == 2 else terms
    judges, n, parts = values.shape
    missing = np.isnan(_total(values))
    if missing.any():
        values, left = np.asarray(np.where(missing[..., None], 0.0, values)), weights @ (~missing).T.astype(float)
    else:
        left = np.broadcast_to(weights.sum(axis=1)[:, None], (len(weights), judges))
    sums = (weights @ values.transpose(1, 0, 2).reshape(n, -1)).reshape(len(weights), judges, parts)
    return quotient(sums, left[..., None]), left
