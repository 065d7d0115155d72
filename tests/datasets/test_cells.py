from __future__ import annotations

import decimal
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.datasets.cells import cell_number, cell_text, is_blank, plain_value, reference_list


@pytest.mark.parametrize("value", [None, math.nan, np.nan, np.float32("nan"), pd.NA, pd.NaT, decimal.Decimal("NaN")])
def test_every_kind_of_missing_becomes_none(value):
    assert plain_value(value) is None


def test_numpy_values_become_python_ones():
    cell = plain_value(
        {"a": np.array(["x", "y"], dtype=object), "b": np.int64(3), "c": (np.float64(0.5), np.bool_(True))}
    )
    assert cell == {"a": ["x", "y"], "b": 3, "c": [0.5, True]}
    assert [type(item) for item in cell["c"]] == [float, bool]


def test_infinity_is_not_missing():
    assert plain_value(math.inf) == math.inf


def test_text_that_says_missing_is_still_text():
    assert [plain_value("NA"), plain_value("nan"), is_blank("NA")] == ["NA", "nan", False]


@pytest.mark.parametrize(("cell", "blank"), [(None, True), ("", True), (" \n", True), (0, False), ("0", False)])
def test_blank_is_none_or_white_space(cell, blank):
    assert is_blank(cell) is blank


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, ""), ("a ", "a "), (3, "3"), (3.0, "3"), (3.25, "3.25"), (True, "True"), (["ä", 1], '["ä", 1]')],
)
def test_text_of_a_cell(cell, text):
    assert cell_text(cell) == text


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1.5", 1.5),
        (" -2 ", -2),
        ("1e3", 1000),
        (True, 1),
        ("False", 0),
        ("inf", math.inf),
        (-math.inf, -math.inf),
    ],
)
def test_number_of_a_cell(cell, number):
    assert cell_number(cell) == number


@pytest.mark.parametrize("cell", [None, "", "  ", "NaN", "n/a", "null", "None"])
def test_missing_number_is_nan_and_never_zero(cell):
    assert math.isnan(cell_number(cell))


@pytest.mark.parametrize("cell", ["abc", "1_000", "1,5", [1], {"a": 1}])
def test_what_is_no_number_is_refused(cell):
    with pytest.raises(ValueError):
        cell_number(cell)


@pytest.mark.parametrize(
    ("cell", "references"),
    [
        ("one text", ["one text"]),
        (["a", "b"], ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ("['a', \"it's\"]", ["a", "it's"]),
        (" ['a',\n 'b'] ", ["a", "b"]),
        ("['a', '', None, ' ']", ["a"]),
        ('["a", null]', ["a"]),
        ("[]", []),
        ("", []),
        (None, []),
        ("[1, 2]", ["[1, 2]"]),
        ("[note] see below [end]", ["[note] see below [end]"]),
        ("['unfinished']]", ["['unfinished']]"]),
        ("['a' 'b'\n 'c']", ["a", "b", "c"]),
        (r"['\d is a digit']", [r"\d is a digit"]),
        ([3, "b"], ["3", "b"]),
    ],
)
def test_references_in_every_form(cell, references):
    assert reference_list(cell) == references


def test_a_very_deep_list_is_plain_text():
    deep = "[" * 5000 + "]" * 5000
    assert reference_list(deep) == [deep]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"])), min_size=1))
def test_a_list_written_by_python_or_json_reads_back(items):
    kept = [item for item in items if item.strip()]
    assert reference_list(str(items)) == kept
    assert reference_list(json.dumps(items)) == kept
