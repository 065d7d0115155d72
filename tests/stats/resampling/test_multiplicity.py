"""Holm and Benjamini-Hochberg: by hand and against statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import OptionError
from metricsmith.stats.resampling import benjamini_hochberg, holm

METHODS = [(holm, "holm"), (benjamini_hochberg, "fdr_bh")]


def test_holm_by_hand():
    # sorted .01 .02 .04: 3 x .01, max(.03, 2 x .02), max(.04, 1 x .04)
    np.testing.assert_allclose(holm([0.02, 0.04, 0.01]), [0.04, 0.04, 0.03])


def test_benjamini_hochberg_by_hand():
    # sorted .01 .02 .04: .04 x 3/3, min(.04, .02 x 3/2), min(.03, .01 x 3/1)
    np.testing.assert_allclose(benjamini_hochberg([0.02, 0.04, 0.01]), [0.03, 0.04, 0.03])


@pytest.mark.parametrize(("method", "name"), METHODS)
@settings(deadline=None, max_examples=50)
@given(p=st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.05, 1.0])), min_size=1, max_size=20))
def test_equals_statsmodels(method, name, p):
    from statsmodels.stats.multitest import multipletests

    np.testing.assert_allclose(method(p), multipletests(p, method=name)[1], atol=1e-12)


@pytest.mark.parametrize(("method", "name"), METHODS)
def test_missing_tests_stay_missing_and_do_not_count(method, name):
    adjusted = method([0.01, math.nan, 0.04])
    assert math.isnan(adjusted[1])
    np.testing.assert_allclose(adjusted[[0, 2]], method([0.01, 0.04]))
    assert method([]).shape == (0,)


@pytest.mark.parametrize(("method", "name"), METHODS)
def test_a_statistic_is_not_a_p_value(method, name):
    with pytest.raises(OptionError, match=r"p-value 1\.2"):
        method([0.1, 1.2])
