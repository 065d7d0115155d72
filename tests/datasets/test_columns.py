from __future__ import annotations

from itertools import combinations

import pandas as pd
import pytest

from metricsmith.datasets.columns import SYNONYMS, Columns, guess_notes, need_column, resolve_columns
from metricsmith.datasets.sources import open_source
from metricsmith.errors import DataError, OptionError


def table(*names):
    return open_source(pd.DataFrame({name: ["x"] for name in names}))


def test_every_role_is_guessed_from_its_name():
    names = ("ID", "prompt_id", "Question", "passage", "modelOutput", "Gold Answer", "human-rating", "Model", "raterID")
    raw = table(*names)
    assert resolve_columns(raw, Columns()) == Columns(
        target="human-rating",
        output="modelOutput",
        inputs=("Question",),
        references=("Gold Answer",),
        context="passage",
        id="ID",
        group="prompt_id",
        system="Model",
        rater="raterID",
        guessed=frozenset(SYNONYMS),
    )


def test_no_synonym_stands_for_two_roles():
    for one, other in combinations(SYNONYMS.values(), 2):
        assert not set(one) & set(other)


def test_synonyms_are_written_as_names_are_compared():
    for names in SYNONYMS.values():
        assert list(names) == list(dict.fromkeys(names))
        assert all(name == name.lower().replace(" ", "_") for name in names)


def test_the_likelier_name_wins_and_the_other_is_mentioned():
    raw = table("summary", "output")
    columns = resolve_columns(raw, Columns())
    assert columns.output == "output"
    assert guess_notes(raw, columns) == (
        "output column guessed: 'output'; 'summary' would fit too (name it with output=... (--output))",
    )


def test_what_is_named_is_not_guessed_and_not_noted():
    raw = table("output", "summary", "prompt")
    columns = resolve_columns(raw, Columns(output="summary", inputs=("prompt",)))
    assert (columns.output, columns.inputs, columns.guessed) == ("summary", ("prompt",), frozenset())
    assert guess_notes(raw, columns) == ()


def test_a_column_has_one_guessed_role_only():
    columns = resolve_columns(table("source", "context"), Columns(inputs=("source", "context")))
    assert columns.context is None


def test_a_named_group_can_be_the_guessed_input_but_not_the_guessed_id():
    columns = resolve_columns(table("original", "id"), Columns(group="original"))
    assert (columns.inputs, columns.id) == (("original",), "id")
    assert resolve_columns(table("output", "id"), Columns(group="id")).id is None


def test_candidate_columns_are_never_guessed():
    assert resolve_columns(table("output", "score"), Columns(), taken=["score"]).target is None


def test_the_target_is_only_guessed_where_one_is_wanted():
    assert resolve_columns(table("output", "score"), Columns()).target == "score"
    assert resolve_columns(table("output", "score"), Columns(), guess_target=False).target is None
    assert resolve_columns(table("output", "score"), Columns(target="score"), guess_target=False).target == "score"


@pytest.mark.parametrize(
    ("named", "option"),
    [
        (Columns(target="outputs"), "--target"),
        (Columns(output="outputs"), "--output"),
        (Columns(inputs=("outputs",)), "--input"),
        (Columns(references=("outputs",)), "--reference"),
        (Columns(context="outputs"), "--context"),
        (Columns(id="outputs"), "--id"),
        (Columns(group="outputs"), "--group"),
        (Columns(system="outputs"), "--system"),
        (Columns(rater="outputs"), "--rater"),
    ],
)
def test_a_missing_column_names_the_nearest_and_the_option(named, option):
    with pytest.raises(DataError) as caught:
        resolve_columns(table("output", "rating"), named)
    assert "no column 'outputs' (did you mean 'output'?)" in str(caught.value)
    assert option in str(caught.value)


@pytest.mark.parametrize(
    "named", [Columns("y", output="y"), Columns("y", inputs=("x", "y")), Columns("y", context="y")]
)
def test_the_target_cannot_be_a_text_as_well(named):
    with pytest.raises(OptionError, match="'y' is named both as the target and as a text"):
        resolve_columns(table("x", "y"), named)


def test_an_unguessable_role_lists_columns_and_recognised_names():
    text = str(need_column(table("a", "b"), "output"))
    assert "no output column was named and none of the columns (a, b)" in text
    assert "recognised names are output, model_output" in text
    assert "--output" in text
