"""The ferry line's service as an environment: sessions with a database each, and the reward that can be verified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from agent_reward.customer import reply
from agent_reward.episodes import Episode, ServiceTool, Session, spoken
from agent_reward.policy import POLICY, RULES, broken, is_told
from agent_reward.tasks import SIDES, Task, tasks
from agent_reward.tools import TOOLS, new_database, state_of
from metricsmith import DataError, OptionError
from metricsmith.errors import nearest

MOST_TURNS = 30  # turns of the agent to the customer, after which the customer hangs up
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
        self.tasks = {side: tuple(task for task in tasks() if task.startswith(side)) for side in SIDES}
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


class ServiceSession(Session):
    """One conversation about a task, judged as another where a control wants it.

    A customer who has taken leave hears nothing more, but what was promised can still be done with the tools; after a
    transfer nothing can.
    """

    def __init__(self, task: Task, judged_as: Task, seed: int) -> None:
        super().__init__(_described())
        self.opening = f"{GREETINGS[seed % len(GREETINGS)]} {task.opening}"
        self.messages.append({"role": "user", "content": self.opening})
        self._task, self._judged_as = task, judged_as
        self._db = new_database()
        holder = self._db["customers"][task.customer]
        known = {"name": f"My name is {holder['name']}.", "born": f"I was born on {holder['born']}."}
        self._says = {**known, **task.says}

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The answer to a call; wrong arguments are answered by what is wrong."""
        try:
            if self._db["transfers"]:
                raise DataError("the conversation was handed over, nothing can be done any more")
            answer = TOOLS[tool](self._db, **arguments)
        except (DataError, TypeError) as error:
            return f"Error: {error}"
        self.over = self.over or tool == "transfer_to_human"
        return answer

    def say(self, text: str) -> str:
        """Tell the customer something; the customer's answer, empty once the conversation is over."""
        if self.over:
            return ""
        answer, self.over = reply(self._says, text)
        self.messages += [{"role": "assistant", "content": text}, {"role": "user", "content": answer}]
        turns = sum(turn["role"] == "assistant" for turn in spoken(self.messages))
        self.over = self.over or turns >= MOST_TURNS
        return answer

    def close(self) -> Episode:
        """End the conversation and judge it."""
        self.over = True
        judged, state = self._judged_as, state_of(self._db)
        said = "\n".join(turn["content"] for turn in spoken(self.messages) if turn["role"] == "assistant")
        lacks = [f"The customer was not told {fact}." for fact in judged.facts if not is_told(fact, said)]
        right = state == _gold(judged.id)
        reward = float(right and not lacks)
        episode = Episode(self._task.id, tuple(self.messages), tuple(self.calls), reward, state)
        if reward:
            return episode
        rules = [f"{rule}: {RULES[rule]}" for rule in broken(episode) if rule in judged.rules]
        if not (right or rules):
            lacks.append("The bookings, vouchers and transfers at the end are not those that the wishes lead to.")
        return replace(episode, lacks=(*rules, *lacks))


@cache
def _described() -> tuple[ServiceTool, ...]:
    """The tools as an agent sees them, without the database."""
    seen = tuple(map(ServiceTool, TOOLS.values()))
    for tool in seen:
        del tool.args["db"]
    return seen


def _task(task: str) -> Task:
    if task not in tasks():
        raise OptionError(
            f"there is no task {task!r}{nearest(task, tasks())}; take one of ServiceWorld().tasks, "
            f"train-01 to train-20 and test-01 to test-20"
        )
    return tasks()[task]


@cache
def _gold(task: str) -> str:
    """Hash of the database after a task's gold actions."""
    db = new_database()
    for name, *arguments in tasks()[task].gold:
        TOOLS[name](db, *arguments)
    return state_of(db)
