"""On real ratings: the benchmark's shortest line, so that a change that loses agreement is seen at once."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "regression.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("regression_benchmark", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_twenty_labels_reproduce_the_curve_and_the_lead_of_the_prior_ridge(benchmark, shared_data):
    table = benchmark.read_table(shared_data / "hanna_scores_dev.csv.gz")
    ours = {}
    for method in (benchmark.PLS, benchmark.RIDGE):
        ours[method] = benchmark.measure(table, "both192", method, 20)
        expected = benchmark.EXPECTED["both192", method, 20]
        assert ours[method] == pytest.approx(expected, abs=benchmark.TOLERANCE)
    assert ours[benchmark.RIDGE] - ours[benchmark.PLS] >= benchmark.REQUIRED_LEAD
