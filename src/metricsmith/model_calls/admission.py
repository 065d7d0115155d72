"""Moved to `metricsmith.model_calls.metering`."""

from metricsmith.model_calls.metering import RequestMeter
from metricsmith.model_calls.rate_limiter import RateLimiter

__all__ = ["Gate"]


class Gate(RequestMeter):
    """A meter by its earlier names."""

    @property
    def flow(self) -> RateLimiter:
        """Its rate limiter."""
        return self.limiter
