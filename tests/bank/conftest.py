"""Fixtures of the comparisons on SimpEval."""

from __future__ import annotations

from pathlib import Path

import pytest

from simpeval import read_rows


@pytest.fixture
def golden(shared_golden: Path) -> list[dict[str, str]]:
    """Scores of the first simplifications as autometrics-ai 0.1.0 computes them."""
    return read_rows(shared_golden / "simpeval_metric_scores.csv")
