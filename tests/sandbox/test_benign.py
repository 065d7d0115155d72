"""Ordinary metrics get from the sandbox what CPython computes."""

from __future__ import annotations

import re
from copy import deepcopy

import pytest

from benign_functions import FUNCTIONS, ROWS
from metricsmith.sandbox.contract import Limits
from metricsmith.sandbox.monty import sandbox

pytest.importorskip("pydantic_monty")


def by_cpython(source):
    """Our own text from the table, run here."""
    space = {}
    exec(source, space)
    return [space["score"](**deepcopy(row)) for row in ROWS]


def test_there_are_20_and_the_texts_tell_them_apart():
    assert len(FUNCTIONS) == 20
    columns = [tuple(by_cpython(source)) for source in FUNCTIONS.values()]
    assert len(set(columns)) == 20
    assert min(len(set(column)) for column in columns) >= 2


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_benign_function_equals_cpython(name):
    outcomes = sandbox().run(FUNCTIONS[name], "score", ROWS, Limits(row_seconds=60, seconds=300))
    assert [one.error for one in outcomes] == [""] * len(ROWS)
    assert [one.value for one in outcomes] == pytest.approx(by_cpython(FUNCTIONS[name]), rel=0, abs=1e-12)


def test_a_word_letter_is_the_one_known_difference():
    """The engine's word characters are those of Unicode's annex 18, marks and joiners too; CPython has no such."""
    source = "import re\ndef score(output):\n    return re.findall(r'\\w+', output)"
    (outcome,) = sandbox().run(source, "score", [{"output": "e\u0301a a\u200db"}], Limits(row_seconds=60, seconds=300))
    assert outcome.value == ["e\u0301a", "a\u200db"]
    assert re.findall(r"\w+", "e\u0301a a\u200db") == ["e", "a", "a", "b"]
