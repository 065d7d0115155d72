from __future__ import annotations

import pytest

from metricsmith.programs.perturbers.builtin.facts import names, numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It cost $1,000,000 in 2022, or 3.14%.", ["1,000,000", "2022", "3.14"]),
        ("From 2026-11-21 at 14:30 to 5/6.", ["2026-11-21", "14:30", "5/6"]),
        ("Use v1.000 or GPT-3 on the 5th; H2O and x86.", []),
        ("5kg, 20 km and 1990s", ["5", "20", "1990"]),
        ("1. First 7\n2. Second", ["7"]),
        ("Three of twelve, one left; twenty-two", ["Three", "twelve"]),
        ("`x = 5` and https://a.org/2024/ and 6", ["6"]),
        ("no figures", []),
    ],
)
def test_numbers(text, expected):
    assert [text[a:b] for a, b in numbers(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yesterday Anna Keller met Dr. Smith in Marlow.", [["Anna", "Keller"], ["Smith"], ["Marlow"]]),
        ("Anna left. Then Bob's dog and I'm off.", [["Bob"]]),
        ("He said: Come here, and “Go now” to Tom.", [["Tom"]]),
        ("On Monday the US sent NASA to Mars.", [["Monday"], ["US"], ["NASA"], ["Mars"]]),
        ("All Words Are Capital Here", []),
        ("no names at all", []),
        ("", []),
    ],
)
def test_names(text, expected):
    assert [[text[a:b] for a, b in run] for run in names(text)] == expected
