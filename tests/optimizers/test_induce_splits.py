"""One evaluated run: what is fitted to what, what it costs, and what the signature line says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loopback import own_axes, scripted, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.datasets.splits import Split
from metricsmith.optimizers.fitting import FULL
from metricsmith.optimizers.induce import induce_splits
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.spending import estimate_run
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.programs.loading import load
from planted import TASK, planted_rows

COLUMNS = Options(bank="none", columns=["good", "junk"])
NONE = RatedRows.of([], "rating")


def rated(**changes):
    return RatedRows.of(planted_rows(**changes), "rating")


def thirds(count):
    """Three folds of neighbouring rows."""
    places = np.arange(count)
    return [Split(np.setdiff1d(places, part), part) for part in np.array_split(places, 3)]


def crossed(train, options=COLUMNS):
    return induce_splits(Splits("cv", train, NONE, folds=thirds(len(train)), origin="data x"), TASK, options)


def test_no_prediction_of_a_fold_has_seen_the_ratings_of_its_rows():
    honest, spoiled = rated(sources=12), rated(sources=12)
    for number in range(12):
        spoiled.rows[number]["rating"] = spoiled.ratings[number] = 6 - spoiled.ratings[number]
    first, second = crossed(honest).record, crossed(spoiled).record
    assert [row.prediction for row in first.data[:12]] == [row.prediction for row in second.data[:12]]
    assert [row.prediction for row in first.data[12:]] != [row.prediction for row in second.data[12:]]


def test_the_metric_of_a_cross_validation_is_fitted_on_all_rows():
    train = rated(sources=12)
    whole = induce_splits(Splits("train_only", train, NONE), TASK, COLUMNS)
    assert crossed(train).metric.combination == whole.metric.combination


def test_cross_validation_counts_the_judgements_of_every_fold():
    # Three folds judge all 36 rows by two columns each; so does the final fit.
    assert crossed(rated(sources=12)).record.judgements["requested"] == 4 * 36 * 2


def test_baselines_of_a_cross_validation_are_means_over_the_same_folds():
    record = crossed(rated(sources=12)).record
    assert {"best single candidate", "output length in words"} <= set(record.baselines)
    assert {block.n for block in record.baselines.values()} == {record.test.n} == {36}


@pytest.mark.parametrize("folds", [0, 2])
def test_an_undisturbed_run_asks_just_what_was_estimated(folds):
    train = rated(sources=4)
    half = [Split(np.arange(6), np.arange(6, 12)), Split(np.arange(6, 12), np.arange(6))]
    sides = Splits("cv" if folds else "train_only", train, NONE, folds=half[:folds])
    with serve(own_axes) as server:
        sources = Options(bank="generated", generators={"criterion": 1, "rubric": 1})
        options = replace(sources, lm=server.lm())
        estimated = estimate_run(sides, TASK, options)
        assert server.requests == 0
        record = induce_splits(sides, TASK, options).record
    # Every pass: one request for axes, one for the rubric. Two judges read all 12 rows, in a fold its 6 learning rows
    # and its 6 held-out rows, as the two components.
    assert server.requests == record.usage["requests"] == (folds + 1) * (1 + 1 + 12 * 2)
    assert abs(estimated.requests - server.requests) <= 0.15 * server.requests
    assert record.usage["estimated"]["requests"] == estimated.requests


def test_unrated_rows_are_judged_by_the_components_alone():
    train, unrated = rated(sources=4), planted_rows(sources=1, seed=5, rated=False)
    sides = Splits("train_only", train, NONE, unrated)
    with serve(scripted) as server:
        sources = Options(bank="generated", generators={"criterion": 3})
        options = replace(sources, n=1, lm=server.lm())
        record = induce_splits(sides, TASK, options).record
        estimated = estimate_run(sides, TASK, options).requests
    # One request for axes, three judges on 12 rows, and the one component on 3 unrated rows.
    assert server.requests == record.usage["requests"] == 1 + 3 * 12 + 1 * 3
    assert estimated == server.requests
    assert [row.prediction is not None for row in record.data if row.split == "unrated"] == [True] * 3


def test_nothing_is_estimated_where_nothing_is_generated():
    assert estimate_run(Splits("train_only", rated(sources=4), NONE), TASK, COLUMNS).requests == 0


def test_the_seed_redraws_the_permutations_and_leaves_agreement_and_interval():
    train, test = rated(sources=12), rated(sources=4, seed=1, noise=2.0)
    unlike = replace(test, ratings=np.random.default_rng(0).permutation(test.ratings))  # nothing to be found
    first, same, other = (
        induce_splits(Splits("file", train, unlike), TASK, replace(COLUMNS, seed=seed)).record.test
        for seed in (0, 0, 1)
    )
    assert first == same
    assert (first.kendall_tau_b, first.ci_low, first.ci_high) == (other.kendall_tau_b, other.ci_low, other.ci_high)
    assert first.p_value != other.p_value


def test_held_out_rows_are_resampled_by_group():
    train, test = rated(sources=12), rated(sources=8, seed=1)
    alone = RatedRows(test.rows, test.ratings, [str(number) for number in range(len(test))])
    grouped, apart = (induce_splits(Splits("file", train, side), TASK, COLUMNS).record.test for side in (test, alone))
    assert (grouped.groups, apart.groups) == (8, 24)
    assert grouped.ci_low != apart.ci_low


def test_the_signature_names_what_the_numbers_depend_on_and_goes_with_the_metric(tmp_path):
    done = induce_splits(Splits("train_only", rated(sources=12), NONE, origin="data x sha256:1"), TASK, COLUMNS)
    parts = done.record.signature.split(" | ")
    assert parts[0].startswith("metricsmith ")
    assert parts[1:7] == [
        "data x sha256:1",
        "36 training rows",
        "PriorRidge r2 1/6, projected to n 12",
        "bank none, k 30",
        "no model",
        "seed 0",
    ]
    assert parts[7].startswith("metric ")
    done.write(tmp_path)
    assert load(tmp_path / "metric.json").settings.signature == done.record.signature


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (replace(COLUMNS, seed=5), "seed 5"),
        (replace(COLUMNS, n=1), "PriorRidge r2 1/6, projected to n 1"),
        (replace(COLUMNS, regression="pls"), "TwoStagePLS n 5"),
        (Options(bank="none", columns=["good"], k=7), "bank none, k 7"),
    ],
)
def test_the_signature_follows_the_options(options, part):
    done = induce_splits(Splits("train_only", rated(sources=12), NONE), TASK, options)
    assert part in done.record.signature.split(" | ")


BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))


def held_out(**size):
    sources = Options(bank="existing", metrics=BANK, columns=["good", "junk"])
    sides = Splits("holdout", rated(sources=16), rated(sources=8, seed=1, first=16))
    return induce_splits(sides, TASK, replace(sources, **size))


def test_by_default_twelve_free_components_are_kept_and_what_they_lose_is_reported():
    record = held_out().record
    assert len(record.components) == 12
    assert "projected to n 12" in record.signature
    full, small = record.baselines[FULL].kendall_tau_b, record.test.kendall_tau_b
    lost = record.differences[record.unabridged]
    assert lost.kendall_tau_b == pytest.approx(small - full)
    assert lost.ci_low <= small - full <= lost.ci_high
    assert record.as_dict()["differences"][FULL]["n"] == lost.n == record.test.n == 24


def test_the_full_model_is_saved_with_all_its_columns_and_scores_alike(tmp_path):
    """Two columns, three of Levenshtein, twelve of ROUGE and BLEU."""
    done = held_out(full=True)
    assert len(done.record.components) == 18
    assert done.record.unabridged not in done.record.differences
    assert "PriorRidge r2 1/6, all candidates" in done.record.signature
    done.write(tmp_path)
    rows = rated(sources=2, seed=3).rows
    assert load(tmp_path / "metric.json").judge_batch(rows) == done.metric.judge_batch(rows)
