"""The command line: the only part of the package that prints."""

from metricsmith.cli.app import main

__all__ = ["main"]
