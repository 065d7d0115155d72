"""Functions in an induction: the planted one is found among many that are no use, and none where there is nothing.

A model deals from 30 functions, whatever the axis (`planted_code`). Ratings of embedded notices follow words per
sentence and a list of words, with noise, or are the same ratings in another order.
"""

from __future__ import annotations

import dspy
import numpy as np
import pytest

import metricsmith
from loopback import serve
from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.code import CodeMetric
from metricsmith.datasets import plain_notices
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.records import Output
from metricsmith.scoring import score
from metricsmith.testing import GivenJudge
from metricsmith.tuning import distil
from planted_code import FORM_ENDS, PLACES, REVERSED, RIGHT, SOURCES, TASK, dealing, quality, rated

FAMILIES = {"criterion": 2, "rubric": 1, "prometheus": 1, "code": 24}
SEEDS = range(20)
PAID = Output("paid", low=None, high=None, half=1.0)
READING = {
    "output": "output", "inputs": "input", "reference": "references", "group": "group", "target": "rating",
    "scale": "1:5",
}  # fmt: skip


def kept(seed, *, shuffled=False):
    """The places in the deck of the functions among the components of an induced metric."""
    with serve(dealing(seed, FAMILIES["code"])) as server, dspy.context(lm=server.lm()):
        optimizer = AutoMetrics(TASK, bank="generated", generators=FAMILIES, progress=False, seed=seed)
        metric = optimizer.compile(rated(seed, shuffled=shuffled))
    assert server.wrong == []
    assert metric.record.usage["requests"] == server.requests
    assert any(prompt.endswith(FORM_ENDS) for prompt in server.prompts)
    return {PLACES[part.source] for part in metric.components if isinstance(part, CodeMetric)}


def planted_among(found):
    """The right functions among those that were kept; the reversed ones, which lie behind them, are not."""
    assert not found & set(range(len(RIGHT), len(RIGHT) + len(REVERSED)))
    return found & set(range(len(RIGHT)))


def test_there_are_thirty_functions_two_of_them_right():
    assert len(set(SOURCES)) == len(PLACES) == 30
    assert len(RIGHT) == 2


def test_the_planted_function_is_kept_and_of_shuffled_ratings_none():
    assert planted_among(kept(0))
    assert not kept(0, shuffled=True)


@pytest.mark.slow
def test_the_planted_function_is_kept_in_eighteen_seeds_of_twenty():
    assert sum(bool(planted_among(kept(seed))) for seed in SEEDS) >= 18


@pytest.mark.slow
def test_of_shuffled_ratings_a_function_is_kept_in_three_seeds_of_twenty_at_most():
    assert sum(bool(kept(seed, shuffled=True)) for seed in SEEDS) <= 3  # measured: 0, and 20 without the screening


def test_a_free_metric_with_functions_keeps_more_of_a_paid_one_that_sees_the_plant(tmp_path):
    _, rows = plain_notices.load()
    random, seen = np.random.default_rng(0), quality(rows)
    paid = seen + random.normal(0, 0.3, len(rows))
    ratings = np.clip(3 + 0.8 * seen + random.normal(0, 0.6, len(rows)), 1, 5).round(2)
    judge = GivenJudge(dict(zip([row.output for row in rows], paid.tolist(), strict=True)), name="paid", output=PAID)
    rows = [row.copy(rating=float(rating)) for row, rating in zip(rows, ratings, strict=True)]
    options = {"metrics": default_bank().only("output_words", "fkgl"), "fraction": 0.4, "progress": False, **READING}
    plain = distil(judge, rows, **options).record
    with serve(dealing(1, 6)) as server:
        done = distil(judge, rows, generators={"code": 6}, lm=server.lm(), **options)
    assert server.wrong == []
    assert done.record.usage.requests == server.requests
    assert any(PLACES.get(getattr(part, "source", ""), 30) < len(RIGHT) for part in done.metric.components)
    # Measured: shares of .94 and 1.11, and tau-b of .54 and .68 with the paid one's scores.
    assert done.record.share.value > plain.share.value + 0.1
    assert done.record.imitation.kendall_tau_b > plain.imitation.kendall_tau_b + 0.1
    done.write(tmp_path)
    loaded = metricsmith.load(tmp_path / "metric.json")
    assert loaded.card.cost in ("free", "cheap")
    scores = [score([one], rows[:5], progress=False).run()[:, 0].tolist() for one in (done.metric, loaded)]
    assert scores[0] == scores[1]
