"""The table of published numbers: each is about a metric, an output and settings that exist, and names its source."""

from __future__ import annotations

import math

import pytest

from metricsmith.bank.base import missing_needs
from metricsmith.bank.models import perplexity, unieval
from metricsmith.bank.models.published import published_numbers
from metricsmith.bank.weighted import MODELS, model_family
from metricsmith.metric import RowText

NUMBERS = published_numbers()


@pytest.mark.parametrize("numbers", NUMBERS, ids=lambda one: f"{one.metric}-{one.settings}")
def test_what_is_published_can_be_computed(numbers):
    assert numbers.metric in MODELS
    family = model_family(numbers.metric, settings=numbers.settings)
    assert set(numbers.expected) <= {metric.name for metric in family.metrics()}
    for row in numbers.rows:
        text = RowText(row["output"], row.get("input", ""), tuple(row.get("references", ())))
        assert missing_needs(family.card, text) == []


@pytest.mark.parametrize("numbers", NUMBERS, ids=lambda one: f"{one.metric}-{one.settings}")
def test_each_number_is_one_of_its_output_s_range_with_a_source(numbers):
    assert any(numbers.source.startswith(start) for start in ("card of ", "README of ", "run of "))
    assert 0 < numbers.tolerance <= 0.25
    assert numbers.expected
    for expected in numbers.expected.values():
        assert len(expected) == len(numbers.rows)
        assert all(map(math.isfinite, expected))


def test_a_metric_has_numbers_of_our_weights_or_of_others():
    """With `--local` all are compared, and weights are of one kind."""
    by_metric = {numbers.metric: set() for numbers in NUMBERS}
    for numbers in NUMBERS:
        by_metric[numbers.metric].add(numbers.id)
    assert {metric: ids for metric, ids in by_metric.items() if len(ids) > 1} == {}


def test_defaults_are_those_that_the_published_numbers_rest_on():
    # Layers: model2layers of bert-score 0.3.13 and parascore 1.0.5. Lengths: UniEval's evaluator.py; the page on
    # perplexity of transformers.
    layers = {name: model_family(name).model.layer for name in ("bertscore", "parascore", "parascore_free", "yisi2")}
    assert layers == {"bertscore": 17, "parascore": 9, "parascore_free": 9, "yisi2": None}
    assert (unieval.LONGEST, perplexity.STRIDE) == (1024, 512)
