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


@pytest.mark.parametrize("known", [{"id"}, set()])
def test_an_id_on_outputs_of_different_inputs_is_named_with_its_rows_and_joins_nothing(known):
    ids = ["a", "b", "a", "c", "c", "d", "e", "f"]
    columns = Columns(id="k", guessed=frozenset(known))
    labels = label(columns, ["q", "r", "s", "t", " t", "", "u", "v"], k=ids)
    assert labels.ids == tuple(ids)
    assert labels.groups == ("row 1", "b", "row 3", "c", "c", "d", "e", "f")
    assert labels.items == ("", "b", "", "c", "c", "d", "e", "f")
    assert labels.columns.id == labels.columns.group == "k"
    assert labels.notes[1] == (
        "ids of 'k' that stand on outputs of different inputs join no rows: 'a' (rows 1, 3); correct them, or name the "
        "column with group=... (--group) if its rows belong together"
    )


def test_ids_that_all_stand_twice_stay_as_they_are_and_the_first_five_are_named():
    ids = list("abcdefgh") * 2
    labels = label(guessed(id="id"), [f"q{row}" for row in range(16)], id=ids)
    assert labels.ids == tuple(ids)
    assert labels.groups == tuple(f"row {row}" for row in range(1, 17))
    assert labels.columns == guessed(id="id")
    assert "'e' (rows 5, 13) and 3 more; correct them" in labels.notes[1]


def test_an_id_beside_an_unknown_input_is_no_other_source():
    labels = label(guessed(id="id"), ["q", "", "r", "s", "t", "u"], id=["a", "a", "b", "c", "d", "e"])
    assert labels.groups == ("a", "a", "b", "c", "d", "e")


@pytest.mark.parametrize("role", ["id", "group"])
def test_a_blank_cell_in_a_named_column_is_an_error(role):
    with pytest.raises(DataError, match=rf"row 2 .*column 'k': the {role} is blank \(1 such rows\)"):
        label(Columns(**{role: "k"}), k=["a", None, "b"])


def test_a_guessed_unique_id_column_is_used():
    labels = label(guessed(id="id"), id=["x", "y"])
    assert labels.ids == ("x", "y")
    assert labels.columns.id == "id"


def test_a_repeated_id_joins_its_rows_and_stands_for_the_group():
    labels = label(guessed(id="id"), id=["w", "x", "y", "z"] * 2)
    assert labels.ids == labels.groups == labels.sources == ("w", "x", "y", "z") * 2
    assert labels.columns == Columns(id="id", group="id", guessed=frozenset({"id", "group"}))
    assert labels.notes == (
        "the guessed id column 'id' has 4 values over 8 rows",
        "no group column: rows with the same id form a group (4 groups)",
    )


def test_rows_whose_repeated_id_is_alone_or_blank_stand_alone():
    labels = label(guessed(id="id"), id=["w", "w", "6", "6", "y", None, None])
    assert labels.groups == labels.ids == ("w", "w", "6", "6", "y", "row 6", "row 7")


@pytest.mark.parametrize("ids", [["x", "x", "y"], ["x", "x", "x"], ["x", "x", None, None]])
def test_an_id_of_more_than_a_third_of_the_outputs_joins_nothing(ids):
    labels = label(guessed(id="id"), id=ids)
    assert labels.columns == Columns()
    assert labels.ids == labels.groups == tuple(str(number) for number in range(1, len(ids) + 1))
    count = ids.count("x")
    assert labels.notes[1] == (
        f"the id 'x' stands with {count} of {len(ids)} outputs: it is an instruction, not a source, and joins no rows"
    )


def test_a_named_id_may_repeat_where_a_column_says_who_rated():
    columns = Columns(id="k", rater="r")
    labels = label(columns, k=["a", "b", "c", "a", "b", "c"], r=["x", "x", "x", "y", "y", "y"])
    assert labels.groups == ("a", "b", "c", "a", "b", "c")
    assert labels.columns.group == "k"


def test_a_guessed_id_that_repeats_joins_the_named_groups():
    columns = Columns(id="id", group="g", guessed=frozenset({"id"}))
    labels = label(columns, id=["w", "x", "w", "y", "z", "v"], g=[1, 2, 3, 4, 4, 5])
    # Row 3 shares its id with row 1: groups 3 and 1 are one.
    assert labels.groups == ("1", "2", "1", "4", "4", "5")
    assert labels.sources == ("1", "2", "3", "4", "4", "5")
    assert labels.notes[-1] == "the 5 groups of 'g' count as 4: rows with the same id stay together"


def test_a_guessed_group_is_used_where_a_value_repeats():
    assert label(guessed(group="g"), g=["x", "y", "x"]).groups == ("x", "y", "x")


@pytest.mark.parametrize("groups", [["x", "y", "z"], ["x", "x", "x"], ["x", "x", None]])
def test_a_guessed_group_that_groups_nothing_is_not_used(groups):
    labels = label(guessed(group="g"), g=groups)
    assert labels.columns.group is None
    assert labels.groups == ("1", "2", "3")
    assert any("the guessed group column 'g'" in note and "is not used" in note for note in labels.notes)


def test_repeated_inputs_form_groups_also_beside_rows_without_input():
    # 2 of 6 outputs are just a third: more would make "q" an instruction.
    labels = label(Columns(), ["q", "r", "q", "", "s", "t"], x=[1, 2, 3, 4, 5, 6])
    assert labels.groups == ("input 1", "2", "input 1", "4", "5", "6")
    assert labels.notes[-1] == "no group column: rows with the same input form a group (5 groups)"


def test_equal_inputs_and_ids_join_the_rows_of_several_groups():
    # Input q joins rows 1 and 2 of groups a and b; id 7 joins row 3 of group b with row 4 of group c: one part.
    # Row 4 names no input, so that its id stands on no two.
    columns = Columns(id="id", group="g", guessed=frozenset({"id"}))
    inputs = ["q", "q", "r", "", "t", "u", "v", "w"]
    labels = label(columns, inputs, id=[1, 2, 7, 7, 3, 4, 5, 6], g=list("abbcdefg"))
    assert labels.groups == ("a", "a", "a", "a", "d", "e", "f", "g")


def test_long_outputs_join_rows_of_different_inputs_and_short_ones_do_not():
    seven, eight = "one two three four five six seven", "one two three four five six seven  eight"
    outputs = [eight, eight.replace("  ", " "), seven, seven]
    labels = label(Columns(output="x"), ["q", "r", "s", "t"], x=outputs)
    assert labels.groups == ("1", "1", "3", "4")
    assert labels.notes[-1] == (
        "no group column: rows with the same output of eight words or more form a group (3 groups)"
    )


def test_ratings_of_one_output_count_once_for_the_share_of_an_input():
    # Input q has 4 of 10 rows, but 2 of 8 outputs: two raters rated each of them.
    inputs = ["q", "q", "q", "q", "r", "s", "t", "u", "v", "w"]
    labels = label(Columns(output="x", rater="who"), inputs, x=list("aabbcdefgh"), who=list("1212111111"))
    assert labels.groups == ("input 1",) * 4 + ("5", "6", "7", "8", "9", "10")


INSTRUCTED = {"article": [f"a{row // 2}" for row in range(8)], "topic": [f"t{row % 3}" for row in range(8)]}


def test_an_instruction_joins_nothing_and_a_column_of_sources_groups_instead():
    labels = label(Columns(inputs=("p",)), ["Sum it up."] * 8, p=["x"] * 8, **INSTRUCTED)
    assert labels.columns.group == "article"
    assert labels.groups == tuple(INSTRUCTED["article"])
    assert labels.notes == (
        "no id column: row numbers are the ids",
        "the input 'Sum it up.' stands with 8 of 8 outputs: it is an instruction, not a source, and joins no rows",
        "'article' groups the rows instead (name another with group=... (--group))",
    )


def test_an_instruction_names_the_column_that_would_group_where_no_name_says_so():
    cells = {"plot": INSTRUCTED["article"], "stars": [1, 2, 3, 4] * 2, "kind": ["a"] * 8}
    labels = label(Columns(inputs=("p",)), ["Sum it up."] * 8, p=["x"] * 8, **cells)
    assert labels.groups == tuple("12345678")
    assert labels.notes[2] == "if rows share sources, 'plot' would group them: name it with group=... (--group)"
    bare = label(Columns(inputs=("p",)), ["Sum it up."] * 8, p=["x"] * 8)
    assert bare.notes[2] == "if rows share sources, name the column that holds the sources with group=... (--group)"


def test_an_instruction_beside_a_group_column_joins_nothing_either():
    labels = label(Columns(inputs=("p",), group="g"), ["Sum it up."] * 8, p=["x"] * 8, g=list("aabbccdd"))
    assert labels.groups == tuple("aabbccdd")


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
