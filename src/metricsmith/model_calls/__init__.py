"""One request to a model: adapters, exact reading, retries, budget, metering; DSPy's inner surface is touched here."""
