"""A process that scores rows when told to, to be killed or interrupted by tests.

Everything is imported once; every task runs in a fork of its own, so that twenty kills take seconds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Scorer", "Task", "scorer", "task_rows"]

CRITERIA = ("Clear", "Brief")


@dataclass(frozen=True)
class Task:
    """The metrics to score, the server, and the place of the result: a JSON file, written when the run ends."""

    port: int
    store: str
    result: str
    rows: int
    first: int = 0
    metrics: int = 1
    concurrency: int = 8
    timeout: float = 60.0


@dataclass
class Scorer:
    """The running process; `start` gives the number of the process that does the task."""

    process: subprocess.Popen[str]

    def start(self, task: Task) -> int:
        return int(self._say({"task": asdict(task)}))

    def wait(self, pid: int) -> int:
        """The exit status of a task's process, negative for the signal that ended it."""
        return int(self._say({"wait": pid}))

    def _say(self, order: dict[str, Any]) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


@contextmanager
def scorer() -> Iterator[Scorer]:
    """Start the process for the length of a block."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, __file__], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Scorer(process)
        finally:
            process.stdin.close()
            process.wait(20)


def task_rows(task: Task) -> list[Any]:
    from metricsmith.metric import make_row

    numbers = range(task.first, task.first + task.rows)
    return [make_row(f"row-{number:04d} says enough.", id=f"row-{number:04d}") for number in numbers]


def work(task: Task) -> dict[str, Any]:
    """Score, and tell how it ended."""
    import dspy

    from metricsmith.errors import Interrupted
    from metricsmith.programs.judges.criterion import CriterionJudge
    from metricsmith.scoring import score

    api = f"http://127.0.0.1:{task.port}/v1"
    lm = dspy.LM("openai/loopback", api_base=api, api_key="none", cache=False, timeout=task.timeout)
    names = CRITERIA[: task.metrics]
    judges = [CriterionJudge(criterion=name, meaning=f"It is {name}.", task="Rewrite.") for name in names]
    interrupted = False
    try:
        table = score(
            judges, task_rows(task), lm=lm, store=task.store, concurrency=task.concurrency, progress=False,
            max_failure_rate=1.0,
        )  # fmt: skip
    except Interrupted as stop:
        table, interrupted = stop.table, True
    frame = table.to_pandas()
    return {
        "interrupted": interrupted,
        "ended": time.time(),
        "counts": table.counts(),
        "requests": table.usage.requests,
        "values": frame["raw"].where(frame["raw"].notna(), None).tolist(),
        "ok": [
            f"{name}/{metric}" for name, metric, status in frame[["id", "metric", "status"]].values if status == "ok"
        ],
    }


def main() -> None:
    """Obey orders until there are no more."""
    import pandas  # noqa: F401

    import metricsmith.programs.judges.criterion
    import metricsmith.scoring  # noqa: F401

    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                os._exit(child(Task(**order["task"])))
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def child(task: Task) -> int:
    """Do one task in this process; 0 if its result was written."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = work(task)
        path = Path(task.result)
        path.with_suffix(".part").write_text(json.dumps(result))
        path.with_suffix(".part").rename(path)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main()
