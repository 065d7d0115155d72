"""Typed DSPy signatures, one file per output shape; the docstring of each is its instruction."""
