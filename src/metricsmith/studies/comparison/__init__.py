"""AutoMetrics beside the baselines of its paper, on the same rows."""
