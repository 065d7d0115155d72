from __future__ import annotations

import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.datasets.conversations import parse_messages, read_messages, render_conversations
from metricsmith.datasets.sources import open_source
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError
from metricsmith.rendering import render_messages

TALK = [
    {"role": "user", "content": "Where's \"order\" 7?\nI'm waiting."},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "find", "arguments": '{"id": 7}'}}]},
    {"role": "tool", "content": "shipped"},
]
FORMS = {"list": lambda talk: talk, "json": json.dumps, "python": repr, "spaced": lambda talk: f" \n{talk!r} "}


def raw(**columns):
    return open_source(pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()}))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_messages(form):
    assert parse_messages(FORMS[form](TALK)) == TALK


def test_a_message_that_only_calls_a_tool_speaks_too():
    call = [{"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}}]
    assert parse_messages(call) == call


@given(
    st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.text()}),
        min_size=1,
        max_size=4,
    )
)
def test_text_forms_lose_nothing(talk):
    assert parse_messages(repr(talk)) == parse_messages(json.dumps(talk)) == talk


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (None, "it is empty"),
        ("  ", "it is empty"),
        ("Hello", "it is a plain text"),
        ("[{'role': 'user', 'content': 'Hel", "cut off"),
        ("[__import__('os').getcwd()]", "neither JSON nor a Python list"),
        ("[" * 9999, "neither JSON nor a Python list"),
        (7, "it is a int"),
        ({"role": "user", "content": "Hi"}, "it is a dict"),
        ("[]", "the list is empty"),
        (["Hi"], "item 1 is a str, 'Hi'"),
        ([TALK[0], 3], "item 2 is a int, '3'"),
        ([{"content": "Hi"}], r"message 1 has no role \(its keys: content\)"),
        ([{}], "its keys: none"),
        ([{"role": " ", "content": "Hi"}], "message 1 has no role"),
        ([{"role": 3, "content": "Hi"}], "message 1 has no role"),
        ([TALK[0], {"role": "user"}], "message 2 has neither content nor tool calls"),
        ([{"role": "user", "content": None}], "message 1 has neither content nor tool calls"),
    ],
)
def test_anything_else_is_refused_with_its_reason(cell, why):
    with pytest.raises(ValueError, match=why):
        parse_messages(cell)


def test_the_error_names_row_and_column():
    table = raw(talk=[TALK, "nonsense"])
    assert read_messages(table, "talk", 0) == TALK
    with pytest.raises(DataError, match=r"the data frame, row 2 .*'talk': 'nonsense' is no conversation: .*correct"):
        read_messages(table, "talk", 1)


@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_conversations_is_written_out(form):
    before = raw(talk=[FORMS[form](TALK), None, FORMS[form](TALK[:1])], other=["[1]", "x", "y"])
    after, notes = render_conversations(before, ("talk", "other"))
    assert after.columns["talk"] == [render_messages(TALK), None, render_messages(TALK[:1])]
    assert after.columns["other"] == before.columns["other"]
    assert (after.checksum, after.numbers) == (before.checksum, before.numbers)
    assert notes == ("column 'talk' holds conversations: the messages are written out turn by turn",)


def test_half_of_the_cells_are_not_enough_for_a_column_of_conversations():
    before = raw(text=[repr(TALK), "a text about messages"], empty=[None, ""])
    assert render_conversations(before, ("text", "empty")) == (before, ())


def test_one_bad_cell_among_conversations_is_an_error():
    with pytest.raises(DataError, match=r"row 3 .*message 1 has no role"):
        render_conversations(raw(talk=[TALK, TALK, [{"content": "Hi"}]]), ("talk",))


def test_read_table_writes_conversations_out_wherever_they_are_shown():
    count = 8
    frame = pd.DataFrame({
        "prompt": [json.dumps(TALK[:1])] * count,
        "response": [repr(TALK[2:])] * count,
        "reference": [[{"role": "tool", "content": "lost"}]] * count,
        "context": [repr([{"role": "system", "content": "Be kind."}])] * count,
        "score": [1, 2] * (count // 2),
    })  # fmt: skip
    table = read_table(frame)
    row = table.rows[0]
    assert row.input == "user:\n  Where's \"order\" 7?\n  I'm waiting."
    assert (row.output, row.references, row.context) == ("tool: shipped", ["tool: lost"], "system: Be kind.")
    assert sum("holds conversations" in note for note in table.notes) == 4
