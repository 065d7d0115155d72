"""A permutation test whose observed difference is undefined, while draws are not."""

from __future__ import annotations

import math

import numpy as np

from metricsmith.stats.resampling.permutation import paired_permutation_draws


def test_an_undefined_observed_difference_ends_no_test_and_no_run():
    def exchange(*_):
        return lambda swap: np.where(swap.any(axis=1), 1.0, math.nan)

    zeros = np.zeros(6)
    found = paired_permutation_draws(
        lambda *_: math.nan, zeros, zeros, zeros, permutations=200, exchange=exchange, stop=(0.02, 0.5)
    )
    assert math.isnan(found.observed)
    assert found.draws.size == 200
    assert math.isnan(found.test("greater").p_value)
