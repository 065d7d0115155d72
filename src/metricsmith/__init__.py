"""Forge automatic metrics out of human feedback.

The public names; each loads its module at first use, so that importing the package stays as cheap as
importing DSPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metricsmith.version import __version__ as __version__

if TYPE_CHECKING:
    from metricsmith.aggregation import OutlierRule, drop_outliers, rrwa
    from metricsmith.bank.catalogue import MetricBank, default_bank
    from metricsmith.datasets.table import Table, read_table
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
    from metricsmith.metric import DSPyMetric, Metric, make_row
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.optimizers.comparison.run import compare
    from metricsmith.optimizers.induce import induce
    from metricsmith.optimizers.runs import Induced
    from metricsmith.programs.induced import InducedMetric
    from metricsmith.programs.judges.criterion import CriterionJudge
    from metricsmith.programs.judges.dna import DnAEval
    from metricsmith.programs.judges.examples import ExampleJudge
    from metricsmith.programs.judges.guideline import GuidelineJudge
    from metricsmith.programs.judges.panel import Panel
    from metricsmith.programs.judges.repeated import Repeated
    from metricsmith.programs.judges.rubric import RubricJudge
    from metricsmith.programs.loading import load
    from metricsmith.records import Agreement, Judgement, MetricCard, Output, Scale, Status, Task, Usage
    from metricsmith.regression import LinearCombination, MetaMetrics, PriorRidge, TwoStagePLS, project
    from metricsmith.report.comparison.record import Comparison
    from metricsmith.report.comparison.write import write_comparison
    from metricsmith.report.record import RunRecord
    from metricsmith.report.write import write_reports
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
    from metricsmith.store import Store

_HOMES = {
    "aggregation": ("OutlierRule", "drop_outliers", "rrwa"),
    "bank.catalogue": ("MetricBank", "default_bank"),
    "datasets.table": ("Table", "read_table"),
    "errors": (
        "DataError", "InputError", "Interrupted", "JudgementFailed", "MetricsmithError", "ModelFailure", "NeedsError",
        "OptionError", "StateError", "StoreError",
    ),
    "metric": ("DSPyMetric", "Metric", "make_row"),
    "optimizers.auto_metrics": ("AutoMetrics",),
    "optimizers.comparison.run": ("compare",),
    "optimizers.induce": ("induce",),
    "optimizers.runs": ("Induced",),
    "programs.induced": ("InducedMetric",),
    "programs.judges.criterion": ("CriterionJudge",),
    "programs.judges.dna": ("DnAEval",),
    "programs.judges.examples": ("ExampleJudge",),
    "programs.judges.guideline": ("GuidelineJudge",),
    "programs.judges.panel": ("Panel",),
    "programs.judges.repeated": ("Repeated",),
    "programs.judges.rubric": ("RubricJudge",),
    "programs.loading": ("load",),
    "records": ("Agreement", "Judgement", "MetricCard", "Output", "Scale", "Status", "Task", "Usage"),
    "regression": ("LinearCombination", "MetaMetrics", "PriorRidge", "TwoStagePLS", "project"),
    "report.comparison.record": ("Comparison",),
    "report.comparison.write": ("write_comparison",),
    "report.record": ("RunRecord",),
    "report.write": ("write_reports",),
    "scoring": (
        "Budget", "CallableMetric", "Concurrency", "Coverage", "ScoreTable", "ascore", "estimate", "score",
    ),
    "store": ("Store",),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agreement", "AutoMetrics", "Budget", "CallableMetric", "Comparison", "Concurrency", "Coverage",
    "CriterionJudge", "DSPyMetric", "DataError", "DnAEval", "ExampleJudge", "GuidelineJudge", "Induced",
    "InducedMetric", "InputError", "Interrupted", "Judgement", "JudgementFailed", "LinearCombination",
    "MetaMetrics", "Metric", "MetricBank", "MetricCard", "MetricsmithError", "ModelFailure", "NeedsError",
    "OptionError", "OutlierRule", "Output", "Panel", "PriorRidge", "Repeated", "RubricJudge", "RunRecord", "Scale",
    "ScoreTable", "StateError", "Status", "Store", "StoreError", "Table", "Task", "TwoStagePLS", "Usage", "ascore",
    "compare", "default_bank", "drop_outliers", "estimate", "induce", "load", "make_row", "project", "read_table",
    "rrwa", "score", "write_comparison", "write_reports",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
