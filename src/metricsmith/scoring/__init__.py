"""Metrics x rows -> a table of judgements, with nothing lost on the way."""

from metricsmith.model_calls.limits import Budget, Concurrency, PerJudge
from metricsmith.scoring.callables import CallableMetric
from metricsmith.scoring.engine import ascore, estimate, score
from metricsmith.scoring.table import Coverage, ScoreTable, tally

__all__ = [
    "Budget",
    "CallableMetric",
    "Concurrency",
    "Coverage",
    "PerJudge",
    "ScoreTable",
    "ascore",
    "estimate",
    "score",
    "tally",
]
