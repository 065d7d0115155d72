"""The average over tasks and its significance, beside both written down slowly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from metricsmith.errors import DataError
from metricsmith.meta_evaluation.averaging import AveragedTask, average_draws, average_table, task_seed
from metricsmith.meta_evaluation.matrices import measure_value
from metricsmith.meta_evaluation.measures import MEASURES
from metricsmith.meta_evaluation.significance import PairTests
from metricsmith.stats.resampling.permutation import PermutationDraws


def by_hand(values, draws, weight=1.0, bounds=(0.0, 1.0), asked=None):
    """A task whose tests of two metrics are given."""

    def drawn(better, worse):
        if asked is not None:
            asked.append((better, worse))
        return PermutationDraws(values[better] - values[worse], np.array(draws[better, worse], dtype=float))

    return AveragedTask(values, drawn, weight, bounds)


def test_values_are_mapped_to_their_range_and_weighted():
    # Accuracy .8 three times; Pearson .5 maps to .75, -.5 to .25: (3 x .8 + .75) / 4 and (3 x .6 + .25) / 4
    tasks = {
        "accuracy": by_hand({"a": 0.8, "b": 0.6}, {("a", "b"): [0.0]}, weight=3),
        "pearson": by_hand({"a": 0.5, "b": -0.5}, {("a", "b"): [0.0]}, bounds=(-1.0, 1.0)),
    }
    assert average_table(tasks).values == pytest.approx({"a": 3.15 / 4, "b": 2.05 / 4})


def test_draws_are_scaled_turned_where_a_task_has_the_other_order_and_repeated_up_to_the_longest():
    # Weights 3/4 and 1/4. The second task prefers b: its sign turns, and its range of 2 halves differences.
    tasks = [
        by_hand({"a": 0.9, "b": 0.5}, {("a", "b"): [0.1, 0.2, 0.3, 0.4, 0.5]}, weight=3),
        by_hand({"b": 0.2, "a": 0.0}, {("b", "a"): [0.8, -0.8]}, bounds=(-1.0, 1.0)),
    ]
    found = average_draws(tasks, "a", "b", workers=2)
    assert found.observed == pytest.approx(0.75 * 0.4 - 0.25 * 0.2 / 2)
    # .75 of each draw, and in turn -.25 x .8 / 2 and its opposite
    assert found.draws == pytest.approx([0.075 - 0.1, 0.15 + 0.1, 0.225 - 0.1, 0.3 + 0.1, 0.375 - 0.1])
    # Draws of .275 or more: .4 and .275; the package adds one to both sides.
    assert found.test("greater").p_value == 3 / 6


def test_a_metric_that_a_task_lacks_has_no_average():
    tasks = {
        "one": by_hand({"a": 0.9, "b": 0.5, "c": 0.1}, {("a", "c"): [0.0]}),
        "other": by_hand({"a": 0.9, "c": 0.1}, {("a", "c"): [0.0]}),
    }
    table = average_table(tasks)
    assert list(table.values) == list(table.ranks) == ["a", "c"]
    assert average_table({**tasks, "third": by_hand({"b": 1.0}, {})}).values == {}
    with pytest.raises(DataError, match="no tasks"):
        average_table({})


def test_two_metrics_are_tested_only_where_that_decides_a_cluster():
    asked = []
    # a beats b, so that b opens a cluster and a never meets c or d; b does not beat c, and c beats d.
    draws = {("a", "b"): [0.0] * 99, ("b", "c"): [1.0] * 99, ("b", "d"): [1.0] * 99, ("c", "d"): [0.0] * 99}
    table = average_table({"only": by_hand({"a": 0.9, "b": 0.5, "c": 0.4, "d": 0.1}, draws, asked=asked)})
    assert asked == [("a", "b"), ("b", "c"), ("b", "d"), ("c", "d")]
    assert table.ranks == {"a": 1, "b": 2, "c": 2, "d": 3}
    assert table.p_values[0, 1] == 0.01
    assert np.isnan(table.p_values[0, 2])


def test_equal_averages_stand_in_the_order_of_names():
    draws = {("b", "a"): [1.0], ("a", "b"): [1.0]}
    assert list(average_table({"only": by_hand({"b": 0.5, "a": 0.5}, draws)}).values) == ["a", "b"]


def test_each_task_has_a_seed_of_its_own_that_others_do_not_move():
    # numpy 2's SeedSequence, whose hash is documented to be stable
    seeds = [task_seed(seed, name) for seed in (0, 1) for name in ("en-de spa", "en-de acc-t", "ja-zh spa")]
    assert len(set(seeds)) == 6
    assert task_seed(0, "en-de spa") == seeds[0] == int(
        np.random.SeedSequence([0, *b"en-de spa"]).generate_state(1, np.uint64)[0]
    )  # fmt: skip


# The slow version: no shared code but the measures' values and the definition of the draws.


def slow_draws(name, first, second, gold, resamples, seed):
    """Differences of two metrics' values with cells exchanged at random, stopped as published; the observed first."""
    measure = MEASURES[name]
    sides = [(side - side.mean()) / side.std() for side in (first, second)]
    found = [measure_value(measure, sides[0], gold) - measure_value(measure, sides[1], gold)]
    random = np.random.default_rng(seed)
    for draw in range(1, resamples + 1):
        if draw % 100 == 1:
            block = iter(random.random((min(100, resamples - draw + 1), gold.size)) < 0.5)
        swap = next(block).reshape(gold.shape)
        mixed = np.where(swap, sides[1], sides[0]), np.where(swap, sides[0], sides[1])
        found.append(measure_value(measure, mixed[0], gold) - measure_value(measure, mixed[1], gold))
        share = np.mean(np.array(found[1:]) >= found[0] - 1e-12)
        if draw % 100 == 0 and (share < 0.02 or share > 0.5):
            break
    return found


def test_values_ranks_and_p_values_equal_those_of_a_slow_computation():
    random = np.random.default_rng(5)
    golds = {pair: random.normal(size=(6, 8)) + random.normal(size=(6, 1)) for pair in ("en-de", "ja-zh")}
    noise = {"near": 0.4, "middle": 0.7, "far": 1.6, "farther": 1.8}
    metrics = {
        pair: {name: gold + spread * random.normal(size=gold.shape) for name, spread in noise.items()}
        for pair, gold in golds.items()
    }
    # measure, pair, weight, least and greatest value
    given = {
        "one": ("system-accuracy", "en-de", 3.0, (0, 1)), "two": ("pearson", "en-de", 1.0, (-1, 1)),
        "three": ("pearson", "ja-zh", 1.0, (-1, 1)), "four": ("system-pearson", "ja-zh", 1.0, (-1, 1)),
    }  # fmt: skip
    tasks, slow_values = {}, {}
    for label, (name, pair, weight, bounds) in given.items():
        values = {one: measure_value(MEASURES[name], side, golds[pair]) for one, side in metrics[pair].items()}
        slow_values[label] = values
        ordered = {one: values[one] for one in sorted(values, key=lambda one, values=values: -values[one])}
        tests = PairTests(
            MEASURES[name], metrics[pair], golds[pair], resamples=300, seed=task_seed(0, label), deciding=0.05
        )
        tasks[label] = AveragedTask(ordered, tests.draws, weight, bounds)
    table = average_table(tasks, every=True)

    weights, averages = {label: one[2] / 6 for label, one in given.items()}, {}
    for one in noise:
        averages[one] = sum(
            weights[label] * (slow_values[label][one] - low) / (high - low)
            for label, (_, _, _, (low, high)) in given.items()
        )
    ordered = sorted(averages, key=lambda one: -averages[one])
    assert list(table.values) == ordered
    assert table.values == pytest.approx(averages, abs=1e-12)
    lengths, turns, start, rank, ranks = set(), 0, 0, 1, {}
    p_values = np.full((4, 4), np.nan)
    for (above, better), (below, worse) in itertools.combinations(enumerate(ordered), 2):
        found = {}
        for label, (name, pair, _, _) in given.items():
            turn = slow_values[label][better] < slow_values[label][worse]
            names = (worse, better) if turn else (better, worse)
            sides = (metrics[pair][one] for one in names)
            draws = slow_draws(name, *sides, golds[pair], 300, task_seed(0, label))
            found[label] = [-1 * draw if turn else draw for draw in draws[1:]]
            lengths.add(len(draws) - 1)
            turns += turn
        longest = max(map(len, found.values()))
        reached = 0
        for draw in range(longest):
            total = sum(
                weights[label] * found[label][draw % len(found[label])] / (high - low)
                for label, (_, _, _, (low, high)) in given.items()
            )
            reached += total >= averages[better] - averages[worse] - 1e-12
        p_values[above, below] = (reached + 1) / (longest + 1)
    for place, one in enumerate(ordered):
        if (p_values[start:place, place] <= 0.05).any():
            start, rank = place, rank + 1
        ranks[one] = rank
    assert lengths == {100, 300}  # some tests ended early
    assert turns > 0  # and some tasks had the other order
    np.testing.assert_array_equal(table.p_values, p_values)
    assert table.ranks == ranks
    assert 1 < max(ranks.values()) < 4
