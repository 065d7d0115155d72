from __future__ import annotations

import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.datasets.conversations import (
    is_messages,
    parse_messages,
    read_messages,
    render_conversations,
    split_messages,
)
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


@pytest.mark.parametrize("form", FORMS)
def test_a_single_message_is_a_conversation_of_one_turn(form):
    assert parse_messages(FORMS[form](TALK[0])) == TALK[:1]
    after, notes = render_conversations(raw(talk=[FORMS[form](TALK[0])]), ("talk",))
    assert after.columns["talk"] == [render_messages(TALK[:1])]
    assert len(notes) == 1


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
        ("[__import__('os').getcwd()]", "neither JSON nor Python"),
        ("[" * 9999, "neither JSON nor Python"),
        (7, "it is a int"),
        ({"text": "Hi"}, "it is a dict"),
        ('{"text": "Hi"}', "it is a dict"),
        ({"role": "user"}, "message 1 has neither content nor tool calls"),
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


def turns(*contents):
    """A conversation, the user first."""
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(contents)]


def chats(count=8, **columns):
    talks = [turns(f"hello {n}", f"first {n}", f"and {n}?", f"last {n}") for n in range(count)]
    return pd.DataFrame({"messages": talks, "score": [1, 2] * (count // 2), **columns})


def test_messages_are_input_and_output_and_only_the_closing_assistant_message_is_the_output():
    table = read_table(chats())
    assert (table.columns.inputs, table.columns.output) == (("messages",), "messages")
    assert table.columns.guessed >= {"input", "output"}
    assert [row.output for row in table.rows] == [f"assistant: last {n}" for n in range(8)]
    assert table.rows[3].input == "user: hello 3\nassistant: first 3\nuser: and 3?"
    assert (
        sum("the closing assistant message is the output, and the input ends before it" in n for n in table.notes) == 1
    )


def test_no_input_holds_its_output_where_another_column_has_it():
    table = read_table(chats(response=[f"last {n}" for n in range(8)]))
    assert (table.columns.inputs, table.columns.output) == (("messages",), "response")
    assert not any(row.output in row.input for row in table.rows)
    assert any("the closing assistant message is left out of the input" in note for note in table.notes)
    assert "input column guessed: 'messages' (name it with inputs=... (--input))" in table.notes
    named = read_table(chats(answer=["so"] * 8), output="answer", inputs="messages")
    assert not any("last" in row.input for row in named.rows)


@pytest.mark.parametrize("role", ["assistant", "Assistant", "model"])
@pytest.mark.parametrize("column", ["messages", "prompt"])
def test_no_input_holds_its_output_whatever_the_column_and_the_system_are_called(column, role):
    talks = [[*turns(f"hello {n}"), {"role": role, "content": f"last  {n}\nand more"}] for n in range(8)]
    table = read_table(chats(response=[f"last {n}\nand  more" for n in range(8)]).assign(messages=talks).rename(
        columns={"messages": column}
    ))  # fmt: skip
    assert (table.columns.inputs, table.columns.output) == ((column,), "response")
    assert [row.input for row in table.rows] == [f"user: hello {n}" for n in range(8)]


def test_an_input_that_ends_with_another_text_than_the_output_stays_whole():
    frame = chats(response=[f"other {n}" for n in range(8)]).rename(columns={"messages": "prompt"})
    assert read_table(frame).rows[0].input.endswith("assistant: last 0")


def test_any_column_named_for_both_is_parted_and_one_named_for_the_output_is_whole():
    frame = chats().rename(columns={"messages": "dialog"})
    assert read_table(frame, inputs="dialog", output="dialog").rows[0].output == "assistant: last 0"
    assert read_table(frame, output="dialog").rows[0].output == render_messages(frame["dialog"][0])
    whole = read_table(chats(), output="messages")
    assert (whole.columns.inputs, whole.rows[0].output) == ((), render_messages(chats()["messages"][0]))


def test_what_was_read_names_the_columns_that_read_it_again():
    columns = read_table(chats()).columns
    again = read_table(chats(), output=columns.output, inputs=columns.inputs)
    assert again.rows[0].output == "assistant: last 0"
    assert again.notes != ()


def test_conversations_that_the_user_ends_are_judged_as_a_whole_and_a_few_of_these_are_an_error():
    frame = chats()
    frame["messages"] = frame["messages"].map(lambda talk: talk[:-1])
    table = read_table(frame)
    assert table.columns.inputs == ()
    assert table.rows[0].output.endswith("user: and 0?")
    frame = chats()
    frame.at[5, "messages"] = frame["messages"][5][:-1]
    with pytest.raises(DataError, match=r"row 6 .*no assistant message closes the conversation .* by 'user'; 1 such"):
        read_table(frame)


def test_a_conversation_of_the_reply_alone_has_no_input():
    after, _ = split_messages(raw(talk=[[{"role": "assistant", "content": "Hi"}], TALK]), "talk")
    assert after.columns["talk"] == [None, render_messages(TALK)]


def test_plain_texts_in_a_column_called_messages_are_outputs():
    table = read_table(chats().assign(messages=[f"text {n}" for n in range(8)]))
    assert (table.columns.inputs, table.columns.output) == ((), "messages")
    assert table.rows[0].output == "text 0"


def test_conversations_are_told_by_more_than_half_of_the_cells():
    own = raw(talk=[TALK, TALK[:1], "text", None], closed=[turns("a", "b"), turns("a", "b"), TALK, None])
    assert is_messages(own, "talk")
    assert not is_messages(own, "talk", closed=True)
    assert is_messages(own, "closed", closed=True)
