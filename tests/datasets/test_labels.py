from __future__ import annotations

import pandas as pd
import pytest

from metricsmith.datasets.columns import Columns
from metricsmith.datasets.labels import label_rows
from metricsmith.datasets.sources import open_source
from metricsmith.errors import DataError


def label(columns: Columns, inputs=None, **cells):
    raw = open_source(pd.DataFrame(cells, dtype=object))
    return label_rows(raw, columns, inputs or [""] * len(raw))


def guessed(**roles) -> Columns:
    return Columns(**roles, guessed=frozenset(roles))


def test_named_columns_are_used_as_they_are():
    labels = label(Columns(id="k", group="g"), k=["a", "b"], g=[1, 1])
    assert (labels.ids, labels.groups, labels.notes) == (("a", "b"), ("1", "1"), ())


def test_duplicates_in_a_named_id_column_name_both_rows():
    with pytest.raises(DataError) as caught:
        label(Columns(id="k"), k=["a", "b", "a"])
    text = str(caught.value)
    assert "row 3 (counted from 1), column 'k': the id 'a' stands already in row 1" in text
    assert "--id" in text


@pytest.mark.parametrize("role", ["id", "group"])
def test_a_blank_cell_in_a_named_column_is_an_error(role):
    with pytest.raises(DataError, match=rf"row 2 .*column 'k': the {role} is blank \(1 such rows\)"):
        label(Columns(**{role: "k"}), k=["a", None, "b"])


def test_a_guessed_unique_id_column_is_used():
    labels = label(guessed(id="id"), id=["x", "y"])
    assert labels.ids == ("x", "y")
    assert labels.columns.id == "id"


def test_a_guessed_id_that_partitions_the_rows_becomes_the_group():
    labels = label(guessed(id="id"), id=["x", "y", "x", "y"])
    assert labels.ids == ("1", "2", "3", "4")
    assert labels.groups == ("x", "y", "x", "y")
    assert labels.columns == guessed(group="id")
    assert labels.notes == (
        "the guessed id column 'id' has 2 values over 4 rows and is not used: row numbers are the ids; "
        "its values partition the rows, so 'id' is the group",
    )


@pytest.mark.parametrize("ids", [["x", "x", "y"], ["x", "x", "x"], ["x", "x", None, None]])
def test_a_guessed_id_with_a_lone_value_one_value_or_gaps_becomes_nothing(ids):
    labels = label(guessed(id="id"), id=ids)
    assert labels.columns == Columns()
    assert labels.ids == labels.groups == tuple(str(number) for number in range(1, len(ids) + 1))


def test_a_guessed_id_never_displaces_a_named_group():
    labels = label(Columns(id="id", group="g", guessed=frozenset({"id"})), id=["x", "x", "y", "y"], g=[1, 2, 1, 2])
    assert labels.groups == ("1", "2", "1", "2")
    assert "is the group" not in labels.notes[0]


def test_a_guessed_group_is_used_where_a_value_repeats():
    assert label(guessed(group="g"), g=["x", "y", "x"]).groups == ("x", "y", "x")


@pytest.mark.parametrize("groups", [["x", "y", "z"], ["x", "x", "x"], ["x", "x", None]])
def test_a_guessed_group_that_groups_nothing_is_not_used(groups):
    labels = label(guessed(group="g"), g=groups)
    assert labels.columns.group is None
    assert labels.groups == ("1", "2", "3")
    assert any("the guessed group column 'g'" in note and "is not used" in note for note in labels.notes)


def test_repeated_inputs_form_groups():
    labels = label(Columns(), ["q", "r", "q"], x=[1, 2, 3])
    assert labels.groups == ("input 1", "input 2", "input 1")
    assert "no group column: rows with the same input form a group (2 groups)" in labels.notes


@pytest.mark.parametrize("inputs", [["q", "r", "s"], ["", "", ""], ["q", "", ""]])
def test_without_repeated_inputs_each_row_is_its_own_group(inputs):
    labels = label(Columns(), inputs, x=[1, 2, 3])
    assert labels.groups == labels.ids == ("1", "2", "3")
    assert labels.notes[-1] == "no group column and no repeated input: each row is its own group"


@pytest.mark.parametrize("role", ["system", "rater"])
def test_a_guessed_system_or_rater_is_used_where_it_has_several_values_of_which_one_repeats(role):
    assert getattr(label(guessed(**{role: "k"}), k=["a", "b", "a"]).columns, role) == "k"


@pytest.mark.parametrize("values", [["a", "a", "a"], ["a", "b", "c"]])
@pytest.mark.parametrize("role", ["system", "rater"])
def test_a_guessed_system_or_rater_that_parts_nothing_is_not_used(role, values):
    labels = label(guessed(**{role: "k"}), k=values)
    assert labels.columns == Columns()
    count = len(set(values))
    assert labels.notes[-1] == f"the guessed {role} column 'k' has {count} values over 3 rows and is not used"


def test_a_named_system_or_rater_is_used_as_it_is():
    columns = Columns(system="k", rater="r")
    assert label(columns, k=["a", "a"], r=["x", None]).columns == columns
