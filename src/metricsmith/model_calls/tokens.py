"""Moved to `metricsmith.model_calls.limits`."""

from metricsmith.model_calls.limits import estimate_tokens as estimate_tokens

__all__ = ["estimate_tokens"]
