"""Rows run by another Python process, for a process whose engine a fork has cut off from its threads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from metricsmith.sandbox.contract import Limits, RowResult

__all__ = ["run_apart"]

ANSWER = """
import json, sys
paths, source, function, rows, limits = json.load(sys.stdin)
sys.path[:] = paths
from metricsmith.sandbox.contract import Limits, RowResult
from metricsmith.sandbox.monty import sandbox
texts = [row if isinstance(row, str) else RowResult(*row) for row in rows]
outcomes = sandbox().run_texts(source, function, texts, Limits(**limits))
print(json.dumps([[one.value, one.error] for one in outcomes]))
"""
ATTEMPTS = 2


def run_apart(source: str, function: str, rows: Sequence[str | RowResult], limits: Limits) -> list[RowResult]:
    """`MontySandbox.run_texts` in a process that lasts for the call; it is asked again if it ends without an answer."""
    texts = [row if isinstance(row, str) else [row.value, row.error] for row in rows]
    question = json.dumps([sys.path, source, function, texts, asdict(limits)])
    for _ in range(ATTEMPTS):
        # In a session of its own: an interrupt from the terminal is the caller's, which then ends all of it.
        with subprocess.Popen(
            [sys.executable, "-c", ANSWER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        ) as process:  # fmt: skip
            try:
                answer, _ = process.communicate(question)
            except BaseException:
                with suppress(OSError):  # all may have ended
                    os.killpg(process.pid, signal.SIGKILL)  # its workers too, which may be in an endless loop
                raise
        if process.returncode == 0:
            return [RowResult(value, error) for value, error in json.loads(answer)]
    return [RowResult(error="the process that runs the rows ended twice")] * len(rows)
