from __future__ import annotations

import pytest

from metricsmith.bank.catalogue import family

JARO = family("jaro")
FAMILY = family("jaro_winkler")


(METRIC,) = FAMILY.metrics()
(PLAIN,) = JARO.metrics()


@pytest.mark.parametrize(
    ("output", "reference", "prefix"),
    [("martha", "marhta", 3), ("dwayne", "duane", 1), ("crate", "trace", 0), ("abcdefgh", "abcdefxy", 4)],
)
def test_a_common_beginning_of_up_to_four_letters_is_rewarded(output: str, reference: str, prefix: int) -> None:
    jaro = PLAIN.score(output, references=reference)
    assert METRIC.score(output, references=reference) == pytest.approx(jaro + 0.1 * prefix * (1 - jaro))


def test_below_seven_tenths_there_is_no_bonus() -> None:
    output, reference = "abxxxxxx", "abyyyyyy"
    assert PLAIN.score(output, references=reference) < 0.7
    assert METRIC.score(output, references=reference) == PLAIN.score(output, references=reference)
