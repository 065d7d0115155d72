"""Forge automatic metrics out of human feedback.

The public names; each loads its module at first use, so that importing the package stays as cheap as
importing DSPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metricsmith.version import __version__ as __version__

if TYPE_CHECKING:
    from metricsmith.bank.catalogue import MetricBank, default_bank
    from metricsmith.datasets.mt_metrics_eval import EvalSet, read_eval_set
    from metricsmith.datasets.score_matrices import ScoreMatrices, read_score_matrices
    from metricsmith.datasets.segments import Translations, read_translations, translation_rows
    from metricsmith.datasets.table import Table, read_table
    from metricsmith.datasets.taubench import read_taubench
    from metricsmith.datasets.wmt_mqm import read_wmt_mqm
    from metricsmith.errors import (
        DataError,
        InputError,
        Interrupted,
        JudgementFailed,
        MetricsmithError,
        ModelFailure,
        NeedsError,
        OptionError,
        StateError,
        StoreError,
    )
    from metricsmith.metric import Metric, make_row
    from metricsmith.mqm import MQMWeights, mqm_score
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.optimizers.gepa_bound import GEPABound, gepa_bound
    from metricsmith.optimizers.induce import induce
    from metricsmith.optimizers.recording import Induced
    from metricsmith.optimizers.students.episodes import axes_episodes, recommendation_episodes, rubric_episodes
    from metricsmith.optimizers.students.metrics import RankingMetric, YieldMetric
    from metricsmith.optimizers.students.perturber_episodes import perturbation_episodes, strategy_episodes
    from metricsmith.optimizers.students.perturber_metric import PerturberMetric
    from metricsmith.optimizers.students.yields import yield_of
    from metricsmith.optimizers.tuner import JudgeTuner
    from metricsmith.optimizers.tuning.outcome import Tuning
    from metricsmith.outcomes import RewardCheck
    from metricsmith.programs.induced import InducedMetric
    from metricsmith.programs.judges.criterion import CriterionJudge
    from metricsmith.programs.judges.direct_assessment import DirectAssessment
    from metricsmith.programs.judges.dna import DnAEval
    from metricsmith.programs.judges.esa import ESAJudge
    from metricsmith.programs.judges.examples import ExampleJudge
    from metricsmith.programs.judges.geval import GEval
    from metricsmith.programs.judges.guideline import GuidelineJudge
    from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
    from metricsmith.programs.judges.panel import Panel
    from metricsmith.programs.judges.repeated import Repeated
    from metricsmith.programs.judges.rubric import RubricJudge
    from metricsmith.programs.loading import load
    from metricsmith.programs.perturbers.base import Perturbation, Perturber
    from metricsmith.programs.perturbers.catalogue import BUILTIN, perturb
    from metricsmith.programs.perturbers.generated import DegradationStrategies, Preserve, Worsen
    from metricsmith.programs.perturbers.sheet import read_sheet, write_sheet
    from metricsmith.programs.translations import judge_translations
    from metricsmith.records import Agreement, ErrorSpan, Judgement, MetricCard, Output, Scale, Status, Task, Usage
    from metricsmith.rendering import render_messages, render_output
    from metricsmith.report.comparison.record import Comparison
    from metricsmith.report.comparison.write import write_comparison
    from metricsmith.report.meta_evaluation.record import MetaEvaluation, meta_evaluate
    from metricsmith.report.meta_evaluation.write import write_meta_evaluation
    from metricsmith.report.record import RunRecord
    from metricsmith.report.translations.record import TranslationRecord
    from metricsmith.report.translations.write import write_translations
    from metricsmith.report.write import write_reports
    from metricsmith.reward import Reward
    from metricsmith.scoring import (
        Budget,
        CallableMetric,
        Concurrency,
        Coverage,
        ScoreTable,
        ascore,
        estimate,
        score,
    )
    from metricsmith.stats.aggregation import OutlierRule, drop_outliers, rrwa
    from metricsmith.stats.ceiling import RaterCeiling, rater_ceiling
    from metricsmith.stats.regression import LinearCombination, MetaMetrics, PriorRidge, TwoStagePLS, project
    from metricsmith.store import Store
    from metricsmith.studies.comparison.run import compare
    from metricsmith.studies.monitoring import RewardMonitor
    from metricsmith.studies.probing.position import probe_position
    from metricsmith.studies.probing.run import Prober

_HOMES = {
    "stats.aggregation": ("OutlierRule", "drop_outliers", "rrwa"),
    "bank.catalogue": ("MetricBank", "default_bank"),
    "stats.ceiling": ("RaterCeiling", "rater_ceiling"),
    "datasets.score_matrices": ("ScoreMatrices", "read_score_matrices"),
    "datasets.table": ("Table", "read_table"),
    "datasets.taubench": ("read_taubench",),
    "errors": (
        "DataError", "InputError", "Interrupted", "JudgementFailed", "MetricsmithError", "ModelFailure", "NeedsError",
        "OptionError", "StateError", "StoreError",
    ),
    "metric": ("Metric", "make_row"),
    "optimizers.auto_metrics": ("AutoMetrics",),
    "studies.comparison.run": ("compare",),
    "optimizers.students.episodes": ("axes_episodes", "recommendation_episodes", "rubric_episodes"),
    "optimizers.gepa_bound": ("GEPABound", "gepa_bound"),
    "optimizers.induce": ("induce",),
    "studies.monitoring": ("RewardMonitor",),
    "optimizers.students.perturber_episodes": ("perturbation_episodes", "strategy_episodes"),
    "optimizers.students.perturber_metric": ("PerturberMetric",),
    "optimizers.recording": ("Induced",),
    "optimizers.students.metrics": ("RankingMetric", "YieldMetric"),
    "studies.probing.position": ("probe_position",),
    "studies.probing.run": ("Prober",),
    "optimizers.tuner": ("JudgeTuner",),
    "optimizers.tuning.outcome": ("Tuning",),
    "optimizers.students.yields": ("yield_of",),
    "programs.induced": ("InducedMetric",),
    "programs.judges.criterion": ("CriterionJudge",),
    "programs.judges.direct_assessment": ("DirectAssessment",),
    "programs.judges.dna": ("DnAEval",),
    "programs.judges.esa": ("ESAJudge",),
    "programs.judges.examples": ("ExampleJudge",),
    "programs.judges.geval": ("GEval",),
    "programs.judges.guideline": ("GuidelineJudge",),
    "programs.judges.panel": ("Panel",),
    "programs.judges.repeated": ("Repeated",),
    "programs.judges.rubric": ("RubricJudge",),
    "programs.loading": ("load",),
    "programs.perturbers.generated": ("DegradationStrategies", "Preserve", "Worsen"),
    "programs.perturbers.sheet": ("read_sheet", "write_sheet"),
    "programs.perturbers.base": ("Perturbation", "Perturber"),
    "programs.perturbers.catalogue": ("BUILTIN", "perturb"),
    "records": ("Agreement", "ErrorSpan", "Judgement", "MetricCard", "Output", "Scale", "Status", "Task", "Usage"),
    "stats.regression": ("LinearCombination", "MetaMetrics", "PriorRidge", "TwoStagePLS", "project"),
    "rendering": ("render_messages", "render_output"),
    "report.comparison.record": ("Comparison",),
    "report.comparison.write": ("write_comparison",),
    "report.meta_evaluation.record": ("MetaEvaluation", "meta_evaluate"),
    "report.meta_evaluation.write": ("write_meta_evaluation",),
    "report.record": ("RunRecord",),
    "report.write": ("write_reports",),
    "outcomes": ("RewardCheck",),
    "reward": ("Reward",),
    "scoring": (
        "Budget", "CallableMetric", "Concurrency", "Coverage", "ScoreTable", "ascore", "estimate", "score",
    ),
    "datasets.segments": ("Translations", "read_translations", "translation_rows"),
    "datasets.wmt_mqm": ("read_wmt_mqm",),
    "datasets.mt_metrics_eval": ("EvalSet", "read_eval_set"),
    "mqm": ("MQMWeights", "mqm_score"),
    "programs.judges.mqm": ("MQMAnnotator", "MQMJudge"),
    "programs.translations": ("judge_translations",),
    "report.translations.record": ("TranslationRecord",),
    "report.translations.write": ("write_translations",),
    "store": ("Store",),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agreement", "AutoMetrics", "BUILTIN", "Budget", "CallableMetric", "Comparison", "Concurrency", "Coverage",
    "CriterionJudge", "DataError", "DegradationStrategies", "DirectAssessment", "DnAEval", "ESAJudge", "ErrorSpan",
    "EvalSet", "ExampleJudge", "GEPABound", "GEval", "GuidelineJudge", "Induced", "InducedMetric", "InputError",
    "Interrupted", "JudgeTuner", "Judgement", "JudgementFailed", "LinearCombination", "MQMAnnotator", "MQMJudge",
    "MQMWeights", "MetaEvaluation", "MetaMetrics", "Metric", "MetricBank", "MetricCard", "MetricsmithError",
    "ModelFailure", "NeedsError", "OptionError", "OutlierRule", "Output", "Panel", "Perturbation", "Perturber",
    "PerturberMetric", "Preserve", "PriorRidge", "Prober", "RankingMetric", "RaterCeiling", "Repeated", "Reward",
    "RewardCheck", "RewardMonitor", "RubricJudge", "RunRecord", "Scale", "ScoreMatrices", "ScoreTable", "StateError",
    "Status", "Store", "StoreError", "Table", "Task", "TranslationRecord", "Translations", "Tuning", "TwoStagePLS",
    "Usage", "Worsen", "YieldMetric", "ascore", "axes_episodes", "compare", "default_bank", "drop_outliers", "estimate",
    "gepa_bound", "induce", "judge_translations", "load", "make_row", "meta_evaluate", "mqm_score", "perturb",
    "perturbation_episodes", "probe_position", "project", "rater_ceiling", "read_eval_set", "read_score_matrices",
    "read_sheet", "read_table", "read_taubench", "read_translations", "read_wmt_mqm", "recommendation_episodes",
    "render_messages", "render_output", "rrwa", "rubric_episodes", "score", "strategy_episodes", "translation_rows",
    "write_comparison", "write_meta_evaluation", "write_reports", "write_sheet", "write_translations", "yield_of",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
