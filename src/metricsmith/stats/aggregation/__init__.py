"""Several runs of one judge into one number, and the precision of that number.

Source: GEMBA-MQM V2, section 4 and appendix A.2; the precision is ours.
"""

from metricsmith.stats.aggregation.precision import half_width
from metricsmith.stats.aggregation.runs import (
    AGGREGATES,
    TWO_SIGMA,
    Aggregate,
    OutlierRule,
    aggregate_name,
    drop_outliers,
    geometric,
    maximum,
    mean,
    median,
    rrwa,
)

__all__ = [
    "AGGREGATES",
    "TWO_SIGMA",
    "Aggregate",
    "OutlierRule",
    "aggregate_name",
    "drop_outliers",
    "geometric",
    "half_width",
    "maximum",
    "mean",
    "median",
    "rrwa",
]
