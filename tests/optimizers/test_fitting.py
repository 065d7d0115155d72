"""Candidate scores become one prediction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.fitting import FULL, FitOptions, fit
from metricsmith.stats.correlation import kendall_tau_b


def data(rows=80, junk=6, seed=0):
    random = np.random.default_rng(seed)
    quality = random.normal(size=rows)
    good = quality[:, None] + random.normal(size=(rows, 3)) * [0.5, 0.8, 1.2]
    values = np.hstack([good, random.normal(size=(rows, junk))])
    names = [*[f"good{j}" for j in range(3)], *[f"junk{j}" for j in range(junk)]]
    return values, 3 + quality, names


def fitted(values, ratings, names, **changes):
    settings = {"declared": (), "judged": (), "options": FitOptions(), **changes}
    return fit(values, ratings, names, **settings)


def test_the_default_reaches_the_fidelity_asked_for_with_fewer_columns():
    values, ratings, names = data()
    result = fitted(values, ratings, names)
    small = result.small.predict(values[:, result.positions])
    full = result.rivals[FULL].predict(values)
    assert len(result.small) < len(names)
    assert result.fidelity >= 0.97
    assert np.corrcoef(small, full)[0, 1] == pytest.approx(result.fidelity, abs=1e-9)


def test_n_fixes_the_number_of_components():
    result = fitted(*data(), options=FitOptions(n=2))
    assert len(result.small) == 2
    assert set(result.small.names) <= {"good0", "good1", "good2"}


def test_the_full_model_keeps_every_candidate_that_varies():
    values, ratings, names = data()
    result = fitted(values, ratings, names, options=FitOptions(full=True))
    assert sorted(result.small.names) == sorted(names)
    abridged = fitted(values, ratings, names)
    np.testing.assert_array_equal(
        result.small.predict(values[:, result.positions]), abridged.rivals[FULL].predict(values)
    )
    assert not result.abridges
    assert FULL not in result.rivals


def test_the_size_goes_by_cost_unless_it_is_given():
    free, costly = FitOptions().settled(costly=False), FitOptions().settled(costly=True)
    assert (free.n, free.fidelity) == (12, None)
    assert (costly.n, costly.fidelity) == (None, 0.97)
    for given in ({"n": 5}, {"fidelity": 0.9}, {"full": True}, {"regression": "pls"}):
        for cost in (False, True):
            assert FitOptions(**given).settled(cost) == FitOptions(**given)


def test_a_size_that_is_not_settled_is_said_to_hang_on_the_judges():
    assert FitOptions().label.endswith("projected to n 12, with judges to fidelity 0.97")
    assert FitOptions().settled(costly=True).label.endswith("projected to fidelity 0.97")


def test_names_are_the_candidates_names():
    values, ratings, names = data()
    result = fitted(values, ratings, names)
    assert [names[place] for place in result.positions] == list(result.small.names)


def test_the_papers_regression_keeps_five_and_prior_ridge_stands_beside_it():
    result = fitted(*data(), options=FitOptions(regression="pls"))
    assert len(result.small) == 5
    assert math.isnan(result.fidelity)
    assert "PriorRidge, projected" in result.rivals
    assert "partial least squares" in result.sentence


def test_pls_drops_judges_that_point_down_and_says_so():
    values, ratings, names = data(junk=2)
    values[:, 0] *= -1
    result = fitted(values, ratings, names, judged=["good0"], declared=["good0"], options=FitOptions(regression="pls"))
    assert "good0" not in result.small.names
    assert "good0" in result.sentence


def test_a_lower_is_better_rating_gives_the_mirror_image():
    values, ratings, names = data()
    up = fitted(values, ratings, names, declared=["good0"])
    down = fitted(values, -ratings, names, declared=["good0"], higher_is_better=False)
    np.testing.assert_allclose(
        down.small.predict(values[:, down.positions]), -up.small.predict(values[:, up.positions]), atol=1e-9
    )


def test_a_prior_helps_where_labels_are_few():
    gains = []
    for seed in range(20):
        values, ratings, names = data(rows=220, junk=40, seed=seed)
        with_prior = fitted(values[:20], ratings[:20], names, declared=["good0", "good1", "good2"])
        without = fitted(values[:20], ratings[:20], names)
        taus = [kendall_tau_b(model.rivals[FULL].predict(values[20:]), ratings[20:]) for model in (with_prior, without)]
        gains.append(taus[0] - taus[1])
    assert np.mean(gains) > 0.02


def test_only_declared_candidates_are_averaged_and_the_sentence_says_so():
    values, ratings, names = data(junk=0)
    result = fitted(values, ratings, names, declared=names)
    assert "plain mean" in result.sentence
    full = result.rivals[FULL].combination
    assert max(full.weights) == pytest.approx(min(full.weights))


def test_missing_and_infinite_scores_of_components_are_counted():
    values, ratings, names = data()
    values[3, 0], values[4, 0] = np.nan, np.inf
    result = fitted(values, ratings, names, options=FitOptions(n=9))
    assert result.imputed == {"good0": 2}
    assert np.isfinite(result.small.predict(values[:, result.positions])).all()


def test_unrated_rows_change_the_choice_but_never_the_full_model():
    values, ratings, names = data()
    more = np.random.default_rng(1).normal(size=(200, len(names))) * 3
    plain, helped = fitted(values, ratings, names), fitted(values, ratings, names, unrated=more)
    assert plain.rivals[FULL] == helped.rivals[FULL]
    assert plain.small != helped.small


@pytest.mark.parametrize("ratings", [np.ones(10), np.ones(1)])
def test_constant_or_single_ratings_cannot_be_learned_from(ratings):
    with pytest.raises(DataError, match="nothing can be learned"):
        fitted(np.random.default_rng(0).normal(size=(len(ratings), 3)), ratings, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regression": "plss"}, "did you mean 'pls'"),
        ({"n": 0}, "at least 1"),
        ({"fidelity": 1.5}, "at most 1"),
        ({"full": True, "n": 3}, "leave n .* out"),
        ({"full": True, "fidelity": 0.9}, "leave n .* fidelity"),
        ({"full": True, "regression": "pls"}, "--regression pls"),
    ],
)
def test_options_without_meaning_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        FitOptions(**options)
