"""Forge automatic metrics out of human feedback.

The names that a user needs first stand here, the others in the modules `bank`, `data`, `judges`, `probing`, `reports`,
`stats`, `students`, `testing`, `translation` and `tuning`. Each name loads its module at first use, so that importing
the package stays as cheap as importing DSPy.
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith import bank as bank
    from metricsmith import data as data
    from metricsmith import judges as judges
    from metricsmith import probing as probing
    from metricsmith import reports as reports
    from metricsmith import stats as stats
    from metricsmith import students as students
    from metricsmith import testing as testing
    from metricsmith import translation as translation
    from metricsmith import tuning as tuning
    from metricsmith.bank.catalogue import MetricBank as MetricBank
    from metricsmith.bank.catalogue import default_bank as default_bank
    from metricsmith.bank.catalogue import full_bank as full_bank
    from metricsmith.datasets.table import Table as Table
    from metricsmith.datasets.table import read_table as read_table
    from metricsmith.errors import DataError as DataError
    from metricsmith.errors import InputError as InputError
    from metricsmith.errors import Interrupted as Interrupted
    from metricsmith.errors import JudgementFailed as JudgementFailed
    from metricsmith.errors import MetricsmithError as MetricsmithError
    from metricsmith.errors import ModelFailure as ModelFailure
    from metricsmith.errors import NeedsError as NeedsError
    from metricsmith.errors import OptionError as OptionError
    from metricsmith.errors import StateError as StateError
    from metricsmith.errors import StoreError as StoreError
    from metricsmith.metric import Metric as Metric
    from metricsmith.metric import make_row as make_row
    from metricsmith.optimizers.auto_metrics import AutoMetrics as AutoMetrics
    from metricsmith.optimizers.induce import induce as induce
    from metricsmith.optimizers.result import RunResult as RunResult
    from metricsmith.optimizers.tuner import JudgeTuner as JudgeTuner
    from metricsmith.outcomes import RewardCheck as RewardCheck
    from metricsmith.programs.induced import InducedMetric as InducedMetric
    from metricsmith.programs.judges.criterion import CriterionJudge as CriterionJudge
    from metricsmith.programs.judges.criterion import RubricJudge as RubricJudge
    from metricsmith.programs.judges.panel import Panel as Panel
    from metricsmith.programs.judges.repeated import Repeated as Repeated
    from metricsmith.programs.loading import load as load
    from metricsmith.rating_model.selection import select_judge as select_judge
    from metricsmith.records import Judgement as Judgement
    from metricsmith.records import MetricCard as MetricCard
    from metricsmith.records import Output as Output
    from metricsmith.records import Scale as Scale
    from metricsmith.records import Status as Status
    from metricsmith.records import Task as Task
    from metricsmith.records import Usage as Usage
    from metricsmith.reward import Reward as Reward
    from metricsmith.scoring import Budget as Budget
    from metricsmith.scoring import CallableMetric as CallableMetric
    from metricsmith.scoring import Concurrency as Concurrency
    from metricsmith.scoring import ScoreTable as ScoreTable
    from metricsmith.scoring import ascore as ascore
    from metricsmith.scoring import estimate as estimate
    from metricsmith.scoring import score as score
    from metricsmith.stats.agreement import Agreement as Agreement
    from metricsmith.store import Store as Store
    from metricsmith.studies.comparison.run import compare as compare
    from metricsmith.studies.correction import corrected_mean as corrected_mean
    from metricsmith.version import __version__ as __version__
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
