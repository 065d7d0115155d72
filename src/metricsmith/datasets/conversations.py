"""Columns of conversations: a cell that is a list of chat messages, in any form, becomes a text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from metricsmith.datasets.cells import cell_text, is_blank, mostly, parsed_by, python_literal, value_or
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError
from metricsmith.rendering import render_messages

__all__ = [
    "ends_with_output", "is_messages", "parse_messages", "read_messages", "render_conversations", "rendered",
    "split_messages",
]  # fmt: skip

REPLYING = ("assistant", "model", "ai", "bot")  # roles of the system that is judged, in lower case


def parse_messages(cell: Any) -> list[dict[str, Any]]:
    """The chat messages in a plain cell.

    Parameters
    ----------
    cell : None, bool, int, float, str, list or dict
        A list of messages or a single message, or such in JSON or in Python text form. Nothing is executed.

    Returns
    -------
    list of dict
        At least one message, each with a non-empty text as ``role``.

    Raises
    ------
    ValueError
        If there is something else in the cell; the message says what.

    Examples
    --------
    >>> parse_messages('[{"role": "user", "content": "Hi"}]') == parse_messages("[{'role': 'user', 'content': 'Hi'}]")
    True
    """
    if is_blank(cell):
        raise ValueError("it is empty")
    messages = _parsed(cell) if isinstance(cell, str) else cell
    if isinstance(messages, Mapping) and "role" in messages:
        messages = [dict(messages)]
    if not isinstance(messages, list):
        raise ValueError(f"it is a {type(messages).__name__}")
    if not messages:
        raise ValueError("the list is empty")
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping):
            raise ValueError(f"item {number} is a {type(message).__name__}, {cell_text(message)[:40]!r}")
        role = message.get("role")
        if not (isinstance(role, str) and role.strip()):
            raise ValueError(f"message {number} has no role (its keys: {', '.join(map(str, message)) or 'none'})")
        speaks = message.get("content") is not None or message.get("tool_calls") or message.get("function_call")
        if not speaks:
            raise ValueError(f"message {number} has neither content nor tool calls")
    return messages


def read_messages(raw: RawTable, column: str, index: int) -> list[dict[str, Any]]:
    """The chat messages in row `index` (from 0) of `column`.

    Raises
    ------
    DataError
        If the cell is no list of messages; it names file, row and column, and what is wrong.
    """
    cell = raw.columns[column][index]
    try:
        return parse_messages(cell)
    except ValueError as error:
        raise DataError(
            f"{raw.place(index, column)}: {cell_text(cell)[:60]!r} is no conversation: {error}; allowed is a message "
            f"such as {{'role': 'user', 'content': 'Hello'}}, or a list of them, also in JSON or Python text form: "
            f"correct the cell"
        ) from error


def render_conversations(raw: RawTable, names: Sequence[str]) -> tuple[RawTable, tuple[str, ...]]:
    """Turn the conversations among the columns `names` into texts, by `metricsmith.rendering.render_messages`.

    A column holds conversations if more than half of its filled cells are messages or lists of them. Then all of them
    must be; blank cells stay blank. Every other column stays as it is.

    One text that happens to look like a list of messages stays a text, and one broken list among a hundred is an error
    with its row, not a prompt full of braces.

    Returns
    -------
    RawTable
        The same rows and the same checksum.
    tuple of str
        One line for each column that was rendered.

    Raises
    ------
    DataError
        If a filled cell of a conversation column is no list of messages.
    """
    found = [name for name in names if is_messages(raw, name)]
    notes = (f"column {name!r} holds conversations: the messages are written out turn by turn" for name in found)
    return rendered(raw, found), tuple(notes)


def rendered(raw: RawTable, names: Iterable[str]) -> RawTable:
    """The table with the conversations of these columns as texts; `DataError` for a filled cell that is none."""
    texts = {
        name: [
            cell if is_blank(cell) else render_messages(read_messages(raw, name, index))
            for index, cell in enumerate(raw.columns[name])
        ]
        for name in names
    }
    return replace(raw, columns={**raw.columns, **texts})


def is_messages(raw: RawTable, column: str, *, closed: bool = False) -> bool:
    """True if more than half of a column's filled cells are messages or lists of them, `closed` by the assistant."""

    def parse(cell: Any) -> list[dict[str, Any]]:
        messages = parse_messages(cell)
        if closed and not _is_reply(messages[-1]):
            raise ValueError("its last message is not the assistant's")
        return messages

    return mostly(parse, raw.columns[column])


def ends_with_output(raw: RawTable, column: str, output: str | None) -> bool:
    """True for the output's own column, and if the assistant closes a conversation with the text of its output."""

    def says(cell: Any) -> str:
        message = value_or(parse_messages, cell, [{}])[-1]
        return render_messages([message]).partition(":")[2] if _is_reply(message) else ""

    pairs = zip(raw.columns[column], raw.columns.get(output or "", ()), strict=False)
    return column == output or any(
        (reply := says(cell).split()) and reply in (cell_text(out).split(), says(out).split()) for cell, out in pairs
    )


def split_messages(raw: RawTable, column: str, output: str = "") -> tuple[RawTable, str]:
    """Take the closing assistant message off the conversations of a column, whose other turns are the input.

    An input never holds its output: the message is left out also where another column has the outputs.

    Parameters
    ----------
    raw : RawTable
    column : str
        Conversations, possibly blank. Their text is then that of the turns before the closing assistant message.
    output : str
        The name of a new column for the closing messages; nothing where there is no need of one.

    Returns
    -------
    RawTable
        With both texts written out by `metricsmith.rendering.render_messages`, blank where there is no turn.
    str
        A line on it.

    Raises
    ------
    DataError
        If an `output` is asked for and a conversation does not end with an assistant message.
    """
    turns = [[] if is_blank(cell) else read_messages(raw, column, i) for i, cell in enumerate(raw.columns[column])]
    closing = [own[-1:] if own and _is_reply(own[-1]) else [] for own in turns]
    if output and not all(closing):
        index = closing.index([])
        last = f"its last message is by {turns[index][-1]['role']!r}" if turns[index] else "it is blank"
        raise DataError(
            f"{raw.place(index, column)}: no assistant message closes the conversation ({last}; {closing.count([])} "
            f"such rows), and that message is the output to judge: correct or leave out such rows, or judge whole "
            f"conversations with output={column!r} (--output {column})"
        )
    before = [own[: len(own) - len(last)] for own, last in zip(turns, closing, strict=True)]
    texts = {column: before, **({output: closing} if output else {})}
    written = {name: [render_messages(own) if own else None for own in cells] for name, cells in texts.items()}
    told = "is left out of the input"
    if output:
        told = f"is the output, and the input ends before it (output={column!r}, --output {column}, takes the whole)"
    note = f"column {column!r} holds conversations: the closing assistant message {told}"
    return replace(raw, columns={**raw.columns, **written}), note


def _is_reply(message: Mapping[str, Any]) -> bool:
    return str(message.get("role")).strip().lower() in REPLYING


def _parsed(text: str) -> Any:
    """The list or message that a text stands for."""
    stripped = text.strip()
    if not stripped.startswith(("[", "{")):
        raise ValueError("it is a plain text")
    for value in parsed_by(stripped, json.loads, python_literal):
        return value
    raise ValueError("it begins like a list or message but is neither JSON nor Python, or is cut off")
