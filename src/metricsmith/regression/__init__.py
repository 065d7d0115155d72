"""Many metrics into one: the paper's two-stage PLS, our prior ridge, small models that stand in for them, boosting.

A judge's numbers come onto the rating scale by `calibrate`. The estimators need scikit-learn, which loads when one
of them is first asked for; a saved `LinearCombination` is read and applied without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metricsmith.regression.calibration import IsotonicMap, OrdinalMap, calibrate, cross_calibrated
from metricsmith.regression.columns import ColumnTransform, NormalScore, ZScore
from metricsmith.regression.combination import LinearCombination
from metricsmith.regression.projection import Projection, project

if TYPE_CHECKING:
    from metricsmith.regression.boosting import MetaMetrics
    from metricsmith.regression.pls import TwoStagePLS
    from metricsmith.regression.prior_ridge import PriorRidge

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
    "MetaMetrics": "metricsmith.regression.boosting",
    "PriorRidge": "metricsmith.regression.prior_ridge",
    "TwoStagePLS": "metricsmith.regression.pls",
}


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ESTIMATORS[name]), name)
