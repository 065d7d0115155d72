"""Moved to `metricsmith.model_calls.rate_limiter`."""

from metricsmith.model_calls.limits import RequestEnd as Outcome
from metricsmith.model_calls.rate_limiter import UNPROVEN as UNPROVEN
from metricsmith.model_calls.rate_limiter import Clock as Clock
from metricsmith.model_calls.rate_limiter import RateLimiter as Flow
from metricsmith.model_calls.rate_limiter import in_force as in_force
from metricsmith.model_calls.rate_limiter import span as span
from metricsmith.model_calls.rate_limiter import spanning as spanning
from metricsmith.model_calls.rate_limiter import use as use

__all__ = ["UNPROVEN", "Clock", "Flow", "Outcome", "in_force", "span", "spanning", "use"]
