from __future__ import annotations

import pytest

from metricsmith.bank.catalogue import family

FAMILY = family("jaro")


(METRIC,) = FAMILY.metrics()


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        ("martha", "marhta", (1 + 1 + 5 / 6) / 3),  # by hand: 6 matches, t and h transposed
        ("dwayne", "duane", (4 / 6 + 4 / 5 + 1) / 3),  # by hand: d, a, n, e match
        ("abc", "xyz", 0.0),
        ("same", "same", 1.0),
        ("", "text", 0.0),
    ],
)
def test_values_by_hand(output: str, reference: str, expected: float) -> None:
    assert METRIC.score(output, references=reference) == pytest.approx(expected)


def test_the_most_similar_reference_counts() -> None:
    assert METRIC.score("martha", references=["xyz", "martha"]) == 1.0
