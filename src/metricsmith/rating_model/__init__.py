"""Ratings that may rightly differ: their model, judges held against them, and what to do with people's disagreement.

`Ratings` and `ResponseSets` are what goes in, `RatingVectors` and `Decision` what is compared, `select_judge` compares.
`prediction_powered_mean` corrects a judge's mean by a few ratings, `plan_ratings` says how many of them, `dawid_skene`
and `disagreement_clinic` look at the raters, and `krippendorff_alpha` and its like at `Ratings.counts`. Arrays hold
judges first, then items, then options.
"""

from metricsmith.rating_model.alternative_annotator import AlternativeAnnotatorTest, alternative_annotator_test
from metricsmith.rating_model.bounds import linear_bounds
from metricsmith.rating_model.clinic import Clinic, DisagreementCase, RaterSplit, disagreement_clinic, split_raters
from metricsmith.rating_model.corrected import CorrectedMean, prediction_powered_mean, rogan_gladen
from metricsmith.rating_model.labelled_sample import LabelledSample
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
    error_matrix,
    estimate_forced_choice,
    reverse,
    sensitivity_matrix,
)
from metricsmith.rating_model.planning import (
    HumanCeiling,
    RatingPlan,
    RatingSpread,
    flip_probability,
    human_ceiling,
    plan_ratings,
)
from metricsmith.rating_model.rated_sides import beta_of
from metricsmith.rating_model.raters import DawidSkene, dawid_skene, majority
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.record import JudgeFigure, JudgeSelection, MeasureResult, RivalJudge, SweepCell, Violation
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.selection import select_judge
from metricsmith.rating_model.simulate import Simulation, decaying_choice, project_simplex, selection_effect, simulate
from metricsmith.rating_model.vectors import Decision, RatingVectors, hard
from metricsmith.rating_model.violations import rank_violations
from metricsmith.stats.chance_corrected import fleiss_kappa, gwet_ac1, krippendorff_alpha

__all__ = [
    "AlternativeAnnotatorTest",
    "Clinic",
    "CorrectedMean",
    "DawidSkene",
    "Decision",
    "DisagreementCase",
    "HumanCeiling",
    "JudgeFigure",
    "JudgeSelection",
    "LabelledSample",
    "MEASURES",
    "MeasureResult",
    "RaterSplit",
    "RatingMeasure",
    "RatingModel",
    "RatingPlan",
    "RatingSpread",
    "RatingVectors",
    "Ratings",
    "ResponseSets",
    "RivalJudge",
    "Sides",
    "Simulation",
    "SweepCell",
    "Violation",
    "alternative_annotator_test",
    "beta_of",
    "dawid_skene",
    "decaying_choice",
    "disagreement_clinic",
    "downstream_measures",
    "error_matrix",
    "estimate_forced_choice",
    "fleiss_kappa",
    "flip_probability",
    "gwet_ac1",
    "hard",
    "human_ceiling",
    "judge_agreement",
    "krippendorff_alpha",
    "linear_bounds",
    "majority",
    "plan_ratings",
    "prediction_powered_mean",
    "project_simplex",
    "rank_violations",
    "rating_measures",
    "reverse",
    "rogan_gladen",
    "select_judge",
    "selection_effect",
    "sensitivity_matrix",
    "simulate",
    "split_raters",
    "weighted_values",
]
