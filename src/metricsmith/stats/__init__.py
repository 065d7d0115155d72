"""Statistics that know nothing of metrics or models: correlation, agreement, resampling, regression, validity.

`LinearCombination`  intercept and weights over the columns that are used
`MetaMetrics`        gradient-boosted trees from scores to ratings
`PriorRidge`         ridge regression whose penalty is a prior guess
`TwoStagePLS`        the regression of the AutoMetrics paper
`project`            a fitted regression with few of its columns
`OutlierRule`        the runs that are too far from the others
`drop_outliers`      scores with NaN in place of outliers
`rrwa`               the reciprocal-rank weighted average of repeated runs
`RaterCeiling`       the agreement of two people, and the ceiling that follows for a metric
`rater_ceiling`      that of given ratings
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith.stats.aggregation import OutlierRule as OutlierRule
    from metricsmith.stats.aggregation import drop_outliers as drop_outliers
    from metricsmith.stats.aggregation import rrwa as rrwa
    from metricsmith.stats.ceiling import RaterCeiling as RaterCeiling
    from metricsmith.stats.ceiling import rater_ceiling as rater_ceiling
    from metricsmith.stats.regression import LinearCombination as LinearCombination
    from metricsmith.stats.regression import MetaMetrics as MetaMetrics
    from metricsmith.stats.regression import PriorRidge as PriorRidge
    from metricsmith.stats.regression import TwoStagePLS as TwoStagePLS
    from metricsmith.stats.regression import project as project
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
