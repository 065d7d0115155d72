"""The ferry line's service as an environment: sessions with a database each, and the reward that can be verified."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, get_type_hints

from agent_reward.customer import Customer
from agent_reward.episodes import Call, Episode
from agent_reward.policy import CALL, POLICY, RULES, broken, is_spoken, is_told
from agent_reward.tasks import SIDES, Task, tasks
from agent_reward.tools import TOOLS, Database, new_database, state_of
from metricsmith.errors import DataError, OptionError, nearest

__all__ = ["MOST_TURNS", "ServiceSession", "ServiceWorld"]

MOST_TURNS = 30
"""Turns of the agent to the customer after which the customer hangs up."""

GREETINGS = ("Hello.", "Good morning.", "Hi there.")


class ServiceWorld:
    """Twenty tasks to learn from and twenty to test on, in the service of a ferry line.

    Parameters
    ----------
    judged_as : dict of str, optional
        Ids of other tasks by whose gold actions, facts and rules an episode is judged: a control. A task that is not
        named is judged as itself.
    """

    policy = POLICY

    def __init__(self, judged_as: Mapping[str, str] | None = None) -> None:
        self.tasks: Mapping[str, Sequence[str]] = {
            side: tuple(task for task in tasks() if task.startswith(side)) for side in SIDES
        }
        self.judged_as = dict(judged_as or {})
        for task in {*self.judged_as, *self.judged_as.values()}:
            _task(task)

    def start(self, task: str, seed: int = 0) -> ServiceSession:
        """Begin a conversation; the seed chooses the greeting, and nothing of an earlier one is left.

        Raises
        ------
        OptionError
            If there is no such task.
        """
        return ServiceSession(_task(task), _task(self.judged_as.get(task, task)), seed)


class ServiceSession:
    """One conversation about a task, judged as another where a control wants it."""

    def __init__(self, task: Task, judged_as: Task, seed: int) -> None:
        self.opening = f"{GREETINGS[seed % len(GREETINGS)]} {task.opening}"
        self.over = False
        self._task, self._judged_as = task, judged_as
        self._db = copy.deepcopy(_start())
        holder = self._db["customers"][task.customer]
        known = {"name": f"My name is {holder['name']}.", "born": f"I was born on {holder['born']}."}
        self._customer = Customer({**known, **task.says})
        self._messages: list[Mapping[str, Any]] = [{"role": "user", "content": self.opening}]
        self._calls: list[Call] = []
        self._turns = 0
        self.tools: Sequence[Callable[..., str]] = tuple(self._bound(tool) for tool in TOOLS)

    def _bound(self, tool: Callable[..., str]) -> Callable[..., str]:
        """A tool on this session's database: wrong arguments are an answer, as is a conversation that is over."""
        signature = inspect.signature(tool)
        own = signature.replace(parameters=list(signature.parameters.values())[1:])
        name = tool.__name__

        def call(*positional: Any, **named: Any) -> str:
            try:
                arguments = own.bind(*positional, **named).arguments
                if self.over:
                    raise DataError("the conversation is over, nothing can be done any more")
                answer = tool(self._db, **arguments)
            except (DataError, TypeError) as error:
                arguments, answer = {**dict(zip(own.parameters, positional, strict=False)), **named}, f"Error: {error}"
            self._calls.append(Call(name, arguments, answer))
            content = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
            self._messages += [{"role": "assistant", "content": CALL + content}, {"role": "tool", "content": answer}]
            self.over = self.over or (name == "transfer_to_human" and not answer.startswith("Error"))
            return answer

        hints = {key: hint for key, hint in get_type_hints(tool).items() if key != "db"}
        call.__name__, call.__qualname__, call.__doc__, call.__annotations__ = name, name, tool.__doc__, hints
        call.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[one.replace(annotation=hints[one.name]) for one in own.parameters.values()]
        )
        return call

    def say(self, text: str) -> str:
        """Tell the customer something; the customer's answer, empty once the conversation is over."""
        if self.over:
            return ""
        self._turns += 1
        answer, self.over = self._customer.answer(text)
        self.over = self.over or self._turns >= MOST_TURNS
        self._messages += [{"role": "assistant", "content": text}, {"role": "user", "content": answer}]
        return answer

    def close(self) -> Episode:
        """End the conversation and judge it."""
        self.over = True
        judged, state = self._judged_as, state_of(self._db)
        said = "\n".join(message["content"] for message in self._messages if is_spoken(message))
        missing = [fact for fact in judged.facts if not is_told(fact, said)]
        reward = float(state == _gold(judged.id) and not missing)
        episode = Episode(self._task.id, tuple(self._messages), tuple(self._calls), reward, state)
        if reward:
            return episode
        found = [f"{rule}: {RULES[rule]}" for rule in broken(episode) if rule in judged.rules]
        lacks = [*found, *(f"The customer was not told {fact}." for fact in missing)]
        if state != _gold(judged.id) and not found:
            lacks.append("The bookings, vouchers and transfers at the end are not those that the wishes lead to.")
        return Episode(episode.task, episode.messages, episode.calls, reward, state, tuple(lacks))


def _task(task: str) -> Task:
    if task not in tasks():
        raise OptionError(
            f"there is no task {task!r}{nearest(task, tasks())}; take one of ServiceWorld().tasks, "
            f"train-01 to train-20 and test-01 to test-20"
        )
    return tasks()[task]


@cache
def _start() -> Database:
    return new_database()


@cache
def _gold(task: str) -> str:
    """Hash of the database after a task's gold actions."""
    db = copy.deepcopy(_start())
    tools = {tool.__name__: tool for tool in TOOLS}
    for name, *arguments in tasks()[task].gold:
        tools[name](db, *arguments)
    return state_of(db)
