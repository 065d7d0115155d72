"""Golden numbers of agreement with judges, and each difference from the authors' code.

`tests/golden/agreement.json` holds 9 sets of inputs with what the code of the paper's authors gives for them
(lguerdan/indeterminacy, November 2025; ``reference``), what libraries give (``libs``: scikit-learn 1.9.1, scipy 1.12,
statsmodels 0.15.0, krippendorff 0.9.0) and formulas written down apart from both (``own``).
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from metricsmith.rating_model.measures import (
    MEASURES,
    Sides,
    downstream_measures,
    judge_agreement,
    rating_measures,
    weighted_values,
)
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.vectors import Decision, RatingVectors

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "agreement.json").read_text("utf-8"))
OWN = {
    "HR": "hit_rate", "Cohen": "cohen_kappa", "Scott": "scott_pi", "Kripp": "krippendorff_alpha",
    "KL_jh": "kl_judge_human", "KL_hj": "kl_human_judge", "CE_jh": "cross_entropy_judge_human",
    "CE_hj": "cross_entropy_human_judge", "JSdist": "js_distance", "JSdiv": "js_divergence",
    "COV_h_hrs": "coverage", "MSE_hh": "squared_error_modes", "MSE_ss": "squared_error_choices",
    "MSE_srs": "squared_error_sets", "precision_micro": "precision", "recall_micro": "recall",
    "efficiency_hrs": "predictive_efficiency", "cover_subset_hrs_hrs": "set_coverage",
    "BCE_hrs_srs": "binary_cross_entropy", "consistency": "decision_consistency", "bias": "prevalence_bias",
}  # fmt: skip
REFERENCE = {
    "HR_h_h": "hit_rate", "Cohen_kappa_h_h": "cohen_kappa", "Fleiss_kappa_h_h": "scott_pi",
    "Krippendorff_h_h": "krippendorff_alpha", "KL_lh_s_s": "kl_judge_human", "KL_hl_s_s": "kl_human_judge",
    "CE_lh_s_s": "cross_entropy_judge_human", "CE_hl_s_s": "cross_entropy_human_judge", "JSD_s_s": "js_distance",
    "COV_h_hrs": "coverage", "COV_hat_h_hrs": "expected_coverage", "MSE_srs_srs": "squared_error_sets",
    "MSE_hat_srs_srs": "squared_error_sets", "MSE_h_h": "squared_error_modes", "MSE_s_s": "squared_error_choices",
    "consistency": "decision_consistency", "bias": "prevalence_bias",
}  # fmt: skip
NEAR = 1e-8  # the reference and the formulas put 1e-10 for shares of 0 in every divergence
CELLS = [(case, key) for case, found in GOLDEN["cases"].items() for key in found["own"]]
STOPPED = [(case, key) for case, key in CELLS if isinstance(GOLDEN["cases"][case]["reference"][key], str)]


def response_shares(choices, omega):
    """Theta of two options from Omega, of more options where Omega is the choices."""
    if omega.shape[-1] == 2:
        return np.stack([1 - omega[:, 1], 1 - omega[:, 0], omega.sum(axis=-1) - 1], axis=-1)
    assert np.array_equal(choices, omega)
    return np.hstack([choices, np.zeros((len(choices), 2 ** choices.shape[1] - 1 - choices.shape[1]))])


def vectors(case, side, theta):
    given = GOLDEN["cases"][case]["inputs"]
    choices, omega = (np.array(given[name], dtype=float) for name in side)
    options = tuple("abcdef"[: choices.shape[1]])
    sets = ResponseSets.every(options)
    if theta in given:
        sets = ResponseSets(options, sets.sets[: np.shape(given[theta])[1]])
        shares = np.array(given[theta], dtype=float)
    else:
        shares = response_shares(choices, omega)
    made = RatingVectors.of_population(sets, choices, shares)
    assert made.endorsements == pytest.approx(omega, abs=1e-12)
    return made


def sides(case, key="tau=0.5,pos=[0]", **settings):
    human = vectors(case, ("O_h", "Omega_h"), "theta_obs_h")
    target = vectors(case, ("O_h", "Omega_star_h"), "theta_star_h")
    judge = RatingVectors.stack([vectors(case, ("O_j", "Omega_j"), "theta_j")])
    threshold = float(key.split("tau=")[1].split(",")[0])
    return Sides(human, judge, target, **{"threshold": threshold, "ties": "first", **settings})


def values(case, key, rule="sum", strict=True, **settings):
    """Every measure by name, with the conventions of the reference unless told otherwise."""
    both = sides(case, key, **settings)
    positive = [both.human.response_sets.options[place] for place in json.loads(key.split("pos=")[1])]
    decision = Decision(tuple(positive), both.threshold, rule, strict)
    measures = [*rating_measures(), *downstream_measures(decision)]
    return dict(zip([one.name for one in measures], weighted_values(measures, both)[:, 0, 0], strict=True))


def number(golden):
    return golden if isinstance(golden, float | int) else math.nan


@pytest.mark.parametrize(("case", "key"), CELLS)
def test_every_measure_is_that_of_formulas_written_apart(case, key):
    found = values(case, key)
    for name, golden in GOLDEN["cases"][case]["own"][key].items():
        assert found[OWN[name]] == pytest.approx(number(golden), abs=NEAR, nan_ok=True), name


@pytest.mark.parametrize(("case", "key"), [cell for cell in CELLS if cell not in STOPPED])
def test_every_measure_is_the_references_where_it_has_a_number(case, key):
    found, undefined = values(case, key), set()
    for name, golden in GOLDEN["cases"][case]["reference"][key].items():
        if name in REFERENCE and isinstance(golden, float | int):
            assert found[REFERENCE[name]] == pytest.approx(golden, abs=NEAR, nan_ok=True), name
        elif name in REFERENCE:
            undefined.add(name)
    assert undefined == ({"JSD_s_s"} if case == "edge_ties" else set())


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_libraries_say_the_same(case):
    found, libraries = values(case, CELLS_OF[case]), GOLDEN["cases"][case]["libs"]
    names = {
        "krippendorff_with_domain": "krippendorff_alpha", "statsmodels_fleiss": "scott_pi",
        "sklearn_cohen_labels": "cohen_kappa", "CE_hj_from_entropy": "cross_entropy_human_judge",
        "scipy_js_distance_mean": "js_distance", "scipy_js_divergence_mean": "js_divergence",
        "scipy_KL_hj": "kl_human_judge", "scipy_KL_jh": "kl_judge_human",
    }  # fmt: skip
    for name, measure in names.items():
        golden = number(libraries.get(name))
        if math.isfinite(golden):  # scipy's KL is infinite where a judge gives 0, and its distance NaN in edge_ties
            assert found[measure] == pytest.approx(golden, abs=NEAR), name


CELLS_OF = dict(reversed(CELLS))  # the first cell of each case


def test_difference_js_is_a_number_at_nearly_equal_rows():
    """scipy, and with it the reference, gives NaN for rows that differ by rounding (scipy issue 20083)."""
    key = "tau=0.5,pos=[0]"
    assert GOLDEN["cases"]["edge_ties"]["reference"][key]["JSD_s_s"] == "nan"
    # The third item alone: middle (.375, .625), .5 ln(.5/.375) etc. make .0338; its root over three items.
    assert values("edge_ties", key)["js_distance"] == pytest.approx(0.0613025969801581)
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), 2000)
    near = rows + 1e-9 * rng.standard_normal(rows.shape)
    sets = ResponseSets.single(("a", "b", "c"))
    human, judge = (RatingVectors.of_population(sets, one / one.sum(1, keepdims=True)) for one in (rows, near))
    found = judge_agreement(human, RatingVectors.stack([judge]), ["js_divergence", "js_distance"])
    assert np.isfinite(found).all()
    assert found.max() < 1e-6


def test_difference_coverage_is_thresholded_and_what_is_not_has_another_name():
    reference = GOLDEN["cases"]["under_K3Q7"]["reference"]["tau=0.3,pos=[0]"]
    found = values("under_K3Q7", "tau=0.3,pos=[0]")
    assert found["coverage"] == reference["COV_h_hrs"] == 1.0
    assert found["expected_coverage"] == pytest.approx(reference["COV_hat_h_hrs"], abs=1e-12)
    assert reference["COV_hat_h_hrs"] == pytest.approx(0.668, abs=5e-4)


def test_difference_an_item_at_the_threshold_is_positive_unless_it_is_to_be_above():
    key = "tau=0.3,pos=[0]"  # people's Omega (.5, .3), judge's (.5, .7): the second item of the people is at .3
    strict, inclusive = values("edge_at_threshold", key), values("edge_at_threshold", key, strict=False)
    assert (strict["decision_consistency"], strict["prevalence_bias"]) == (0.5, 0.5)
    assert (inclusive["decision_consistency"], inclusive["prevalence_bias"]) == (1.0, 0.0)
    assert strict["coverage"] == inclusive["coverage"] == 1.0  # hard response sets are inclusive in both


def test_difference_the_sum_over_positive_options_is_no_share():
    key = "tau=0.7,pos=[0, 1]"
    both = sides("under_K3Q7", key)
    shares = {rule: Decision(("a", "b"), 0.7, rule).shares(both.human) for rule in ("sum", "any", "max")}
    assert shares["sum"].max() > 1
    assert shares["any"].max() <= 1
    assert (shares["max"] <= shares["any"] + 1e-12).all()
    assert (shares["any"] <= shares["sum"] + 1e-12).all()


def test_difference_ties_are_split_by_default_and_go_to_the_first_option_in_the_reference():
    key = "tau=0.5,pos=[0]"  # modes: people tie twice and choose b; the judge ties, prefers b by 2e-12, and ties
    reference = GOLDEN["cases"]["edge_ties"]["reference"][key]["HR_h_h"]
    assert values("edge_ties", key)["hit_rate"] == pytest.approx(reference) == pytest.approx(1 / 3)
    # Half of (.5, .5) on (.5, .5), half of (.5, .5) on b, half of b on (.5, .5).
    assert values("edge_ties", key, ties="split")["hit_rate"] == pytest.approx(1 / 2)


@pytest.mark.parametrize(("case", "key"), STOPPED)
def test_difference_alpha_of_one_category_is_nan_and_no_error(case, key):
    assert "ValueError" in GOLDEN["cases"][case]["reference"][key]  # and all its other measures are lost with it
    found = values(case, key)
    assert all(math.isnan(found[name]) for name in ("krippendorff_alpha", "scott_pi", "cohen_kappa"))


def test_a_judge_that_gives_no_mass_costs_at_most_the_logarithm_of_epsilon():
    key = CELLS_OF["full_K4Q4"]
    assert GOLDEN["cases"]["full_K4Q4"]["libs"]["scipy_KL_hj"] == "inf"
    found = values("full_K4Q4", key)
    assert found["kl_human_judge"] == pytest.approx(1.671, abs=5e-4)
    assert values("full_K4Q4", key, epsilon=1e-4)["kl_human_judge"] < found["kl_human_judge"]


def test_no_measure_is_left_out():
    tested = {*OWN.values(), *REFERENCE.values()}
    elsewhere = {  # tests/rating_model/test_measures.py
        "linear_kappa", "weighted_kappa", "gwet_ac1", "brier_score", "log_score", "macro_precision", "macro_recall",
    }  # fmt: skip
    assert tested | elsewhere == {*MEASURES, "decision_consistency", "prevalence_bias"}
