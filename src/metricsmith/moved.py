"""Old paths of names and modules and their new ones, both without ``metricsmith.``; the table goes at 1.0.

Names that left the root for a module such as `metricsmith.judges` are found there without a line here. Only the root
and the modules made by `lazy_names` read the table at run time; for the others it is the record that the changelog
shows.
"""

from __future__ import annotations

__all__ = ["MOVED"]

MOVED = {
    "Coverage": "scoring.Coverage",
    "agreement": "stats.agreement",
    "aggregation": "stats.aggregation",
    "calibration": "stats.regression.calibration",
    "ceiling": "stats.ceiling",
    "correlation": "stats.correlation",
    "fold_agreement": "stats.fold_agreement",
    "optimizers.comparison": "studies.comparison",
    "optimizers.monitoring": "studies.monitoring",
    "optimizers.probing": "studies.probing",
    "rater_agreement": "stats.rater_agreement",
    "regression": "stats.regression",
    "resampling": "stats.resampling",
    "scoring.adapters": "model_calls.adapters",
    "scoring.admission": "model_calls.admission",
    "scoring.calls": "model_calls.calls",
    "scoring.chat": "model_calls.chat",
    "scoring.dspy_internals": "model_calls.dspy_internals",
    "scoring.failures": "model_calls.failures",
    "scoring.flow": "model_calls.flow",
    "scoring.limits": "model_calls.limits",
    "scoring.models": "model_calls.models",
    "scoring.pace": "model_calls.pace",
    "scoring.prices": "model_calls.prices",
    "scoring.reading": "model_calls.reading",
    "scoring.requests": "model_calls.requests",
    "scoring.tokens": "model_calls.tokens",
    "validity": "stats.validity",
}
