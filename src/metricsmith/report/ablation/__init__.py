"""The report of a grid of inductions."""
