"""Ratings that may rightly differ: their model, agreement with judges, the choice of a judge, and planning."""

from metricsmith.rating_model.bounds import linear_bounds
from metricsmith.rating_model.measures import (
    MEASURES,
    RatingMeasure,
    Sides,
    downstream_measures,
    judge_agreement,
    rating_measures,
    weighted_values,
)
from metricsmith.rating_model.model import (
    RatingModel,
    ResponseSets,
    error_matrix,
    estimate_forced_choice,
    reverse,
    sensitivity_matrix,
)
from metricsmith.rating_model.rated_sides import beta_of
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.record import JudgeFigure, JudgeSelection, MeasureResult, RivalJudge, SweepCell, Violation
from metricsmith.rating_model.selection import select_judge
from metricsmith.rating_model.vectors import Decision, RatingVectors, hard
from metricsmith.rating_model.violations import rank_violations

__all__ = [
    "MEASURES",
    "Decision",
    "JudgeFigure",
    "JudgeSelection",
    "MeasureResult",
    "RatingMeasure",
    "RatingModel",
    "RatingVectors",
    "Ratings",
    "ResponseSets",
    "RivalJudge",
    "Sides",
    "SweepCell",
    "Violation",
    "beta_of",
    "downstream_measures",
    "error_matrix",
    "estimate_forced_choice",
    "hard",
    "judge_agreement",
    "linear_bounds",
    "rank_violations",
    "rating_measures",
    "reverse",
    "select_judge",
    "sensitivity_matrix",
    "weighted_values",
]
