"""Toxicity by fastText: the share of one of two labels, of which less is better."""

from __future__ import annotations

import numpy as np
import pytest

import tiny_texts
from metricsmith.metric import make_row
from model_cases import tiny_family

pytestmark = pytest.mark.extras
fasttext = pytest.importorskip("fasttext")


def test_a_row_is_the_share_of_the_label_and_less_is_better(tiny, tiny_folder):
    family = tiny_family("fasttext_toxicity", tiny, tiny_folder)
    model, texts = fasttext.load_model(family.model.path), tiny_texts.sentences(30)
    expected = [dict(zip(*model.predict(text, k=-1), strict=True))["__label__toxic"] for text in texts]
    assert np.ptp(expected) > 0.3
    judged = family.metrics()[0].judge_batch([make_row(text) for text in texts])
    assert [one.raw for one in judged] == pytest.approx(np.clip(expected, 0, 1), abs=1e-6)
    assert [one.score for one in judged] == pytest.approx(1 - np.clip(expected, 0, 1), abs=1e-6)
