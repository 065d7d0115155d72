"""The bank on real rated text against what autometrics-ai 0.1.0 computes with the same backends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simpeval import bank_scores

COLUMNS = {
    "levenshtein_distance": "LevenshteinDistance_min",
    "indel_ratio": "IndelRatio_max",
    "hamming_distance": "HammingDistance_min",
    "jaro_similarity": "JaroSimilarity_max",
    "jaro_winkler_similarity": "JaroWinklerSimilarity_max",
    "jaccard_distance": "JaccardDistance_min",
    "bleu": "BLEU",
    "ibleu": "iBLEU",
    "chrf": "chrF",
    "ter": "TER",
    "nist": "NIST",
} | {
    f"{ours}_{part[0]}": f"{theirs}-{part}"
    for ours, theirs in {
        "rouge1": "ROUGE-1",
        "rouge2": "ROUGE-2",
        "rouge_l": "ROUGE-L",
        "rouge_lsum": "ROUGE-Lsum",
    }.items()
    for part in ("p", "r", "f1")
}


@pytest.mark.parametrize("name", COLUMNS)
def test_metrics_with_a_public_backend_equal_its_value(
    name: str, shared_data: Path, golden: list[dict[str, str]]
) -> None:
    expected = [float(row[COLUMNS[name]]) for row in golden]
    np.testing.assert_allclose(bank_scores(name, shared_data, len(golden)), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "column", "mean", "largest"),
    [("gleu", "GLEU__patched", 0.0024, 0.029), ("meteor", "METEOR__patched", 0.052, 0.197)],
)
def test_own_tokens_move_a_metric_as_far_as_its_card_says(
    name: str, column: str, mean: float, largest: float, shared_data: Path, golden: list[dict[str, str]]
) -> None:
    apart = np.abs(bank_scores(name, shared_data, len(golden)) - [float(row[column]) for row in golden])
    assert apart.mean() == pytest.approx(mean, rel=0.03)
    assert apart.max() == pytest.approx(largest, rel=0.03)


def test_self_bleu_differs_where_there_is_one_sentence_and_little_elsewhere(
    shared_data: Path, golden: list[dict[str, str]]
) -> None:
    theirs = np.array([float(row["SelfBLEU__patched"]) for row in golden])
    ours = bank_scores("self_bleu", shared_data, len(golden))
    undefined = np.isnan(ours)
    assert undefined.sum() == 29
    assert set(theirs[undefined]) == {1.0}  # the worst value, for text that cannot repeat itself
    assert np.abs(ours - theirs)[~undefined].max() < 0.012
