"""Simulated people and judges: the paper's generator, its pieces by hand, and Finding 2."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.measures import (
    Sides,
    downstream_measures,
    judge_agreement,
    rating_measures,
    weighted_values,
)
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.simulate import decaying_choice, project_simplex, selection_effect, simulate
from metricsmith.rating_model.vectors import Decision

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "agreement.json").read_text("utf-8"))  # see its own test
THREE = ResponseSets.every(("a", "b", "c"))
TWO = ResponseSets.every(("a", "b"))


def test_the_projection_is_the_golden_one():
    golden = GOLDEN["project_simplex"]
    assert project_simplex(golden["v"]) == pytest.approx(np.array(golden["out"]), abs=1e-12)


@settings(max_examples=80, deadline=None)
@given(arrays(float, (3, 5), elements=st.floats(-3, 3)), st.integers(0, 2**32 - 1))
def test_the_projection_is_the_nearest_distribution(points, seed):
    found = project_simplex(points)
    assert (found >= 0).all()
    assert found.sum(axis=-1) == pytest.approx(np.ones(3))
    others = np.random.default_rng(seed).dirichlet(np.full(5, 0.5), (50, 3))
    assert (((points - found) ** 2).sum(-1) <= ((points - others) ** 2).sum(-1) + 1e-9).all()
    assert project_simplex(found) == pytest.approx(found, abs=1e-12)


def test_choices_decay_over_the_options_of_a_set():
    # exp(-1) = .3679: of {a, b} a gets 1 / 1.3679; of {a, b, c} 1 / (1 + .3679 + .1353).
    found = decaying_choice(THREE, 1.0)
    assert found[:, :3].tolist() == np.eye(3).tolist()
    assert found[:, 3] == pytest.approx([0.73106, 0.26894, 0.0], abs=5e-6)
    assert found[:, 6] == pytest.approx([0.66524, 0.24473, 0.09003], abs=5e-6)
    assert decaying_choice(THREE, -1.0)[:, 6] == pytest.approx(found[::-1, 6])
    assert decaying_choice(THREE, 0.0)[:, 6] == pytest.approx(np.full(3, 1 / 3))
    assert decaying_choice(THREE, 1e5)[:, 5].tolist() == [0.0, 1.0, 0.0]
    assert decaying_choice(THREE, -1e5)[:, 5].tolist() == [0.0, 0.0, 1.0]


def test_the_selection_effect_is_one_by_chance_and_as_stated_in_the_paper_else():
    # Reference, with noise in F: 2.03 and .44 for three options. Without: (2 * 1.7616 + 2.600) / 3.
    assert selection_effect(THREE, decaying_choice(THREE, 0.0)) == pytest.approx(1.0)
    assert selection_effect(THREE, decaying_choice(THREE, 2.0)) == pytest.approx(2.0412, abs=5e-5)
    assert selection_effect(THREE, decaying_choice(THREE, -1.0)) == pytest.approx(0.4486, abs=5e-5)
    assert selection_effect(THREE, decaying_choice(THREE, 2.0), "c") < 0.5
    assert math.isnan(selection_effect(ResponseSets.single(("a", "b")), np.eye(2)))


def test_one_seed_gives_the_same_people_and_judges_whatever_their_process():
    plain = simulate(THREE, items=5, judges=3, seed=4)
    other = simulate(THREE, items=5, judges=3, seed=4, decays=(2, -1), error=0.3, skew=1, noise=0.05)
    for name in ("stable", "judge_stable", "spreads"):
        assert np.array_equal(getattr(plain, name), getattr(other, name))
    assert not np.array_equal(plain.stable, simulate(THREE, items=5, judges=3, seed=5).stable)
    again = simulate(THREE, items=5, judges=3, seed=4, decays=(2, -1), error=0.3, skew=1, noise=0.05)
    assert np.array_equal(again.judges.choices, other.judges.choices)


def test_people_err_and_judges_do_not():
    made = simulate(THREE, items=6, judges=2, error=0.3, skew=1.0, decays=(2, -1))
    assert made.human.sets == pytest.approx(made.stable @ made.model.error.T)
    assert made.target.sets == pytest.approx(made.stable)
    assert made.judges.sets == pytest.approx(made.judge_stable)
    assert made.human.choices == pytest.approx(made.human.sets @ decaying_choice(THREE, 2).T)
    assert made.judges.choices == pytest.approx(made.judge_stable @ decaying_choice(THREE, -1).T)
    assert np.diag(made.model.error) == pytest.approx(np.full(7, 0.7))


def test_judges_stray_by_their_spread():
    made = simulate(THREE, items=400, judges=20, spread=(0.0, 0.4), seed=1)
    distance = np.sqrt(((made.judge_stable - made.stable) ** 2).sum(axis=-1)).mean(axis=-1)
    assert spearmanr(made.spreads, distance).statistic > 0.95
    same = simulate(THREE, items=3, judges=2, spread=(0.0, 0.0))
    assert same.judge_stable == pytest.approx(np.broadcast_to(same.stable, (2, 3, 7)), abs=1e-12)


def test_noise_in_f_is_new_for_every_item_and_keeps_it_a_choice_out_of_the_set():
    made = simulate(THREE, items=8, judges=2, decays=(2, 0), noise=0.05)
    assert made.model.forced_choice.shape == (8, 3, 7)
    assert made.judge_model.forced_choice.shape == (2, 8, 3, 7)
    assert np.ptp(made.model.forced_choice[:, 0, 3]) > 0
    assert (made.judge_model.forced_choice[..., THREE.membership == 0] == 0).all()
    assert made.judge_model.forced_choice.mean(axis=(0, 1)) == pytest.approx(decaying_choice(THREE, 0), abs=0.05)


def test_few_ratings_are_unbiased_and_many_are_the_population():
    made = simulate(THREE, items=20, decays=(2, -1), error=0.2, skew=1)
    many = made.rated(20_000, seed=3)
    assert many.choices == pytest.approx(made.human.choices, abs=0.03)
    assert many.endorsements == pytest.approx(made.human.endorsements, abs=0.03)
    few = [made.rated(1, seed) for seed in range(600)]
    assert {*np.unique(few[0].choices)} == {0.0, 1.0}
    assert np.mean([one.choices for one in few], axis=0) == pytest.approx(made.human.choices, abs=0.09)
    assert np.mean([one.endorsements for one in few], axis=0) == pytest.approx(made.human.endorsements, abs=0.09)


def test_fifty_judges_of_a_hundred_items_take_milliseconds():
    times = []
    for seed in range(5):
        start = time.process_time()
        made = simulate(THREE, decays=(2, -1), seed=seed)
        _ = made.human, made.judges
        times.append(time.process_time() - start)
    assert min(times) < 0.05  # 2 ms on one core; the reference takes .95 s


@pytest.mark.parametrize("decays", [(2.0, -1.0), (-1.0, 2.0)])
def test_finding_2_with_opposite_selection_effects_the_hit_rate_orders_judges_badly(decays):
    """Rank correlation with decision consistency: low for the hit rate, near .9 for soft response sets."""
    names = ["hit_rate", "squared_error_sets"]
    found = []
    for seed in range(10):
        for sets in (TWO, THREE):
            made = simulate(sets, decays=decays, seed=seed)
            measures = [*rating_measures(names), downstream_measures(Decision(("a",)))[0]]
            hits, error, consistency = weighted_values(measures, Sides(made.human, made.judges))[:, 0]
            found.append([spearmanr(hits, consistency).statistic, -spearmanr(error, consistency).statistic])
    hits, error = np.mean(found, axis=0)
    assert hits < 0.5
    assert error > 0.85


def test_of_fully_specified_tasks_the_hit_rate_orders_judges_well():
    made = simulate(ResponseSets.single(("a", "b", "c")), decays=(2, -1), seed=0)
    hits = judge_agreement(made.human, made.judges, ["hit_rate"])[0]
    consistency = weighted_values(downstream_measures(Decision(("a",))), Sides(made.human, made.judges))[0, 0]
    assert spearmanr(hits, consistency).statistic > 0.8


@pytest.mark.parametrize(
    "settings_",
    [
        {"items": 0}, {"judges": 0}, {"spread": (0.4, 0.1)}, {"spread": (-1, 0)}, {"noise": -1}, {"error": 2},
        {"noise": math.nan}, {"decays": (math.nan, 0)}, {"decays": (0, math.inf)}, {"skew": math.nan},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_named(settings_):
    with pytest.raises(OptionError):
        simulate(TWO, **settings_)


def test_a_point_that_is_missing_has_no_projection():
    assert np.isnan(project_simplex([[math.nan, 2.0, 3.0], [0.0, 2.0, 3.0]])).tolist() == [[True] * 3, [False] * 3]


def test_a_selection_effect_is_that_of_a_matrix_of_the_sets():
    with pytest.raises(DataError, match=r"must be \(2, 3\)"):
        selection_effect(TWO, np.eye(2))


def test_at_least_one_rating_is_needed():
    with pytest.raises(OptionError, match="at least one"):
        simulate(TWO, items=2, judges=1).rated(0)
