from __future__ import annotations

import pandas as pd
import pytest

from metricsmith.datasets.filters import Condition, filter_rows, parse_condition
from metricsmith.datasets.sources import open_source
from metricsmith.errors import DataError, OptionError

COLUMNS = ["system", "a", "a b", "a=b", "why!"]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("system=Human", Condition("system", "Human", True)),
        ("system!=Human", Condition("system", "Human", False)),
        ("system != Human", Condition("system", "Human", False)),
        ("a=b=c", Condition("a=b", "c", True)),
        ("a=c=d", Condition("a", "c=d", True)),
        ("a=b!=c", Condition("a=b", "c", False)),
        ("a b=x", Condition("a b", "x", True)),
        ("why!=x", Condition("why!", "x", True)),
        ("why!!=x", Condition("why!", "x", False)),
        ("a=", Condition("a", "", True)),
        ("a!=", Condition("a", "", False)),
        ("a=b", Condition("a", "b", True)),
    ],
)
def test_the_longest_existing_name_before_an_operator_is_the_column(text, condition):
    assert parse_condition(text, COLUMNS) == condition


def test_an_unknown_column_suggests_the_nearest():
    with pytest.raises(OptionError, match=r"no column 'sytem' \(did you mean 'system'\?\)"):
        parse_condition("sytem!=Human", COLUMNS)


def test_a_condition_without_operator_says_the_form():
    with pytest.raises(OptionError, match=r"'system' has no '='; allowed are COL=VALUE and COL!=VALUE"):
        parse_condition("system", COLUMNS)


@pytest.mark.parametrize(
    ("cell", "value", "same"),
    [
        ("1", "1.0", True),
        (1, "1", True),
        (1.0, "1", True),
        ("1", "2", False),
        ("Human", "human", False),
        (" Human", "Human", True),
        (True, "true", True),
        (True, "True", True),
        (None, "", True),
        ("nan", "NaN", False),
        (None, "nan", False),
        ("inf", "inf", True),
    ],
)
def test_texts_and_numbers_are_compared(cell, value, same):
    assert Condition("c", value, True).holds(cell) is same
    assert Condition("c", value, False).holds(cell) is not same


def test_all_conditions_hold_and_rows_keep_their_numbers():
    raw = open_source(pd.DataFrame({"s": ["a", "b", "a", "a"], "n": [1, 1, 2, 1]}))
    kept = filter_rows(raw, ["s=a", "n!=2"])
    assert kept.numbers == (1, 4)
    assert kept.columns == {"s": ["a", "a"], "n": [1, 1]}


def test_no_condition_keeps_everything():
    raw = open_source(pd.DataFrame({"s": ["a"]}))
    assert filter_rows(raw, []) is raw


def test_no_row_left_shows_what_the_column_holds():
    raw = open_source(pd.DataFrame({"s": ["human", "model"]}))
    with pytest.raises(DataError) as caught:
        filter_rows(raw, ["s=humans"])
    text = str(caught.value)
    assert "no row is left by the condition 's=humans'" in text
    assert "'human', 'model' (did you mean 'human'?)" in text
