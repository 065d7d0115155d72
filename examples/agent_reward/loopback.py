"""A model for the study without a key: agent, reflector and judge, the last two of which know their prompt alone.

The agent knows its task by the customer's opening and plays that task's script (`agent_reward.scripted`); of its
instruction depends which rules it obeys, and nothing else. The reflector
adds one rule to an instruction, and only one whose breach stands in the feedback that it was sent. The generator of
judges names a quality for each rule of the policy in the task's description and two besides; a judge reads the
transcript and says whether its rule was broken.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import dspy

from agent_reward.episodes import CALL, Call, Episode
from agent_reward.loop import Reward, verified, without_words
from agent_reward.policy import RULES, broken
from agent_reward.scripted import steps
from agent_reward.tasks import tasks
from agent_reward.world import ServiceWorld
from metricsmith.testing import GivenModel

BESIDES = {"Friendly tone": "The agent is friendly.", "Short turns": "The agent says what it has to say in few words."}
FIELD = r"\[\[ ## {} ## \]\]\n(.*?)(?=\n\n\[\[ ## |\n*\Z)"
TURN = re.compile(r"^(user|assistant|tool):(?: (.*)|((?:\n  .*|\n)*))", re.MULTILINE)


@contextmanager
def loopback() -> Iterator[dspy.LM]:
    """A server on the loopback interface for the length of a ``with`` block, as the model that it plays."""
    with GivenModel(answered) as model:
        yield model.lm(temperature=1.0, num_retries=0)


def controls(world: ServiceWorld, seed: int = 0) -> Mapping[str, tuple[ServiceWorld, Reward]]:
    """Worlds and rewards from which nothing can be learned: every task judged as another one, and empty feedback.

    By the gold of another task an agent earns the same whatever rules it obeys, so that GEPA has nothing to accept.
    Both therefore test the wiring of the loop, that nothing of the truth leaks past reward and feedback, and no more.
    """
    train = list(world.tasks["train"])
    order = random.Random(seed).sample(train, len(train))
    shuffled = ServiceWorld(dict(zip(order, [*order[1:], order[0]], strict=True)))  # one circle: no task is itself
    return {
        "control: rewards of other tasks": (shuffled, verified),
        "control: empty feedback": (world, without_words),
    }


def answered(prompt: str) -> Mapping[str, Any] | str:
    """The answer to a prompt, by the fields that it asks for."""
    asked = prompt.rpartition("Respond with")[2]
    if "next_tool_name" in asked:
        return _turn(prompt)
    if "new_instruction" in asked:
        return json.dumps({"new_instruction": _reflected(prompt)})
    if "axes" in asked:
        named = {rule.capitalize(): sentence for rule, sentence in RULES.items() if sentence in _field(prompt, "task")}
        return {"axes": [{"name": name, "meaning": meaning} for name, meaning in (named | BESIDES).items()]}
    criterion = _field(prompt, "criterion")
    rule = next((rule for rule, sentence in RULES.items() if sentence in criterion), "")
    breach = rule in broken(read_transcript(_field(prompt, "output")))
    reasoning = f"The agent broke this rule. {rule}: {RULES[rule]}" if breach else "Nothing speaks against it."
    return {"reasoning": reasoning, "score": 1 if breach else 5}


def read_transcript(text: str) -> Episode:
    """The episode that a rendered transcript shows, without what no transcript says: task, reward and state."""
    turns = [(turn[1], turn[2] if turn[2] is not None else _unindented(turn[3])) for turn in TURN.finditer(text)]
    messages = tuple({"role": role, "content": content} for role, content in turns)
    calls = []
    for (_, content), (_, answer) in pairwise(turns):
        if content.startswith(CALL):
            call = json.loads(content.removeprefix(CALL))
            calls.append(Call(call["name"], call["arguments"], answer))
    return Episode("", messages, tuple(calls), float("nan"), "")


def _turn(prompt: str) -> Mapping[str, Any]:
    """The agent's next turn: the place in the script is the number of observations so far."""
    instruction = prompt.partition("your objective is:")[2].partition("[[ ## opening ## ]]")[0]
    obeyed = [rule for rule, sentence in RULES.items() if sentence in _unindented(instruction)]
    opening = _field(prompt, "opening")
    script = steps(next(task for task in tasks().values() if opening.endswith(task.opening)), obeyed)
    place = len(re.findall(r"^\[\[ ## observation_\d+ ## \]\]$", prompt, re.MULTILINE))
    if place == len(script):
        return {"next_thought": "Nothing is left to do.", "next_tool_name": "finish", "next_tool_args": {}}
    name, arguments = script[place]
    return {"next_thought": "This comes next.", "next_tool_name": name, "next_tool_args": dict(arguments)}


def _reflected(prompt: str) -> str:
    """The instruction with the rule whose breach the feedback names in most examples, the first of equals."""
    instruction = _field(prompt, "current_instruction")
    shown, _ = json.JSONDecoder().raw_decode(_field(prompt, "examples_with_feedback"))
    feedback = [str(example["Feedback"]) for example in shown]
    times = {
        sentence: sum(f"{rule}: {sentence}" in text for text in feedback)
        for rule, sentence in RULES.items()
        if sentence not in instruction
    }
    most = max(times, key=lambda sentence: times[sentence], default="")
    return f"{instruction}\n{most}" if times.get(most) else instruction


def _field(prompt: str, name: str) -> str:
    """The text of the last field of this name in a prompt."""
    return re.findall(FIELD.format(name), prompt, re.DOTALL)[-1]


def _unindented(text: str) -> str:
    return "\n".join(line.strip() if not line.startswith("  ") else line[2:] for line in text.splitlines()[1:])
