from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.students.metrics import ndcg_at_k, recall_at_k

GAINS = {"a": 0.5, "b": 0.25, "c": 0.25, "d": 0.0, "e": math.nan}
MEASURES = (recall_at_k, ndcg_at_k)
# Few levels, so that ties are common.
pools = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5]), min_size=2, max_size=6)


def named(gains):
    return {f"m{place}": gain for place, gain in enumerate(gains)}


@pytest.mark.parametrize(
    ("ranking", "k", "recall", "ndcg"),
    [
        # Ideal at 2: .5 + .25 / log2(3) = .657732.
        (["a", "b"], 2, 1.0, 1.0),
        (["a", "c"], 2, 1.0, 1.0),
        (["b", "c"], 2, 1 / 2, (0.25 + 0.25 / math.log2(3)) / (0.5 + 0.25 / math.log2(3))),
        (["d", "a"], 2, 1 / 2, (0.5 / math.log2(3)) / (0.5 + 0.25 / math.log2(3))),
        (["a", "d", "b"], 2, 1 / 2, 0.5 / (0.5 + 0.25 / math.log2(3))),
        (["a"], 2, 1 / 2, 0.5 / (0.5 + 0.25 / math.log2(3))),
        ([], 2, 0.0, 0.0),
        (["e", "d"], 2, 0.0, 0.0),
        # Three gains are positive: more cannot be found, however large k is.
        (["e", "c", "b", "a", "d"], 9, 1.0, None),
        (["c", "b"], 9, 2 / 3, None),
    ],
)
def test_by_hand(ranking, k, recall, ndcg):
    assert recall_at_k(ranking, GAINS, k) == pytest.approx(recall)
    if ndcg is not None:
        assert ndcg_at_k(ranking, GAINS, k) == pytest.approx(ndcg)


@given(pools, st.integers(1, 8), st.randoms())
def test_ndcg_is_scikit_learns(gains, k, random):
    pool = named(gains)
    assume(any(gains))
    ranking = random.sample(list(pool), len(pool))
    places = [-ranking.index(name) for name in pool]
    assert ndcg_at_k(ranking, pool, k) == pytest.approx(ndcg_score([gains], [places], k=k))


@given(pools.filter(lambda gains: len(gains) <= 5), st.integers(1, 6), st.randoms())
def test_recall_is_the_overlap_with_the_likest_of_all_best_sets(gains, k, random):
    pool = named(gains)
    assume(any(gains))
    ranking = random.sample(list(pool), random.randint(0, len(pool)))
    size = min(k, sum(gain > 0 for gain in gains))
    totals = {frozenset(names[:size]): sum(sorted(pool[n] for n in names[:size])) for names in permutations(pool)}
    best = [chosen for chosen, total in totals.items() if total == max(totals.values())]
    assert recall_at_k(ranking, pool, k) == max(len(chosen & set(ranking[:k])) for chosen in best) / size


@given(pools, st.integers(1, 8))
def test_the_best_order_has_1_and_nothing_has_more(gains, k):
    pool = named(gains)
    assume(any(gains))
    best = sorted(pool, key=pool.get, reverse=True)
    for measure in MEASURES:
        assert measure(best, pool, k) == pytest.approx(1)
        assert 0 <= measure(best[::-1], pool, k) <= 1 + 1e-12


@given(pools, st.integers(1, 8), st.randoms())
def test_an_unknown_gain_counts_as_none(gains, k, random):
    pool = named(gains)
    assume(any(gains))
    ranking = random.sample(list(pool), len(pool))
    unknown = {name: gain or math.nan for name, gain in pool.items()}
    for measure in MEASURES:
        assert measure(ranking, pool, k) == measure(ranking, unknown, k)


@pytest.mark.parametrize("measure", MEASURES)
def test_without_a_positive_gain_there_is_no_number(measure):
    assert math.isnan(measure(["a"], {"a": 0.0, "b": math.nan}, 1))
    assert math.isnan(measure([], {}, 1))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("ranking", "gains", "k", "error", "words"),
    [
        (["a"], GAINS, 0, OptionError, "k=0 must be 1 or more"),
        (["a"], {"a": -0.1}, 1, DataError, "the gain of 'a' is -0.1.*absolute"),
        (["a"], {"a": math.inf}, 1, DataError, "the gain of 'a' is inf"),
        (["rouge"], {"rouge1": 0.1}, 1, DataError, r"'rouge' is ranked but not in the pool \(did you mean 'rouge1'"),
        (["a", "b", "a"], GAINS, 1, DataError, "'a' is ranked more than once"),
    ],
)
def test_what_makes_no_sense_is_refused(measure, ranking, gains, k, error, words):
    with pytest.raises(error, match=words):
        measure(ranking, gains, k)


def test_numbers_of_numpy_are_numbers():
    assert ndcg_at_k(["a"], {"a": np.float64(0.5)}, 1) == 1.0
