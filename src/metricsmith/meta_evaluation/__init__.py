"""Agreement of metrics with gold scores over systems and segments, and of error spans with marked ones.

Scores are matrices of shape (k, n): k systems in rows, n segments in columns, higher is better on both sides, NaN
where there is no score. A cell without a score on either side is left out, and results count what was left out.
"""

from metricsmith.meta_evaluation.evaluation import (
    WMT24,
    MetricResult,
    TaskResult,
    average_tasks,
    evaluate_task,
    evaluate_tasks,
    mean_rating,
    tasks_by_name,
)
from metricsmith.meta_evaluation.jackknife import measure_interval
from metricsmith.meta_evaluation.matrices import (
    CORRELATIONS,
    Grouping,
    Measure,
    complete_segments,
    segment_correlation,
    system_means,
)
from metricsmith.meta_evaluation.measures import (
    MEASURES,
    SegmentAccuracy,
    SegmentCorrelation,
    SoftSystemAccuracy,
    SystemAccuracy,
    SystemCorrelation,
    measure,
)
from metricsmith.meta_evaluation.pairwise import PairwiseAccuracy, pairwise_accuracy, perm_pairs
from metricsmith.meta_evaluation.ranking import RankTable, TaskAverage, average_over_tasks, rank_table
from metricsmith.meta_evaluation.significance import ChanceFloor, chance_floor, perm_both
from metricsmith.meta_evaluation.spans import (
    CharacterF1,
    LocatedSpans,
    character_f1,
    character_f1_interval,
    character_terms,
    locate_spans,
)
from metricsmith.meta_evaluation.systems import (
    SoftPairwiseAccuracy,
    SystemPairwiseAccuracy,
    soft_pairwise_accuracy,
    system_p_values,
    system_pairwise_accuracy,
)

__all__ = [
    "WMT24",
    "MetricResult",
    "TaskResult",
    "average_tasks",
    "evaluate_task",
    "evaluate_tasks",
    "mean_rating",
    "tasks_by_name",
    "measure",
    "measure_interval",
    "SystemCorrelation",
    "SystemAccuracy",
    "SoftSystemAccuracy",
    "SegmentCorrelation",
    "SegmentAccuracy",
    "CORRELATIONS",
    "CharacterF1",
    "ChanceFloor",
    "Grouping",
    "MEASURES",
    "LocatedSpans",
    "Measure",
    "PairwiseAccuracy",
    "RankTable",
    "SoftPairwiseAccuracy",
    "SystemPairwiseAccuracy",
    "TaskAverage",
    "average_over_tasks",
    "chance_floor",
    "character_f1",
    "character_f1_interval",
    "character_terms",
    "complete_segments",
    "locate_spans",
    "pairwise_accuracy",
    "perm_both",
    "perm_pairs",
    "rank_table",
    "segment_correlation",
    "soft_pairwise_accuracy",
    "system_means",
    "system_p_values",
    "system_pairwise_accuracy",
]
