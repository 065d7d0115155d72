"""tau-bench's airline as an environment: the benchmark's tools in a process of its own, its customer played by a model.

Yao et al. 2024, "tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains", arXiv 2406.12045. The
layout is that of sierra-research/tau-bench: ``tau_bench/envs/airline`` with ``tools``, ``tasks_test.py``, ``data`` and
``wiki.md``. Nothing of it is part of this package.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import dspy

from agent_reward.episodes import Episode, ServiceTool, Session, spoken
from metricsmith import DataError, NeedsError, OptionError
from metricsmith.rendering import render_messages

AIRLINE = Path("tau_bench/envs/airline")
BRIDGE = Path(__file__).with_name("taubench_bridge.py")
ENDING = "transfer_to_human_agents"  # tau_bench/envs/airline/env.py: the tool that ends a conversation
KEPT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")  # all of our environment that the benchmark sees: no key
LAST_WORDS = 800  # characters of the benchmark's errors that are quoted


class CustomerTurn(dspy.Signature):
    """Write the next turn of a customer who is chatting with a company's service agent.

    Stay in the part that the story gives you and speak as that customer, one short turn at a time. Say what the agent
    asks for if the story knows it, and that you do not know otherwise; invent nothing, and do not tell the whole story
    at once. The conversation has ended when the customer has what the story wants, has been refused for good, or has
    been handed to somebody else; leave the turn empty then.
    """

    story: str = dspy.InputField(desc="who the customer is, what they know and want, and how they behave")
    conversation: str = dspy.InputField(desc="the chat so far; empty before the customer's first turn")
    turn: str = dspy.OutputField(desc="the customer's next turn")
    ended: bool = dspy.OutputField(desc="true if the customer has nothing left to say")


class TauBench:
    """The airline tasks of a checkout of tau-bench, the first half to learn from and the second to test on.

    Each call has a process of the benchmark's interpreter, in which the conversation's calls so far are made again, so
    that nothing is left running. It runs the benchmark's tools, in conversations and for the gold actions, with no key
    in its environment, though as the same user: customer and agent are asked by our process. The reward is the
    benchmark's: 1 if the database equals that after the gold actions and every output stands in a turn of the agent.
    Where its limit of steps ends a conversation the benchmark gives 0; `TauSession.close` judges.

    Parameters
    ----------
    folder : path
        The checkout.
    python : str
        An interpreter that has what the benchmark's tools and tasks import (pydantic).
    tasks : path, optional
        The ``tasks.json`` of tau2-bench's airline, whose stories, gold actions and outputs then replace the checkout's.
        Those with gold actions that fail on the checkout's tools are left out.
    timeout : float
        Seconds that the process may take for an answer.

    Attributes
    ----------
    left_out : dict of str to str
        The tasks that are left out, with the answer to the gold action that failed: doing nothing might earn their
        reward.

    Raises
    ------
    NeedsError
        If the folder is no checkout, or the interpreter cannot be started.
    DataError
        If the process ends or takes too long, with the end of what it wrote to stderr.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        python: str = sys.executable,
        tasks: str | os.PathLike[str] | None = None,
        *,
        timeout: float = 60.0,
    ) -> None:
        if not (Path(folder) / AIRLINE).is_dir():
            raise NeedsError(
                f"{folder} is no checkout of tau-bench, it has no {AIRLINE}: git clone "
                "https://github.com/sierra-research/tau-bench and name that folder"
            )
        places = [str(Path(one).resolve()) for one in (folder, tasks) if one is not None]
        self._command = [python, "-I", "-B", "-X", "utf8", str(BRIDGE), ENDING, *places]
        self._timeout = timeout
        self.customer = dspy.Predict(CustomerTurn)
        described = self.ask("describe")
        self.policy: str = described["policy"]
        self.stories: Mapping[str, str] = {str(place): one for place, one in enumerate(described["stories"])}
        self.left_out: Mapping[str, str] = described["failing"] if tasks else {}
        self.stories = {task: story for task, story in self.stories.items() if task not in self.left_out}
        self.tools = [
            ServiceTool(dict, one["name"], one["description"], one["parameters"]["properties"])
            for one in described["tools"]
        ]
        ids, half = tuple(self.stories), len(self.stories) // 2
        self.tasks = {"train": ids[:half], "test": ids[half:]}

    def start(self, task: str, seed: int = 0) -> TauSession:
        """Begin a conversation; the seed keeps repeated ones apart in DSPy's cache.

        Raises
        ------
        OptionError
            If there is no such task.
        """
        if task not in self.stories:
            raise OptionError(f"there is no task {task!r}: give one of {', '.join(self.stories)}")
        return TauSession(self, task, seed)

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The tasks whose reward an agent earns that changes nothing and tells nothing: the floor of the scale."""
        return tuple(task for task in map(str, self.ask("free")["free"]) if task in self.stories)

    def ask(self, what: str, **request: Any) -> dict[str, Any]:
        """The benchmark's answer to a request, from a process that ends with it."""
        try:
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                encoding="utf-8", errors="replace", start_new_session=True,
                env={name: os.environ[name] for name in KEPT if name in os.environ},
            )  # fmt: skip
        except OSError as problem:
            raise NeedsError(f"{problem}: name the python of an environment that has pydantic") from problem
        with process:
            try:
                answer, words = process.communicate(json.dumps({"do": what, **request}), self._timeout)
                return dict(json.loads(answer))
            except ValueError:  # it ended before it answered
                how = "ended"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # and what it started
                how, words = f"took over {self._timeout:g} s", process.communicate()[1]
        raise DataError(
            f"tau-bench's process {how} when asked to {what}. Its last words: {words[-LAST_WORDS:].strip() or 'none'}. "
            "Install what it lacks into its environment, mend the checkout, or raise timeout="
        )


class TauSession(Session):
    """One conversation with a customer of tau-bench."""

    def __init__(self, bench: TauBench, task: str, seed: int) -> None:
        super().__init__(bench.tools)
        self._bench, self._task, self._seed = bench, task, seed
        self._asked: list[tuple[str, Mapping[str, Any]]] = []  # one at which the process ended ends it again

    @cached_property
    def opening(self) -> str:
        """The customer's first turn, asked for when it is first read."""
        return self._reply()

    def say(self, text: str) -> str:
        """Tell the customer something; the customer's answer, empty once the conversation is over."""
        if not self.over:
            _ = self.opening  # the customer begins
        if self.over:
            return ""
        self.messages.append({"role": "assistant", "content": text})
        return self._reply()

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The benchmark's answer to a call, as long as the conversation goes on."""
        if self.over:
            return "Error: the conversation is over"
        self._asked.append((tool, arguments))
        self.over = tool == ENDING
        answer: str = self._bench.ask("call", calls=self._asked)["answer"]
        return answer

    def close(self) -> Episode:
        """End the conversation and judge it."""
        self.over = True
        said = [turn["content"] for turn in spoken(self.messages) if turn["role"] == "assistant"]
        found = self._bench.ask("judge", calls=self._asked, task=int(self._task), said=said)
        lacks = [f"The customer was not told {output}." for output in found["missing"]]
        if found["state"] != found["gold"]:
            lacks.append("The database at the end is not the one that the right calls lead to.")
        kept = tuple(self.messages), tuple(self.calls)
        return Episode(self._task, *kept, float(not lacks), found["state"], tuple(lacks))

    def _reply(self) -> str:
        bench, heard = self._bench, spoken(self.messages)
        with self.failing(), dspy.context(trace=None):  # the customer is no part of the program that is optimised
            answer = bench.customer(
                story=bench.stories[self._task],
                conversation=render_messages(heard) if heard else "",
                config={"temperature": 1.0, "rollout_id": self._seed},
            )
        self.over = bool(answer.ended)
        self.messages.append({"role": "user", "content": str(answer.turn)})
        return str(answer.turn)
