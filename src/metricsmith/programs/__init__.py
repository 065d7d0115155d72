"""DSPy modules: judges, generators, recommenders, and the induced metric."""
