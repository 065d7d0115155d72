"""The common fitted form of the regressions: an intercept plus weighted columns, each transformed.

A transform makes one column of raw scores comparable with the others: z-scores or normal scores. It is fitted on
training rows and then frozen. Missing (NaN) and infinite scores, and every score of a constant column, become 0: the
centre of the transformed column, never 0 on the raw scale.

The form needs no scikit-learn, round-trips through JSON exactly, and scores one row alone to the same bits as in
a batch: the arithmetic is elementwise, and rows are summed with correct rounding instead of by BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, StateError, nearest
from metricsmith.stats.correlation import FloatArray

__all__ = ["ColumnTransform", "LinearCombination", "NormalScore", "ZScore", "transform_from_dict"]

_CONSTANT = 1e-12  # spread over the largest absolute score, below which only rounding tells scores apart


class ColumnTransform(Protocol):
    """A frozen map of one column of raw scores to mean 0 and sd 1 on the training rows."""

    @property
    def constant(self) -> bool:
        """True where every score maps to 0, because the training column did not vary."""

    def apply(self, column: ArrayLike) -> FloatArray:
        """Transform raw scores, shape (n,) -> (n,); missing and infinite ones become 0."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready state; `transform_from_dict` reads it back exactly."""


@dataclass(frozen=True, slots=True)
class ZScore:
    """``(x - mean) / sd``.

    Parameters
    ----------
    mean : float
        Of the present training scores.
    sd : float
        Population standard deviation (ddof 0) of the present training scores; 0 marks a constant column.
    """

    mean: float
    sd: float

    @classmethod
    def fit(cls, column: ArrayLike) -> ZScore:
        """Fit on training scores, shape (n,); a column with no present score is constant."""
        values = np.asarray(column, dtype=float)
        present = values[np.isfinite(values)]
        if not present.size:
            return cls(0.0, 0.0)
        unit = float(np.abs(present).max()) or 1.0  # keeps squares of very large scores finite
        mean, sd = float((present / unit).mean()), float((present / unit).std())
        return cls(mean * unit, sd * unit if sd > _CONSTANT else 0.0)

    @property
    def constant(self) -> bool:
        """True where every score maps to 0."""
        return self.sd == 0

    def apply(self, column: ArrayLike) -> FloatArray:
        """Transform raw scores, shape (n,) -> (n,); missing and infinite ones become 0."""
        values = np.asarray(column, dtype=float)
        present = np.isfinite(values) & (not self.constant)
        with np.errstate(over="ignore"):  # scores far beyond those of training end at the largest float
            distances = (np.where(present, values, self.mean) - self.mean) / (self.sd or 1.0)
        return np.where(present, np.nan_to_num(distances), 0.0)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready state."""
        return {"kind": "z_score", "mean": self.mean, "sd": self.sd}


@dataclass(frozen=True, slots=True)
class NormalScore:
    """The normal quantile of a score's place among the training scores, standardised.

    With m training scores, ``u = (number below x + number not above x) / (2 m)``, clipped to
    ``[.5 / m, 1 - .5 / m]``; then ``(normal quantile of u - centre) / scale``. Training scores get their
    midrank normal score. Monotone, so outliers and units do not matter.

    Parameters
    ----------
    values : tuple of float
        The present training scores in ascending order.
    centre, scale : float
        Mean and population standard deviation of the training scores' quantiles; scale 0 marks a constant
        column.

    References
    ----------
    Van der Waerden (1952), "Order tests for the two-sample problem" (normal scores).
    """

    values: tuple[float, ...]
    centre: float
    scale: float
    _lookup: tuple[FloatArray, FloatArray] | None = field(default=None, init=False, repr=False, compare=False)
    _ordered: FloatArray | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def fit(cls, column: ArrayLike) -> NormalScore:
        """Fit on training scores, shape (n,); a column with no present score is constant."""
        return cls.fit_columns(np.reshape(column, (-1, 1)))[0][0]

    @classmethod
    def fit_columns(cls, scores: ArrayLike) -> tuple[list[NormalScore], FloatArray]:
        """Fit each column of training scores, shape (n, p), and apply it to them: p fits and shape (n, p)."""
        columns = np.asarray(scores, dtype=float).T
        columns = np.where(np.isfinite(columns), columns, np.nan)
        fits: list[NormalScore] = [cls((), 0.0, 0.0)] * len(columns)
        applied = np.zeros(columns.shape)
        present = np.isfinite(columns).sum(axis=1)
        for m in np.unique(present[present > 0]).tolist():
            places = np.flatnonzero(present == m)
            order = np.argsort(columns[places], axis=1)[:, :m]  # NaN come last
            ordered = np.take_along_axis(columns[places], order, axis=1)
            quantiles = _quantiles(m)[_own_double_ranks(ordered)]
            unit = np.abs(ordered).max(axis=1, keepdims=True)
            unit[unit == 0] = 1.0  # keeps squares of very large scores finite
            varies = (ordered / unit).std(axis=1) > _CONSTANT
            centres = np.where(varies, quantiles.mean(axis=1), 0.0)
            scales = np.where(varies, quantiles.std(axis=1), 0.0)
            standard = np.where(varies, scales, 1.0)
            for place, *fit in zip(places.tolist(), ordered, centres.tolist(), scales.tolist(), strict=True):
                fits[place] = cls._of(*fit)
            found = np.where(varies[:, None], (quantiles - centres[:, None]) / standard[:, None], 0.0)
            rows = np.zeros((len(places), columns.shape[1]))
            np.put_along_axis(rows, order, found, axis=1)
            applied[places] = rows
        return fits, np.ascontiguousarray(applied.T)

    @classmethod
    def _of(cls, ordered: FloatArray, centre: float, scale: float) -> NormalScore:
        """Returns a fit whose `values` become Python's numbers at first use: few of thousands are ever used."""
        fit = cls.__new__(cls)
        for name, value in (("centre", centre), ("scale", scale), ("_lookup", None), ("_ordered", ordered.copy())):
            object.__setattr__(fit, name, value)
        return fit

    def __getattr__(self, name: str) -> Any:
        if name != "values" or self._ordered is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, "values", tuple(self._ordered.tolist()))
        return self.values

    @property
    def constant(self) -> bool:
        """True where every score maps to 0."""
        return self.scale == 0

    def apply(self, column: ArrayLike) -> FloatArray:
        """Transform raw scores, shape (n,) -> (n,); missing and infinite ones become 0."""
        values = np.asarray(column, dtype=float)
        if self.constant:
            return np.zeros(values.shape)
        lookup = self._lookup
        if lookup is None:  # made at first use: of thousands of fitted columns few are applied
            table = (_quantiles(len(self.values)) - self.centre) / self.scale
            lookup = np.array(self.values, dtype=float), table
            object.__setattr__(self, "_lookup", lookup)
        ordered, table = lookup
        places = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
        return np.where(np.isfinite(values), table[places], 0.0)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready state."""
        return {"kind": "normal_score", "values": list(self.values), "centre": self.centre, "scale": self.scale}


def transform_from_dict(state: Mapping[str, Any]) -> ColumnTransform:
    """Rebuild a transform from `ColumnTransform.to_dict`.

    Raises
    ------
    StateError
        If the kind is unknown, or a number is absent, not finite or out of order.
    """
    kind = state.get("kind")
    try:
        if kind == "z_score":
            return ZScore(_number(state["mean"]), _not_negative(state["sd"]))
        if kind == "normal_score":
            values = tuple(_number(value) for value in state["values"])
            transform = NormalScore(values, _number(state["centre"]), _not_negative(state["scale"]))
            if list(values) != sorted(values) or (transform.scale and not values):
                raise ValueError("values must be in ascending order, and some are needed unless scale is 0")
            return transform
    except (KeyError, TypeError, ValueError) as problem:
        raise StateError(
            f"the {kind} transform {state!r:.200} cannot be read ({type(problem).__name__}: {problem}): "
            "every number must be there and finite; save the metric again"
        ) from problem
    raise StateError(
        f"unknown column transform {kind!r}{nearest(str(kind), ['z_score', 'normal_score'])}: it must be "
        "z_score or normal_score; was the file written by a newer version?"
    )


def _own_double_ranks(ordered: FloatArray) -> NDArray[np.int64]:
    """Returns for each number of a row those below it plus those not above it; rows ascend, shape (p, m)."""
    ranks = np.arange(ordered.shape[1])
    new = np.ones(ordered.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] > ordered[:, :-1]
    below = np.maximum.accumulate(np.where(new, ranks, 0), axis=1)
    last = np.roll(new, -1, axis=1)  # the first of a row is always new
    upto = np.minimum.accumulate(np.where(last, ranks + 1, len(ranks))[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(below + upto)


@lru_cache(maxsize=256)
def _quantiles(m: int) -> FloatArray:
    """The normal quantile of ``k / (2 m)`` for k = 0 .. 2 m, clipped to [.5 / m, 1 - .5 / m]."""
    normal = NormalDist()
    half = [normal.inv_cdf(max(k, 1) / (2 * m)) for k in range(m)]
    table = np.array([*half, 0.0, *(-value for value in reversed(half))])
    table.flags.writeable = False
    return table


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)


def _not_negative(value: Any) -> float:
    number = _number(value)
    if number < 0:
        raise ValueError(f"{number:g} is below 0")
    return number


@dataclass(frozen=True, slots=True)
class LinearCombination:
    """``intercept + sum of weight * transform(column)`` over the k columns that are used.

    Parameters
    ----------
    names : tuple of str, length k
        The used columns.
    indices : tuple of int, length k
        Their places among the candidates of the fit.
    columns : tuple of ColumnTransform, length k
    weights : tuple of float, length k
        Rating points that one standard deviation of the transformed column adds.
    intercept : float
        The prediction, in rating points, of a row whose every column stands at its centre.
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]
    columns: tuple[ColumnTransform, ...]
    weights: tuple[float, ...]
    intercept: float

    def __post_init__(self) -> None:
        if len({len(self.names), len(self.indices), len(self.columns), len(self.weights)}) != 1:
            raise StateError(
                f"{len(self.names)} names, {len(self.indices)} indices, {len(self.columns)} columns and "
                f"{len(self.weights)} weights: as many of each are needed; save the metric again"
            )
        if not all(map(math.isfinite, (self.intercept, *self.weights))):
            raise StateError("intercept and weights must be finite numbers; fit the metric again")

    def __len__(self) -> int:
        """Number of used columns."""
        return len(self.columns)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Transformed columns: raw scores of the k used columns, shape (n, k) -> (n, k)."""
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != len(self):
            raise DataError(
                f"scores of shape {X.shape} do not fit: one row per output and one column for each of "
                f"{list(self.names)!r:.200} are needed; take the columns `indices` of the candidates"
            )
        transformed = np.empty(X.shape)
        for place, column in enumerate(self.columns):
            transformed[:, place] = column.apply(X[:, place])
        return transformed

    def contributions(self, X: ArrayLike) -> FloatArray:
        """Rating points that each column adds, shape (n, k).

        Parameters
        ----------
        X : array_like, shape (n, k)
            Raw scores of the used columns, in the order of `names`; a missing score contributes 0.

        Raises
        ------
        DataError
            If the shape does not fit.
        """
        return np.asarray(self.transform(X) * np.array(self.weights, dtype=float))

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted ratings, shape (n,): the correctly rounded ``intercept + sum of contributions``.

        Parameters and errors as in `contributions`. The result does not depend on the other rows.
        """
        return np.array([math.fsum((self.intercept, *row)) for row in self.contributions(X).tolist()], dtype=float)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready state; `from_dict` gives back an object that predicts to the same bits."""
        columns = [
            {"name": name, "index": index, "weight": weight, "transform": column.to_dict()}
            for name, index, column, weight in zip(self.names, self.indices, self.columns, self.weights, strict=True)
        ]
        return {"intercept": self.intercept, "columns": columns}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> LinearCombination:
        """Rebuild from `to_dict`.

        Raises
        ------
        StateError
            If something is absent or is not a finite number.
        """
        try:
            columns = list(state["columns"])
            return cls(
                tuple(str(column["name"]) for column in columns),
                tuple(int(column["index"]) for column in columns),
                tuple(transform_from_dict(column["transform"]) for column in columns),
                tuple(float(column["weight"]) for column in columns),
                float(state["intercept"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            if isinstance(problem, StateError):
                raise
            raise StateError(
                f"the combination cannot be read ({type(problem).__name__}: {problem}): intercept and, for "
                "each column, name, index, weight and transform are needed; save the metric again"
            ) from problem
