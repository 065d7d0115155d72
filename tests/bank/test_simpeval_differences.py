"""Metrics that own rules or tokens decide lie as far from autometrics-ai 0.1.0 as their cards say."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from simpeval import bank_scores, read_rows


# Median and largest absolute difference over the golden rows; the same figures stand in the cards.
@pytest.mark.parametrize(
    ("name", "column", "factor", "median", "largest"),
    [
        ("sari", "SARI_P__patched", 100, 0.86, 18.4),
        ("charcut", "CharCut", 1, 0.11, 0.29),
        ("pseudo_parent", "PseudoPARENT", 1, 0.11, 0.46),
        ("update_rouge1", "update_rouge1", 1, 0, 0),
        ("update_rouge2", "update_rouge2", 1, 0, 0),
        ("update_rouge_lsum", "update_rougeLsum", 1, 0, 0.192),
        ("fkgl", "FKGL__patched", 1, 0.26, 0.74),
        ("distinct_1", "distinct_1__patched", 1, 0, 0.031),
        ("distinct_2", "distinct_2__patched", 1, 0, 0.0025),
        ("distinct_3", "distinct_3__patched", 1, 0, 0.002),
        ("distinct_4", "distinct_4__patched", 1, 0, 0.0018),
    ],
)
def test_difference_is_what_the_card_says(
    name: str,
    column: str,
    factor: float,
    median: float,
    largest: float,
    shared_data: Path,
    golden: list[dict[str, str]],
) -> None:
    theirs = factor * np.array([float(row[column]) for row in golden])
    apart = np.abs(bank_scores(name, shared_data, len(golden)) - theirs)
    assert np.median(apart) == pytest.approx(median, rel=0.05, abs=1e-6)
    assert apart.max() == pytest.approx(largest, rel=0.05, abs=1e-6)


def test_cider_tells_outputs_apart_where_the_reference_package_gives_0(
    shared_data: Path, golden: list[dict[str, str]]
) -> None:
    assert {float(row["CIDEr_n4_sig6.0"]) for row in golden} == {0.0}
    ours = bank_scores("cider", shared_data, len(golden))
    same = [row["simple"] in ast.literal_eval(row["references"]) for row in read_rows(shared_data / "simpeval.csv")]
    equal = np.array(same[: len(golden)])
    assert equal.sum() == 10
    assert np.allclose(ours[equal], 10)
    assert ours[~equal].max() < 9
    assert len(set(ours[~equal].tolist())) > 45
