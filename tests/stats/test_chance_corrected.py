"""Agreement beyond chance: golden numbers of other programs, libraries, and properties."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.chance_corrected import (
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    table_ac1,
    table_kappa,
    table_pi,
)

# 15 items x 5 raters, with and without missing cells; krippendorff 0.9.0, statsmodels 0.15.0, irrCAC 0.4.4.
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "agreement.json").read_text("utf-8"))["multi_rater"]
some = settings(max_examples=80, deadline=None)
tables = arrays(np.int64, st.integers(2, 4).map(lambda size: (size, size)), elements=st.integers(0, 6))


def counted(rows):
    return [[sum(cell == label for cell in row) for label in range(3)] for row in rows]


def test_many_raters_as_three_programs_count_them():
    full, golden = counted(GOLDEN["full"]), GOLDEN["full_out"]
    assert full == GOLDEN["counts"]
    assert fleiss_kappa(full) == pytest.approx(golden["fleiss_statsmodels"], abs=1e-12)
    assert gwet_ac1(full) == pytest.approx(golden["irrcac"]["gwet"]["coefficient_value"], abs=6e-6)
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha(full, level=level) == pytest.approx(golden[f"kripp_{level}"], abs=1e-12)


def test_many_raters_of_whom_some_are_missing():
    counts, golden = counted(GOLDEN["missing"]), GOLDEN["missing_out"]
    assert krippendorff_alpha(counts) == pytest.approx(golden["kripp_nominal"], abs=1e-12)
    for statistic, name in ((fleiss_kappa, "fleiss"), (gwet_ac1, "gwet")):
        assert statistic(counts) == pytest.approx(golden["irrcac"][name]["coefficient_value"], abs=6e-6)


@some
@given(tables)
def test_kappa_is_that_of_scikit_learn(table):
    first, second = np.repeat(np.argwhere(table >= 0), table.ravel(), axis=0).T
    for weights, name in (("none", None), ("linear", "linear"), ("quadratic", "quadratic")):
        found = float(table_kappa(table, weights=weights))
        if len({*first.tolist(), *second.tolist()}) < 2:
            assert math.isnan(found)
        else:
            everything = list(range(len(table)))
            expected = metrics.cohen_kappa_score(first, second, weights=name, labels=everything)
            assert found == pytest.approx(expected, abs=1e-12)


@some
@given(arrays(np.int64, st.tuples(st.integers(2, 9), st.integers(2, 4)), elements=st.integers(0, 5)))
def test_fleiss_is_that_of_statsmodels(counts):
    from statsmodels.stats.inter_rater import fleiss_kappa as reference

    filled = counts.copy()
    filled[:, 0] += filled.sum(axis=1).max() + 2 - filled.sum(axis=1)  # statsmodels asks for equally many raters
    if (filled[:, 1:] > 0).any():
        assert fleiss_kappa(filled) == pytest.approx(reference(filled), abs=1e-12)
    else:
        assert math.isnan(fleiss_kappa(filled))


@some
@given(tables)
def test_two_raters_are_a_special_case_of_many(table):
    size = len(table)
    counts = [
        np.eye(size)[row] + np.eye(size)[column]
        for row in range(size)
        for column in range(size)
        for _ in range(table[row, column])
    ]
    if not counts:
        assert math.isnan(table_pi(table))
        return
    assert fleiss_kappa(counts) == pytest.approx(float(table_pi(table)), abs=1e-12, nan_ok=True)
    assert gwet_ac1(counts) == pytest.approx(float(table_ac1(table)), abs=1e-12, nan_ok=True)
    pi = float(table_pi(table))
    expected = pi + (1 - pi) / (2 * len(counts))
    assert krippendorff_alpha(counts) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_leading_axes_are_tables_of_their_own_and_scale_does_not_matter():
    rng = np.random.default_rng(0)
    stack = rng.integers(0, 9, (4, 5, 3, 3)).astype(float)
    for statistic in (table_kappa, table_pi, table_ac1):
        found = statistic(stack)
        assert found.shape == (4, 5)
        assert found[2, 3] == pytest.approx(float(statistic(stack[2, 3] / 7)))


def test_by_hand():
    # Two raters of ten: .7 equal, rows (.5, .5), columns (.6, .4): chance .5; pi: p = (.55, .45), chance .505.
    table = [[4, 1], [2, 3]]
    assert table_kappa(table) == pytest.approx(0.4)
    assert table_pi(table) == pytest.approx((0.7 - 0.505) / 0.495)
    assert table_ac1(table) == pytest.approx((0.7 - 2 * 0.55 * 0.45) / (1 - 2 * 0.55 * 0.45))


def test_values_of_an_interval_scale_need_no_equal_steps():
    counts = counted(GOLDEN["full"])
    assert krippendorff_alpha(counts, level="interval", values=[10, 12, 14]) == pytest.approx(
        krippendorff_alpha(counts, level="interval")
    )
    assert krippendorff_alpha(counts, level="interval", values=[0, 1, 9]) != pytest.approx(
        krippendorff_alpha(counts, level="interval")
    )


def test_what_is_undefined_is_nan():
    for statistic in (fleiss_kappa, krippendorff_alpha):
        assert math.isnan(statistic([[3, 0], [4, 0]]))  # one category
    for statistic in (fleiss_kappa, gwet_ac1, krippendorff_alpha):
        assert math.isnan(statistic([[1, 0], [0, 1]]))  # no item with two raters
        assert math.isnan(statistic(np.zeros((0, 2))))
    for statistic in (table_kappa, table_pi, table_ac1):
        assert math.isnan(statistic(np.zeros((2, 2))))
    assert math.isnan(table_kappa([[5, 0], [0, 0]]))


def test_bad_input_is_named():
    for counts in ([[1, -1]], [[1, math.nan]], [[1], [2]], [1, 2]):
        with pytest.raises(DataError, match="counts of shape"):
            fleiss_kappa(counts)
    with pytest.raises(OptionError, match="none, linear or quadratic"):
        table_kappa([[1, 0], [0, 1]], weights="cubic")
    with pytest.raises(OptionError, match="nominal, ordinal or interval"):
        krippendorff_alpha([[1, 1]], level="ratio")


@pytest.mark.parametrize("table", [[1.0, 2.0], [[1, 2, 3], [1, 2, 3]], [[3]]])
def test_tables_that_are_not_square_or_of_one_category_are_refused(table):
    for measure in (table_kappa, table_pi, table_ac1):
        with pytest.raises(DataError, match="the same in rows and columns"):
            measure(table)


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0], [1.0, math.nan]])
def test_values_that_categories_do_not_have_are_refused(values):
    with pytest.raises(OptionError, match="of 2 categories"):
        krippendorff_alpha([[1, 2], [2, 1]], level="interval", values=values)
