"""Whatever has ``.compile()``: AutoMetrics."""
