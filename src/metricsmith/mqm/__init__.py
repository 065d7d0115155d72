"""Multidimensional Quality Metrics (MQM): error types, weights, scores, and errors that annotations share."""

from metricsmith.mqm.sharing import SharedError, shared_errors
from metricsmith.mqm.weights import (
    NON_TRANSLATION,
    SEVERITIES,
    TAXONOMY,
    MQMWeights,
    WeightRule,
    category_path,
    mqm_score,
    severity_name,
    span_weight,
)

__all__ = [
    "NON_TRANSLATION",
    "SEVERITIES",
    "TAXONOMY",
    "MQMWeights",
    "SharedError",
    "WeightRule",
    "category_path",
    "mqm_score",
    "severity_name",
    "shared_errors",
    "span_weight",
]
