"""Runs source text that nobody has read where it can reach nothing: no file, network, clock, chance or other row."""
