"""What an agent is run against, and what a run leaves: the same for our own world and for tau-bench."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Call:
    """One call of a tool by the agent: its name, its arguments, and its answer."""

    tool: str
    arguments: Mapping[str, Any]
    answer: str


@dataclass(frozen=True)
class Episode:
    """A finished conversation.

    Parameters
    ----------
    task : str
    messages : tuple of dict
        ``role`` (``user`` is the customer, ``assistant`` the agent, ``tool`` a tool's answer) and ``content``, as
        `metricsmith.data.read_taubench` reads them; a call of a tool is an assistant's turn.
    calls : tuple of Call
    reward : float
        1 if the database is as it must be and every fact was told, else 0.
    state : str
        Hash of the database at the end.
    lacks : tuple of str
        Why the reward is 0, in a sentence each, such as a rule that was broken; empty where it is 1.
    """

    task: str
    messages: tuple[Mapping[str, Any], ...]
    calls: tuple[Call, ...]
    reward: float
    state: str
    lacks: tuple[str, ...] = ()


class Session(Protocol):
    """One conversation, with a database of its own."""

    opening: str  # the customer's first turn
    tools: Sequence[Callable[..., str]]  # typed functions with docstrings, on this session's database
    over: bool

    def say(self, text: str) -> str:
        """Tell the customer something; the customer's answer, empty once the conversation is over."""

    def close(self) -> Episode:
        """End the conversation and judge it."""


class Environment(Protocol):
    """Tasks in a world."""

    policy: str
    tasks: Mapping[str, Sequence[str]]  # "train" and "test": ids

    def start(self, task: str, seed: int = 0) -> Session:
        """Begin a conversation about a task; nothing of an earlier one is left."""
