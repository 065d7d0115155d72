"""The numbers that judges in the raters' place are asked for: the raters' own if people use such, else fifths."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError
from metricsmith.records import Scale
from metricsmith.stats.regression.calibration import IsotonicMap

__all__ = ["Asked", "asked_note", "asked_scale", "mid_rank_points", "nearest_points", "rating_map", "scale_words"]

FloatArray = NDArray[np.float64]
MOST_POINTS = 11  # of a scale whose every point people tell from the next: 0 to 10
AS_SUCH = ((0, 1), (0, 100))  # shares and marks, which people give with any number of places
FIFTHS = tuple(
    f"among the {place} fifth of works of this kind" if place in ("worst", "best") else f"in the {place} fifth"
    for place in ("worst", "second worst", "middle", "second best", "best")
)


@dataclass(frozen=True)
class Asked:
    """The scale that a judge is asked on.

    Parameters
    ----------
    scale : Scale
        Which numbers there are.
    points : tuple of str
        Each point of a made grid in words, lowest first; empty where the scale is the raters' own.
    """

    scale: Scale
    points: tuple[str, ...] = ()

    def numbers(self, ratings: ArrayLike, raters: Scale, among: ArrayLike | None = None) -> FloatArray:
        """Ratings as the numbers that the judge is asked for.

        Parameters
        ----------
        ratings : array_like, shape (n,)
            On `raters`.
        raters : Scale
            The raters' scale.
        among : array_like, shape (m,), optional
            Ratings in whose order those given take their place on a made grid; by default `ratings` themselves.

        Returns
        -------
        float array, shape (n,)
        """
        if not self.points:
            return nearest_points(ratings, self.scale)
        sign = 1.0 if raters.higher_is_better == self.scale.higher_is_better else -1.0
        values = sign * np.asarray(ratings, dtype=float)
        others = values if among is None else sign * np.asarray(among, dtype=float)
        return np.asarray(self.scale.low + mid_rank_points(values, others, len(self.points)), dtype=float)


def asked_scale(scale: Scale) -> Asked:
    """The scale to ask a judge on whose raters used `scale`.

    The raters' own scale where both ends are whole numbers and its step, or else steps of 1, give 2 to 11 points; 0 to
    100 and 0 to 1 as they are; otherwise 1 to 5, where 5 stands for the best fifth. Only the scale decides, so that
    every part of a data set asks the same. 0 to 1 asked as two points would turn a share, or the average of a hundred
    thumbs, into a yes or no. Fifths count upwards to the best also where lower ratings are better, since models expect
    the best above.

    Examples
    --------
    >>> asked_scale(Scale(1, 5)).scale, asked_scale(Scale(-1.73, 1.15)).points[0]
    (Scale(low=1, high=5, step=1.0, higher_is_better=True), 'among the worst fifth of works of this kind')
    """
    if (scale.low, scale.high) in AS_SUCH:
        return Asked(scale)
    if float(scale.low).is_integer() and float(scale.high).is_integer():
        for step in (scale.step, 1.0):
            if step is not None and scale.width / step < MOST_POINTS and (scale.width / step).is_integer():
                return Asked(replace(scale, step=step))
    return Asked(Scale(1, len(FIFTHS), 1), FIFTHS)


def scale_words(scale: Scale) -> str:
    """The numbers of a scale and its ends as a judge is told them.

    Examples
    --------
    >>> scale_words(Scale(0, 10, 1)), scale_words(Scale(0, 100, higher_is_better=False))
    ('a whole number from 0 to 10; 0 is worst, 10 is best', 'a number from 0 to 100; 100 is worst, 0 is best')
    """
    worst, best = (scale.low, scale.high) if scale.higher_is_better else (scale.high, scale.low)
    steps = f" in steps of {scale.step:g}" if scale.step not in (None, 1) else ""
    whole = "whole " if scale.step == 1 else ""
    return f"a {whole}number from {scale}{steps}; {worst:g} is worst, {best:g} is best"


def nearest_points(ratings: ArrayLike, scale: Scale) -> FloatArray:
    """The point of `scale` nearest to each rating, shape (n,) -> (n,); ratings stay where there is no step.

    Halfway between two points the one that is an even number of steps from the low end is taken.

    Examples
    --------
    >>> nearest_points([1.2, 2.5, 5], Scale(1, 5, 1)).tolist()
    [1.0, 3.0, 5.0]
    """
    values = np.asarray(ratings, dtype=float)
    if scale.step is None:
        return values
    most = np.floor(scale.width / scale.step + 1e-9)
    return scale.low + np.clip(np.round((values - scale.low) / scale.step), 0, most) * scale.step


def mid_rank_points(values: ArrayLike, among: ArrayLike, points: int) -> NDArray[np.int64]:
    """The part, from 0, of `points` equal parts of `among` in which each value's mid-rank lies.

    A value's mid-rank is the share of `among` below it plus half the share that equals it: equal values get one
    part, and higher values never a lower one.

    Parameters
    ----------
    values : array_like, shape (n,)
    among : array_like, shape (m,), m >= 1
        Finite.
    points : int
        At least 1.

    Raises
    ------
    DataError
        If `among` is empty or a number is not finite.

    Examples
    --------
    >>> mid_rank_points([-1.7, 0.2, 0.2, 0.9, 1.1], [-1.7, 0.2, 0.2, 0.9, 1.1], 5).tolist()
    [0, 2, 2, 3, 4]
    """
    given, others = np.asarray(values, dtype=float), np.sort(np.asarray(among, dtype=float))
    if not others.size or not (np.isfinite(given).all() and np.isfinite(others).all()):
        raise DataError("a rank needs at least one rating to stand among, and finite ones only; leave unrated rows out")
    twice = np.searchsorted(others, given, "left") + np.searchsorted(others, given, "right")  # exact: no fractions
    return np.asarray(np.minimum(points * twice // (2 * others.size), points - 1), dtype=np.int64)


def rating_map(numbers: ArrayLike, ratings: ArrayLike, *, falling: bool = False) -> dict[str, list[float]]:
    """The isotonic map from a judge's numbers to ratings, as plain lists of ``knots`` and ``values``.

    Parameters
    ----------
    numbers, ratings : array_like, shape (n,)
        Rows that are NaN on either side are left out; two must be left.
    falling : bool
        Whether ratings fall where the judge's numbers rise.
    """
    sign = -1.0 if falling else 1.0
    fitted = IsotonicMap.fit(numbers, sign * np.asarray(ratings, dtype=float))
    return {"knots": list(fitted.knots), "values": [sign * value for value in fitted.values]}


def asked_note(target: str, scale: Scale, ratings: ArrayLike) -> str:
    """One line on how judges are asked instead of in the raters' numbers, and why; empty where they are asked in these.

    Parameters
    ----------
    target : str
        What the rating is called.
    scale : Scale
        The raters'.
    ratings : array_like, shape (n,)
        Those of the data set; NaN is none.
    """
    asked, known = asked_scale(scale), np.asarray(ratings, dtype=float)
    known = known[~np.isnan(known)]
    if asked.points:
        return (
            f"judges in the raters' place are asked for {asked.scale}, the fifth in which a work stands by {target} "
            f"({asked.scale.high:g} is best), not for numbers from {scale}: models do not keep to numbers that nobody "
            "uses"
        )
    if np.array_equal(nearest_points(known, asked.scale), known):
        return ""
    return (
        f"judges in the raters' place are shown {target} as points from {asked.scale} in steps of "
        f"{asked.scale.step:g}: people give those, and what lies between them is an average"
    )
