"""The common fitted form of every regression here: an intercept plus weighted, transformed columns.

It needs no scikit-learn, round-trips through JSON exactly, and scores one row alone to the same bits as in
a batch: the arithmetic is elementwise, and rows are summed with correct rounding instead of by BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, StateError
from metricsmith.stats.regression.columns import ColumnTransform, transform_from_dict

__all__ = ["LinearCombination"]

FloatArray = NDArray[np.float64]


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
        lengths = {len(self.names), len(self.indices), len(self.columns), len(self.weights)}
        if len(lengths) != 1:
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
        rows = self.contributions(X).tolist()
        return np.array([math.fsum((self.intercept, *row)) for row in rows], dtype=float)

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
