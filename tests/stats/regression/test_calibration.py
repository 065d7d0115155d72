"""Calibration: exact on hand-made cases, equal to other libraries, honest on rows that a map has not seen."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from sklearn.isotonic import IsotonicRegression

from metricsmith.errors import DataError, OptionError, StateError
from metricsmith.stats.agreement import quadratic_kappa
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.regression import calibration
from metricsmith.stats.regression.calibration import (
    IsotonicMap,
    OrdinalMap,
    calibrate,
    calibration_from_dict,
    cross_calibrated,
)

NAN = math.nan
some = settings(deadline=None, max_examples=60)
pairs = st.integers(2, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(-50, 50, width=32), min_size=n, max_size=n),
        st.lists(st.integers(1, 5), min_size=n, max_size=n),
    )
)  # fmt: skip


def rated(n, seed=0, slope=1.5, levels=5):
    """A judge's numbers and ratings that follow proportional odds in it."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    latent = slope * x + random.logistic(size=n)
    return x, 1.0 + np.digitize(latent, np.linspace(-2, 2, levels - 1))


def test_isotonic_by_hand():
    # The middle two violate the order and share their mean, (4 + 2) / 2.
    fitted = IsotonicMap.fit([1, 2, 3, 4], [1, 4, 2, 5])
    np.testing.assert_allclose(fitted.apply([0, 1, 2, 3, 4, 9]), [1, 1, 3, 3, 5, 5])
    np.testing.assert_allclose(fitted.apply([1.5, 3.5]), [2, 4])


@some
@given(pairs)
def test_isotonic_is_scikit_learns(pair):
    x, y = pair
    new = np.linspace(-60, 60, 50)
    expected = IsotonicRegression(out_of_bounds="clip").fit(x, y).predict(new)
    np.testing.assert_allclose(IsotonicMap.fit(x, y).apply(new), expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["isotonic", "ordinal"])
@some
@given(pair=pairs)
def test_maps_never_fall_stay_on_the_scale_and_survive_json_to_the_bit(kind, pair):
    fitted = calibrate(*pair, kind)
    ratings = fitted.apply(np.linspace(-60, 60, 101))
    assert (np.diff(ratings) >= -1e-9).all()
    assert ratings.min() >= min(pair[1]) - 1e-9
    assert ratings.max() <= max(pair[1]) + 1e-9
    again = calibration_from_dict(json.loads(json.dumps(fitted.to_dict(), allow_nan=False)))
    assert again == fitted
    np.testing.assert_array_equal(again.apply([-1.0, NAN, 3.0]), fitted.apply([-1.0, NAN, 3.0]))


def test_the_gradient_is_that_of_the_loss():
    x, y = rated(60)
    places = (y - 1).astype(int)
    for parameters in ([0.7, -1.0, 0.2, -0.3, 0.1], [3.0, -8.0, 1.5, 1.5, 1.5], [0.0, 0.0, -2.0, -2.0, -2.0]):
        wrong = check_grad(
            lambda p: calibration._loss(p, x, places)[0], lambda p: calibration._loss(p, x, places)[1], parameters
        )
        assert wrong < 1e-4


@pytest.mark.parametrize(("x", "places"), [([3.0, 2.5, 3.0], [4, 3, 0]), ([-3.0, -2.5, -3.0], [0, 1, 2])])
def test_far_from_the_optimum_the_loss_is_finite_and_its_gradient_right(x, places):
    x, places = np.array(x), np.array(places)  # in either tail: one row where it is expected, the others far off
    for slope in (8.0, 14.0):
        parameters = np.array([slope, -1.0, 0.0, 0.0, 0.0])
        loss, gradient = calibration._loss(parameters, x, places)
        ahead = [calibration._loss(parameters + step, x, places)[0] for step in 1e-6 * np.eye(5)]
        np.testing.assert_allclose(gradient, (np.array(ahead) - loss) / 1e-6, rtol=1e-3, atol=1e-3)
    assert math.isfinite(calibration._loss(np.array([1e4, -1.0, 0.0, 0.0, 0.0]), x, places)[0])


def test_predictions_that_differ_by_rounding_alone_do_not_vary():
    fitted = OrdinalMap.fit([0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2], [1, 1, 2, 2])
    assert fitted.sd == 0.0
    np.testing.assert_allclose(fitted.apply([-9, 0.3, 9]), 1.5)


def test_without_its_prior_the_ordinal_map_is_the_most_likely_one(monkeypatch):
    ordinal_model = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    x, y = rated(300)
    monkeypatch.setattr(calibration, "PENALTY", 0.0)
    fitted = OrdinalMap.fit(x, y)
    model = ordinal_model.OrderedModel(y, ((x - x.mean()) / x.std())[:, None], distr="logit")
    theirs = model.fit(method="bfgs", disp=False)
    assert fitted.slope == pytest.approx(theirs.params[0], abs=1e-4)
    np.testing.assert_allclose(fitted.cuts, model.transform_threshold_params(theirs.params)[1:-1], atol=1e-4)


def test_the_ordinal_map_recovers_what_was_planted():
    x, y = rated(20_000, slope=1.5)
    fitted = OrdinalMap.fit(x, y)
    assert fitted.slope == pytest.approx(1.5 * x.std(), abs=0.05)
    np.testing.assert_allclose(fitted.cuts, np.linspace(-2, 2, 4) - 1.5 * x.mean(), atol=0.08)
    shares = [(y == level).mean() for level in fitted.levels]
    np.testing.assert_allclose(fitted.probabilities(x).mean(axis=0), shares, atol=0.005)
    np.testing.assert_allclose(fitted.probabilities(x).sum(axis=1), 1.0)


def test_separable_ratings_have_a_finite_map():
    fitted = OrdinalMap.fit([1, 2, 3, 4], [0, 0, 1, 1])
    assert 0 < fitted.slope < 10
    assert fitted.apply([1.0])[0] < 0.5 < fitted.apply([4.0])[0]


@pytest.mark.parametrize("kind", ["isotonic", "ordinal"])
def test_what_does_not_vary_or_points_the_wrong_way_gives_the_mean_rating(kind):
    for x, y in (([3, 3, 3, 3], [1, 2, 2, 3]), ([4, 3, 2, 1], [1, 2, 2, 3])):
        np.testing.assert_allclose(calibrate(x, y, kind).apply([1, 3, 9]), 2.0, atol=0.02)
    np.testing.assert_allclose(calibrate([1, 2, 3], [4, 4, 4], kind).apply([0, 9]), 4.0)


@pytest.mark.parametrize("kind", ["isotonic", "ordinal"])
def test_a_judge_who_uses_another_part_of_the_scale_is_mended_in_value_and_not_in_order(kind):
    x, y = rated(200, seed=3)
    judged = 4.0 + 0.2 * x  # the right order, all between 3 and 5
    calibrated = cross_calibrated(judged, y, kind=kind, seed=1)
    assert quadratic_kappa(judged, y) < 0.15
    assert quadratic_kappa(calibrated, y) > 0.4
    assert kendall_tau_b(calibrated, y) == pytest.approx(kendall_tau_b(judged, y), abs=0.06)


def test_no_row_is_calibrated_by_a_map_that_saw_its_group():
    x, y = rated(60)
    groups = np.arange(60) // 3
    whole = cross_calibrated(x, y, groups, folds=4, seed=2)
    for group in range(20):
        changed = np.where(groups == group, 6.0 - y, y)
        np.testing.assert_array_equal(
            cross_calibrated(x, changed, groups, folds=4, seed=2)[groups == group], whole[groups == group]
        )
    assert (cross_calibrated(x, y, groups, folds=4, seed=3) != whole).any()


def test_unrated_rows_are_calibrated_and_missing_predictions_stay_missing():
    x, y = rated(40)
    x[3], y[5] = NAN, NAN
    calibrated = cross_calibrated(x, y)
    assert np.flatnonzero(np.isnan(calibrated)).tolist() == [3]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: calibrate([1, 2], [1, 2], "isotonc"), OptionError, "did you mean 'isotonic'"),
        (lambda: calibrate([1, NAN], [1, 2]), DataError, "at least two"),
        (lambda: calibrate([1, math.inf], [1, 2]), DataError, "infinite"),
        (lambda: calibrate([1, 2, 3], [1, 2]), DataError, "one length"),
        (lambda: OrdinalMap.fit(np.arange(30), np.arange(30)), OptionError, "continuum; calibrate with 'isotonic'"),
        (lambda: cross_calibrated([1, 2], [1, 2], folds=1), OptionError, "2 or more"),
        (lambda: cross_calibrated([1, 2], [1, 2], ["a", "a"]), DataError, "at least two"),
        (lambda: cross_calibrated([1, 2], [1, 2], ["a"]), DataError, "not aligned"),
        (lambda: calibration_from_dict({"kind": "cubic"}), StateError, "unknown kind"),
        (lambda: calibration_from_dict({"kind": "isotonic", "knots": [1.0]}), StateError, "cannot be read"),
        (lambda: calibration_from_dict({"kind": "isotonic", "knots": [2, 1], "values": [1, 2]}), StateError, "rise"),
        (lambda: calibration_from_dict({"kind": "isotonic", "knots": [NAN], "values": [1]}), StateError, "is none"),
        (lambda: OrdinalMap((1.0, 2.0), (0.0, 1.0), 1.0, 0.0, 1.0), StateError, "one cut fewer"),
    ],
)
def test_wrong_input_is_named(call, error, says):
    with pytest.raises(error, match=says):
        call()
