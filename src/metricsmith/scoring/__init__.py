"""Metrics x rows -> a table of judgements, with nothing lost on the way."""

from metricsmith.scoring.engine import ScoreTable, score, tally

__all__ = ["ScoreTable", "score", "tally"]
