"""On real ratings: the benchmark's shortest line, so that a change that loses agreement is seen at once."""

from __future__ import annotations

import pytest

from benchmark import loaded


@pytest.fixture(scope="module")
def benchmark():
    return loaded("regression")


def test_twenty_labels_reproduce_the_curve_and_the_lead_of_the_prior_ridge(benchmark, shared_data):
    table = benchmark.read_table(shared_data / "hanna_scores_dev.csv.gz")
    ours = {}
    for method in (benchmark.PLS, benchmark.RIDGE):
        ours[method] = benchmark.measure(table, "both192", method, 20)
        expected = benchmark.EXPECTED["both192", method, 20]
        assert ours[method] == pytest.approx(expected, abs=benchmark.TOLERANCE)
    assert ours[benchmark.RIDGE] - ours[benchmark.PLS] >= benchmark.REQUIRED_LEAD
