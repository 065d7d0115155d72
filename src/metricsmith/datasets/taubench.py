"""Conversations of an agent with a simulated customer, each with the reward that the benchmark gave.

The layout is that of recorded runs of tau-bench (Yao et al. 2024, "tau-bench: A Benchmark for Tool-Agent-User
Interaction in Real-World Domains", arXiv 2406.12045). The data are not part of this package.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from metricsmith.datasets.conversations import read_messages
from metricsmith.datasets.sources import RawTable, filter_rows, open_source
from metricsmith.datasets.table import Table, read_table
from metricsmith.errors import DataError, nearest
from metricsmith.records import Scale

if TYPE_CHECKING:
    import pandas

__all__ = ["COLUMNS", "DESCRIPTION", "ROLES", "SCALE", "read_taubench"]

COLUMNS = ("id", "user_query", "messages", "reward")
"""The columns that a file must have: the task's id, the customer's first turn, the conversation, and its reward."""

ROLES = ("system", "user", "assistant", "tool")
"""Whose turns a conversation may have."""

SCALE = Scale(0, 1, 1)
"""1: the conversation left the database as it had to be and told the customer what was asked for; 0: it did not."""

DESCRIPTION = (
    "An agent serves a customer in a chat. It looks things up and changes bookings by calling tools, whose answers "
    "are part of the conversation. A good conversation ends with the customer's request carried out exactly as the "
    "rules allow, or refused where they forbid it."
)


def read_taubench(
    source: str | os.PathLike[str] | pandas.DataFrame | Any,
    *,
    task: str = DESCRIPTION,
    where: str | Sequence[str] = (),
    min_rated: int = 8,
) -> Table:
    """Read conversations with rewards, one by row.

    The first turn is the input too: judges see under its own head what was asked, and runs of one request can be
    recognised by it.

    Parameters
    ----------
    source : path, pandas.DataFrame, datasets.Dataset or hub id
        Anything that `read_table` reads, with the columns of `COLUMNS`; others (``model``, ``split``) serve `where`.
        ``messages`` is a list of messages, or such a list in JSON or Python text form.
    task : str
        What the agent does and what a good conversation is, in plain words.
    where, min_rated
        As for `read_table`.

    Returns
    -------
    Table
        ``output`` is the conversation by `metricsmith.rendering.render_messages`, ``input`` the customer's first
        turn, ``reward`` the rating on `SCALE`. Rows of one task form a group; ids are row numbers, since a task is
        run several times.

    Raises
    ------
    DataError
        If a column is missing, a conversation cannot be read or has a turn of another role, or a reward is no
        number from 0 to 1. It names the row.
    OptionError
        If a condition cannot be read.
    """
    whole = open_source(source)
    whole.require_all(COLUMNS, "recorded runs", "read the file with read_table, which takes any names")
    kept = filter_rows(whole, (where,) if isinstance(where, str) else where)
    for index in range(len(kept)):
        _check_roles(kept, index)
    return read_table(
        whole,
        target="reward",
        task=task,
        output="messages",
        inputs="user_query",
        group="id",
        where=where,
        scale=SCALE,
        min_rated=min_rated,
    )


def _check_roles(raw: RawTable, index: int) -> None:
    """Refuses other turns: programs may have operators, recorded runs with another role are at fault."""
    for number, message in enumerate(read_messages(raw, "messages", index), 1):
        if message["role"] not in ROLES:
            raise DataError(
                f"{raw.place(index, 'messages')}: message {number} is by {message['role']!r}"
                f"{nearest(message['role'], ROLES)}; allowed roles are {', '.join(ROLES)}: correct the role, or "
                f"read the file with read_table, which takes any"
            )
