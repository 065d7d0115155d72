"""Metrics of two sets of texts."""

from __future__ import annotations

import numpy as np
import pytest

import tiny_texts
from metricsmith.bank.corpus import FEWEST, mauve, mauve_of_labels
from metricsmith.errors import DataError, NeedsError, OptionError


def labels(counts):
    return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.parametrize(
    ("outputs", "references", "value"),
    [
        ([3, 5, 2], [1, 4, 5], 0.8383666719231377),
        ([2, 0], [0, 2], 0.0040720962619612555),
        ([2, 0, 1], [0, 2, 1], 0.03342745001427784),
    ],
)
def test_histograms_give_the_numbers_of_mauve_text(outputs, references, value):
    """Numbers of a run of mauve-text 0.4.0 with numpy 2.4.6, its functions from histograms on."""
    for one, other in ((outputs, references), (references, outputs)):
        assert mauve_of_labels(labels(one), labels(other), len(one)) == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("counts", [[1, 1], [7, 1, 2, 4], [0, 3, 5], [3, 5, 2], [1, 1, 1]])
def test_equal_histograms_are_exactly_one(counts):
    """mauve-text 0.4.0 gives .75 for the first three."""
    assert mauve_of_labels(labels(counts), labels(counts)[::-1], len(counts)) == 1.0
    assert mauve_of_labels(labels(counts), np.tile(labels(counts), 3), len(counts)) == 1.0


@pytest.mark.extras
def test_random_labels_give_the_numbers_of_mauve_text():
    package = pytest.importorskip("mauve.compute_mauve")
    from sklearn.metrics import auc

    rng = np.random.default_rng(7)
    for clusters in (2, 5, 30):
        ours, theirs = rng.integers(0, clusters, 90), np.minimum(rng.integers(0, clusters, 60), clusters // 2)
        p, q = (np.bincount(one, minlength=clusters) / len(one) for one in (ours, theirs))
        curve = package.get_divergence_curve_for_multinomials(p, q, np.linspace(1e-6, 1 - 1e-6, 25), 5)
        x, y = curve.T
        by_x, by_y = np.argsort(x), np.argsort(y)
        expected = (auc(x[by_x], y[by_x]) + auc(y[by_y], x[by_y])) / 2
        assert mauve_of_labels(ours, theirs, clusters) == pytest.approx(expected, abs=1e-12)


def test_too_few_texts_and_wrong_arguments_are_refused(tmp_path):
    texts = tiny_texts.sentences(FEWEST)
    with pytest.raises(DataError, match="19 outputs and 20 references"):
        mauve([*texts[1:], " "], texts)
    with pytest.raises(DataError, match="1 different texts together, fewer than 3 clusters"):
        mauve(["a"] * 30, ["a"] * 30)
    for wrong in (1, 21, 2.0, True):
        with pytest.raises(OptionError, match="clusters="):
            mauve(texts, texts, clusters=wrong)
    with pytest.raises(OptionError, match="seed="):
        mauve(texts, texts, seed=-1)
    with pytest.raises(OptionError, match="device="):
        mauve(texts, texts, device="tpu")
    with pytest.raises(NeedsError, match=r"not installed|not on this machine"):
        mauve(texts, texts, local=tmp_path / "nothing")
