"""Conversations of an agent, while they run and as they ended: the same for our own world and for tau-bench."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import dspy

CALL = "Action:\n"
"""The beginning of a turn of the agent that calls a tool, as in the recorded runs of tau-bench."""

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Call:
    """One call of a tool by the agent: its name, its arguments, and its answer."""

    tool: str
    arguments: Mapping[str, Any]
    answer: str


@dataclass(frozen=True)
class Episode:
    """A finished conversation.

    A message has a ``role`` (``user`` is the customer, ``assistant`` the agent, ``tool`` a tool's answer) and its
    ``content``, as `metricsmith.data.read_taubench` reads them; a call of a tool is an assistant's turn.
    """

    task: str
    messages: tuple[Mapping[str, Any], ...]
    calls: tuple[Call, ...]
    reward: float  # 1 if the database is as it must be and every fact was told, else 0
    state: str  # hash of the database at the end
    lacks: tuple[str, ...] = ()  # why the reward is 0, in a sentence each, such as a rule that was broken


class ServiceTool(dspy.Tool):
    """A tool that passes on whatever arguments it gets, to be answered where they arrive and recorded.

    `dspy.Tool` refuses those that do not fit the schema, which is here for the agent to read.
    """

    def __call__(self, /, **arguments: Any) -> Any:
        """Call the function."""
        return self.func(**arguments)


def spoken(messages: Messages) -> Messages:
    """The turns that the customer says or hears; calls of tools and their answers are not among them."""
    return [turn for turn in messages if turn["role"] != "tool" and not turn["content"].startswith(CALL)]


class Session(ABC):
    """One conversation, with a database of its own.

    Parameters
    ----------
    tools : iterable of ServiceTool
        Names, descriptions and arguments; calls go to `answer` and into `messages` and `calls`.

    Attributes
    ----------
    opening : str
        The customer's first turn.
    tools : dict of str to ServiceTool
    over : bool
        Whether the customer has gone.
    failure : BaseException, optional
        What broke the conversation off, such as a customer's model that did not answer: nothing there is to be judged.
    """

    opening: str
    failure: BaseException | None

    def __init__(self, tools: Iterable[ServiceTool]) -> None:
        self.over, self.failure = False, None
        self.messages: list[Mapping[str, Any]] = []
        self.calls: list[Call] = []
        self.tools = {tool.name: tool.model_copy(update={"func": partial(self._call, tool.name)}) for tool in tools}

    def _call(self, tool: str, /, **arguments: Any) -> str:
        with self.failing():
            answer = self.answer(tool, arguments)
        self.calls.append(Call(tool, arguments, answer))
        content = CALL + json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
        self.messages += [{"role": "assistant", "content": content}, {"role": "tool", "content": answer}]
        return answer

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Let an error within end the conversation, and keep it: `dspy.ReAct` shows errors of tools to the agent."""
        whole = False
        try:
            yield
            whole = True
        finally:
            if not whole:
                self.over, self.failure = True, sys.exception()

    @abstractmethod
    def answer(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The answer to a call; a call that cannot be is answered by ``Error: `` and why."""

    @abstractmethod
    def say(self, text: str) -> str:
        """Tell the customer something; the customer's answer, empty once the conversation is over."""

    @abstractmethod
    def close(self) -> Episode:
        """End the conversation and judge it."""


class Environment(Protocol):
    """Tasks in a world."""

    policy: str
    tasks: Mapping[str, Sequence[str]]  # "train" and "test": ids

    def start(self, task: str, seed: int = 0) -> Session:
        """Begin a conversation about a task; nothing of an earlier one is left."""
