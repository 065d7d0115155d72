"""Intervals and tests by resampling whole groups, and corrections for many tests: their only home.

Rows of one group (a source, a prompt) share a level, so they are not independent: treating them as such
makes intervals too narrow and p-values too small. Everything here draws, exchanges or flips whole groups.
Without groups every row is a group of its own.

A *statistic* is a function of aligned arrays that returns one number, NaN where it is undefined. Pass
``batched=True`` for a statistic that works along the last axis and leaves out rows that are NaN (the
``batch_`` functions of `metricsmith.stats.correlation`): many resamples are then computed at once, with the
same result.
"""

from metricsmith.stats.resampling.clusters import (
    MOST_REPLICATES,
    correlation_interval,
    group_mean_interval,
    jackknife_interval,
    share_interval,
)
from metricsmith.stats.resampling.draws import (
    Groups,
    Statistic,
    aligned_rows,
    bootstrap_weights,
    check_draws,
    check_level,
    chunks,
    complete_rows,
    labelled_rows,
    left_out_weights,
    resampled_rows,
)
from metricsmith.stats.resampling.intervals import (
    Interval,
    mean_interval,
    mean_test,
    measured_coverage,
    signed_rank_test,
    symmetric_interval,
    wilson_interval,
)
from metricsmith.stats.resampling.permutation import (
    MINIMUM_GROUPS,
    PermutationTest,
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    paired_permutation_test,
    permutation_null,
    permutation_p_value,
    permutation_test,
)
from metricsmith.stats.resampling.repetitions import repeated_interval, repeated_mean, repeated_permutation_test

__all__ = [
    "MINIMUM_GROUPS",
    "MOST_REPLICATES",
    "Groups",
    "Interval",
    "PermutationTest",
    "Statistic",
    "aligned_rows",
    "benjamini_hochberg",
    "bootstrap_weights",
    "benjamini_yekutieli",
    "check_draws",
    "check_level",
    "chunks",
    "complete_rows",
    "correlation_interval",
    "group_mean_interval",
    "holm",
    "jackknife_interval",
    "labelled_rows",
    "left_out_weights",
    "mean_interval",
    "mean_test",
    "measured_coverage",
    "paired_permutation_test",
    "permutation_null",
    "permutation_p_value",
    "permutation_test",
    "repeated_interval",
    "repeated_mean",
    "repeated_permutation_test",
    "resampled_rows",
    "share_interval",
    "symmetric_interval",
    "signed_rank_test",
    "wilson_interval",
]
