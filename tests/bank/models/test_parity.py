"""Every metric with weights gives the numbers of an independent oracle that scores one row at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

import parity
from metricsmith.bank.weighted import MODELS
from model_cases import CASES
from oracles import ORACLES

pytestmark = pytest.mark.extras
TOLERANCE = 1e-5
NAMES = [name for name in ORACLES if name in CASES]
VARIANTS = [pytest.param(name, one, id=f"{name}{one or ''}") for name in NAMES for one in parity.variants(name)]


def test_every_metric_with_weights_has_an_oracle_and_a_tiny_checkpoint():
    assert set(MODELS) - {"mauve"} == set(NAMES)


@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_numbers_are_those_of_the_oracle(name, settings, tiny, tiny_folder):
    for difference in parity.differences(name, tiny, tiny_folder, **settings):
        assert math.isfinite(difference.largest), difference
        assert difference.largest <= TOLERANCE, difference
        assert difference.spread > 100 * TOLERANCE, f"{difference}: all but equal numbers prove nothing"


def test_the_rows_differ_in_length_and_run_against_each_other():
    rows = parity.parity_rows("bertscore")
    outputs = [len(row.output) for row in rows]
    references = [len(row.references[0]) for row in rows]
    assert len(rows) >= 30
    assert len(set(outputs)) > 20
    assert outputs == sorted(outputs)
    assert np.corrcoef(outputs, references)[0, 1] < -0.9
    assert sum(len(row.references) > 1 for row in rows) > 5


@pytest.mark.parametrize("seed", range(30))
def test_mauve_is_that_of_mauve_text_from_cluster_labels_on(seed):
    from metricsmith.bank.corpus import mauve_of_labels
    from oracles import decoder

    random = np.random.default_rng(seed)
    clusters = 3 + seed % 7
    ours = random.integers(0, clusters, size=40 + seed).tolist()
    theirs = (random.random(size=90 - seed) ** 2 * clusters).astype(int).tolist()
    expected = decoder.mauve_of_labels(ours, theirs, clusters)
    assert mauve_of_labels(ours, theirs, clusters) == pytest.approx(expected, abs=TOLERANCE)
