"""Old paths at the package's root and their new ones, both without ``metricsmith.``; the table goes at 1.0.

Names that left the root for a module such as `metricsmith.judges` are found there without a line here.
"""

from __future__ import annotations

__all__ = ["MOVED"]

MOVED = {
    "Coverage": "scoring.Coverage",
    "Induced": "RunResult",
    "agreement": "stats.agreement",
    "aggregation": "stats.aggregation",
    "ceiling": "stats.ceiling",
    "correlation": "stats.correlation",
    "fold_agreement": "stats.fold_agreement",
    "rater_agreement": "stats.rater_agreement",
    "regression": "stats.regression",
    "resampling": "stats.resampling",
    "validity": "stats.validity",
}
