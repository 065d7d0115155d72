"""One judge's numbers on the raters' scale: isotonic and ordinal maps, and predictions from maps that never saw them.

A calibration changes what a number means, not the order of rows (apart from new ties), so that it mends
agreement in value, such as `metricsmith.stats.agreement.quadratic_kappa`, and leaves rank correlations as they are.
A judge that points the wrong way is mapped to the mean rating and not turned round: its sign is a finding to be
reported, not a detail to be mended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError, StateError, nearest
from metricsmith.stats.correlation import FloatArray, complete_pairs
from metricsmith.stats.resampling import Groups, labelled_rows

__all__ = ["IsotonicMap", "OrdinalMap", "calibrate", "calibration_from_dict", "cross_calibrated"]

Kind = Literal["isotonic", "ordinal"]

MOST_LEVELS = 20  # distinct ratings beyond which they are a continuum
PENALTY = 1.0  # on the squared slope per standard deviation: a normal prior that keeps separable data finite


@dataclass(frozen=True, slots=True)
class IsotonicMap:
    """The never falling function with the least squared error, straight between its knots, level beyond them.

    Parameters
    ----------
    knots : tuple of float, length k >= 1
        Predictions in ascending order, no two alike.
    values : tuple of float, length k
        Ratings at the knots, never falling.

    References
    ----------
    Barlow, Bartholomew, Bremner and Brunk (1972), "Statistical inference under order restrictions"; fitted with
    scikit-learn's `IsotonicRegression`.
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.knots, self.knots[1:], strict=False))
        falling = any(low > high for low, high in zip(self.values, self.values[1:], strict=False))
        if not self.knots or len(self.knots) != len(self.values) or not rising or falling:
            raise StateError(
                "an isotonic map needs as many values as knots, knots that rise and values that never fall"
            )

    @classmethod
    def fit(cls, predictions: ArrayLike, ratings: ArrayLike) -> IsotonicMap:
        """Fit on at least two rows, shape (n,) each; rows that are NaN on either side are left out."""
        from sklearn.isotonic import IsotonicRegression

        x, y = _training_pairs(predictions, ratings)
        fitted = IsotonicRegression(out_of_bounds="clip").fit(x, y)
        values = np.maximum.accumulate(fitted.y_thresholds_)  # level stretches may differ in their last bit
        return cls(tuple(fitted.X_thresholds_.tolist()), tuple(values.tolist()))

    def apply(self, predictions: ArrayLike) -> FloatArray:
        """Expected ratings, shape (n,) -> (n,); NaN stays NaN."""
        return np.asarray(np.interp(np.asarray(predictions, dtype=float), self.knots, self.values))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready state."""
        return {"kind": "isotonic", "knots": list(self.knots), "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class OrdinalMap:
    """Proportional odds: ``P(rating <= level k | x) = logistic(cut k - slope (x - mean) / sd)``.

    Parameters
    ----------
    levels : tuple of float, length k >= 1
        The ratings that occur, in ascending order.
    cuts : tuple of float, length k - 1
        In ascending order.
    slope : float
        At least 0: log-odds per standard deviation of the predictions.
    mean, sd : float
        Of the training predictions; `sd` 0 marks predictions that did not vary.

    References
    ----------
    McCullagh (1980), "Regression models for ordinal data". The slope carries a standard normal prior, so that
    separable data have a finite fit; with 100 rows it moves nothing that could be told from noise.
    """

    levels: tuple[float, ...]
    cuts: tuple[float, ...]
    slope: float
    mean: float
    sd: float

    def __post_init__(self) -> None:
        ordered = [list(part) == sorted(set(part)) for part in (self.levels, self.cuts)]
        if not all(ordered) or len(self.levels) != len(self.cuts) + 1 or self.slope < 0 or self.sd < 0:
            raise StateError(
                "an ordinal map needs levels and cuts that rise, one cut fewer than levels, and a slope and sd from 0"
            )

    @classmethod
    def fit(cls, predictions: ArrayLike, ratings: ArrayLike) -> OrdinalMap:
        """Fit by penalised maximum likelihood on at least two rows; NaN rows are left out.

        Raises
        ------
        OptionError
            If the ratings have more than 20 levels: a continuum, for which there is `IsotonicMap`.
        """
        x, y = _training_pairs(predictions, ratings)
        levels, places = np.unique(y, return_inverse=True)
        if levels.size > MOST_LEVELS:
            raise OptionError(
                f"the ratings have {levels.size} different values, more than {MOST_LEVELS}: they are no levels but a "
                "continuum; calibrate with 'isotonic'"
            )
        unit = float(np.abs(x).max()) or 1.0
        mean, sd = float((x / unit).mean()) * unit, float((x / unit).std()) * unit
        if sd <= 1e-12 * unit:
            sd = 0.0
        z = (x - mean) / sd if sd else np.zeros(x.size)
        slope, cuts = _proportional_odds(z, places, levels.size)
        return cls(tuple(levels.tolist()), tuple(cuts.tolist()), slope, mean, sd)

    def probabilities(self, predictions: ArrayLike) -> FloatArray:
        """The probability of each level, shape (n,) -> (n, k); NaN for a NaN."""
        x = np.asarray(predictions, dtype=float)
        z = (x - self.mean) / self.sd if self.sd else np.where(np.isnan(x), np.nan, 0.0)
        below = _logistic(np.asarray(self.cuts)[None, :] - self.slope * z[:, None])
        edges = np.concatenate([np.zeros((x.size, 1)), below, np.ones((x.size, 1))], axis=1)
        return np.where(np.isnan(z)[:, None], np.nan, np.diff(edges, axis=1))

    def apply(self, predictions: ArrayLike) -> FloatArray:
        """Expected ratings, shape (n,) -> (n,); NaN stays NaN."""
        return np.asarray(self.probabilities(predictions) @ np.asarray(self.levels))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready state."""
        return {
            "kind": "ordinal", "levels": list(self.levels), "cuts": list(self.cuts), "slope": self.slope,
            "mean": self.mean, "sd": self.sd,
        }  # fmt: skip


_KINDS: Mapping[str, type[IsotonicMap] | type[OrdinalMap]] = {"isotonic": IsotonicMap, "ordinal": OrdinalMap}


def calibrate(predictions: ArrayLike, ratings: ArrayLike, kind: Kind = "isotonic") -> IsotonicMap | OrdinalMap:
    """Fit a calibration.

    Parameters
    ----------
    predictions : array_like, shape (n,)
        A judge's raw numbers, on any scale on which more is better.
    ratings : array_like, shape (n,)
        Rows that are NaN on either side are left out; two must be left.
    kind : {'isotonic', 'ordinal'}
        Isotonic takes any ratings and any never falling relation; ordinal has one slope, which is steadier with few
        rows, gives probabilities, and needs ratings in levels.

    Raises
    ------
    OptionError
        If the kind is unknown or does not suit the ratings.
    DataError
        If lengths differ, fewer than two rows are left, or a number is infinite.
    """
    if kind not in _KINDS:
        raise OptionError(f"unknown calibration {kind!r}{nearest(str(kind), _KINDS)}; known are {', '.join(_KINDS)}")
    return _KINDS[kind].fit(predictions, ratings)


def cross_calibrated(
    predictions: ArrayLike,
    ratings: ArrayLike,
    groups: Groups | None = None,
    *,
    kind: Kind = "isotonic",
    folds: int = 5,
    seed: int = 0,
) -> FloatArray:
    """Calibrated predictions, each by a map that was fitted without its row's group.

    What a calibration gains must be measured on these: a map applied to its own training rows flatters itself.

    Parameters
    ----------
    predictions, ratings : array_like, shape (n,)
        As for `calibrate`. Unrated rows are calibrated too, by the map of the other folds.
    groups : sequence of hashable, length n, optional
        Rows of one group are calibrated together; None makes every row its own group.
    kind : {'isotonic', 'ordinal'}
    folds : int
        At least 2; as many as there are groups, if those are fewer.
    seed : int
        Decides which groups share a fold.

    Returns
    -------
    float array, shape (n,)
        NaN where the prediction is NaN.

    Raises
    ------
    OptionError
        If `folds` is below 2, or `kind` is unknown or does not suit the ratings.
    DataError
        If lengths differ, there is one group alone, or fewer than two rated rows are left to fit a map.
    """
    x, y, labels = labelled_rows(predictions, ratings, groups)
    if folds < 2:
        raise OptionError(f"folds={folds} must be 2 or more")
    names = list(dict.fromkeys(labels))
    if len(names) < 2:
        raise DataError("a calibration that is tested on other groups needs at least two; there is one")
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = {names[place]: position % folds for position, place in enumerate(order.tolist())}
    fold = np.array([fold_of[label] for label in labels])
    calibrated = np.full(x.shape, np.nan)
    for number in range(min(folds, len(names))):
        held = fold == number
        calibrated[held] = calibrate(x[~held], y[~held], kind).apply(x[held])
    return calibrated


def calibration_from_dict(state: Mapping[str, Any]) -> IsotonicMap | OrdinalMap:
    """Rebuild a calibration from its `to_dict`.

    Raises
    ------
    StateError
        If the kind is unknown, or a number is absent, not finite or out of order.
    """
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in state.items() if name != "kind"
    }
    numbers = [number for value in values.values() for number in (value if isinstance(value, tuple) else (value,))]
    kind = _KINDS.get(str(state.get("kind")))
    finite = all(
        isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number) for number in numbers
    )
    if kind is None or not finite:
        raise StateError(f"the calibration {state!r:.200} cannot be read: an unknown kind, or a number that is none")
    try:
        return kind(**values)
    except TypeError as problem:
        raise StateError(f"the calibration {state!r:.200} cannot be read ({problem})") from problem


def _training_pairs(predictions: ArrayLike, ratings: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = complete_pairs(predictions, ratings)
    if x.size < 2:
        raise DataError(f"a calibration needs at least two rated rows with a prediction; there are {x.size}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("a prediction or rating is infinite; give NaN where there is none")
    return x, y


def _proportional_odds(z: FloatArray, places: NDArray[np.intp], levels: int) -> tuple[float, FloatArray]:
    """Returns slope and cuts of the most likely model for standardised predictions and the places of their levels."""
    from scipy.optimize import minimize

    if levels == 1:
        return 0.0, np.empty(0)
    shares = np.cumsum(np.bincount(places, minlength=levels))[:-1] / places.size
    start = np.log(shares / (1 - shares))
    steps = np.log(np.maximum(np.diff(start), 1e-3))
    bounds = [(0.0, None), (None, None), *[(-12.0, 6.0)] * (levels - 2)]  # cuts between e^-12 and e^6 apart
    found = minimize(
        _loss, np.concatenate([[1.0], start[:1], steps]), args=(z, places), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9},
    )  # fmt: skip
    return float(found.x[0]), _cuts(found.x)


def _cuts(parameters: FloatArray) -> FloatArray:
    """Returns cuts in ascending order from the first one and the logarithms of the steps."""
    return np.asarray(np.cumsum(np.concatenate([parameters[1:2], np.exp(parameters[2:])])))


def _loss(parameters: FloatArray, z: FloatArray, places: NDArray[np.intp]) -> tuple[float, FloatArray]:
    """Returns the negative penalised log-likelihood and its gradient in the slope, the first cut and the log steps."""
    slope, cuts = parameters[0], _cuts(parameters)
    edges = np.concatenate([[-np.inf], cuts, [np.inf]])
    upper, lower = edges[places + 1] - slope * z, edges[places] - slope * z
    flip = upper + lower > 0  # differences of the smaller tail, which do not cancel
    share = np.where(flip, _logistic(-lower) - _logistic(-upper), _logistic(upper) - _logistic(lower))
    share = np.maximum(share, 1e-300)
    high, low = _density(upper) / share, _density(lower) / share
    by_cut = np.bincount(places, high, minlength=cuts.size + 1)[: cuts.size]
    by_cut = by_cut - np.bincount(places, low, minlength=cuts.size + 1)[1:]
    from_cut_on = np.cumsum(by_cut[::-1])[::-1]  # a step moves its cut and all above it
    gradient = np.concatenate(
        [[-(z * (high - low)).sum() - PENALTY * slope], from_cut_on[:1], from_cut_on[1:] * np.exp(parameters[2:])]
    )
    return float(PENALTY / 2 * slope**2 - np.log(share).sum()), -gradient


def _logistic(x: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def _density(x: FloatArray) -> FloatArray:
    """Returns the density of the logistic distribution; 0 at either end."""
    with np.errstate(over="ignore", invalid="ignore"):
        half = np.exp(-np.abs(x))
        return np.where(np.isinf(x), 0.0, half / (1 + half) ** 2)
