"""All methods on one split: what they may see, what is computed once, and what the figures are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, t

from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, NeedsError, OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.records import Usage
from metricsmith.stats.agreement import agreement
from metricsmith.stats.resampling import holm
from metricsmith.studies.comparison.methods import METHODS, Method, Predicted
from metricsmith.studies.comparison.run import compare
from rated import rated_table

BANK = MetricBank((family("levenshtein"), family("rouge")))
FREE = ("best_existing", "metametrics", "autometrics")


def optimizer(**options):
    return AutoMetrics(**{"metrics": BANK, "generators": {"criterion": 2, "rubric": 1}, **options})


def made(predict, label="own", **options):
    return Method(label, predict, lambda data: "", **options)


def against(predict, **options):
    """Compare a method of one's own, and give its line."""
    return compare(rated_table(), optimizer(), methods={"own": made(predict)}, **options).method("own")


@pytest.fixture(scope="module")
def free():
    return compare(rated_table(), optimizer(), seeds=3)


def test_what_needs_a_model_is_listed_and_not_run(free):
    assert [line.key for line in free.run] == list(FREE)
    assert {line.key: line.skipped for line in free.skipped} == dict.fromkeys(
        ("guideline_judge", "dna_eval"), "needs a language model: name one with --lm MODEL (lm=dspy.LM(...))"
    )
    assert all(line.model for line in free.skipped)
    assert free.usage.requests == free.estimated.requests == 0


def test_figures_are_those_of_the_test_rows(free):
    assert free.rows == {"train": 30, "validation": 12, "test": 18, "test_groups": 6, "unrated": 0}
    for line in free.run:
        assert len(line.taus) == 3
        assert line.tau == pytest.approx(np.mean(line.taus))
        assert (line.n, line.groups) == (18, 6)
        assert line.over_both.low <= line.tau <= line.over_both.high
    assert free.method("autometrics").tau > 0.5
    assert math.isnan(free.method("autometrics").p_value)


def test_a_method_without_chance_has_no_spread_over_seeds_but_one_over_rows(free):
    line = free.method("best_existing")
    assert line.over_seeds.high - line.over_seeds.low == pytest.approx(0, abs=1e-9)
    assert line.over_rows.high - line.over_rows.low > 0.05
    assert "chosen on 12 validation rows: good, more is better" in line.remarks


def test_holm_is_over_the_methods_that_are_compared(free):
    lines = [line for line in free.run if line.key != "autometrics"]
    assert [line.p_adjusted for line in lines] == pytest.approx(holm([line.p_value for line in lines]))


def test_the_same_seed_gives_the_same_figures(free):
    again = compare(rated_table(), optimizer(), seeds=3)
    for before, after in zip(free.run, again.run, strict=True):
        assert (after.taus, after.over_both, after.over_rows) == (before.taus, before.over_both, before.over_rows)
        assert str((after.p_value, after.difference_interval)) == str((before.p_value, before.difference_interval))
    other = compare(rated_table(), optimizer(seed=1), seeds=1)
    assert other.method("metametrics").taus[0] != free.method("metametrics").taus[0]


def test_no_method_sees_a_test_rating():
    """Another rating on every test row changes no prediction."""
    seen = []

    def keep(key):
        def predict(data, seed):
            result = METHODS[key].predict(data, seed)
            seen.append((data.test, result.values))
            return result

        return made(predict)

    table = rated_table()
    compare(table, optimizer(), methods={key: keep(key) for key in FREE}, seeds=1)
    ids = {row["id"] for row in seen[0][0].rows}
    rows = [row.copy(rating=6 - row["rating"]) if row["id"] in ids else row for row in table.rows]
    turned = replace(table, rows=rows, ratings=np.array([row["rating"] for row in rows]))
    compare(turned, optimizer(), methods={key: keep(key) for key in FREE}, seeds=1)
    assert {row["id"] for row in seen[3][0].rows} == ids
    assert (seen[0][0].ratings != seen[3][0].ratings).any()
    for (_, before), (_, after) in zip(seen[:3], seen[3:], strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_best_existing_metric_is_chosen_on_validation_rows_with_its_sign():
    """`junk` is made to fall with the rating on validation rows, and to rise with it on all others."""
    table = rated_table()
    sides = []
    compare(table, optimizer(), methods={"x": made(lambda s, n: sides.append(s) or Predicted(np.zeros(18)))}, seeds=1)
    chosen = {row["id"] for row in sides[0].split.validation.rows}
    rows = [
        row.copy(columns={**row["columns"], "junk": row["rating"] * (-1 if row["id"] in chosen else 1)})
        for row in table.rows
    ]
    line = compare(replace(table, rows=rows), optimizer(), methods=["best_existing"], seeds=1).method("best_existing")
    assert line.remarks == ("chosen on 12 validation rows: junk, less is better",)
    assert line.tau == -1.0


def test_a_bank_metric_is_computed_once_for_all_methods_and_seeds():
    batches = []

    def counted(family):
        def compute(batch, names):
            batches.append((family.card.name, len(batch)))
            return family.compute(batch, names)

        return replace(family, compute=compute)

    bank = MetricBank(tuple(map(counted, BANK.families)))
    compare(rated_table(), optimizer(metrics=bank), seeds=4)
    # 60 rows, two of which have the same texts
    assert sorted(batches) == sorted((family.card.name, 59) for family in BANK.families)


def test_a_constant_prediction_has_no_tau_and_says_so():
    line = against(lambda data, seed: Predicted(np.full(18, 3.0)), seeds=2)
    assert all(map(math.isnan, (line.tau, line.p_value, line.over_both.low, *line.taus)))
    assert line.remarks == (
        "tau-b is undefined in 2 of 2 seeds, which are left out: the predictions are constant in 2",
    )


def test_missing_predictions_are_left_out_and_counted():
    def predict(data, seed):
        return Predicted(np.where(np.arange(18) == seed, np.nan, data.test.ratings))

    line = against(predict, seeds=2)
    assert (line.tau, line.n) == (1.0, 16)
    assert line.remarks == ("2 of 18 test rows lack a prediction in some seed",)


def test_differences_are_those_to_autometrics():
    def opposite(data, seed):
        return Predicted(-data.test.ratings + 0.1 * np.random.default_rng(seed).normal(size=18))

    methods = {"own": made(opposite), "autometrics": METHODS["autometrics"]}
    done = compare(rated_table(), optimizer(), methods=methods, seeds=3)
    own, reference = done.method("own"), done.method("autometrics")
    assert done.reference == "autometrics"
    assert own.difference == pytest.approx(reference.tau - own.tau)
    assert own.difference_interval.low > 0
    assert own.p_value < 0.1  # six groups: p is at least 2 / 64


def test_seeds_that_differ_widen_the_interval_over_both_and_not_the_one_over_rows():
    def predict(data, seed):
        return Predicted(data.test.ratings * (1 if seed else -1))

    line = against(predict, seeds=4)
    assert (line.over_rows.low, line.over_rows.high) == (0.5, 0.5)  # (1 + 1 + 1 - 1) / 4, whatever the rows
    # taus -1, 1, 1, 1 have the variance 1, their mean 1/4 with 3 degrees of freedom; on Fisher's scale over 1 - .5^2
    half = t.ppf(0.975, 3) * 0.5 / 0.75
    ends = (math.tanh(math.atanh(0.5) - half), math.tanh(math.atanh(0.5) + half))
    assert (line.over_both.low, line.over_both.high) == pytest.approx(ends)
    # over seeds: .5 -+ 3.18 * .5 would leave [-1, 1] at both ends
    assert (line.over_seeds.low, line.over_seeds.high) == (-1.0, 1.0)


def test_one_run_of_a_method_has_the_figures_of_the_induction_report():
    """`induce` measures by `agreement`: on the same rows both say the same, three held-out groups or many."""
    sides = []

    def predict(data, seed):
        sides.append(data.test)
        return Predicted(data.test.ratings + np.random.default_rng(3).normal(0, 2, len(data.test)))

    for fraction, groups in ((0.3, 6), (0.15, 3)):
        line = against(predict, seeds=1, fraction=fraction)
        test = sides.pop()
        guess = test.ratings + np.random.default_rng(3).normal(0, 2, len(test))
        block = agreement(guess, test.ratings, test.groups)
        assert (line.tau, line.n, line.groups) == (block.kendall_tau_b, block.n, block.groups)
        assert line.groups == groups
        assert (line.over_rows.low, line.over_rows.high) == (block.ci_low, block.ci_high)
        assert (line.over_both.low, line.over_both.high) == (block.ci_low, block.ci_high)


def test_taus_agree_with_scipy():
    noise = [np.random.default_rng(seed).normal(size=18) for seed in range(2)]
    kept = []

    def predict(data, seed):
        kept.append(data.test.ratings)
        return Predicted(noise[seed])

    line = against(predict, seeds=2)
    assert line.taus == pytest.approx([kendalltau(noise[seed], kept[seed]).statistic for seed in range(2)])


def test_a_method_of_ones_own_is_one_function(free):
    lengths = lambda data, seed: Predicted(np.array([len(row["output"]) for row in data.test.rows]))  # noqa: E731
    line = against(lengths, seeds=1)
    assert line.label == "own"
    assert not math.isnan(line.tau)
    assert math.isnan(line.over_seeds.low)  # one seed has no spread


def test_a_method_that_the_seed_cannot_change_is_run_once():
    seeds = []

    def predict(data, seed):
        seeds.append(seed)
        return Predicted(data.test.ratings, usage=Usage(7), judgements={"requested": 3, "ok": 3})

    done = compare(rated_table(), optimizer(), methods={"own": made(predict, seeded=False)}, seeds=4)
    assert (seeds, done.method("own").taus) == ([0], (1.0,) * 4)
    assert (done.usage.requests, done.method("own").judgements["ok"]) == (7, 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"seeds": 0}, "seeds=0 must be a whole number from 1"),
        ({"methods": ["dna"]}, "no method 'dna'"),
        ({"methods": ["dna_evol"]}, "did you mean 'dna_eval'"),
        ({"methods": "dna_eval"}, "must be a list"),
        ({"methods": []}, "no method to run"),
        ({"dimensions": 0}, "dimensions=0"),
        ({"methods": {"own": made(lambda data, seed: Predicted(np.zeros(3)))}}, r"shape \(3,\) for 18 test rows"),
    ],
)
def test_options_are_checked(options, says):
    with pytest.raises(OptionError, match=says):
        compare(rated_table(), optimizer(), **options)


def test_rows_are_needed_and_ratings_that_vary():
    with pytest.raises(DataError, match="the list is empty"):
        compare([], optimizer())
    with pytest.raises(OptionError, match=r"compare has no option sedes=3 \(did you mean 'seeds'\?\)"):
        compare(rated_table(), optimizer(), sedes=3)
    table = rated_table()
    rows = [row.copy(rating=3.0) for row in table.rows]
    with pytest.raises(DataError, match="nothing can be learned"):
        compare(replace(table, rows=rows, ratings=np.full(60, 3.0)), optimizer())


def test_xgboost_is_no_default_and_names_its_extra(monkeypatch):
    monkeypatch.setattr("metricsmith.studies.comparison.methods.find_spec", lambda name: None)
    with pytest.raises(NeedsError, match="metametrics_xgboost needs the package xgboost: pip install 'metricsmith"):
        compare(rated_table(), optimizer(), methods=["metametrics_xgboost"], seeds=1)


def test_without_existing_metrics_their_methods_say_so():
    table = rated_table(metric_columns=())
    with pytest.raises(NeedsError, match=r"best_existing needs existing metrics.*; metametrics needs existing metrics"):
        compare(table, optimizer(bank="none"), methods=["best_existing", "metametrics"], seeds=1)


def test_candidates_without_enough_values_are_left_out_of_autometrics_and_said():
    """A third of the numbers are missing; the baselines fill in what they lack."""
    table = rated_table()
    for row in table.rows[::3]:
        row["columns"]["good"] = math.nan
    left = "AutoMetrics: no value on more than 10\u00a0% of the training rows, and so left out"
    for allowed in (False, True):
        done = compare(table, optimizer(bank="none", allow_missing=allowed), methods=["best_existing", "autometrics"])
        assert any(note.startswith(left) and "good (none on 33\u00a0%)" in note for note in done.notes) is not allowed
        assert "chosen on" in done.method("best_existing").remarks[0]


def test_twins_of_test_rows_and_systems_are_noted(free):
    assert not any("twin" in note or "systems" in note for note in free.notes)
    frame = pd.DataFrame({"input": [f"question {n}" for n in range(60)], "output": ["yes", "no"] * 30})
    frame["rating"], frame["good"], frame["system"] = frame.index % 5, frame.index % 4, frame.index % 3
    table = read_table(frame, target="rating", output="output", metric_columns=["good"])
    done = compare(table, optimizer(), methods=["best_existing"])
    assert "18 of 18 test rows (100\u00a0%) have a twin under another source in training" in [
        note.partition(":")[0] for note in done.notes
    ]
    assert any(note.startswith("all figures are for new rows of these 3 systems;") for note in done.notes)
