"""Statistics that know nothing of metrics or models: correlation, agreement, resampling, regression, validity."""
