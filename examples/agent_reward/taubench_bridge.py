"""The benchmark's side of `agent_reward.taubench`: its airline tools and tasks, asked for by a line of JSON.

``python taubench_bridge.py ENDING FOLDER [TASKS]`` runs in the benchmark's own interpreter and imports nothing of ours.
Of a checkout of sierra-research/tau-bench it loads the tools, the tasks and the data, past ``tau_bench/__init__.py``,
which would import clients of models. A request such as ``{"do": "call", "calls": [["think", {}]]}`` comes in on stdin.
"""

import hashlib
import importlib
import json
import sys
import types
from pathlib import Path

PACKAGES = ("tau_bench", "tau_bench/envs", "tau_bench/envs/airline")


class Airline:
    """The tools on a database, and the tasks it can be judged by; `describe` to `free` answer a request."""

    def __init__(self, ending, folder, tasks=""):
        folder = Path(folder)
        for package in PACKAGES:
            module = types.ModuleType(package.replace("/", "."))
            module.__path__ = [str(folder / package)]
            sys.modules[module.__name__] = module
        tools = importlib.import_module("tau_bench.envs.airline.tools").ALL_TOOLS
        self.tools = {tool.get_info()["function"]["name"]: tool for tool in tools}
        own = importlib.import_module("tau_bench.envs.airline.tasks_test").TASKS
        self.tasks = list(map(corrected, json.loads(Path(tasks).read_text("utf-8")))) if tasks else own
        self.place, self.ending = folder / PACKAGES[-1], ending
        self.texts = {file.stem: file.read_text("utf-8") for file in (self.place / "data").glob("*.json")}

    def describe(self):
        """The policy, the tools' schemas, of each task the customer's story, and the tasks whose gold actions fail."""
        infos = [tool.get_info()["function"] for tool in self.tools.values()]
        policy = (self.place / "wiki.md").read_text("utf-8")
        failing = {place: answer for place in range(len(self.tasks)) if (answer := self.failure(place))}
        stories = [task.instruction for task in self.tasks]
        return {"policy": policy, "tools": infos, "stories": stories, "failing": failing}

    def call(self, calls):
        """The answer to the last of a conversation's calls."""
        data = self.new()
        return {"answer": [self.invoked(tool, data, arguments) for tool, arguments in calls][-1]}

    def judge(self, calls, task, said):
        """The state after the calls beside that of the gold actions, and the outputs that no turn of the agent holds.

        An output is found as the benchmark finds it, anywhere in a turn: "14" is told by "140".
        """
        told = [text.lower().replace(",", "") for text in said]
        missing = [one for one in self.tasks[task].outputs if not any(one.lower() in text for text in told)]
        return {"state": self.after(calls), "gold": self.gold(task), "missing": missing}

    def free(self):
        """The tasks whose gold actions leave the database as it is, and which want nothing told."""
        start = self.after([])
        return {
            "free": [place for place, task in enumerate(self.tasks) if not task.outputs and self.gold(place) == start]
        }

    def new(self):
        """The database before any call."""
        return {name: json.loads(text) for name, text in self.texts.items()}

    def gold(self, task):
        """The state after a task's gold actions, as ``Env.calculate_reward`` replays them."""
        return self.after(self.gold_calls(task))

    def gold_calls(self, task):
        """A task's gold actions but for the one that ends a conversation."""
        return [(one.name, one.kwargs) for one in self.tasks[task].actions if one.name != self.ending]

    def failure(self, task):
        """The answer to the first of a task's gold actions that fails on these tools; empty if all are done."""
        data = self.new()
        answers = (self.invoked(tool, data, arguments) for tool, arguments in self.gold_calls(task))
        return next((answer for answer in answers if answer.startswith(("Unknown action ", "Error: "))), "")

    def after(self, calls):
        """Hash of the database after calls; keys, values, their types and the order of lists make the difference."""
        data = self.new()
        for tool, arguments in calls:
            self.invoked(tool, data, arguments)
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

    def invoked(self, name, data, arguments):
        """One call of a tool on a database; an error is an answer, as in ``Env.step``."""
        if name not in self.tools:
            return f"Unknown action {name}"
        try:
            return str(self.tools[name].invoke(data=data, **arguments))
        except Exception as error:  # whatever a tool raises, the agent of the benchmark reads it
            return f"Error: {error}"


def corrected(task):
    """A task of tau2-bench's ``tasks.json`` in the form of tau-bench's; the story is all that its customer is told."""
    told, judged = task["user_scenario"]["instructions"], task["evaluation_criteria"]
    keys = ("known_info", "unknown_info", "reason_for_call", "task_instructions")
    return types.SimpleNamespace(
        instruction="\n\n".join(told[key].strip() for key in keys if told.get(key)),
        actions=[types.SimpleNamespace(name=one["name"], kwargs=one["arguments"]) for one in judged["actions"] or ()],
        outputs=judged["communicate_info"] or (),
    )


if __name__ == "__main__":
    answers, sys.stdout = sys.stdout, sys.stderr  # what the benchmark prints is no answer
    request = json.load(sys.stdin)
    print(json.dumps(getattr(Airline(*sys.argv[1:]), request.pop("do"))(**request)), file=answers)
