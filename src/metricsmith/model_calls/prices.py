"""Moved to `metricsmith.model_calls.limits`."""

from metricsmith.model_calls.limits import price as price

__all__ = ["price"]
