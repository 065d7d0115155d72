"""Many metrics into one: the paper's two-stage PLS, our prior ridge, small models that stand in for them, boosting.

A judge's numbers come onto the rating scale by `calibrate`. The estimators need scikit-learn, which loads when one
of them is first asked for; a saved `LinearCombination` is read and applied without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metricsmith.stats.regression.calibration import IsotonicMap, OrdinalMap, calibrate, cross_calibrated
from metricsmith.stats.regression.combination import ColumnTransform, LinearCombination, NormalScore, ZScore
from metricsmith.stats.regression.projection import Projection, project

if TYPE_CHECKING:
    from metricsmith.stats.regression.boosting import MetaMetrics
    from metricsmith.stats.regression.estimators import PriorRidge, TwoStagePLS

__all__ = [
    "ColumnTransform",
    "IsotonicMap",
    "LinearCombination",
    "MetaMetrics",
    "NormalScore",
    "OrdinalMap",
    "PriorRidge",
    "Projection",
    "TwoStagePLS",
    "ZScore",
    "calibrate",
    "cross_calibrated",
    "project",
]

_ESTIMATORS = {
    "MetaMetrics": "metricsmith.stats.regression.boosting",
    "PriorRidge": "metricsmith.stats.regression.estimators",
    "TwoStagePLS": "metricsmith.stats.regression.estimators",
}


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ESTIMATORS[name]), name)
