"""A checkout of tau-bench with three tasks, of our own writing: its layout, and none of its texts."""

from __future__ import annotations

import json
from pathlib import Path

TYPES = """
class Action:
    def __init__(self, name, kwargs):
        self.name, self.kwargs = name, kwargs


class Task:
    def __init__(self, annotator, user_id, instruction, actions, outputs):
        self.instruction, self.actions, self.outputs = instruction, actions, outputs
"""

TOOLS = """
import os
import subprocess
import sys


class Tool:
    @classmethod
    def get_info(cls):
        schema = {"type": "object", "properties": cls.properties, "required": list(cls.properties)}
        return {"type": "function", "function": {"name": cls.name, "description": cls.text, "parameters": schema}}


class LookUp(Tool):
    name, text = "look_up", "Look up a seat."
    properties = {"seat": {"type": "string", "description": "Such as A1."}}

    def invoke(data, seat):
        print("a word in between")
        return str(data["seats"][seat])


class Move(Tool):
    name, text = "move", "Move a guest to a row."
    properties = {"seat": {"type": "string"}, "row": {"type": "integer"}, "cabin": {"enum": ["pit", "box"]}}

    def invoke(data, seat, row, **rest):
        data["seats"][seat] = [row, rest["cabin"]]
        return "moved"


class Refund(Tool):
    name, text = "refund", "Pay back an amount."
    properties = {"amount": {"type": "number"}, "seats": {"type": "array", "items": {"type": "string"}}}

    def invoke(data, amount, seats):
        data["till"]["paid"] = amount
        return f"{amount} for {len(seats)}"


class Sees(Tool):
    name, text, properties = "sees", "Say what the process sees.", {}

    def invoke(data):
        return " ".join(sorted(os.environ))


class Fall(Tool):
    name, text, properties = "fall", "End the process.", {}

    def invoke(data, code=3):
        print("the floor is wet", file=sys.stderr, flush=True)
        os._exit(code)


class Sleep(Tool):
    name, text, properties = "sleep", "Take a minute, in a process that holds stderr open.", {}

    def invoke(data):
        print("good night", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"])


class Transfer(Tool):
    name, text = "transfer_to_human_agents", "Hand over."
    properties = {"summary": {"type": "string"}}

    def invoke(data, summary):
        data["till"]["handed"] = True
        return "handed over"


ALL_TOOLS = [LookUp, Move, Refund, Sees, Fall, Sleep, Transfer]
"""

TASKS = """
from tau_bench.types import Action, Task

MOVE = {"seat": "A1", "row": 7, "cabin": "box"}
TASKS = [
    Task("0", "ada", "You are Ada and want seat A1 moved to row 7, in a box.", [Action("move", MOVE)], []),
    Task("0", "ben", "You are Ben and ask for what is not to be had.",
         [Action("look_up", {"seat": "A9"}), Action("transfer_to_human_agents", {"summary": "no"})], []),
    Task("0", "cyd", "You are Cyd, want 50 back for A1 and to know the price.",
         [Action("refund", {"amount": 50, "seats": ["A1"]})], ["1400"]),
]
"""

FILES = {
    "__init__.py": "raise ImportError('no client of a model is to be imported')",
    "types.py": TYPES,
    "envs/airline/tools/__init__.py": TOOLS,
    "envs/airline/tasks_test.py": TASKS,
    "envs/airline/wiki.md": "Be fair to every guest.\n",
    "envs/airline/data/__init__.py": "",
    "envs/airline/data/seats.json": json.dumps({"A1": [1, "pit"], "B2": [2, "pit"]}),
    "envs/airline/data/till.json": json.dumps({"paid": 0}),
}


def make_checkout(folder: Path) -> Path:
    """Write the checkout into a folder and return it."""
    for name, text in FILES.items():
        path = folder / "tau_bench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder
