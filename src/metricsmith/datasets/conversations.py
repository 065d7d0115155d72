"""Columns of conversations: a cell that is a list of chat messages, in any form, becomes a text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from metricsmith.datasets.cells import cell_text, is_blank, mostly, parsed_by, python_literal
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError
from metricsmith.rendering import render_messages

__all__ = ["parse_messages", "read_messages", "render_conversations"]


def parse_messages(cell: Any) -> list[dict[str, Any]]:
    """The chat messages in a plain cell.

    Parameters
    ----------
    cell : None, bool, int, float, str, list or dict
        A list of messages, or such a list in JSON or in Python text form. Nothing is executed.

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
            f"{raw.place(index, column)}: {cell_text(cell)[:60]!r} is no conversation: {error}; allowed is a list of "
            f"messages such as {{'role': 'user', 'content': 'Hello'}}, also in JSON or Python text form: correct the "
            f"cell"
        ) from error


def render_conversations(raw: RawTable, names: Sequence[str]) -> tuple[RawTable, tuple[str, ...]]:
    """Turn the conversations among the columns `names` into texts, by `metricsmith.rendering.render_messages`.

    A column holds conversations if more than half of its filled cells are lists of messages. Then all of them
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
    texts = {
        name: [
            cell if is_blank(cell) else render_messages(read_messages(raw, name, index))
            for index, cell in enumerate(raw.columns[name])
        ]
        for name in names
        if mostly(parse_messages, raw.columns[name])
    }
    notes = (f"column {name!r} holds conversations: the messages are written out turn by turn" for name in texts)
    return replace(raw, columns={**raw.columns, **texts}), tuple(notes)


def _parsed(text: str) -> Any:
    """The list that a text stands for."""
    stripped = text.strip()
    if not stripped.startswith("["):
        raise ValueError("it is a plain text")
    for value in parsed_by(stripped, json.loads, python_literal):
        return value
    raise ValueError("it begins like a list but is neither JSON nor a Python list, or is cut off")
